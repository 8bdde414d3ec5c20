"""Workers of a loader of PyTorch, each in a process of its own, share the row groups of one file: nothing twice.

With a stand-in for torch, which CI does not have; the processes begin as spawned ones do, with nothing but a pickle.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.readers import MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs
from cntkpy.readers.data_api.torch_data import Share

ROWS, GROUP, WORKERS = 600, 50, 3
WORKER = """
import json, pickle, sys, types
data = types.ModuleType("torch.utils.data")
data.IterableDataset = type("IterableDataset", (), {})
data.get_worker_info = lambda: types.SimpleNamespace(num_workers=int(sys.argv[2]), id=int(sys.argv[1]))
torch = types.ModuleType("torch")
torch.from_dlpack = lambda array: array
sys.modules |= {"torch": torch, "torch.utils": types.ModuleType("torch.utils"), "torch.utils.data": data}
from cntkpy.readers.data_api.torch_data import _opened
from cntkpy.readers.formats.tables.deserializer import TableDeserializer
loaded, load = [], TableDeserializer.load_chunk
TableDeserializer.load_chunk = lambda self, chunk: loaded.append(chunk) or load(self, chunk)
with open("source.pickle", "rb") as file:
    dataset = _opened(*pickle.load(file))
rows = [int(row[0]) for minibatch in dataset for row in minibatch["x"].tolist()]
print(json.dumps([rows, sorted(set(loaded))]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("sweeps", [1, 2])
def test_row_groups_are_shared(sweeps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": np.arange(ROWS, dtype=np.float32)}), "t.parquet", row_group_size=GROUP)
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    source = MinibatchSource(ParquetDeserializer("t.parquet", streams), max_sweeps=sweeps)
    Path("source.pickle").write_bytes(pickle.dumps((pickle.dumps(source), Share(30, 1, 0))))
    root = str(Path(__file__).parents[3])
    every: list[int] = []
    groups: list[int] = []
    for worker in range(WORKERS):
        words = [sys.executable, "-c", WORKER, str(worker), str(WORKERS)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env={"PYTHONPATH": root, "PATH": ""})
        assert done.returncode == 0, done.stderr
        rows, loaded = json.loads(done.stdout)
        assert rows and {row // GROUP for row in rows} == set(loaded)
        every += rows
        groups += loaded
    assert sorted(every) == sorted(list(range(ROWS)) * sweeps)
    if sweeps == 1:  # in the next sweep a worker may have others
        assert sorted(groups) == list(range(ROWS // GROUP))
