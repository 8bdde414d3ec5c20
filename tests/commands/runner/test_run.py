"""The runner: what happens around the actions, signals, and failures. The actions here are small ones of the tests."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cntkpy.cntk_config import ConfigParameters, entry
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.catalogue import dispatch
from cntkpy.commands.context.run_context import RunContext
from cntkpy.commands.runner import run

CALLS: list[RunContext] = []


def note(section: ConfigParameters, context: RunContext) -> None:
    CALLS.append(context)


def fail(section: ConfigParameters, context: RunContext) -> None:
    value = section.find("x")
    raise UserError("DataError", "the data are bad", span=value.span if value is not None else None, hint="mend them")


@pytest.fixture(autouse=True)
def actions(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    fakes = {"tests:note": note, "tests:fail": fail, "tests:crash": int}
    load = entry.load_object
    monkeypatch.setattr(entry, "load_object", lambda path: fakes.get(path) or load(path))
    extra = [Entry("action", (name,), factory=f"tests:{name}") for name in ("note", "fail", "crash")]
    extra.append(replace(dispatch.find_action("train", "a"), factory="tests:note"))
    monkeypatch.setattr(dispatch, "ACTIONS", (*extra, *dispatch.ACTIONS))


def test_actions_get_their_context(cntkpy) -> None:
    config = "command=a:b\nprecision=double\ntraceLevel=1\na=[action=note:note;traceLevel=2]\n"
    config += "b=[action=note;makeMode=false]\n"
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config})
    assert got.code == 0, got.err
    assert [(c.command, c.action, c.precision, c.trace_level, c.make_mode) for c in CALLS] == [
        ("a", "note", "double", 2, True),
        ("a", "note", "double", 2, True),
        ("b", "note", "double", 1, False),
    ]
    assert CALLS[0].seeds is CALLS[2].seeds
    assert got.err.count('Action "note" complete.') == 3
    assert got.err.endswith("COMPLETED.\n")
    assert got.out == ""


def test_the_log_in_order(cntkpy) -> None:
    got = cntkpy(
        "configFile=m.cntk", "timestamping=true", files={"m.cntk": "command=a\ntraceLevel=1\na=[action=note]\n"}
    )
    lines = [re.sub(r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d: ", "T ", line) for line in got.err.splitlines()]
    assert re.match(r"cntkpy \S+ on ", lines[0])
    assert lines[2] == "cntkpy  configFile=m.cntk  timestamping=true"
    assert "T Build info:" in lines
    at = lines.index("Configuration After Processing and Variable Resolution:")
    assert lines[at + 2 : at + 6] == [
        "configparameters: m.cntk:command=a",
        "configparameters: m.cntk:traceLevel=1",
        "configparameters: m.cntk:a=[action=note]",
        "configparameters: m.cntk:timestamping=true",
    ]
    assert lines[at + 6 : at + 8] == ["T Commands: a", 'T precision = "float"']
    assert lines[at + 8 :] == [
        "",
        "T " + "#" * 78,
        "T #" + " " * 76 + "#",
        "T " + "# a command (note action)".ljust(77) + "#",
        "T #" + " " * 76 + "#",
        "T " + "#" * 78,
        "",
        "",
        'T Action "note" complete.',
        "",
        "T __COMPLETED__",
    ]


def test_a_failure_while_running_is_1_and_ends_the_run(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": "command=a:b\na=[action=fail;x=7]\nb=[action=note]\n"})
    assert got.code == 1
    assert CALLS == []
    tail = got.err[got.err.index("EXCEPTION") :].splitlines()
    assert tail[0] == "EXCEPTION occurred: the data are bad"
    assert tail[1] == "  --> m.cntk:2:18"
    assert tail[-1] == "  help: mend them"
    assert "COMPLETED" not in got.err
    assert "Traceback" not in got.err


def test_an_internal_error_shows_its_traceback_and_asks_for_a_report(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": "command=a\na=[action=crash]\n"})
    assert got.code == 1
    assert "Traceback" in got.err
    assert "EXCEPTION occurred: internal error: TypeError: " in got.err
    assert "report" in got.err.splitlines()[-1]


def test_the_failure_goes_into_the_redirected_log(cntkpy, tmp_path: Path) -> None:
    config = "command=a\nstderr=log/run\na=[action=fail]\n"
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config})
    assert got.code == 1
    assert "EXCEPTION occurred: the data are bad" in got.err
    assert got.err.endswith("The log is in log/run\n")
    log = (tmp_path / "log/run").read_text()
    assert log.startswith("cntkpy "), "with traceLevel 0 the banner is repeated"
    assert "EXCEPTION occurred: the data are bad" in log


COMPLETE = """
reader = [ readerType = CNTKTextFormatReader ; file = m.cntk ; input = [ features = [ dim = 1 ; format = dense ]
    labels = [ dim = 1 ; format = dense ] ] ]
SimpleNetworkBuilder = [ layerSizes = 1:1 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
learningRatesPerMB = 1
"""


def test_progress_tracing_announces_the_trainings(cntkpy) -> None:
    config = (
        "command=a:b:c\nprogressTracing=true\nmodelPath=m\n"
        "a=[action=train;SGD=[maxEpochs=3]]\nb=[action=note]\nc=[action=train;modelPath=n;SGD=[maxEpochs=4]]\n"
    )
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config + COMPLETE})
    assert got.code == 0, got.err
    assert [line for line in got.err.splitlines() if line.startswith("CNTK")] == [
        "CNTKModelPath: m",
        "CNTKCommandTrainInfo: a : 3",
        "CNTKModelPath: n",
        "CNTKCommandTrainInfo: c : 4",
        "CNTKCommandTrainInfo: CNTKNoMoreCommands_Total : 7",
        "CNTKCommandTrainBegin: a",
        "CNTKCommandTrainEnd: a",
        "CNTKCommandTrainBegin: c",
        "CNTKCommandTrainEnd: c",
    ]
    assert (CALLS[0].progress_tracing.total_epochs, CALLS[0].progress_tracing.finished_epochs) == (7, 7)


def test_truncated_for_the_reader_only_is_refused(cntkpy) -> None:
    config = "command=a\nmodelPath=m\na=[action=train;SGD=[maxEpochs=3]]\n" + COMPLETE.replace(
        "file =", "truncated = true ; file ="
    ).replace("reader = [", "a = [ reader = [").replace("] ] ]", "] ] ] ]")
    got = cntkpy("configFile=m.cntk", files={"m.cntk": config})
    assert got.code == 2
    assert "truncated" in got.message
    assert cntkpy("configFile=m.cntk", "truncated=true").code == 0


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("trian", "unknown action: trian  in command set: a"),
        ("Train", "unknown action: Train  in command set: a"),
        ("convertdbn", 'action "convertdbn" is not supported'),
    ],
)
def test_actions_which_are_not_there(action: str, expected: str, cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": f"command=a\na=[action={action}]\n"})
    assert got.code == 2
    assert got.message.startswith(expected)
    assert f"# a command ({action} action)" in got.err  # as in CNTK, though nothing was begun
    if action == "Train":
        assert "did you mean 'train'?" in got.err


def test_done_file(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", "doneFile=done", files={"m.cntk": "command=()\n"})
    assert got.code == 0
    assert re.fullmatch(r"Successfully finished at .* on .*\n", (tmp_path / "done").read_text())


def test_threads(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "numCPUThreads=1", files={"m.cntk": "command=()\n"})
    assert "Using 1 CPU threads." in got.err
    got = cntkpy("configFile=m.cntk", "forceDeterministicAlgorithms=true")
    assert "Using 1 CPU thread for processing." in got.err


def test_no_more_threads_than_cores_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand took all memory of the machine."""
    found: dict[str, str] = {}
    monkeypatch.setattr(run, "os", SimpleNamespace(environ=found, cpu_count=lambda: 4))
    monkeypatch.setattr(run.cores, "use_for", lambda threads: None)
    run._set_threads(100000, False)
    assert found["NPROC"] == found["OMP_NUM_THREADS"] == found["NUMBA_NUM_THREADS"] == "4"
    run._set_threads(3, False)
    assert found["NPROC"] == "3"


def test_the_other_words(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/m.cntk").write_text("command=()\n")
    got = cntkpy("currentDirectory=sub", "configFile=m.cntk")
    assert got.code == 0
    assert "Changed current directory to sub" in got.err
    got = cntkpy("currentDirectory=nowhere", "configFile=m.cntk")
    assert got.code == 2
    assert "nowhere" in got.message


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["confgFile=m.cntk"], "did you mean 'configFile=m.cntk'?"),
        (["m.cntk"], "did you mean 'configFile=m.cntk'?"),
        (["m.py"], "run it: cntkpy run m.py"),
        (["configFile", "=m.cntk"], "write configFile=FILE without blanks"),
        (["configFile", "=", "m.cntk"], "write configFile=FILE without blanks"),
        (["chek"], "did you mean 'check'?"),
        (["--file", "m.bs"], "BrainScript mode is not supported"),
        (["x=1"], "no configFile= is given"),
        (["run", "x=1"], "no configFile= is given"),
    ],
)
def test_words_without_a_configuration(words: list[str], hint: str, cntkpy) -> None:
    got = cntkpy(*words, files={"m.cntk": ""})
    assert got.code == 2
    assert hint in got.err
    assert "Usage:" in got.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["command", "=", "test"], "a value without a name is ignored - on the command line name=value is one word"),
        (["command=", "test"], "on the command line name=value is one word, without blanks"),
        (["configFile=", "m.cntk"], "help: write configFile=m.cntk"),
    ],
)
def test_blanks_in_a_word_are_told(words: list[str], told: str, cntkpy) -> None:
    got = cntkpy("configFile=n.cntk", *words, files={"m.cntk": "", "n.cntk": "test=[action=test]\n"})
    assert got.code == 2
    assert told in got.err


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["run", "--help"], ["show", "--help"], ["check", "-h"]])
def test_help(words: list[str], cntkpy) -> None:
    got = cntkpy(*words)
    assert got.code == 0
    assert "Examples:" in got.out or "classic form" in got.out


def test_version(cntkpy) -> None:
    got = cntkpy("--version")
    assert (got.code, bool(re.fullmatch(r"cntkpy \d+\.\d+\.\d+\n", got.out))) == (0, True)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.thorough)]
)
def test_signals(number: int, status: int, tmp_path: Path) -> None:
    (tmp_path / "m.cntk").write_text("command=a\na=[action=sleep]\n")
    (tmp_path / "sleeper.py").write_text(
        "import pathlib, time\ndef run(section, context):\n    pathlib.Path('started').touch()\n    time.sleep(60)\n"
    )
    code = (  # a shell that starts the tests in the background lets them ignore SIGINT
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from cntkpy.cntk_config.entry import Entry; from cntkpy.commands.catalogue import dispatch; "
        "dispatch.ACTIONS += (Entry('action', ('sleep',), factory='sleeper:run'),); "
        "from cntkpy.commands.cli import main; sys.exit(main(['configFile=m.cntk']))"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 100
    while not (tmp_path / "started").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)  # it sleeps for 60
    assert process.returncode == status
    assert "Traceback" not in err
    assert err.endswith("interrupted\n" if number == signal.SIGINT else "terminated by signal SIGTERM\n")


def lacking(section: ConfigParameters, context: RunContext) -> None:
    raise ModuleNotFoundError("No module named 'jax'", name="jax")


def test_a_missing_extra_is_explained(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "load_object", lambda path: lacking)
    got = cntkpy("configFile=m.cntk", files={"m.cntk": "command=a\na=[action=note]\n"})
    assert got.code == 1
    assert got.message == "this needs jax, which is not installed"
    assert "help: add the extra train: " in got.err
    assert "Traceback" not in got.err


def test_installed_packages_add_actions(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "extra", "tests:note"

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()] if group == "cntkpy.actions" else [])
    monkeypatch.setattr(dispatch, "_plugin_actions", dispatch._plugin_actions.__wrapped__)  # not remembered
    config = "command=a\na=[action=extra]\n"
    assert cntkpy("configFile=m.cntk", files={"m.cntk": config}).code == 0
    assert [context.action for context in CALLS] == ["extra"]
    got = cntkpy("configFile=m.cntk", "a=[action=exstra]")
    assert "did you mean 'extra'?" in got.err


def test_an_internal_error_of_a_tool_asks_for_a_report(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise TypeError("no such thing")

    monkeypatch.setattr("cntkpy.commands.checks.check.check", crash)
    got = cntkpy("check", "m.cntk", files={"m.cntk": "command=a\na=[action=write]\n"})
    assert got.code == 1
    last = got.err.splitlines()[-2:]
    assert last[0] == "internal error: TypeError: no such thing"
    assert "report" in last[1]


def test_the_package_of_python_users_is_ours() -> None:
    import cntkpy.compat.cntk as ours
    from cntkpy.commands.runner.blame import user_frames

    with pytest.raises(UserError) as caught:
        ours.input_variable(object())  # type: ignore[arg-type]
    files = {Path(frame.filename).name for frame in user_frames(caught.value)}
    assert files == {"test_run.py"}


def test_what_a_tool_does_not_expect_is_told_without_a_traceback(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise UserError("BadValue", "no such thing", hint="mend it")

    monkeypatch.setattr("cntkpy.commands.checks.check.check", fails)
    got = cntkpy("check", "m.cntk", files={"m.cntk": "command=a\na=[action=write]\n"})
    assert got.code == UserError.exit_code
    assert got.err == "error: no such thing\n  help: mend it\n"
