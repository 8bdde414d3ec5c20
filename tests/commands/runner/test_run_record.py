"""Every `cntkpy run` of a training leaves a record next to the model; what CNTK writes does not move (U4)."""

import json
import logging
from pathlib import Path

import pytest
import small_classification as actions

from cntkpy.cntk_config import load
from cntkpy.commands.runner.run_record import RunRecord

TRAIN = "train=[SGD=[maxEpochs=2]]"


def records(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name == "config.resolved.cntk")


def test_a_training_leaves_its_configuration_events_and_log(cntkpy, tmp_path: Path) -> None:
    result = cntkpy("run", "m.cntk", "modelPath=out/m", TRAIN, files=actions.files(""))
    assert result.code == 0, result.err
    (resolved,) = records(tmp_path)
    folder = resolved.parent
    assert folder.parent == tmp_path / "out" / "runs"
    assert folder.name.endswith("-m")
    assert sorted(path.name for path in folder.iterdir()) == ["config.resolved.cntk", "log", "log.jsonl"]
    assert "maxEpochs = 2" in resolved.read_text()
    assert "Finished Epoch[ 2 of 2]" in (folder / "log").read_text()
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "run started"
    assert events[0]["words"] == ["configFile=m.cntk", "modelPath=out/m", TRAIN]
    assert "cntkpy" in events[0]["versions"]
    assert any(setting["name"] == "train:SGD:maxEpochs" for setting in events[0]["settings"])
    assert [event["epoch"] for event in events if event["event"] == "epoch finished"] == [1, 2]
    assert (events[-1]["event"], events[-1]["status"]) == ("run finished", 0)
    listed = json.loads(cntkpy("runs", "--format", "json").out)
    assert [(run["state"], run["epochs"]) for run in listed] == [("completed", "2/2")]
    assert cntkpy("show", str(resolved), "train/SGD/maxEpochs").out.strip().endswith("2")
    assert "--record" not in result.err


def test_logs_stay_where_they_are_and_the_run_is_listed_once(cntkpy, tmp_path: Path) -> None:
    words = ["m.cntk", "modelPath=out/m", "stderr=log/run", TRAIN]
    assert cntkpy("run", *words, files=actions.files("")).code == 0
    assert "COMPLETED." in (tmp_path / "log" / "run").read_text()
    assert len(records(tmp_path)) == 1
    assert len(json.loads(cntkpy("runs", "--format", "json").out)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["configFile=m.cntk"],
        ["run", "m.cntk", "record=false"],
        ["run", "m.cntk", "train/SGD/minibatchSize=x"],  # nothing is run
    ],
)
def test_what_leaves_no_record(words: list[str], cntkpy, tmp_path: Path) -> None:
    cntkpy(*words, "modelPath=out/m", TRAIN, files=actions.files(""))
    assert records(tmp_path) == []
    assert not (tmp_path / "out" / "runs").exists()


def test_the_folder_of_records_and_the_classic_form(cntkpy, tmp_path: Path) -> None:
    words = ["configFile=m.cntk", "record=true", "runFolder=records", "modelPath=out/m", TRAIN]
    assert cntkpy(*words, files=actions.files("")).code == 0
    assert cntkpy(*words).code == 0  # in the same second, perhaps
    assert [path.parent.parent for path in records(tmp_path)] == [tmp_path / "records"] * 2


def test_a_run_that_fails_says_so_in_its_record(cntkpy, tmp_path: Path) -> None:
    result = cntkpy("run", "m.cntk", "modelPath=out/m", TRAIN, "reader=[file=none.ctf]", files=actions.files(""))
    assert result.code
    for resolved in records(tmp_path):
        last = json.loads((resolved.parent / "log.jsonl").read_text().splitlines()[-1])
        assert last["status"] == result.code


def test_a_folder_that_cannot_be_made_is_a_warning(cntkpy, tmp_path: Path) -> None:
    files = actions.files("") | {"records": "a file"}
    result = cntkpy("run", "m.cntk", "modelPath=out/m", TRAIN, "runFolder=records", files=files)
    assert result.code == 0
    assert "WARNING: the run is not recorded: records" in result.err


def test_a_record_has_results_of_tests_and_the_network(cntkpy, tmp_path: Path) -> None:
    """Lines that the log does not show are events all the same; only the confusion matrix costs a pass of its own."""
    words = ["m.cntk", "modelPath=out/m", TRAIN, "command=train:test"]
    assert cntkpy("run", *words, files=actions.files("test = [ action = test ]\n")).code == 0
    (resolved,) = records(tmp_path)
    events = [json.loads(line) for line in (resolved.parent / "log.jsonl").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds.count("run started") == kinds.count("run finished") == kinds.count("network") == 1
    assert kinds.count("saved") == 2
    assert "confusion" not in kinds
    results = [event["nodes"]["ce"] for event in events if event["event"] == "final results"]
    (row,) = json.loads(cntkpy("runs", "--format", "json").out)
    assert row["ce test"] == results[-1]


def test_a_run_with_an_event_file_has_a_record_with_the_same_events(cntkpy, tmp_path: Path) -> None:
    words = ["m.cntk", "modelPath=out/m", "logFormat=json", "stderr=log/run", TRAIN, "command=train:test"]
    for number in (1, 2):
        assert cntkpy("run", *words, files=actions.files("test = [ action = test ]\n")).code == 0
        assert len(records(tmp_path)) == number
    listed = json.loads(cntkpy("runs", "--format", "json").out)
    assert len(listed) == 2  # the event file is of the second run; the first has its record only
    assert [row["run"] for row in listed].count("log") == 1
    last = records(tmp_path)[-1].parent / "log.jsonl"
    event_file = tmp_path / "log" / "run.jsonl"
    assert [json.loads(line) for line in last.read_text().splitlines()] == [
        json.loads(line) for line in event_file.read_text().splitlines()
    ]
    assert '"event": "confusion"' in last.read_text()


def test_the_log_of_a_record_begins_as_every_log(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("run", "m.cntk", "modelPath=out/m", TRAIN, files=actions.files("")).code == 0
    (resolved,) = records(tmp_path)
    lines = (resolved.parent / "log").read_text().splitlines()
    assert lines[0].startswith("cntkpy ")
    assert lines[2] == f"cntkpy  configFile=m.cntk  modelPath=out/m  {TRAIN}"
    assert lines[-1] == "COMPLETED."


def test_a_run_of_a_project_gives_its_name_to_records_and_sweeps(cntkpy, tmp_path: Path) -> None:
    project = '[[run]]\nname = "small"\nfiles = ["m.cntk"]\nwords = ["modelPath=out/m", "train/SGD/maxEpochs=2"]\n'
    assert cntkpy("run", "small", files=actions.files("") | {"cntkpy.toml": project}).code == 0
    (resolved,) = records(tmp_path)
    assert resolved.parent.name.endswith("-small")
    assert cntkpy("sweep", "small", "train/SGD/minibatchSize=10,20").code == 0
    assert (tmp_path / "sweeps" / "small" / "1" / "out" / "m").exists() or (tmp_path / "sweeps/small/1/m").exists()


def test_values_inside_of_epochs_do_not_fill_the_disk(tmp_path: Path) -> None:
    """After the first thousand, one a second; lines that the log shows are all there."""
    root = load(["a=1"])
    record = RunRecord(root, "banner")
    log = logging.getLogger("cntkpy.commands")

    def say(seconds: float, level: int, **values: object) -> None:
        made = log.makeRecord(log.name, level, "", 0, "line", (), None, extra={"event": values})
        made.created = seconds
        record.handle(made)

    record.begin(tmp_path, "m")
    for number in range(5000):
        say(number / 128, logging.DEBUG, event="progress", number=number)
    say(50.0, logging.INFO, event="progress", number="shown")
    say(50.0, logging.DEBUG, event="epoch finished")
    record.close()
    (events,) = tmp_path.glob("*/log.jsonl")
    written = [json.loads(line) for line in events.read_text().splitlines()]
    numbers = [event["number"] for event in written if event["event"] == "progress"]
    assert numbers[:1000] == list(range(1000))
    assert len(numbers) == 1000 + 4000 // 128 + 1
    assert numbers[-1] == "shown"
    assert written[-1]["event"] == "epoch finished"
