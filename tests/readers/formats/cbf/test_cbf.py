"""CNTK binary format: a file whose bytes are spelled out, what is written is read back, damaged files are refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.commands.tools.convert import convert
from cntkpy.readers import (
    CBFDeserializer,
    CTFDeserializer,
    DataError,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    create_reader,
)

pytestmark = pytest.mark.malformed

MAGIC = struct.pack("<Q", 0x636E746B5F62696E)
STREAMS = b"\x00" + struct.pack("<I", 1) + b"x\x00" + struct.pack("<I", 2)  # dense x of 2 float32
STREAMS += b"\x01" + struct.pack("<I", 1) + b"y\x00" + struct.pack("<I", 4)  # sparse y of 4
CHUNK = struct.pack("<2I", 2, 1)  # lengths of two sequences
CHUNK += struct.pack("<I4f", 2, 1, 2, 3, 4) + struct.pack("<I2f", 1, 5, 6)
CHUNK += struct.pack("<Ii2f2i2i", 2, 2, 1, 7, 3, 0, 1, 1) + struct.pack("<Iii", 1, 0, 0)
HEADER = MAGIC + struct.pack("<2I", 1, 2) + STREAMS + struct.pack("<q2I", 12, 2, 3)
FILE = MAGIC + struct.pack("<I", 1) + CHUNK + HEADER + struct.pack("<q", 12 + len(CHUNK))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cbf").write_bytes(FILE)
    Path("a.ctf").write_text("0 |x 1 2 |y 3:1\n0 |x 3 4 |y 0:7\n1 |x 5 6 |y\n")


def test_bytes_of_a_file() -> None:
    source = MinibatchSource(CBFDeserializer("a.cbf", StreamDefs(z=StreamDef(field="x"))), randomize=False)
    assert list(source.streams) == ["z", "y"]
    minibatch = source.next_minibatch(3)
    assert [one.tolist() for one in minibatch[source["z"]].as_sequences()] == [[[1, 2], [3, 4]], [[5, 6]]]
    assert [one.toarray().tolist() for one in minibatch[source["y"]].as_sequences()] == [
        [[0, 0, 0, 1], [7, 0, 0, 0]],
        [[0, 0, 0, 0]],
    ]


def test_conversion_gives_these_bytes_and_back() -> None:
    assert convert(["a.ctf"], "b.cbf", quiet=True) == 0
    assert Path("b.cbf").read_bytes() == FILE
    assert convert(["b.cbf"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text() == Path("a.ctf").read_text().replace("|y\n", "|y \n")
    assert convert(["a.ctf"], "c.cbf", quiet=True, precision="double") == 0
    assert convert(["c.cbf"], "c.npz", quiet=True) == 0
    assert np.load("c.npz")["x"].dtype == np.float64


def test_the_same_minibatches_as_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntkpy.readers.convert.cbf.CHUNK", 1)
    monkeypatch.setattr("cntkpy.readers.convert.sources.BATCH", 5)
    lines = [f"{k} |x {k} {t} |y {k % 4}:{t}\n" for k in range(20) for t in range(1 + k % 3)]
    Path("t.ctf").write_text("".join(lines))
    assert convert(["t.ctf"], "t.cbf", quiet=True) == 0
    streams = StreamDefs(x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=4, is_sparse=True))
    text = MinibatchSource(CTFDeserializer("t.ctf", streams), max_sweeps=2, randomize=False)
    binary = MinibatchSource(CBFDeserializer("t.cbf"), max_sweeps=2, randomize=False)
    for a, b in zip(text.minibatches(7), binary.minibatches(7), strict=True):
        for name in "xy":
            assert np.array_equal(a[text[name]].data.padded(), b[binary[name]].data.padded())
    shuffled = MinibatchSource(CBFDeserializer("t.cbf"), max_sweeps=1)
    found = [one[0, 0] for m in shuffled.minibatches(7) for one in m[shuffled["x"]].as_sequences()]
    assert found != sorted(found)
    assert sorted(found) == list(range(20))


def matrices(section: str) -> list[tuple[Any, Any]]:
    """The streams of all minibatches of a sweep."""
    reader: Any = create_reader(section)
    reader.start_minibatch_loop(7, 0)
    found = []
    while (minibatch := reader.get_minibatch()) is not None:
        found.append((minibatch.matrix("x").tolist(), minibatch.matrix("s").toarray().tolist()))
    return found


def test_the_reader_gives_what_the_reader_of_the_text_gives() -> None:
    lines = [f"{k} |x {k} {t} |y {k % 4}:{t}\n" for k in range(20) for t in range(1 + k % 3)]
    Path("t.ctf").write_text("".join(lines))
    assert convert(["t.ctf"], "t.cbf", quiet=True) == 0
    text = "file=t.ctf ; input=[ x=[dim=2;format=dense] ; s=[dim=4;format=sparse;alias=y] ]"
    binary = "readerType=CNTKBinaryReader ; file=t.cbf ; input=[ s=[alias=y;dim=4;format=sparse] ]"
    for order in ("", " ; randomize=none"):
        found = [matrices(section + order) for section in (text, binary)]
        assert found[0] == found[1]
        assert len(found[0]) > 4


@pytest.mark.parametrize("size", [0, 7, 11, 12, 40, len(FILE) - 9, len(FILE) - 1])
def test_cut_files(size: int) -> None:
    Path("a.cbf").write_bytes(FILE[:size])
    with pytest.raises(DataError, match=r"a\.cbf is not a file in CNTK binary format"):
        MinibatchSource(CBFDeserializer("a.cbf"))


@pytest.mark.parametrize(
    ("at", "value", "part"),
    [
        (8, 2, "does not begin as one of version 1 does"),
        (12, 0, "no samples"),
        (20, 200, "chunk 0"),
        (12 + len(CHUNK), 0, "its header is damaged"),
        (12 + len(CHUNK) + 16, 9, "neither dense nor sparse"),
        (12 + len(CHUNK) + 22, 1, "elements of float64, not float32"),
    ],
)
def test_damaged_files(at: int, value: int, part: str) -> None:
    Path("a.cbf").write_bytes(FILE[:at] + bytes([value]) + FILE[at + 1 :])
    with pytest.raises(DataError, match=part):
        MinibatchSource(CBFDeserializer("a.cbf"), randomize=False).next_minibatch(3)


@pytest.mark.parametrize("name", ["FIRST", "z"])
def test_a_field_that_is_not_there(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The definitions of a text file serve its binary twin, whose streams have the long names (D19)."""
    plain = [one.name for one in MinibatchSource(CBFDeserializer("a.cbf")).stream_infos()]
    name = plain[0] if name == "FIRST" else name
    source = MinibatchSource(CBFDeserializer("a.cbf", StreamDefs(**{name: StreamDef(field="nope")})))
    assert [one.name for one in source.stream_infos()] == plain
    assert ("has no stream 'nope', which was to be called 'z'" in caplog.text) == (name == "z")


def test_what_is_refused() -> None:
    text = CTFDeserializer("a.ctf", StreamDefs(q=StreamDef(field="x", shape=2)))
    with pytest.raises(ValueError, match="can only come first"):
        MinibatchSource([text, CBFDeserializer("a.cbf")])
    source = MinibatchSource([CBFDeserializer("a.cbf"), text], randomize=False)
    assert source.next_minibatch(3)[source["q"]].num_samples == 3
