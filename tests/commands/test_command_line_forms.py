"""One way for all commands: `run FILE`, `--format json`, colours, statuses, the last line on a terminal (F14)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError
from cntkpy.commands import help_texts
from cntkpy.commands.cli import cntkpy as group
from cntkpy.commands.console import coloured, has_colours
from cntkpy.commands.runner.last_result import LastResult
from cntkpy.commands.words import as_classic
from cntkpy.trainers.log.events import event
from cntkpy.trainers.log.text import Total

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
command = train
modelPath = out/m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 8 ; learningRatesPerMB = 0.1 ]
    reader = [ file = train.ctf ; input = [ features = [ dim = 2 ; format = dense ]
        labels = [ dim = 3 ; format = dense ] ] ]
]
"""
DATA = "|features 1 0 |labels 1 0 0\n|features 0 1 |labels 0 1 0\n" * 4
FILES = {"m.cntk": CONFIG, "train.ctf": DATA, "empty.cntk": "command = ()\n", "other.cntk": "command = ()\n"}


def test_run_takes_a_file(cntkpy) -> None:
    got = cntkpy("run", "m.cntk", "train/SGD/maxEpochs=2", files=FILES)
    assert got.code == 0, got.err
    assert "cntkpy  configFile=m.cntk  train/SGD/maxEpochs=2\n" in got.err
    assert "Epoch[ 2 of 2]" in got.err and got.err.endswith("COMPLETED.\n")
    assert cntkpy("run", "--again", "m.cntk").code == 0
    got = cntkpy("run", "gone.cntk")
    assert got.code == 2 and "cannot read 'gone.cntk'" in got.err


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_run_takes_one_configuration(options: list[str], cntkpy) -> None:
    got = cntkpy("run", *options, "empty.cntk", "other.cntk", files=FILES)
    assert got.code == 2
    assert "A run has one configuration; files that are read in turn are joined: empty.cntk+other.cntk" in got.err
    assert cntkpy("run", *options, "empty.cntk+other.cntk").code == 0


def test_words_of_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_classic(["x=1", "a.cntk", "currentDirectory=d"]) == ["currentDirectory=d", "configFile=a.cntk", "x=1"]
    assert as_classic(["http://h/a?t=x", "b=1"]) == ["configFile=http://h/a?t=x", "b=1"]
    assert as_classic(["a+b", "makeMode"]) == ["configFile=a+b", "makeMode"]
    for same in (["configFile=a", "b"], ["x=1"], [], ["train.py", "a.cntk"]):
        assert as_classic(same) == same


def test_usage_names_every_command() -> None:
    named = set(re.findall(r"[a-z]+", " ".join(re.findall(r"cntkpy (\S+) ?", help_texts.USAGE))))
    assert set(group.commands) <= named


def test_list_as_json(cntkpy) -> None:
    found = json.loads(cntkpy("list", "--format", "json").out)
    assert set(found) == {"version", *help_texts.GROUPS}
    assert {"name": "train", "origin": "built in"} in found["actions"]
    one = json.loads(cntkpy("list", "--format", "json", "readers").out)
    assert one == {"version": 1, "readers": found["readers"]}


def test_explain_as_json(cntkpy) -> None:
    text = cntkpy("explain", "m.cntk", "train/SGD/maxEpochs", files=FILES).out
    found = json.loads(cntkpy("explain", "--format", "json", "m.cntk", "train/SGD/maxEpochs").out)
    assert found["value"] == text.splitlines()[0] == "train:SGD:maxEpochs = 1"
    assert [f"  {one['about']:8} {one['text']}" for one in found["facts"]] == text.splitlines()[1:]
    assert {"about": "from", "text": "'1' at m.cntk:6:25"} in found["facts"]


def test_diff_as_json(cntkpy) -> None:
    files = {**FILES, "n.cntk": CONFIG.replace("0.1", "0.2").replace("minibatchSize = 8 ;", "")}
    got = cntkpy("diff", "--format", "json", "m.cntk", "n.cntk", files=files)
    assert got.code == 1
    assert json.loads(got.out)["differences"] == [
        {"name": "train:SGD:minibatchSize", "old": {"text": "8", "place": "m.cntk:6:45"}, "new": None},
        {
            "name": "train:SGD:learningRatesPerMB",
            "old": {"text": "0.1", "place": "m.cntk:6:70"},
            "new": {"text": "0.2", "place": "n.cntk:6:51"},
        },
    ]
    got = cntkpy("diff", "--format", "json", "m.cntk", "m.cntk")
    assert (got.code, json.loads(got.out)["differences"]) == (0, [])


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_no_color(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert has_colours(Terminal()) is expected  # type: ignore[arg-type]
    with Path(os.devnull).open() as file:
        assert not has_colours(file)


def test_colours_change_nothing_else() -> None:
    error = ConfigError("BadInteger", "error: is a word here", None, "error: too").diagnostic.render()
    place = "  --> a.cntk:1:2\n   |\n 1 | a ^^ b\n   |  ^^"
    text = f"{error}\n{place}\nmain.cntk:9:9: warning: a: b [CK1]\n1 error in 1 configuration"
    painted = coloured(text)
    assert re.sub(r"\033\[[0-9;]*m", "", painted) == text
    lines = painted.split("\n")
    assert lines[0] == "\033[1;31merror:\033[0m error: is a word here"
    assert lines[1] == "  \033[1;32mhelp:\033[0m error: too"
    assert lines[4] == " 1 | a ^^ b"
    assert lines[6] == "main.cntk:9:9: \033[1;33mwarning:\033[0m a: b [CK1]"
    assert lines[7] == "1 error in 1 configuration"


def test_the_last_line() -> None:
    import logging

    result = LastResult()
    assert result.line("log/run") == "COMPLETED. The log is in log/run"
    for name, value in (("epoch finished", 3.0), ("final results", 0.5)):
        record = logging.makeLogRecord({"levelno": logging.INFO, **event(name, [Total("err", value * 1200, 1200)])})
        result.handle(record)
    result.handle(logging.makeLogRecord({"msg": "a line without an event"}))
    assert result.line("log/run") == "COMPLETED: err = 0.5 (1,200 samples). The log is in log/run"


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="needs pseudo-terminals")
def test_a_terminal(tmp_path: Path) -> None:
    """With the log in a file, the last line has the result; errors have colours, without NO_COLOR."""
    import pty

    def on_terminal(*words: str, **variables: str) -> str:
        ours, theirs = pty.openpty()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}
        command = [sys.executable, "-m", "cntkpy", *words]
        subprocess.run(command, cwd=tmp_path, env=env, stdout=theirs, stderr=theirs, timeout=300, check=False)
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # Linux: the other end is closed
            pass
        os.close(ours)
        return text.decode().replace("\r\n", "\n")

    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    last = on_terminal("run", "m.cntk", "stderr=log/run").splitlines()[-1]
    assert re.fullmatch(r"COMPLETED: .*\w+ = [\d.e-]+ \(8 samples\)\. The log is in log/run", last), last
    os.environ.pop("NO_COLOR", None)
    assert "\033[1;31merror:\033[0m" in on_terminal("show", "gone.cntk")
    assert "\033[1;31merror:\033[0m" in on_terminal("check", "m.cntk", "train=[action=trian]")
    assert "\033[" not in on_terminal("check", "m.cntk", "train=[action=trian]", NO_COLOR="1")


@pytest.mark.parametrize("words", [["runs", "gone"], ["report", "gone"], ["plot", "gone"], ["show", "gone"]])
def test_a_file_that_is_not_there_is_a_wrong_word(words: list[str], cntkpy) -> None:
    got = cntkpy(*words)
    assert got.code == 2 and "cannot read" in got.err


def test_help_begins_with_what_a_training_reads(cntkpy) -> None:
    meanings = cntkpy("help", "minibatchSize").out.split("\n\n")
    assert "in       SGD" in meanings[0]
    assert "Ignored" in [one for one in meanings if one.strip()][-1]


def test_a_circle_of_includes_is_named(cntkpy) -> None:
    """CNTK reads each file once, so it is no error."""
    files = {"a.cntk": "include=b.cntk\ncommand=()\n", "b.cntk": "x=1\ninclude=a.cntk\n"}
    got = cntkpy("check", "a.cntk", files=files)
    assert got.code == 1
    assert got.out.startswith("b.cntk:2:9: warning: 'a.cntk' includes itself: a.cntk includes b.cntk includes a.cntk;")
    assert cntkpy("configFile=a.cntk").code == 0
    twice = {"c.cntk": "include=d.cntk\ninclude=d.cntk\ncommand=()\n", "d.cntk": "x=1\n"}
    got = cntkpy("check", "c.cntk", files=twice)
    assert got.code == 1 and "has been read before; it is not read again" in got.out


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16(encoding: str, cntkpy, tmp_path: Path) -> None:
    (tmp_path / "m.cntk").write_bytes("\ufeffcommand = ()\n".encode(encoding))
    got = cntkpy("check", "m.cntk")
    assert got.code == 2
    assert "m.cntk:1:1: error: the file is text in UTF-16, of which nothing is read - save it as UTF-8" in got.out


def test_a_log_and_its_events_are_one_run() -> None:
    from cntkpy.commands.tools.plot_log import _without_twins

    assert _without_twins(["a", "a.jsonl", "b", "c.jsonl"]) == ["a.jsonl", "b", "c.jsonl"]


@pytest.mark.parametrize("words", [["--version", "--verbose"], ["--verbose", "--version"], ["-V", "--verbose"]])
def test_what_a_report_needs(words: list[str], cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_x")
    got = cntkpy(*words)
    assert got.code == 0 and got.err == ""
    first, *lines = got.out.splitlines()
    assert f"{first}\n" == cntkpy("--version").out
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert {"python", "system", "machine", "numpy", "jax", "matplotlib"} <= set(facts)
    assert facts["XLA_FLAGS"] == "--xla_x"
    assert str(Path.home()) not in got.out


def test_verbose_alone(cntkpy) -> None:
    assert "--verbose goes with --version only." in cntkpy("--verbose", "list").err
