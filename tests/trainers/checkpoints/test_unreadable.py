"""Checkpoints that cannot be read, and those of CNTK."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.trainers.checkpoints.checkpoint import EPOCH, INSIDE, PROGRAM, Checkpoint
from cntkpy.trainers.fronts.config.partial import DATA, load_partial


def test_a_checkpoint_of_cntk_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "m.ckp"
    path.write_bytes("BVersion\0".encode("utf-16-le") + bytes(30))
    with pytest.raises(UserError, match="it is one of CNTK") as caught:
        Checkpoint.load(str(path), INSIDE)
    assert "delete it to resume from the model alone" in str(caught.value.diagnostic.hint)
    with pytest.raises(UserError, match="it is one of CNTK") as caught:
        Checkpoint.load(str(path), PROGRAM)
    assert "restore=False" in str(caught.value.diagnostic.hint)  # a program has no makeMode
    assert load_partial(str(path), {}) is None
    assert "the epoch starts over, because its state inside cannot be used: " in caplog.text


def test_nobody_is_told_to_delete_what_a_disk_does_not_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.ckp"
    values = {"samples_seen": 1, "rate": None, "reference": 1.0, "minibatch_size": 1, "reader": {}, "schedule": {}}
    Checkpoint(EPOCH, values, {"a": np.arange(3)}).save(str(path))
    assert Checkpoint.load(str(path)).arrays["a"].tolist() == [0, 1, 2]
    monkeypatch.setattr("cntkpy.cntk_config.base.retry.RETRY_SECONDS", (0.0,) * 4)

    def fails(*given: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as disk, pytest.raises(UserError) as caught:
        disk.setattr(os, "open", fails)
        Checkpoint.load(str(path))
    assert f"cannot read the checkpoint {path}: Input/output error, 5 times" in str(caught.value)
    assert caught.value.diagnostic.hint == "check the disk or the network mount"


def test_a_state_inside_an_epoch_of_other_data_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "m.1.partial")
    settings = {"epoch": 1, DATA: 40}
    values = {"position": {}, "reader": {}, "shapes": {}, "settings": settings}
    Checkpoint(INSIDE, values, {}).save(path)
    assert load_partial(path, settings) is not None
    assert load_partial(path, settings | {DATA: 0}) is not None  # not known
    assert not caplog.records
    assert load_partial(path, settings | {DATA: 41}) is None
    assert "it was begun with samples of the data 40, now 41" in caplog.text
    Checkpoint(INSIDE, values | {"settings": {"epoch": 1}}, {}).save(path)  # as older versions wrote them
    assert load_partial(path, settings) is not None
