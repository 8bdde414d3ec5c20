"""Tables in the pipeline: workers and row groups, memory, beside pictures, text and speech; every column converted."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cntkpy.commands.cli import main
from cntkpy.commands.tools.convert import convert
from cntkpy.readers import MinibatchSource, ParquetDeserializer, StreamDef, StreamDefs, create_reader
from cntkpy.readers.formats.tables import deserializer
from cntkpy.readers.formats.tables.deserializer import TableDeserializer
from cntkpy.readers.pipeline import randomize
from cntkpy.readers.pipeline.store import ChunkStore

from ..htk.htk_data import LENGTHS, Speech
from ..image.pictures import png, solid
from .table_files import KINDS
from .test_tables import ROWS, every_column, write


def keys(section: str, worker: int, workers: int, size: int = 20) -> list[int]:
    reader = create_reader(section)
    reader.start_minibatch_loop(size, 1, None, worker, workers)
    found = [int(key) for minibatch in iter(reader.get_minibatch, None) for key in minibatch.keys]
    reader.close()
    return found


def test_workers_share_row_groups(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffled, a worker decodes its own row groups only; all of them together read every row once."""
    path = write(pa.table({"x": np.arange(400.0)}), kind, rows=40)
    section = f"deserializers=([type={KINDS[kind]};file={path};input=[x=[dim=1]]])"
    loaded: list[int] = []
    load = TableDeserializer.load_chunk
    monkeypatch.setattr(TableDeserializer, "load_chunk", lambda self, chunk: loaded.append(chunk) or load(self, chunk))
    for workers in (1, 2, 3):
        every: list[int] = []
        chunks: list[int] = []
        for worker in range(workers):
            loaded.clear()
            found = keys(section, worker, workers)
            assert found == keys(section, worker, workers) and found
            assert {key // 40 for key in found} == set(loaded)
            every += found
            chunks += sorted(set(loaded))
        assert sorted(every) == list(range(400)) and sorted(chunks) == list(range(10))


@pytest.mark.thorough
def test_memory_is_bounded_by_row_groups(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """48 MB in row groups of 1 MB, of which 4 MB may stay in two places: about half of the data is there at once."""
    count, dim = 48 << 10, 256
    rng = np.random.default_rng(1)
    values = pa.array(rng.standard_normal(count * dim, np.float32))
    path = write(pa.table({"x": pa.FixedSizeListArray.from_arrays(values, dim)}), kind, rows=1 << 10)
    del values
    monkeypatch.setitem(ChunkStore.__init__.__kwdefaults__, "memory", 4 << 20)
    monkeypatch.setattr(deserializer, "DEFAULT_MEMORY", 4 << 20)
    monkeypatch.setattr(randomize.chunks_in_memory, "__defaults__", (4 << 20,))
    for order in ("true", "false"):
        reader = create_reader(
            f"randomize={order};deserializers=([type={KINDS[kind]};file={path};input=[x=[dim={dim}]]])"
        )
        arrow_before = pa.total_allocated_bytes()
        tracemalloc.start()
        reader.start_minibatch_loop(64, 0)
        largest = rows = 0
        while (minibatch := reader.get_minibatch()) is not None:
            rows += minibatch.streams["x"].shape[1]
            largest = max(largest, pa.total_allocated_bytes() - arrow_before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reader.close()
        assert rows == count
        assert peak + largest < 26 << 20, (order, peak, largest)  # 25.2 MB were seen where other tests had run


def test_beside_text_and_pictures(kind: str) -> None:
    count = 30
    for i in range(count):
        Path(f"{i}.png").write_bytes(png(solid((i, 0, 0), 2, 2)))
    Path("map.txt").write_text("".join(f"{i}.png\t{i % 3}\n" for i in range(count)))
    Path("z.ctf").write_text("".join(f"|z {i}\n" for i in range(count)))
    path = write(pa.table({"x": np.arange(float(count)), "c": [f"c{i % 4}" for i in range(count)]}), kind, rows=7)
    parts = [
        f"[type={KINDS[kind]};file={path};input=[x=[dim=1];c=[dim=4;format=sparse]]]",
        "[type=CNTKTextFormatDeserializer;file=z.ctf;input=[z=[dim=1;format=dense]]]",
        "[type=ImageDeserializer;file=map.txt;input=[p=[transforms=([type=Transpose])];y=[labelDim=3]]]",
    ]
    for first in range(3):
        several = ":".join(parts[first:] + parts[:first])
        reader = create_reader(f"deserializers=({several})")
        reader.start_minibatch_loop(8, 0)
        seen: list[float] = []
        for minibatch in iter(reader.get_minibatch, None):
            s = minibatch.streams
            x = s["x"].ravel()
            assert s["z"].ravel().tolist() == x.tolist() == s["p"].reshape(len(x), 3, 2, 2)[:, 2, 0, 0].tolist()
            assert s["c"].toarray().argmax(1).tolist() == (x % 4).tolist()
            assert s["y"].toarray().argmax(1).tolist() == (x % 3).tolist()
            seen += x.tolist()
        assert sorted(seen) == list(range(count))
        reader.close()


def test_beside_speech(kind: str) -> None:
    """A row for each utterance, joined by its name: as many frames, or one value for all of them."""
    speech = Speech(Path.cwd())
    names = [f"g/u{u}" for u in range(len(LENGTHS))]
    frames = pa.array([[[float(u), float(t)] for t in range(n)] for u, n in enumerate(LENGTHS)],
                      pa.list_(pa.list_(pa.float32(), 2)))  # fmt: skip
    path = write(pa.table({"name": names[::-1], "f": frames[::-1]}), kind, rows=3)
    table = f"[type={KINDS[kind]};file={path};keyColumn=name;input=[f=[dim=2]]]"
    htk = f"[type=HTKFeatureDeserializer;input=[x=[{speech.features()}]]]"
    for parts in (f"{htk}:{table}", f"{table}:{htk}"):
        reader = create_reader(f"useNumericSequenceKeys=false;deserializers=({parts})")
        reader.start_minibatch_loop(20, 0)
        seen = 0
        for minibatch in iter(reader.get_minibatch, None):
            f, x = minibatch.streams["f"], minibatch.streams["x"]
            for _, slot, begin, end in minibatch.layouts["x"].sequences.tolist():
                assert f[begin:end, slot, 0].tolist() == x[begin:end, slot, 1].tolist()  # the number of the utterance
                assert f[begin:end, slot, 1].tolist() == list(range(end - begin))
                seen += 1
        assert seen == len(LENGTHS)
        reader.close()


STREAMS = {
    "a": "1", "b": "1", "flag": "1", "half": "1", "vector": "3", "loose": "3", "series": "1", "frames": "2",
    "ragged": "2", "number": "7:class", "text": "3:class", "coded": "3:class", "words": "5:class",
    "classes": "4:class", "bag": "6:sparse", "bags": "3:sparse",
}  # fmt: skip


@pytest.mark.parametrize("name", list(STREAMS))
@pytest.mark.sampled
def test_every_column_is_converted_and_comes_back(kind: str, name: str) -> None:
    """A column to text and to the other kind of table: the same text each time."""
    path = write(every_column().select([name]), kind)
    other = "arrow" if kind == "parquet" else "parquet"
    words = (f"{name}:{STREAMS[name]}",)
    assert convert([path], "a.ctf", words, quiet=True) == 0
    assert convert([path], f"b.{other}", words, quiet=True) == 0
    assert convert([f"b.{other}"], "b.ctf", quiet=True) == 0
    assert Path("a.ctf").read_text() == Path("b.ctf").read_text()
    assert len({line.split()[0] for line in Path("a.ctf").read_text().splitlines()}) == ROWS


def test_preview_of_every_column(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(every_column(), kind)
    inputs = ";".join(
        f"{name}=[dim={one.split(':')[0]};format={'sparse' if ':' in one else 'dense'}]"
        for name, one in STREAMS.items()
    )
    Path("c.cntk").write_text(
        f"train=[action=train;reader=[deserializers=([type={KINDS[kind]};file={path};input=[{inputs}]])]]"
    )
    assert main(["preview", "c.cntk", "train", "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in found["streams"]} == set(STREAMS)


def test_spawned_copies_and_record_batches_of_filtered_tables() -> None:
    import pickle

    path = write(every_column(), "parquet")
    streams = StreamDefs(v=StreamDef(field="vector", shape=3), t=StreamDef(field="text", shape=3, is_sparse=True))
    source = MinibatchSource(ParquetDeserializer(path, streams, filter="number < 3"), max_sweeps=1)
    next(source.arrays(16))
    copy = pickle.loads(pickle.dumps(source))
    table = pa.Table.from_batches(list(copy.record_batches(16)))
    rest = np.concatenate([one["v"] for one in source.arrays(16)])
    assert np.array(table["v"].to_pylist()).tolist() == rest.tolist()
    assert all(int(key) % 7 < 3 for key in table["key"].to_pylist())
    assert len(pq.read_table(path)) == ROWS
