"""Runs on another device than the first: the CPU of a process of its own is made four devices."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
DEVICES = 4

Runs = dict[str, tuple[list[int], bool]]
"""Of each run the devices, and whether stacks are copied as to a device with memory of its own."""

ONE: Runs = {"first": ([0], False), "other": ([3], False), "copied": ([3], True)}
TWO: Runs = {"first": ([0, 1], False), "other": ([2, 3], False), "copied": ([2, 3], True)}

PROGRAM = """
import gc, json, sys
import numpy as np
from cntkpy.commands.context.device import Device
from cntkpy.commands.runner.run import run
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.executables import Program
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.parallel.placement import OnProcessGroup
from cntkpy.trainers.step.placement import OneDevice

runs, words = json.load(sys.stdin)
seen, waits = [], []
call = Program.__call__


def watch(owner, name):
    # what waits for an array, or copies it to the host
    function = getattr(owner, name)

    def watched(value, *rest, **more):
        if isinstance(value, jax.Array):
            waits.append(name)
        return function(value, *rest, **more)

    setattr(owner, name, watched)


for name in ("__float__", "__int__", "__bool__", "item", "tolist", "block_until_ready"):
    watch(type(jax.numpy.zeros(1)), name)
for owner, name in ((np, "asarray"), (np, "array"), (np, "any"), (jax, "block_until_ready"), (jax, "device_get")):
    watch(owner, name)

def watched(self, *arguments):
    results = call(self, *arguments)
    del arguments
    live = jax.live_arrays()
    devices = {device.id for array in live for device in array.devices()}
    what = "training" if self._donate else "evaluation"
    seen.append([what, len(live), sum(array.nbytes for array in live), waits[:], sorted(devices)])
    waits.clear()
    return results

Program.__call__ = watched
found = {}
for name, (numbers, copies) in runs.items():
    Device.here = lambda self, numbers=numbers: [jax.devices()[number] for number in numbers]
    for one in (OneDevice, OnProcessGroup, Evaluator):
        one.copies = property(lambda self, copies=copies: copies)
    status = run([*words, f"RunDir={name}", f"stderr={name}/log"])
    gc.collect()
    found[name] = {"status": status, "seen": seen[:], "left": len(jax.live_arrays())}
    seen.clear()
json.dump(found, sys.stdout)
"""


def run_all(folder: Path, runs: Runs, *words: str) -> dict[str, Any]:
    """Runs of a configuration in one process, and what arrays there were after every program.

    All have written the same, on the devices that were asked for, and no arrays are left of them.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([runs, [*words, f"SampleDir={ROOT / 'sample_configs'}"]]),
        cwd=folder,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = files(folder, "first")
    assert expected
    for name, (numbers, _) in runs.items():
        got = found[name]
        assert got["status"] == 0, (folder / name / "log").read_text()
        assert set().union(*(devices for *_, devices in got["seen"])) == set(numbers)
        assert got["left"] == 0
        assert files(folder, name) == expected, name
    return found


def files(folder: Path, run: str) -> dict[str, bytes]:
    """What a run has written, without its log."""
    paths = (path for path in (folder / run).rglob("*") if path.is_file() and path.name != "log")
    return {str(path.relative_to(folder / run)): path.read_bytes() for path in paths}


@pytest.mark.thorough
def test_another_device_computes_the_same_to_the_last_digit(tmp_path: Path) -> None:
    digits = ROOT / "sample_configs/digits.cntk"
    words = "maxEpochs=1;minibatchSize=5;learningRatesPerMB=0.05;numMBsToShowResult=25"
    found = run_all(tmp_path, ONE, f"configFile={digits}", "command=train:test", f"train=[SGD=[{words}]]")
    for name in ONE:
        first, *others = [one[1:4] for one in found[name]["seen"] if one[0] == "training"]
        assert len(others) == 11  # 280 minibatches, 25 in a stack
        assert first[0] <= others[0][0] and others == others[:1] * 11, "no stack leaves an array behind"
        assert others[0][2] == ["asarray"], "between two stacks the host waits once, for the sums of one"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["batch_normalization", "sequence_classifier", "slot_tagging", "speech_lstm"])
def test_samples_on_another_device(name: str, tmp_path: Path) -> None:
    config = f"configFile={ROOT / 'sample_configs' / name}.cntk"
    run_all(tmp_path, ONE, config, "train=[SGD=[maxEpochs=1]]")


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["DataParallelSGD", "BlockMomentumSGD;BlockMomentumSGD=[blockSizePerWorker=100]"])
def test_several_other_devices(method: str, tmp_path: Path) -> None:
    """Of one process; `first` has two devices, too."""
    method = f"ParallelTrain=[parallelizationMethod={method}]"
    words = "maxEpochs=2;numMBsToShowResult=25"
    digits = ROOT / "sample_configs/digits.cntk"
    run_all(tmp_path, TWO, f"configFile={digits}", "command=train:test", f"train=[SGD=[{words};{method}]]")
