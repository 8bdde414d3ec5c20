"""`cntkpy runs`: what is read of event files and logs, the table, its forms, conditions and order."""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import small_classification as actions

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.systems.locks import lock
from cntkpy.commands.runs.events import json_events, run_of
from cntkpy.commands.runs.find import find_runs, is_run, read_run
from cntkpy.commands.runs.forms import fitting
from cntkpy.commands.runs.settings import settings_of
from cntkpy.commands.runs.table import Table, differing_values, select, table_of

VALIDATED = (
    "cvReader=[readerType=CNTKTextFormatReader;file=data.ctf;input=[x=[dim=2;format=dense];y=[dim=3;format=dense]]]"
)
MORE = "test = [ action = test ]\n"


def start(cntkpy, rate: str, *more: str):
    words = [
        f"RunDir=trials/{rate}",
        "modelPath=$RunDir$/m",
        "stderr=$RunDir$/log",
        f"train=[SGD=[maxEpochs=2];{VALIDATED}]",
    ]
    words += [f"train/SGD/learningRatesPerSample={rate}", "command=train:test"]
    return cntkpy("configFile=m.cntk", *words, *more, files=actions.files(MORE))


@pytest.fixture
def trials(cntkpy, tmp_path: Path):
    """Three runs: two with event files, one with a log only, which has the error of a missing file."""
    assert start(cntkpy, "0.05", "logFormat=json").code == 0
    assert start(cntkpy, "0.5", "logFormat=json").code == 0
    assert start(cntkpy, "0.1", "reader=[file=none]").code == 2
    return lambda *words: cntkpy("runs", "trials", *words)


def test_the_table(trials, tmp_path: Path) -> None:
    got = trials("--format", "json")
    assert got.code == 0, got.err
    rows = {row["run"]: row for row in json.loads(got.out)}
    assert list(rows) == ["0.05", "0.1", "0.5"]
    assert list(rows["0.05"])[:4] == ["run", "state", "epochs", "train:SGD:learningRatesPerSample"]
    assert [rows[run]["state"] for run in rows] == ["completed", "failed", "completed"]
    assert rows["0.05"]["train:SGD:learningRatesPerSample"] == "0.05"
    assert rows["0.5"]["epochs"] == "2/2"
    expected = actions.criterion(actions.model(tmp_path / "trials/0.5/m"))
    assert rows["0.5"]["ce last"] == pytest.approx(expected)
    assert rows["0.5"]["ce test"] == pytest.approx(expected)
    assert rows["0.5"]["seconds"] > 0


def test_forms(trials) -> None:
    table = list(csv.reader(io.StringIO(trials("--format", "csv").out)))
    assert len({len(row) for row in table}) == 1
    assert [row[0] for row in table] == ["run", "0.05", "0.1", "0.5"]
    lines = trials("--format", "markdown").out.splitlines()
    assert lines[0].startswith("| run | state | epochs | train:SGD:learningRatesPerSample |")
    assert lines[1].startswith("|---|---|---|---|---:|")
    shown = trials().out.splitlines()
    head = next(number for number, line in enumerate(shown) if line.startswith("run "))  # long heads have two lines
    assert shown[head].split()[:3] == ["run", "state", "epochs"]
    assert shown[head + 2].split()[:2] == ["0.1", "failed"]


def test_order_and_conditions(trials) -> None:
    def names(*words: str) -> list[str]:
        return [row["run"] for row in json.loads(trials("--format", "json", *words).out)]

    assert names("--sort", "-learningRatesPerSample") == ["0.5", "0.05", "0.1"]  # 0.1 has no configuration
    assert names("--sort", "learningRatesPerSample", "--filter", "state=completed") == ["0.05", "0.5"]
    assert names("--filter", "learningRatesPerSample>0.1") == ["0.5"]
    assert names("--filter", "state!=completed") == ["0.1"]
    assert names("--filter", "state~FAIL", "--filter", "run=0.5") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["none"], "cannot read none: No such file"),
        (["empty"], "empty has no runs"),
        (["data.ctf"], "data.ctf is no run"),
        (["trials", "--sort", "errr best"], "no column 'errr best'"),
        (["trials", "--sort", "errr best"], "'err best'"),
        (["trials", "--filter", "x"], "'x' is no condition"),
    ],
)
@pytest.mark.sampled
def test_errors(words: list[str], expected: str, cntkpy, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert start(cntkpy, "0.05", "logFormat=json").code == 0
    got = cntkpy("runs", *words)
    assert got.code != 0
    assert expected in got.err


def test_a_model_names_the_run_that_saved_it(trials, tmp_path: Path) -> None:
    (run,) = find_runs([str(tmp_path / "trials/0.5/m")])
    assert run.path.name == "log.jsonl" and run.curves[0].last("ce") is not None
    assert is_run(str(tmp_path / "trials/0.5/m")) and not is_run(str(tmp_path / "m.cntk"))


def test_folders_that_are_hidden_and_files_of_other_workers_are_left_out(cntkpy, tmp_path: Path) -> None:
    assert start(cntkpy, "0.05", "logFormat=json").code == 0
    events = (tmp_path / "trials/0.05/log.jsonl").read_text()
    for name in (".venv/a.jsonl", "trials/0.05/log.rank1.jsonl", "trials/0.05/log.rank1", "trials/trials.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(events if name != "trials/trials.jsonl" else '{"trial": 1}\n')
    assert [run.path.name for run in find_runs([str(tmp_path)])] == ["log.jsonl"]


def test_a_log_says_what_the_events_say(cntkpy, tmp_path: Path) -> None:
    assert start(cntkpy, "0.05", "logFormat=json").code == 0
    events, log = read_run(tmp_path / "trials/0.05/log.jsonl"), read_run(tmp_path / "trials/0.05/log")
    assert (log.state, log.words[0], log.versions["cntkpy"]) == (
        "completed",
        "configFile=m.cntk",
        events.versions["cntkpy"],
    )
    for one, other in zip(log.curves, events.curves, strict=True):
        assert one.epochs == other.epochs == [1, 2]
        assert (one.wanted, one.command) == (other.wanted, other.command) == (2, "train")
        assert one.validation["ce"] == pytest.approx(other.validation["ce"])
        assert one.rates == pytest.approx(other.rates)
        assert one.seconds == pytest.approx(other.seconds, rel=1e-3)
    (one,), (other,) = log.results, events.results
    assert one.nodes == pytest.approx(other.nodes) and (one.command, one.samples) == ("test", 40)


def test_events_without_a_first_and_a_last_one(cntkpy, tmp_path: Path) -> None:
    """Event files of earlier versions: the log beside them says how the run ended."""
    assert start(cntkpy, "0.05", "logFormat=json").code == 0
    path = tmp_path / "trials/0.05/log.jsonl"
    lines = [line for line in path.read_text().splitlines(True) if '"event": "run ' not in line]
    path.write_text("".join(lines))
    run = read_run(path)
    assert (run.state, run.words[0], run.curves[0].epochs) == ("completed", "configFile=m.cntk", [1, 2])
    path.with_suffix("").unlink()
    assert read_run(path).state == "killed"


def test_states(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"time": "2026-01-01T00:00:00+00:00", "event": "run started", "words": ["x"]}\n')
    assert read_run(path).state == "killed"
    with path.open("a") as file:
        assert lock(file.fileno(), shared=True)
        assert read_run(path).state == "running"
    for status, state in ((0, "completed"), (1, "failed"), (130, "interrupted"), (143, "interrupted")):
        path.write_text(json.dumps({"event": "run finished", "status": status, "error": "why"}))
        assert (read_run(path).state, read_run(path).error) == (state, "why" if status else "")


def test_a_trial_of_a_sweep_has_its_configuration_beside_it(cntkpy, tmp_path: Path) -> None:
    assert start(cntkpy, "0.05").code == 0
    (tmp_path / "trials/0.05/config.resolved.cntk").write_text("train = [ SGD = [ learningRatesPerSample = 0.05 ] ]\n")
    (run,) = find_runs([str(tmp_path / "trials")])
    assert run.values == {"train:sgd:learningratespersample": "0.05"}


def run_with(path: str, **values: str):
    settings = [{"name": name, "value": value, "origins": []} for name, value in values.items()]
    return run_of(Path(path), [{"event": "run started", "settings": settings}])


def test_values_that_differ() -> None:
    runs = [
        run_with(
            "t/1/log.jsonl",
            rate="0.1",
            used="0.1",
            same="1",
            RunDir="t/1",
            modelPath="t/1/m",
            traceLevel="1",
            outputPath="x",
            **{"tracking:folder": "tb/1"},
        ),
        run_with("t/2/log.jsonl", Rate="0.2", used="0.2", same="1", RunDir="t/2", modelPath="t/2/m", traceLevel="0"),
    ]
    assert differing_values(runs) == {"rate": "Rate"}  # `used` differs in the same way
    assert differing_values(runs[:1]) == {}


def test_hostile_events() -> None:
    """Whatever the values of events are, the run is read and shown."""
    names = ["run started", "run finished", "action", "network", "progress", "epoch finished", "validation", "saved"]
    names += ["final results", "confusion", "warning"]
    values = [None, True, -1, 1e400, "x", [], {}, [[]], {"a": {}}, [1, "2"], 2**70]
    fields = ["epoch", "epochs", "nodes", "minibatches", "seconds", "counts", "worst", "settings", "time", "status"]
    lines = [json.dumps({"event": name, field: value}) for name in names for field in fields for value in values]
    run = run_of(Path("x"), json_events("\n".join([*lines, "[1]", "{", "[" * 100_000])))
    table = table_of([run])
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_texts_cannot_move_the_cursor(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"time": "2026-01-01T00:00:00+00:00", "event": "action", "command": "t\\u001b[2J[red]|<b>"}\n'
        '{"event": "epoch finished", "epoch": 1, "nodes": {"c\\u001b[0m\\n|": 0.5}}\n'
    )
    for form in ("table", "markdown", "csv", "json"):
        got = cntkpy("runs", ".", "--format", form)
        assert got.code == 0
        assert "\x1b" not in got.out or form == "csv"
    assert "\\|" in cntkpy("runs", ".", "--format", "markdown").out.splitlines()[0]


def test_empty_cells_come_last() -> None:
    table = Table(["a"], [[None], [2.0], [""], [1.0]])
    assert [row[0] for row in select(table, [], "-a").rows] == [2.0, 1.0, None, ""]


def test_csv_has_no_formulas_and_no_control_characters() -> None:
    """Programs of spreadsheets compute cells that begin with such signs; numbers with a sign stay numbers."""
    from cntkpy.commands.runs.forms import as_csv, as_json
    from cntkpy.commands.runs.table import Table

    texts = ["=1+1", "+x", "-x", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "=cmd|' /C calc'!A1"]
    numbers = ["-0.5", "+1e-3", "-.5", "-1"]
    plain = ["a=b", "", "x\x1b[31my", "x\x9b31my", "two\nlines", "a\tb", "x\ry"]
    table = Table(["=column", "b\x1b"], [[text, -2.5] for text in texts + numbers + plain] + [[None, None]])
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert rows[0] == ["'=column", "b?"] and rows[-1] == ["", ""]
    found = [row[0] for row in rows[1:-1]]
    assert found[: len(texts)] == [
        "'=1+1", "'+x", "'-x", "'@x", "'\t=1", "'?=1", "'\n=1", "'\uff1d1", "'=cmd|' /C calc'!A1",
    ]  # fmt: skip
    assert found[len(texts) :] == [*numbers, "a=b", "", "x?[31my", "x?31my", "two\nlines", "a\tb", "x?y"]
    assert all(row[1] == "-2.5" for row in rows[1:-1])
    assert "\x9b" not in as_json(table) and json.loads(as_json(table))[-4]["=column"] == "two\nlines"


def test_names_from_elsewhere_in_pictures_and_on_terminals(cntkpy, tmp_path: Path) -> None:
    """matplotlib would read `$` as mathematics; escapes, and halves of surrogate pairs, stand in no terminal."""
    name = "c$\\frac{e$\x1b[31m\ud800\x9b1m"
    events: list[dict] = [
        {"event": "action", "command": "train", "action": "train"},
        {"event": "epoch finished", "epoch": 1, "epochs": 2, "nodes": {name: 0.5}, "samples": 20, "seconds": 0.5},
    ]
    log = tmp_path / "r$\\frac{x$.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in events))
    for form in ("png", "svg"):
        got = cntkpy("plot", str(log), "--out", f"p.{form}")
        assert got.code == 0, got.err
    assert b"\x1b" not in (tmp_path / "p.svg").read_bytes()
    for words in (["runs", str(log)], *(["runs", str(log), "--format", form] for form in ("csv", "markdown", "json"))):
        got = cntkpy(*words)
        assert got.code == 0 and not {"\x1b", "\x9b", "\ud800"} & set(got.out), words
    assert cntkpy("report", str(log), "--out", "r.html").code == 0
    assert not {"\x1b", "\x9b"} & set((tmp_path / "r.html").read_text())


def test_commands_print_names_from_data_and_configurations_without_escapes(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,kind\n1,ro\x1bcse\n2,\x1b]0;title\x07b\n")
    reader = "[deserializers=([type=CsvDeserializer;file=a.csv;input=[x=[dim=1];y=[format=sparse;dim=2;alias=kind]]])]"
    (tmp_path / "c.cntk").write_text(
        f'command=a\na=[action=test;modelPath="m\x1bc\x9b1m.dnn"\nreader={reader}]\n', encoding="utf-8"
    )
    said = ""
    for words in (
        ["convert", "a.csv", "o.ctf", "--labels", "kind"], ["preview", "c.cntk", "a/reader"], ["show", "c.cntk"],
        ["show", "--format", "json", "c.cntk"], ["explain", "c.cntk", "a/modelPath"], ["run", "c.cntk"],
    ):  # fmt: skip
        got = cntkpy(*words)
        assert not {"\x1b", "\x9b", "\x07"} & set(got.out + got.err), words
        said += got.out + got.err
    assert "ro\\x1bcse" in said and "m\\x1bc\\x9b1m.dnn" in said


def test_a_table_has_a_line_for_each_run_in_eighty_columns(trials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    got = trials()
    lines = got.out.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[0] == "learningRates"
    assert lines[1].split()[:4] == ["run", "state", "epochs", "PerSample"]
    assert [line.split()[0] for line in lines[2:]] == ["0.05", "0.1", "0.5"]
    assert "columns do not fit: " in got.err
    wide = trials("--wide").out.splitlines()
    assert len(wide) == 4
    assert "seconds" in wide[0]
    monkeypatch.setenv("COLUMNS", "30")
    narrow = trials().out.splitlines()
    assert len(narrow) == 5
    assert max(map(len, narrow)) <= 30


def test_columns_are_chosen(trials) -> None:
    got = trials("--columns", "ce best,learningRatesPerSample")
    assert got.out.splitlines()[0].split() == ["run", "ce", "best", "learningRatesPerSample"]
    assert list(json.loads(trials("--columns", "state", "--format", "json").out)[0]) == ["run", "state"]
    wrong = trials("--columns", "ce bst")
    assert wrong.code == 1
    assert "has no column 'ce bst'" in wrong.err


def test_a_variable_stands_for_what_uses_it() -> None:
    runs = [
        run_with("1/log.jsonl", layerSizes="2:16:3", hidden="16", rate="0.16"),
        run_with("2/log.jsonl", layerSizes="2:32:3", hidden="32", rate="0.4"),
    ]
    assert list(differing_values(runs)) == ["hidden", "rate"]
    runs[1] = run_with("2/log.jsonl", layerSizes="2:32:4", hidden="32", rate="0.4")
    assert list(differing_values(runs)) == ["layersizes", "hidden", "rate"]


@pytest.mark.parametrize(
    "line",
    [
        "uses = 2:$hidden$:$hidden$:3",
        "uses = $hidden$",
        "uses = 1:$hidden$:1:$width$",  # of two variables, one has the value 1 in a run
        'uses = "$hidden$x$width$"',
        "uses = [ size = $hidden$ ; other = [ a = $width$:1 ] ]",
    ],
)
@pytest.mark.parametrize("order", ["before", "after"])
def test_what_is_written_with_variables_is_no_column(line: str, order: str, tmp_path: Path) -> None:
    runs = []
    for number, (hidden, width) in enumerate((("16", "1"), ("32", "2"), ("16", "2"))):
        variables = f"hidden = {hidden}\nwidth = {width}\n"
        path = tmp_path / str(number) / "config.cntk"
        path.parent.mkdir()
        path.write_text(f"{line}\n{variables}" if order == "before" else f"{variables}{line}\n")
        run = run_of(tmp_path / str(number) / "log.jsonl", [])
        run.settings = settings_of(load([f"configFile={path}"]))
        runs.append(run)
    assert list(differing_values(runs)) == ["hidden", "width"]


def test_a_long_name_keeps_its_end_and_its_line(tmp_path: Path) -> None:
    runs = [run_with(f"{number}/log.jsonl", rate=str(number)) for number in (1, 2)]
    for run in runs:
        run.name = f"{'deep/' * 40}20261128-10000{run.path.parent}-digits"
    shown, _, left_out = fitting(table_of(runs), 80)
    assert [row[0] for row in shown.rows] == [f"...deep/deep/deep/20261128-10000{number}-digits" for number in (1, 2)]
    assert "rate" in shown.columns
    assert left_out == []


def test_a_table_longer_than_the_terminal_goes_to_the_pager(tmp_path: Path) -> None:
    """PAGER is asked only where the output is a terminal with fewer lines than there are runs."""
    termios = pytest.importorskip("termios", reason="Windows has no terminals of this kind")
    for number in range(30):
        (tmp_path / f"{number}.jsonl").write_text(
            '{"time": "2026-01-01T00:00:00+00:00", "event": "run started", "words": ["x"]}\n'
        )
    (tmp_path / "pager").write_text("#!/bin/sh\nsed 's/^/PAGED /'\n")
    (tmp_path / "pager").chmod(0o755)
    environment = os.environ | {"PAGER": str(tmp_path / "pager"), "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    environment.pop("LINES", None)

    def lines(folder: str) -> list[str]:
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        command = [sys.executable, "-m", "cntkpy", "runs", folder]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, stdin=theirs, env=environment)
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while got := os.read(ours, 4096):
                seen += got
        os.close(ours)
        assert process.wait(60) == 0
        return seen.decode().splitlines()

    assert sum(line.startswith("PAGED ") for line in lines(".")) >= 31
    assert not any("PAGED" in line for line in lines("1.jsonl"))
