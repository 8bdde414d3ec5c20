"""Models and checkpoints on the disk: resuming, killing, full disks, damaged files."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.trainers.checkpoints.checkpoint import EPOCH, PROGRAM, Checkpoint, find_start, model_name

CONFIG = """\
command = train
precision = double
modelPath = run/m
traceLevel = 1
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:5:3 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; applyMeanVarNorm = true ]
    SGD = [ maxEpochs = 4 ; minibatchSize = 8 ; learningRatesPerMB = 0.3 ; momentumPerMB = 0.9
        numMBsToShowResult = 2 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""


def data(samples: int = 60) -> str:
    random = np.random.default_rng(7)
    lines = []
    for _ in range(samples):
        label = random.integers(3)
        x, y = random.normal(size=2) + np.array([label, -label])
        lines.append(f"|features {x:.4f} {y:.4f} |labels " + " ".join(str(int(k == label)) for k in range(3)))
    return "\n".join(lines) + "\n"


FILES = {"main.cntk": CONFIG, "train.ctf": data()}


def finished(log: str) -> list[str]:
    return [line.split("; epochTime")[0] for line in log.splitlines() if line.startswith("Finished Epoch")]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.optimised
def test_a_resumed_run_ends_like_an_uninterrupted_one(cntkpy, tmp_path: Path) -> None:
    whole = cntkpy("configFile=main.cntk", "modelPath=whole/m", files=FILES)
    assert cntkpy("configFile=main.cntk", "train=[SGD=[maxEpochs=2]]").code == 0
    (tmp_path / "run/m").rename(tmp_path / "run/m.2")
    (tmp_path / "run/m.ckp").rename(tmp_path / "run/m.2.ckp")
    rest = cntkpy("configFile=main.cntk")
    assert "Starting from checkpoint. Loading network from 'run/m.2'." in rest.err
    assert finished(rest.err) == finished(whole.err)[2:]
    assert (tmp_path / "run/m").read_bytes() == (tmp_path / "whole/m").read_bytes()
    assert (tmp_path / "run/m.ckp").read_bytes() == (tmp_path / "whole/m.ckp").read_bytes()
    assert names(tmp_path / "run") == ["m", "m.0", "m.1", "m.2", "m.3", "m.ckp"]


def test_after_the_last_epoch_there_is_nothing_to_do(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("configFile=main.cntk", files=FILES).code == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    again = cntkpy("configFile=main.cntk")
    assert again.code == 0
    assert "Final model exists: run/m\nNo further training is necessary." in again.err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before
    assert "Creating virgin network." in cntkpy("configFile=main.cntk", "makeMode=false").err


def test_a_missing_checkpoint_is_mentioned(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("configFile=main.cntk", files=FILES).code == 0
    (tmp_path / "run/m").unlink()
    rest = cntkpy("configFile=main.cntk")
    assert rest.code == 0
    assert "Warning: Checkpoint file is missing." in rest.err
    assert "totalSamplesSeen = 60;" in rest.err


def start(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cntkpy", "configFile=main.cntk", *words]
    return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.thorough
def test_a_killed_run_goes_on_where_it_was(cntkpy, tmp_path: Path) -> None:
    many = "train=[SGD=[maxEpochs=60]]"
    whole = cntkpy("configFile=main.cntk", many, "modelPath=whole/m", files=FILES)
    assert whole.code == 0, whole.err
    kills = 0
    for epoch in (2, 9):
        killed = start(tmp_path, many)
        deadline = time.monotonic() + 120
        while killed.poll() is None and time.monotonic() < deadline:
            if (tmp_path / f"run/m.{epoch}").exists():
                killed.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.005)
        killed.wait(60)
        killed.stderr.close()  # type: ignore[union-attr]
    assert kills == 2
    last = cntkpy("configFile=main.cntk", many)
    assert last.code == 0, last.err
    rest = finished(last.err)
    assert rest == finished(whole.err)[-len(rest) :]
    assert (tmp_path / "run/m").read_bytes() == (tmp_path / "whole/m").read_bytes()
    assert not [name for name in names(tmp_path / "run") if name.endswith(".tmp") and not name.startswith(".")]


@pytest.mark.parametrize("failing", [2, 3, 5])
@pytest.mark.sampled
def test_a_full_disk_leaves_the_earlier_model_intact(
    failing: int, cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is fsynced before it is renamed; the n-th of them fails as on a full disk."""
    real, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_file():
            calls.append(descriptor)
            if len(calls) == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    got = cntkpy("configFile=main.cntk", files=FILES)
    assert got.code == 1
    assert "No space left on device" in got.message and "run/m." in got.message
    assert "Traceback" not in got.err
    monkeypatch.setattr(os, "fsync", real)
    assert not [name for name in names(tmp_path / "run") if "tmp" in name]
    assert find_start(str(tmp_path / "run/m"), 4) == (failing - 2) // 2
    rest = cntkpy("configFile=main.cntk")
    assert rest.code == 0
    whole = cntkpy("configFile=main.cntk", "modelPath=whole/m")
    assert finished(rest.err) == finished(whole.err)[-len(finished(rest.err)) :]


def test_a_damaged_model_is_an_error_with_advice(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("configFile=main.cntk", files=FILES).code == 0
    path = tmp_path / "run/m.3"
    (tmp_path / "run/m").unlink()
    path.write_bytes(path.read_bytes()[:-9])
    got = cntkpy("configFile=main.cntk")
    assert got.code != 0
    assert "m.3" in got.message and "help: " in got.err and "Traceback" not in got.err


def test_the_newest_consistent_model_is_the_start(tmp_path: Path) -> None:
    base = str(tmp_path / "m")

    def touch(epoch: int, age: int) -> None:
        path = Path(model_name(base, epoch, 4))
        path.touch()
        os.utime(path, (10_000 - age, 10_000 - age))

    assert find_start(base, 4) is None
    for epoch, age in ((0, 50), (1, 40), (2, 30)):
        touch(epoch, age)
    assert find_start(base, 4) == 2
    touch(4, 0)  # P itself; nothing before it
    assert find_start(base, 4) == 4
    touch(3, -10)  # newer than the final model
    assert find_start(base, 4) == 3
    touch(2, 45)  # older than its predecessor
    touch(3, 46)
    Path(base).unlink()
    assert find_start(base, 4) == 1
    for other in ("m.01", "m.²", "m.3.ckp", "m.9", "m.x", "m." + "1" * 200, "M.3"):
        (tmp_path / other).touch()
    assert find_start(base, 4) == 1
    assert find_start(base, 2**40) == 9


def test_checkpoints_come_back_as_they_were(tmp_path: Path) -> None:
    path = str(tmp_path / "c.ckp")
    state: Any = {
        "W*x+B": {"v": np.arange(6.0).reshape(2, 3)},
        "b": {"a": np.ones(2, np.float32), "c": np.asarray(2.0)},
    }
    values = {"samples_seen": 12, "rate": 0.5, "reference": float("inf"), "minibatch_size": 8}
    values |= {"reader": {"position": 3}, "schedule": {"k": [1]}}
    Checkpoint(EPOCH, dict(values), Checkpoint.update_paths(state)).save(path)
    loaded = Checkpoint.load(path)
    assert loaded.values == values
    np.testing.assert_array_equal(loaded.updates["W*x+B"]["v"], state["W*x+B"]["v"])
    assert loaded.updates["b"]["a"].dtype == np.float32
    assert loaded.updates["b"]["c"].shape == ()
    with pytest.raises(UserError, match=r"it is one of another kind \(epoch\)"):
        Checkpoint.load(path, PROGRAM)
    with pytest.raises(FileNotFoundError):
        Checkpoint.load(str(tmp_path / "none"))
    data = Path(path).read_bytes()
    for length in (0, 5, len(data) - 1):
        Path(path).write_bytes(data[:length])
        with pytest.raises(UserError, match="not a checkpoint"):
            Checkpoint.load(path)
