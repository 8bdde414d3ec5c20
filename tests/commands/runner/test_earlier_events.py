"""An event file has all epochs of a training, though several runs have trained them."""

import json
from pathlib import Path

import pytest
import small_classification as actions

from cntkpy.commands.runner.earlier_events import EarlierEvents


@pytest.fixture
def train(cntkpy, tmp_path: Path):
    def train(*words: str) -> list[tuple[str, int]]:
        got = cntkpy(
            "configFile=m.cntk",
            "logFormat=json",
            "stderr=log",
            *words,
            files=actions.files("more = [ action = train ]\n"),
        )
        assert got.code == 0, got.err
        events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert not (tmp_path / "log.jsonl.earlier").exists()
        return [
            (event["event"], event["epoch"])
            for event in events
            if event["event"] in ("epoch started", "epoch finished")
        ]

    return train


def test_a_resumed_training(train, tmp_path: Path, cntkpy) -> None:
    assert train("train/SGD/maxEpochs=2") == [
        ("epoch started", 1),
        ("epoch finished", 1),
        ("epoch started", 2),
        ("epoch finished", 2),
    ]
    first = (tmp_path / "log.jsonl").read_text()
    later = train("train/SGD/maxEpochs=4")
    assert later == [("epoch finished", 1), ("epoch finished", 2)] + [
        (name, epoch) for epoch in (3, 4) for name in ("epoch started", "epoch finished")
    ]
    text = (tmp_path / "log.jsonl").read_text()
    assert [line for line in first.splitlines() if "epoch finished" in line] == [
        line for line in text.splitlines() if "epoch finished" in line
    ][:2]
    (row,) = json.loads(cntkpy("runs", ".", "--format", "json").out)
    assert row["epochs"] == "4/4"


def test_a_training_that_begins_again(train) -> None:
    train("train/SGD/maxEpochs=3")
    assert train("train/SGD/maxEpochs=1", "makeMode=false") == [("epoch started", 1), ("epoch finished", 1)]


def test_a_run_that_trains_nothing(train) -> None:
    train("train/SGD/maxEpochs=1")
    assert train("train/SGD/maxEpochs=1") == []


def line(epoch: int, command: str = "t", kind: str = "epoch finished", **more: object) -> str:
    return json.dumps({"event": kind, "command": command, "epoch": epoch, **more})


def test_a_run_that_was_killed_before_it_trained(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(f"{line(1)}\n{line(2)}\n")
    EarlierEvents(str(path))
    path.write_text("")  # the file is emptied, and the process is killed
    earlier = EarlierEvents(str(path))
    assert earlier.before({"event": "epoch started", "command": "t", "epoch": 3}) == [line(1), line(2)]
    earlier.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.jsonl"]


def test_which_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    lines = [line(1, a=1), line(1, "u"), line(2), line(3), line(1, kind="saved"), line(1, a=2)]  # epoch 1 trained twice
    lines += [line(1, kind="progress", minibatches=[1, 2]), line(1, kind="progress", minibatches=[3, 4])]
    path.write_text("\n".join([*lines, '"epoch finished"', '{"epoch finished"', "[" * 10_000 + '"validation"']))
    earlier = EarlierEvents(str(path))
    assert earlier.before({"event": "epoch finished", "command": "t", "epoch": 3}) == []
    kept = earlier.before({"event": "epoch started", "command": "t", "epoch": 3})
    assert kept == [line(1, a=2), line(2), *lines[-2:]]
    assert earlier.before({"event": "epoch started", "command": "t", "epoch": 3}) == []  # once
    assert earlier.before({"event": "epoch started", "command": "u", "epoch": 1}) == []
