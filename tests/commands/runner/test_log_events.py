"""`logFormat=json`: the events of a run, beside a log that stays as it is."""

import json
import logging
import math
import re
from pathlib import Path

import pytest
import small_classification as actions

from commands.runner.log_events import EventHandler

MORE = "test = [ action = test ]\n"


@pytest.fixture
def run(cntkpy):

    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(MORE))

    return run


def events(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_of_a_run(run, tmp_path: Path) -> None:
    words = [
        "command=train:test",
        "stderr=run/log",
        "train=[SGD=[maxEpochs=2;numMBsToShowResult=2];cvReader=[file=data.ctf",
    ]
    words[2] += ";readerType=CNTKTextFormatReader;input=[x=[dim=2;format=dense];y=[dim=3;format=dense]]]]"
    assert run(*words, "logFormat=json").code == 0
    found = events(tmp_path / "run/log.jsonl")
    epoch = ["epoch started", "progress", "progress", "epoch finished", "final results", "validation", "saved"]
    assert [event["event"] for event in found] == ["action", *epoch, *epoch, "action", "final results"]
    assert {event["command"] for event in found[:-2]} == {"train"}
    assert {event["command"] for event in found[-2:]} == {"test"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event["time"]) for event in found)

    by_name = {event["event"]: event for event in found}
    parameters = actions.model(tmp_path / "run/m")
    expected = {"ce": actions.criterion(parameters), "err": actions.errors(parameters)}
    for name in ("validation", "final results"):
        assert by_name[name]["nodes"] == pytest.approx(expected)
        assert by_name[name]["samples"] == 40
    finished = by_name["epoch finished"]
    assert (finished["epoch"], finished["epochs"], finished["totalSamplesSeen"]) == (2, 2, 80)
    assert finished["learningRatePerSample"] == pytest.approx(0.05)
    assert by_name["progress"]["minibatches"] == [3, 4]
    halves = [event["nodes"]["ce"] for event in found if event["event"] == "progress"][2:]
    assert finished["nodes"]["ce"] == pytest.approx(sum(halves) / 2)
    assert by_name["saved"]["model"] == "run/m"

    text = (tmp_path / "run/log").read_text()  # traceLevel=0: neither progress nor what is saved is in the log
    assert "Minibatch[   1-" not in text
    assert "Saving checkpoint" not in text
    assert f"[Training] ce = {finished['nodes']['ce']:.8f} * 40" in text


def test_without_a_log_file(run, tmp_path: Path) -> None:
    assert run("logFormat=json").code == 0
    assert events(tmp_path / "cntkpy.jsonl")[-1]["event"] == "saved"


def test_the_log_is_the_same_with_events(run) -> None:
    blank = re.compile(r"(time|epochTime) ?= ?[\d.e-]+s|samplesPerSecond = [\d.]+| at \d{4}/.*")
    plain = run("traceLevel=1")
    with_events = run("traceLevel=1", "logFormat=json", "makeMode=false")
    lines = [blank.sub("", one.err).split("Creating virgin network.")[1] for one in (plain, with_events)]
    assert lines[0] == lines[1]


def test_no_file_without_the_parameter(run, tmp_path: Path) -> None:
    run("stderr=run/log")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    handler = EventHandler(str(tmp_path / "e.jsonl"))
    log = logging.getLogger("test_log_events")
    log.addHandler(handler)
    log.warning("a", extra={"event": {"event": "progress", "nodes": {"ce": math.nan, "err": 1.5}, "seconds": math.inf}})
    log.warning("no event")
    log.removeHandler(handler)
    handler.close()
    (found,) = events(tmp_path / "e.jsonl")
    assert (found["nodes"], found["seconds"]) == ({"ce": None, "err": 1.5}, None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["logFormat=xml"], "'xml' is not one of text, json"),
        (["logFormat=json", "stderr=log"], "cannot write the log file log.jsonl"),
    ],
)
def test_errors(words: list[str], expected: str, run, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    got = run(*words)
    assert got.code == 2
    log = (tmp_path / "log").read_text() if len(words) > 1 else got.err
    assert expected in log
