"""S2: a device belongs to a command."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cntkpy.cntk_config import UserError, load
from cntkpy.commands.catalogue.section_map import section_map
from cntkpy.commands.checks.scan import scan_commands
from cntkpy.commands.runner.run import _check_devices
from cntkpy.commands.runner.workers import Workers

CONFIG = """\
command = train:test
modelPath = m
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ] ]
test = [ action = test ]
"""
FILES = {"m.cntk": CONFIG, "data.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"}


@pytest.mark.parametrize(
    "words",
    [
        ["train/deviceId=cpu"],
        ["deviceId=cpu", "test/deviceId=auto"],
        ["train/deviceId=-1", "test/deviceId=all"],
        ["train/deviceId=*1", "test/deviceId=cpu"],
    ],
)
@pytest.mark.sampled
def test_commands_of_different_devices(words: list[str], cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", *words, files=FILES)
    assert got.code == 0, got.err
    assert "Final Results: Minibatch[1-1]" in got.err and (tmp_path / "m").exists()


def test_a_device_that_is_not_there_is_found_before_anything_is_trained(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("configFile=m.cntk", "train/deviceId=cpu", "test/deviceId=77", files=FILES)
    assert got.code == 1
    assert "there is no GPU 77 on this machine" in got.err and "<argument 3>:1:15" in got.err
    assert "Epoch" not in got.err and not (tmp_path / "m").exists()


def check(words: list[str], meeting: Any = None) -> None:
    root = load(["configFile=m.cntk", *words])
    workers = Workers()
    workers.meeting = meeting
    top = section_map(root)
    _check_devices(scan_commands(top), top.values.device, workers)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_PLATFORMS", "")
    monkeypatch.delenv("JAX_PLATFORMS")
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.usefixtures("here")
def test_gpus_are_left_alone_only_if_no_command_wants_one() -> None:
    check(["train/deviceId=cpu"])
    assert "JAX_PLATFORMS" not in os.environ
    check(["deviceId=cpu", "train/deviceId=-3"])
    assert os.environ["JAX_PLATFORMS"] == "cpu"


@pytest.mark.usefixtures("here")
def test_processes_that_train_together_keep_their_device() -> None:
    meeting = SimpleNamespace(rank=0)
    check(["deviceId=0"], meeting)
    check(["train/deviceId=cpu", "deviceId=-1"], meeting)
    with pytest.raises(
        UserError, match=r"deviceId=cpu: processes that train together .* meet with, deviceId=auto"
    ) as got:
        check(["train/deviceId=cpu"], meeting)
    assert got.value.kind == "DeviceChanged"
    assert got.value.exit_code == 2
