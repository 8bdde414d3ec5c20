"""Checkpoints of sessions of which all are kept: their names, and which one a session resumes from."""

from pathlib import Path

import numpy as np
import pytest

import cntkpy.compat.cntk as C

X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)


def run(filename: Path, restore: bool = True) -> tuple[list[int], np.ndarray]:
    """Train on 60 samples; return the samples after each minibatch, and the weights."""
    x = C.input_variable(2)
    weights = C.parameter((2, 1), init=0.5)
    z = C.times(x, weights)
    seen: list[int] = []

    class Watcher(C.cntk_py.ProgressWriter):
        def __init__(self) -> None:
            super().__init__(1, 0, 1, 0)

        def on_write_training_update(self, samples, updates, aggregate_loss, aggregate_metric) -> None:
            seen.append(samples[1] - samples[0])

    trainer = C.Trainer(z, C.squared_error(z, 1), C.momentum_sgd(z.parameters, 0.01, 0.9), Watcher())
    source = C.io.MinibatchSourceFromData({"x": X}, max_samples=60)
    config = C.CheckpointConfig(str(filename), frequency=20, preserve_all=True, restore=restore)
    C.training_session(trainer, source, 4, {x: source.streams.x}, checkpoint_config=config).train()
    return seen, weights.value


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_checkpoints_have_numbers_from_0_on(tmp_path: Path) -> None:
    run(tmp_path / "net")
    names = ["net", "net0", "net1", "net2"]
    assert files(tmp_path) == {name + end for name in names for end in ("", ".ckp")}


@pytest.mark.parametrize("renamed", [False, True])
def test_a_session_resumes_from_the_highest_number(tmp_path: Path, renamed: bool) -> None:
    """Of the files of the first run only number 1 is left, after 40 samples."""
    seen, weights = run(tmp_path / "net")
    for name in files(tmp_path) - {"net1", "net1.ckp", *(["net0", "net0.ckp"] if not renamed else [])}:
        (tmp_path / name).unlink()
    if renamed:
        (tmp_path / "net1").rename(tmp_path / "net")
        (tmp_path / "net1.ckp").rename(tmp_path / "net.ckp")
    again, same = run(tmp_path / "net")
    assert sum(seen) == 60 and sum(again) == 20
    assert np.array_equal(weights, same)
    assert "net2.ckp" in files(tmp_path)
    assert sum(run(tmp_path / "net", restore=False)[0]) == 60
