"""Minibatches of a source as arrays of NumPy, PyTorch and JAX, and as a data set of PyTorch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.errors import ArgumentError

from .small_source import source, write_files


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)


def test_samples() -> None:
    found = list(source().arrays(16))
    assert [set(one) for one in found] == [{"x", "y"}] * 4
    x = np.concatenate([one["x"] for one in found])
    assert x.dtype == np.float32 and x.tolist() == [[k, k / 2] for k in range(50)]
    assert found[0]["y"].shape == (16, 4) and found[0]["y"].toarray()[5].tolist() == [0, 5, 0, 0]


def test_sequences_have_lengths() -> None:
    found = list(source("sequences.ctf").arrays(100))
    assert found[0]["x_lengths"].tolist() == [1 + k % 3 for k in range(20)]
    assert found[0]["x"].tolist() == [[k, t] for k in range(20) for t in range(1 + k % 3)]
    assert found[0]["y"].toarray().argmax(1).tolist() == [k % 4 for k in range(20) for _ in range(1 + k % 3)]


def test_shares_and_positions() -> None:
    parts = [[one["x"][:, 0].tolist() for one in source().arrays(10, num_data_partitions=2, partition_index=i)]
             for i in range(2)]  # fmt: skip
    assert sorted(value for part in parts for one in part for value in one) == list(range(50))
    one, other = source(randomize=True, max_sweeps=2), source(randomize=True, max_sweeps=2)
    walk = one.arrays(16)
    next(walk), next(walk)
    other.restore_from_checkpoint(one.get_checkpoint_state())
    assert [m["x"].tolist() for m in walk] == [m["x"].tolist() for m in other.arrays(16)]


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    found = next(iter(source().arrays(16, "jax")))
    assert isinstance(found["x"], jax.Array) and found["x"].shape == (16, 2)
    assert np.asarray(found["y"].todense()).argmax(1)[:4].tolist() == [0, 1, 2, 3]


def test_what_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="'mxnet' is not a framework"):
        next(source().arrays(16, "mxnet"))
    with pytest.raises(ArgumentError, match="pieces of sequences"):
        next(source("sequences.ctf", truncation_length=2).arrays(16))


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_message_names_it() -> None:
    with pytest.raises(UserError, match=r"torch\.utils\.data is not installed"):
        source().torch_dataset(16)


STUB = """
import sys, types
class IterableDataset: pass
worker = None
data = types.ModuleType("torch.utils.data")
data.IterableDataset, data.get_worker_info = IterableDataset, lambda: worker
torch = types.ModuleType("torch")
torch.from_dlpack = lambda array: array
utils = types.ModuleType("torch.utils")
sys.modules |= {"torch": torch, "torch.utils": utils, "torch.utils.data": data}
from cntkpy.readers import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
import pickle
streams = StreamDefs(x=StreamDef(field="x", shape=2))
source = MinibatchSource(CTFDeserializer("samples.ctf", streams), max_sweeps=1, randomize=False)
walk = source.arrays(10)
next(walk)
dataset = source.torch_dataset(10)
assert isinstance(dataset, IterableDataset)
seen = []
for number in range(3):  # as workers of a loader, in processes of their own
    worker = types.SimpleNamespace(num_workers=3, id=number)
    copy = pickle.loads(pickle.dumps(dataset))
    seen += [row[0] for m in copy for row in m["x"].tolist()]
assert sorted(seen) == list(range(10, 50)), seen
worker = None
first = next(iter(dataset))
assert first["x"][:, 0].tolist() == list(range(10, 20))
assert next(source.arrays(10))["x"][:, 0].tolist() == list(range(20, 30))
"""


def test_a_data_set_of_pytorch_shares_the_data_among_workers() -> None:
    """With a stand-in for torch, which CI does not have; benchmarks use the real one."""
    folder = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", STUB],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(folder), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
