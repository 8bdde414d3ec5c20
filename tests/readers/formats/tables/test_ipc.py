"""Arrow's stream format beside its file format, Feather 1, and headers that claim more than there is."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cntkpy.commands.cli import main
from cntkpy.readers import ArrowDeserializer, DataError, MinibatchSource, StreamDef, StreamDefs
from cntkpy.readers.formats.tables import ipc
from cntkpy.readers.formats.tables.files import ArrowTable

ROWS = 10


def table() -> pa.Table:
    return pa.table(
        {
            "x": pa.array(np.arange(ROWS) / 2, pa.float32()),
            "name": pa.array([f"n{i % 3}" for i in range(ROWS)]),
            "coded": pa.array([f"c{i // 4}" for i in range(ROWS)]).dictionary_encode(),
            "pair": pa.array([[i, i + 1] for i in range(ROWS)], pa.list_(pa.float32(), 2)),
            "place": pa.array([{"floor": i} for i in range(ROWS)]),
        }
    )


def write(path: str, rows: int = 3, **options: Any) -> str:
    """A stream with record batches of so many rows."""
    found = table()
    with pa.ipc.new_stream(path, found.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(found, max_chunksize=rows)
    return path


def samples(path: str, stream: Any, **options: Any) -> list[Any]:
    deserializer = ArrowDeserializer(path, StreamDefs(s=stream), **options)
    source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    found = source.next_minibatch(100)[source["s"]].as_sequences()
    return [one.indices.tolist() if stream.is_sparse else one.tolist() for one in found]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"compression": "zstd"},
    {"compression": "lz4"},
    {"use_legacy_format": True},
    {"emit_dictionary_deltas": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_stream_is_read_as_a_file_is(options: dict[str, Any]) -> None:
    path = write("s.arrow", **options)
    assert samples(path, StreamDef(field="x", shape=1)) == [[[i / 2]] for i in range(ROWS)]
    assert samples(path, StreamDef(field="pair", shape=2)) == [[[i, i + 1]] for i in range(ROWS)]
    assert samples(path, StreamDef(field="name", shape=3, is_sparse=True)) == [[i % 3] for i in range(ROWS)]
    assert samples(path, StreamDef(field="coded", shape=3, is_sparse=True)) == [[i // 4] for i in range(ROWS)]
    chosen = samples(path, StreamDef(field="x", shape=1), filter="place.floor > 6 and coded == 'c2'")
    assert chosen == [[[4.0]], [[4.5]]]
    found = ArrowTable(path)
    assert (found.groups, found.rows()) == (4, [3, 3, 3, 1])


def test_dictionaries_of_a_stream_may_change() -> None:
    """A batch has the dictionary that was written last before it, whichever batch is read first."""
    batches = [
        pa.record_batch({"c": pa.array(values).dictionary_encode()}) for values in (["b", "a"], ["z", "b"], ["a", "a"])
    ]
    with pa.ipc.new_stream("s.arrow", batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found = ArrowTable("s.arrow")
    for number in (2, 0, 1):
        values = [one.to_pylist() for one in found.read(number, ["c"])["c"]]
        assert values == [batches[number].column(0).to_pylist()]
    stream = StreamDef(field="c", shape=3, is_sparse=True)
    assert samples("s.arrow", stream) == [[1], [0], [2], [1], [0], [0]]


def test_a_stream_without_an_end_mark_is_whole() -> None:
    data = Path(write("s.arrow")).read_bytes()
    Path("cut.arrow").write_bytes(data[:-8])
    assert ArrowTable("cut.arrow").rows() == [3, 3, 3, 1]


@pytest.mark.malformed
def test_a_stream_that_is_cut_is_damaged() -> None:
    data = Path(write("s.arrow")).read_bytes()
    draw = random.Random(1)
    for size in draw.sample(range(8, len(data) - 8), 60):
        Path("cut.arrow").write_bytes(data[:size])
        try:
            rows = ArrowTable("cut.arrow").rows()
        except DataError as error:
            assert "cut.arrow" in str(error)
        else:  # between two messages
            assert rows == [3, 3, 3, 1][: len(rows)]
    Path("cut.arrow").write_bytes(data[:-20])
    with pytest.raises(DataError, match="cannot be read as Arrow's stream format: it ends within the message at byte"):
        ArrowTable("cut.arrow")


@pytest.mark.malformed
def test_feather_1_is_named() -> None:
    Path("a.feather").write_bytes(b"FEA1" + bytes(60) + b"FEA1")
    with pytest.raises(DataError, match=r"a\.feather is a file of Feather, version 1") as caught:
        ArrowTable("a.feather")
    assert "write version 2" in str(caught.value.hint)


@pytest.mark.malformed
@pytest.mark.parametrize("content", [b"", b"x", b"no table at all", b"\xff\xff\xff\xff\x10", bytes(40)])
def test_other_files_are_no_arrow_files(content: bytes) -> None:
    Path("a.arrow").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.arrow cannot be read as Arrow's"):
        ArrowTable("a.arrow")


def test_preview_and_convert_read_streams(capsys: pytest.CaptureFixture[str]) -> None:
    write("s.arrow")
    assert main(["convert", "s.arrow", "o.ctf", "--stream", "x:1"]) == 0
    assert Path("o.ctf").read_text().splitlines()[3].endswith("|x 1.5")
    capsys.readouterr()


def to_file(path: str, options: dict[str, Any]) -> None:
    with pa.ipc.new_file(path, table().schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table())


MAKERS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "file": to_file,
    "stream": lambda path, options: write(path, **options),
}


@pytest.mark.malformed
@pytest.mark.parametrize("form", list(MAKERS))
def test_compressed_buffers_that_claim_too_much_are_refused_before_memory_is_taken(form: str) -> None:
    """The length of a decompressed buffer stands before it: 200 GB in a file of some kilobytes."""
    MAKERS[form]("s.arrow", {"compression": "zstd"})
    data = bytearray(Path("s.arrow").read_bytes())
    at = data.index(b"\x28\xb5\x2f\xfd") - 8
    data[at : at + 8] = struct.pack("<q", 200 << 30)
    Path("s.arrow").write_bytes(data)
    found = ArrowTable("s.arrow")
    with pytest.raises(DataError, match=r"record batch 0 takes up to 214,748,.* bytes decoded, in a file of"):
        found.read(0, found.names)


@pytest.mark.malformed
def test_headers_are_checked() -> None:
    """Whatever a byte of a header becomes, no other error is raised than the one of a damaged header."""
    data = Path(write("s.arrow")).read_bytes()
    draw = random.Random(2)
    for _ in range(400):
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        Path("c.arrow").write_bytes(changed)
        with Path("c.arrow").open("rb") as file:
            try:
                for message in ipc.messages_of_stream(file, len(changed)):
                    assert 0 <= message.begin < message.end <= len(changed)
            except ipc.Damaged:
                pass
