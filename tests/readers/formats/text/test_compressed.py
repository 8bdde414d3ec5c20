"""Compressed text: the same data as of the plain file, jumps, damage, bombs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.commands.cli import main
from cntkpy.commands.tools.convert import convert
from cntkpy.readers import DataError, create_reader
from cntkpy.readers.common import codecs, packed, recent
from cntkpy.readers.common.labels import load_labels
from cntkpy.readers.common.packed import PackedBytes, data_bytes
from cntkpy.readers.common.recent import RECENTLY
from cntkpy.readers.pipeline import randomize, store

Pack = Callable[[bytes], bytes]


def zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def bgzf(text: bytes) -> bytes:
    """Blocks of at most 64 KB with their size in an extra field, and an empty one at the end, as bgzip writes them."""
    found = b""
    for block in [*(text[at : at + 60000] for at in range(0, len(text), 60000)), b""]:
        one = zlib.compressobj(6, zlib.DEFLATED, -15)
        content = one.compress(block) + one.flush()
        header = struct.pack("<4BI2BHBBHH", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(content) + 25)
        found += header + content + struct.pack("<II", zlib.crc32(block), len(block))
    return found


def pieces(pack: Pack) -> Pack:
    """Five streams, or frames, one after the other."""
    return lambda text: b"".join(pack(text[i * len(text) // 5 : (i + 1) * len(text) // 5]) for i in range(5))


PACKS: dict[str, Pack] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
    "bgz": bgzf,
    "gz5": pieces(gzip.compress),
    "bz25": pieces(bz2.compress),
    "xz5": pieces(lzma.compress),
    "zst5": pieces(zstd),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=list(PACKS))
def pack(request: pytest.FixtureRequest) -> Pack:
    return PACKS[request.param]


def ctf(sequences: int, keys: str = "{}") -> bytes:
    lines = [f"{keys.format(i)} |x {i} {t} |y {i % 5}:1\n" for i in range(sequences) for t in range(1 + i % 3)]
    return "".join(lines).encode()


def minibatches(path: str, more: str = "", size: int = 64) -> list[Any]:
    reader = create_reader(f"file={path};{more};input=[x=[dim=2;format=dense];y=[dim=5;format=sparse]]")
    reader.start_minibatch_loop(size, 0)
    found = [
        (m.keys, m.streams["x"].tolist(), m.streams["y"].toarray().tolist()) for m in iter(reader.get_minibatch, None)
    ]
    reader.close()
    return found


@pytest.mark.parametrize(
    "order", ["randomize=false", "randomize=true", "randomize=true;multiThreadedDeserialization=true"]
)
def test_the_same_minibatches_as_of_the_plain_file(pack: Pack, order: str) -> None:
    text = ctf(700)
    Path("plain").write_bytes(text)
    Path("packed").write_bytes(pack(text))
    assert minibatches("packed", order) == minibatches("plain", order)


def test_more_text_than_is_read_at_a_time(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, blocks and chunks end anywhere, and little of the text is kept."""
    text = ctf(9000)
    monkeypatch.setattr("cntkpy.readers.formats.text.index.BLOCK_BYTES", 1 << 15)
    monkeypatch.setattr(codecs, "PIECE", 1 << 13)
    monkeypatch.setattr(codecs, "INPUT", 1 << 10)
    monkeypatch.setattr(packed, "GATHERED", 1 << 12)
    monkeypatch.setattr(recent, "RECENT", 1 << 15)
    monkeypatch.setattr(packed, "APART", 1 << 12)
    monkeypatch.setattr(packed, "COPIES_APART", 1 << 14)
    Path("plain").write_bytes(text)
    Path("packed").write_bytes(pack(text))
    for more in ("randomize=false;chunkSizeInBytes=20000", "chunkSizeInBytes=20000;randomizationWindow=3000"):
        assert minibatches("packed", more, 500) == minibatches("plain", more, 500)


def test_ids_that_are_texts_and_places_of_errors(pack: Pack) -> None:
    text = ctf(300, keys="u{}").replace(b"u290 |x 290 2", b"u290 |x 290 z")
    Path("packed").write_bytes(pack(text))
    reader = "useNumericSequenceKeys=false;randomize=false"
    with pytest.raises(DataError) as caught:
        minibatches("packed", reader)
    at = text.index(b"z |y")
    line = text[:at].count(b"\n") + 1
    assert f"(line {line}, column 13, sequence id u290, byte offset {at})" in caught.value.message
    keys = [key for keys, _, _ in minibatches("packed", f"{reader};maxErrors=1") for key in keys]
    assert [key for key in keys if key != "u290"] == [f"u{i}" for i in range(300) if i != 290]


def test_other_texts(pack: Pack) -> None:
    """UCI, lists, CSV, and what check looks at."""
    rows = "".join(f"{i % 3} {i} {i / 2}\n" for i in range(400))
    csv = "a,kind\n" + "".join(f"{i},{'xyz'[i % 3]}\n" for i in range(50))
    for name, content in {"uci": rows, "labels": "0\n1\n2\n", "table.csv": csv}.items():
        Path(name).write_text(content)
        Path(f"packed.{name}").write_bytes(pack(content.encode()))

    def uci(path: str) -> list[Any]:
        columns = "features=[dim=2;start=1];labels=[dim=1;start=0;labelDim=3;labelMappingFile=packed.labels]"
        reader = create_reader(f"readerType=UCIFastReader;file={path};{columns}")
        reader.start_minibatch_loop(30, 0)
        return [m.streams["features"].tolist() for m in iter(reader.get_minibatch, None)]

    assert uci("packed.uci") == uci("uci")
    assert load_labels("packed.labels").mapping() == {0: "0", 1: "1", 2: "2"}
    for path in ("table.csv", "packed.table.csv"):
        assert convert([path], f"{path}.ctf", quiet=True) == 0
    assert Path("packed.table.csv.ctf").read_bytes() == Path("table.csv.ctf").read_bytes()
    assert convert(["packed.x"], "x.npz", quiet=True, source_format="ctf") != 0
    Path("packed.x").write_bytes(pack(ctf(20)))
    assert convert(["packed.x"], "x.ctf", quiet=True, source_format="ctf") == 0
    assert len(Path("x.ctf").read_bytes()) == len(ctf(20))


def test_sentences(pack: Pack) -> None:
    text = "".join(f"</s> {' '.join('abc'[(i + k) % 3] for k in range(1 + i % 4))} </s>\n" for i in range(90))
    Path("corpus").write_text(text)
    Path("packed").write_bytes(pack(text.encode()))
    Path("classes").write_text("0 9 </s> 0\n1 12 a 0\n2 10 b 1\n3 8 c 1\n")

    def words(path: str) -> list[Any]:
        reader = create_reader(
            f"readerType=LMSequenceReader;wordclass=classes;file={path};mode=class;features=[dim=0];"
            'labelIn=[labelType=Category;labelDim=4;labelMappingFile=none;endSequence="</s>"];'
            "labels=[labelType=NextWord;labelDim=4;labelMappingFile=none]"
        )
        reader.start_minibatch_loop(20, 0)
        return [m.streams["labels"].tolist() for m in iter(reader.get_minibatch, None)]

    assert words("packed") == words("corpus")


# ------------------------------------------------------------------------------------------------------------- jumps


def random_text(size: int) -> bytes:
    draw = random.Random(5)
    return bytes(draw.choice(b"0123456789 \n") for _ in range(size))


@pytest.mark.parametrize("kind", PACKS)
def test_any_place_can_be_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(300_000)
    monkeypatch.setattr(recent, "RECENT", 1)
    for name, value in (("GATHERED", 1), ("APART", 1 << 12), ("COPIES_APART", 1 << 14)):
        monkeypatch.setattr(packed, name, value)
    monkeypatch.setattr(codecs, "PIECE", 1 << 13)
    monkeypatch.setattr(codecs, "INPUT", 1 << 12)
    Path("packed").write_bytes(PACKS[kind](text))
    data: Any = data_bytes("packed")
    assert isinstance(data, PackedBytes) and data.packed
    assert data.size == len(text)
    unpacker = data._unpacker
    assert data.size == len(text) and data._unpacker is unpacker  # found once
    assert data.bytes(len(text) - 5, 100) == text[-5:]
    draw = random.Random(1)
    for _ in range(60):
        at, count = draw.randrange(len(text)), draw.randrange(1, 3000)
        assert data.bytes(at, count) == text[at : at + count]
    with pytest.raises(DataError, match="was cut short"):
        data.read(np.empty(10, np.uint8), len(text) - 5)
    furthest = max(b.plain - a.plain for a, b in zip(data._places, data._places[1:], strict=False))
    steps = {"gz": 1 << 15, "bgz": 1 << 17, "gz5": 1 << 15, "zst5": 1 << 16, "bz25": 1 << 16, "xz5": 1 << 16}
    assert furthest <= steps.get(kind, len(text))
    with data.stream() as file:
        assert file.seek(-4, 2) == len(text) - 4
        assert file.read() == text[-4:]
        assert file.seek(100) == file.tell() == 100
        assert file.readline() == text[100 : text.index(b"\n", 100) + 1]


def test_the_number_of_places_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(200_000)
    monkeypatch.setattr(recent, "RECENT", 1)
    for name, value in (("GATHERED", 1), ("APART", 1), ("COPIES_APART", 1), ("MOST_PLACES", 8)):
        monkeypatch.setattr(packed, name, value)
    monkeypatch.setattr(codecs, "PIECE", 1 << 10)
    Path("packed").write_bytes(gzip.compress(text))
    data: Any = data_bytes("packed")
    assert data.size == len(text) and len(data._places) <= 8
    assert data.bytes(150_000, 9) == text[150_000:150_009]


def test_one_note_on_the_cost_of_jumps(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A single stream of bzip2, xz or Zstandard can only be unpacked from its start on."""
    text = ctf(9000)
    monkeypatch.setattr(packed, "FAR", 1 << 15)
    monkeypatch.setattr(packed, "GATHERED", 1 << 12)
    monkeypatch.setattr(recent, "RECENT", 1 << 13)
    monkeypatch.setattr(packed, "COPIES_APART", 1 << 14)
    monkeypatch.setattr(codecs, "PIECE", 1 << 12)
    monkeypatch.setattr(randomize.chunks_in_memory, "__defaults__", (50_000,))
    monkeypatch.setattr(store.ChunkStore.__init__, "__kwdefaults__",
                        {**store.ChunkStore.__init__.__kwdefaults__, "memory": 50_000})  # fmt: skip
    for kind, notes in (("xz", 1), ("zst", 1), ("bz2", 1), ("gz", 0), ("zst5", 0)):
        Path("packed").write_bytes(PACKS[kind](text) if kind != "zst5" else b"".join(
            zstd(text[at : at + 8192]) for at in range(0, len(text), 8192)))  # fmt: skip
        monkeypatch.setattr(packed, "APART", 1 << 12)
        for order in ("randomize=false", "randomize=true"):
            caplog.clear()
            keys = [key for keys, _, _ in minibatches("packed", f"{order};chunkSizeInBytes=20000", 500) for key in keys]
            assert sorted(keys) == list(range(9000))
            found = caplog.text.count("can only be unpacked from its start on")
            assert found == (notes if order == "randomize=true" else 0)


# ----------------------------------------------------------------------------------------------------- damage, bombs


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_damaged_files(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = ctf(5000)
    content = PACKS[kind](text)
    name = {"gz": "gzip", "zst": "zstd", "xz": "xz", "bz2": "bzip2"}[kind]
    cut = content[: len(content) // 2]
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0x55
    for damaged, words in (
        (cut, f"damaged at byte {len(cut)}: it ends early"),
        (content[:-3], f"damaged at byte {len(content) - 3}: it ends early"),
        (content + b"more and more", f"damaged at byte {len(content)}: what follows the end of its data is not {name}"),
        (bytes(flipped), "is damaged at byte "),
    ):
        Path("packed").write_bytes(damaged)
        with pytest.raises(DataError) as caught:
            minibatches("packed", "randomize=false")
        assert f"The compressed file packed is {words.removeprefix('is ')}" in caught.value.message
        assert caught.value.hint == f"{name} -t packed tests it; make it again"
        assert caught.value.path == "packed"
    Path("packed").write_bytes(content[:30])
    Path("c.cntk").write_text(
        "command=t\nt=[action=test;modelPath=m;reader=[file=packed;input=[x=[dim=2;format=dense]]]]\n"
    )
    main(["check", "--data", "c.cntk"])
    assert "packed is damaged at byte" in capsys.readouterr().out


@pytest.mark.malformed
def test_mutated_files_are_read_or_refused(pack: Pack) -> None:
    """Never anything but data or one error that names the file."""
    content, draw, refused = pack(ctf(300)), random.Random(2), 0
    for _ in range(80):
        mutated = bytearray(content)
        for _ in range(draw.choice((1, 3))):
            mutated[draw.randrange(len(mutated))] = draw.randrange(256)
        if draw.random() < 0.2:
            del mutated[draw.randrange(len(mutated)) :]
        Path("packed").write_bytes(mutated)
        try:
            minibatches("packed", "randomize=false;traceLevel=0", 500)
        except DataError as error:
            refused += 1
            assert "packed" in error.message
    assert refused


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_bombs_unpack_in_pieces(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without end, and far more text than the file can hold, are refused early; no piece is large."""
    text = b"|x 1 2 |y 0:1 |" + bytes(30 << 20)
    Path("packed").write_bytes(PACKS[kind](text))
    sizes: list[int] = []
    keep = RECENTLY.add
    monkeypatch.setattr(RECENTLY, "add", lambda of, at, piece: (sizes.append(len(piece)), keep(of, at, piece)))
    monkeypatch.setattr(packed, "LONGEST", 8 << 20)
    with pytest.raises(DataError, match=r"has a line or a sequence of more than 8 MB \(byte offset 0"):
        minibatches("packed")
    assert max(sizes) <= codecs.PIECE and sum(sizes) < 24 << 20
    monkeypatch.setattr(packed, "LONGEST", 1 << 30)
    monkeypatch.setattr(packed, "BELIEVED", 4 << 20)
    monkeypatch.setattr(packed, "UNBELIEVABLE", 10)
    with pytest.raises(DataError, match="and unpacks to more than"):
        minibatches("packed")
    monkeypatch.setattr(packed, "BELIEVED", 1 << 30)
    monkeypatch.setattr(packed, "LONGEST", 100)
    Path("packed").write_bytes(PACKS[kind](b"1 |x 1 2 |y 0:1\n" * 20))
    with pytest.raises(DataError, match="a line or a sequence"):  # one sequence that fills the memory
        minibatches("packed")
    monkeypatch.setattr("cntkpy.readers.common.labels.LIST_LIMIT", 1 << 20)
    Path("packed").write_bytes(PACKS[kind](bytes(30 << 20)))
    with pytest.raises(DataError, match="more than 1,048,576 bytes"):
        load_labels("packed")


def unpacked(whole: bytes) -> tuple[bytes, str, int]:
    """What a file of Zstandard unpacks to, and the damage that is met."""
    found = b""
    one = codecs.unpacker("zstd", lambda at, count: whole[at : at + count], codecs.Restart())
    try:
        while piece := one.piece():
            found += piece
    except codecs.Broken as error:
        return found, str(error), error.at
    return found, "", 0


@pytest.mark.parametrize("checksum", [False, True])
def test_damage_in_a_group_of_blocks(checksum: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sound before it, what is wrong and where are those of a file unpacked block by block."""
    compress = zstandard.ZstdCompressor(write_checksum=checksum).compress
    text = random_text(500_000)
    whole = compress(text) + compress(b"") + compress(bytes(700_000)) + compress(text[:90_000])
    draw, broken = random.Random(3), [whole]
    for _ in range(30):
        at = draw.randrange(len(whole))
        broken += [whole[:at], whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :]]
    grouped = [unpacked(one) for one in broken]
    assert grouped[0] == (text + bytes(700_000) + text[:90_000], "", 0)
    monkeypatch.setattr(codecs._Frames, "_blocks", codecs._Frames._block)
    assert [unpacked(one) for one in broken] == grouped
    assert len({found for found, what, _ in grouped if what}) > 3


def test_all_files_together_keep_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "RECENT", 1 << 20)
    Path("packed").write_bytes(gzip.compress(bytes(600_000)))
    several: list[Any] = [data_bytes("packed") for _ in range(5)]
    for one in several:
        assert one.bytes(0, 600_000) == bytes(600_000)
    assert sum(len(piece) for one in several for piece in one.recent.values()) <= 1 << 20
    assert all(one.bytes(500_000, 5) == bytes(5) for one in several)


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_many_short_streams(kind: str) -> None:
    """Time and memory are those of the text, not the square of the number of streams."""
    streams = [PACKS[kind](b"|x 1 2 |y 0:1\n")] * 20_000
    Path("packed").write_bytes(b"".join(streams))
    data: Any = data_bytes("packed")
    assert data.size == 20_000 * 14
    assert len(data.recent) < 5 and len(data._places) < 5


@pytest.mark.malformed
def test_damage_is_met_again_when_it_is_read_again() -> None:
    Path("packed").write_bytes(gzip.compress(ctf(5000))[:-30_00])
    data = data_bytes("packed")
    sound = 0
    with pytest.raises(DataError, match="it ends early"):
        while True:
            sound += len(data.bytes(sound, 1000))
    for at in (sound, sound + 1, sound):
        with pytest.raises(DataError, match="it ends early"):
            data.bytes(at, 1000)
    assert data.bytes(0, 100) == ctf(5000)[:100]


@pytest.mark.malformed
def test_a_frame_that_needs_much_memory_is_refused() -> None:
    options = zstandard.ZstdCompressionParameters.from_level(3, window_log=30)
    one = zstandard.ZstdCompressor(compression_params=options).compressobj()
    Path("packed").write_bytes(one.compress(ctf(10)) + one.flush())
    with pytest.raises(DataError, match=r"damaged at byte 0: .*memory"):
        minibatches("packed")


def test_without_zstandard_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("packed").write_bytes(zstd(ctf(10)))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UserError, match="unpacked by the package zstandard, which is not installed") as caught:
        minibatches("packed")
    assert caught.value.hint == how_to_install("zstd")


def test_no_index_is_kept_next_to_a_compressed_file() -> None:
    Path("packed").write_bytes(gzip.compress(ctf(10)))
    minibatches("packed", "cacheIndex=true")
    assert [one.name for one in Path().iterdir()] == ["packed"]
