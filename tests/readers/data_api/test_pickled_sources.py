"""Sources and readers in other processes, and record batches of Arrow."""

from __future__ import annotations

import multiprocessing
import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cntkpy.readers import (
    ArrowDeserializer,
    CTFDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    StreamInformation,
    UserDeserializer,
    create_reader,
)
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.reader import Reader

STREAMS = StreamDefs(x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=4, is_sparse=True))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{k} |x {k} {t} |y {k % 4}:1\n" for k in range(60) for t in range(1 + k % 3)]
    Path("sequences.ctf").write_text("".join(lines))
    Path("samples.ctf").write_text("".join(f"{k} |x {k} {k / 2} |y {k % 4}:{k}\n" for k in range(50)))


class Rows(UserDeserializer):
    """Four chunks of numbers."""

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation("x", 0, "dense", np.float32, (2,))]

    def num_chunks(self) -> int:
        return 4

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        return {"x": np.arange(20, dtype=np.float32).reshape(10, 2) + 20 * chunk_id}


def rest(source: MinibatchSource, size: int = 17) -> list[Any]:
    return [[one.tolist() for one in m[source["x"]].as_sequences()] for m in source.minibatches(size)]


SOURCES = {
    "text": lambda **more: MinibatchSource(CTFDeserializer("sequences.ctf", STREAMS), max_sweeps=2, **more),
    "file order": lambda **more: MinibatchSource(
        CTFDeserializer("sequences.ctf", STREAMS), max_samples=150, randomize=False, **more
    ),
    "in Python": lambda **more: MinibatchSource(Rows(), max_sweeps=3, **more),
    "pieces": lambda **more: MinibatchSource(
        CTFDeserializer("sequences.ctf", STREAMS), max_sweeps=1, truncation_length=2, **more
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("before", [0, 2])
def test_a_copy_continues_where_the_source_is(kind: str, before: int) -> None:
    source = SOURCES[kind]()
    for _ in range(before):
        assert source.next_minibatch(17)
    copy = pickle.loads(pickle.dumps(source))
    again = pickle.loads(pickle.dumps(copy))
    expected = rest(source)
    assert expected
    assert rest(copy) == rest(again) == expected


def test_a_copy_of_a_share() -> None:
    source = SOURCES["file order"]()
    source.next_minibatch(20, num_data_partitions=2, partition_index=1)
    copy = pickle.loads(pickle.dumps(source))
    mine, other = (one.next_minibatch(20, num_data_partitions=2, partition_index=1) for one in (source, copy))
    found = [data.as_sequences()[0].tolist() for data in (mine[source["x"]], other[copy["x"]])]
    assert found[0] == found[1]


@pytest.mark.thorough
def test_in_a_spawned_process() -> None:
    source = SOURCES["text"]()
    source.next_minibatch(17)
    reader = create_reader("file=sequences.ctf;input=[x=[dim=2;format=dense]]")
    reader.start_minibatch_loop(10, 0)
    reader.get_minibatch()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(operator.methodcaller("next_minibatch", 17), (source,))
        other = pool.apply(operator.methodcaller("get_minibatch"), (reader,))
    mine, own = source.next_minibatch(17), reader.get_minibatch()
    assert own is not None
    assert [one.tolist() for one in found[source["x"]].as_sequences()] == [
        one.tolist() for one in mine[source["x"]].as_sequences()
    ]
    assert other.keys == own.keys


def test_readers() -> None:
    section = "file=sequences.ctf;input=[x=[dim=2;format=dense]]"
    for text in (section, f"deserializers=([type=CNTKTextFormatDeserializer;{section}]);randomize=true"):
        reader = create_reader(text, "double")
        fresh = pickle.loads(pickle.dumps(reader))
        for one in (reader, fresh):
            one.start_minibatch_loop(10, 1, 55)
        assert reader.get_minibatch().keys == fresh.get_minibatch().keys  # type: ignore[union-attr]
        copy = pickle.loads(pickle.dumps(reader))
        expected = [m.keys for m in iter(reader.get_minibatch, None)]
        assert [m.keys for m in iter(copy.get_minibatch, None)] == expected
        assert copy.streams[0].dtype == np.float64
    with pytest.raises(TypeError, match="that create_reader has not made"):
        pickle.dumps(Reader(reader.source))


# ------------------------------------------------------------------------------------------------------- record batches


def test_record_batches_of_samples() -> None:
    source = MinibatchSource(CTFDeserializer("samples.ctf", STREAMS), max_sweeps=1, randomize=False)
    table = pa.Table.from_batches(source.record_batches(16))
    assert [len(batch) for batch in table.to_batches()] == [16, 16, 16, 2]
    assert [str(kind) for kind in table.schema.types] == [
        "uint64",
        "fixed_size_list<item: float>[2]",
        "map<int32, float>",
    ]
    assert table.to_pylist() == [{"key": k, "x": [k, k / 2], "y": [(k % 4, float(k))]} for k in range(50)]


def test_record_batches_of_sequences_can_be_read_again() -> None:
    source = MinibatchSource(CTFDeserializer("sequences.ctf", STREAMS), max_sweeps=1)
    batches = list(source.record_batches(16))
    with pa.ipc.new_file("a.arrow", batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    streams = StreamDefs(x=StreamDef(shape=2), y=StreamDef(shape=4, is_sparse=True))
    again = MinibatchSource(ArrowDeserializer("a.arrow", streams, "key"), max_sweeps=1, randomize=False)
    source = MinibatchSource(CTFDeserializer("sequences.ctf", STREAMS), max_sweeps=1)
    assert [one for m in rest(again) for one in m] == [one for m in rest(source) for one in m]
    assert sorted(key for batch in batches for key in batch.column("key").to_pylist()) == list(range(60))


def test_record_batches_of_shares_and_of_python() -> None:
    shares = [
        MinibatchSource(CTFDeserializer("samples.ctf", STREAMS), max_sweeps=1, randomize=False).record_batches(
            20, num_data_partitions=3, partition_index=rank
        )
        for rank in range(3)
    ]
    keys = [key for share in shares for batch in share for key in batch.column("key").to_pylist()]
    assert sorted(keys) == list(range(50))
    batch = next(iter(MinibatchSource(Rows(), max_sweeps=1, randomize=False).record_batches(3)))
    assert batch.column("x").to_pylist() == [[[0, 1]], [[2, 3]], [[4, 5]]]  # its sequences may have any length
    with pytest.raises(ArgumentError, match="pieces of sequences"):
        next(iter(SOURCES["pieces"]().record_batches(3)))


def test_streams_of_other_lengths() -> None:
    """The stream that defines the length of a sequence has one sample, another one has more."""
    Path("a.ctf").write_text("0 |x 1 1 |y 0:1\n0 |x 2 2\n1 |x 3 3 |y 1:1\n")
    streams = StreamDefs(
        x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=4, is_sparse=True, defines_mb_size=True)
    )
    source = MinibatchSource(CTFDeserializer("a.ctf", streams), max_sweeps=1, randomize=False)
    (batch,) = source.record_batches(9)
    assert batch.column("x").to_pylist() == [[[1, 1], [2, 2]], [[3, 3]]]
