"""What `traceLevel` 2 and 3 add to the log (D17), as docs/training.md says."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import small_classification as actions

from cntkpy.trainers.monitors import details

ONE = "train=[SGD=[maxEpochs=1;epochSize=20;numMBsToShowResult=2]]"
NUMBER = r"([\d.e+-]+)"
TEST = "test = [ action = test ; minibatchSize = 25 ]\n"


@pytest.fixture
def run(cntkpy):
    return lambda *words: cntkpy("configFile=m.cntk", ONE, *words, files=actions.files(TEST))


def added(text: str) -> list[str]:
    """What follows the progress line, until the epoch ends."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(" Epoch["))
    end = next(i for i, line in enumerate(lines) if line.startswith("Finished Epoch["))
    return lines[begin + 1 : end]


def test_nothing_at_level_one(run) -> None:
    got = run("traceLevel=1")
    assert added(got.err) == []
    assert "Compiling for minibatches" not in got.err
    assert "Nodes that are computed" not in got.err


def test_times_memory_reader_and_gradients(run, tmp_path: Path) -> None:
    got = run("traceLevel=2")
    assert got.code == 0, got.err
    waited, reader, *norms = added(got.err)
    assert re.fullmatch(rf"  Waited {NUMBER}s for data; .*memory.*\.|.* at most \d+ MB.*\.", waited)
    assert re.match(r'  The reader is at \{.*"minibatchSourcePosition": 20\b', reader)
    trained = actions.model(tmp_path / "run/m")
    delta = actions.softmax(actions.X[10:20] @ trained["W"].T + trained["b"].T) - actions.Y[10:20]
    gradients = {"W": delta.T @ actions.X[10:20], "b": delta.sum(0)}
    assert len(norms) == 2
    for line, (name, gradient) in zip(norms, gradients.items(), strict=True):
        found = re.fullmatch(rf"  {name}: norm of the gradient {NUMBER}, of the values {NUMBER}", line)
        assert found, line
        assert float(found[1]) == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
        assert float(found[2]) == pytest.approx(np.linalg.norm(trained[name]), rel=1e-4)
    assert "Compiling for minibatches of up to 1 time steps and 10 sequences (compilation 1)." in got.err
    assert "Read sequence id 0 " in got.err
    assert "Nodes that are computed" not in got.err


def test_a_minibatch_in_pieces_is_not_computed_as_a_whole(run) -> None:
    assert len(added(run("traceLevel=2", "train=[SGD=[numSubminibatches=2]]").err)) == 2


def test_time_to_go(run) -> None:
    got = run("traceLevel=2", "train=[SGD=[maxEpochs=2]]")
    assert len(re.findall(r"^  About \d+ s to go\.$", got.err, re.M)) == 1


def test_shapes(run) -> None:
    got = run("traceLevel=3", "command=train:test")
    assert got.code == 0, got.err
    x, y = added(got.err)[-2:]
    assert x == "  x: 1 steps of 10 sequences side by side, 10 samples"
    assert y == x.replace("x:", "y:")
    assert "\tz = Plus (t, b) : [3 x *], [3 x 1] -> [3 x 1 x *]" in got.err.splitlines()
    assert got.err.count("Nodes that are computed:") == 2  # in the training and in the test


def test_details_change_no_number(run, tmp_path: Path) -> None:
    run("train=[SGD=[dropoutRate=0.3]]")
    plain = actions.model(tmp_path / "run/m")
    run("train=[SGD=[dropoutRate=0.3]]", "makeMode=false", "traceLevel=3")
    assert np.array_equal(actions.model(tmp_path / "run/m")["W"], plain["W"])


def test_the_memory_is_that_of_the_device_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(memory_stats=lambda: {"bytes_in_use": 3 << 20})
    monkeypatch.setattr(details, "default_device", lambda: device)
    assert "of the device 3 MB" in details.memory()
