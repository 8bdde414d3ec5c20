"""`logFormat=json`: the events of a run, beside a log that stays as it is."""

import json
import logging
import math
import re
from pathlib import Path

import pytest
import small_classification as actions

from cntkpy.commands.runner.log_events import EventHandler

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
    names = [event["event"] for event in found]
    training = ["action", "network", *epoch, *epoch]
    assert names == ["run started", *training, "action", "final results", "confusion", "run finished"]
    assert [event.get("command") for event in found] == [None, *["train"] * len(training), *["test"] * 4]
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


def test_the_first_and_the_last_event(run, tmp_path: Path) -> None:
    assert run("stderr=run/log", "logFormat=json", "train/SGD/maxEpochs=1", "train/SGD/maxEpochs=2").code == 0
    first, *_, last = events(tmp_path / "run/log.jsonl")
    settings = {one["name"]: one for one in first["settings"]}
    assert first["words"][1:3] == ["stderr=run/log", "logFormat=json"]
    assert settings["train:SGD:maxEpochs"]["value"] == "2"
    assert [one["kind"] for one in settings["train:SGD:maxEpochs"]["origins"]] == ["set", "overridden", "overridden"]
    assert first["versions"].keys() >= {"cntkpy", "python", "numpy", "jax"}
    assert (last["event"], last["status"], last["error"]) == ("run finished", 0, "")
    network = next(event for event in events(tmp_path / "run/log.jsonl") if event["event"] == "network")
    nodes = {node["name"]: node for node in network["nodes"]}
    assert (nodes["W"]["shape"], nodes["W"]["parameters"], nodes["ce"]["inputs"]) == ([3, 2], 6, ["y", "z"])
    assert (network["parameters"], network["groups"]["criterion"]) == (9, ["ce"])

    assert run("stderr=run/bad", "logFormat=json", "modelPath=run/bad.model", "reader=[file=none]").code != 0
    last = events(tmp_path / "run/bad.jsonl")[-1]
    assert (last["event"], last["status"]) == ("run finished", 2)
    assert "none" in last["error"] and "EXCEPTION" not in last["error"]


def test_without_a_log_file(run, tmp_path: Path) -> None:
    assert run("logFormat=json").code == 0
    assert events(tmp_path / "cntkpy.jsonl")[-2]["event"] == "saved"


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
    handler = EventHandler(str(tmp_path / "e.jsonl"), pytest.fail)
    log = logging.getLogger("test_log_events")
    log.addHandler(handler)
    log.warning("a", extra={"event": {"event": "progress", "nodes": {"ce": math.nan, "err": 1.5}, "seconds": math.inf}})
    log.error("no event")
    log.warning("WARNING: so it is")
    log.removeHandler(handler)
    handler.close()
    found, warning = events(tmp_path / "e.jsonl")
    assert (found["nodes"], found["seconds"]) == ({"ce": None, "err": 1.5}, None)
    assert (warning["event"], warning["text"]) == ("warning", "so it is")


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
