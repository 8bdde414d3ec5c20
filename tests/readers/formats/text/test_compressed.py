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
from itertools import pairwise
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
from cntkpy.readers.formats.htk.archive import write_features
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


def skippable(content: bytes, number: int = 0) -> bytes:
    """A frame that readers of Zstandard skip."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content


def frames(text: bytes, count: int = 5) -> list[bytes]:
    """The text in frames of Zstandard."""
    return [zstd(text[i * len(text) // count : (i + 1) * len(text) // count]) for i in range(count)]


def pzstd(text: bytes) -> bytes:
    """As `pzstd` writes: before each frame stands its size, in a frame to be skipped."""
    return b"".join(skippable(struct.pack("<I", len(frame))) + frame for frame in frames(text))


def table_of(sizes: list[tuple[int, int]], checksums: bool = False) -> bytes:
    """The table of frames that `t2sz` and Zstandard's `seekable_format` write: bytes packed and unpacked of each."""
    rows = [struct.pack("<2I", *pair) + bytes(4 * checksums) for pair in sizes]
    return skippable(b"".join(rows) + struct.pack("<IBI", len(sizes), 0x80 * checksums, 0x8F92EAB1), 0xE)


def seekable(text: bytes, shift: int = 0, checksums: bool = False) -> bytes:
    """With a table of frames at the end; shift: bytes by which it is wrong."""
    parts = frames(text)
    sizes = [len(text) * (i + 1) // 5 - len(text) * i // 5 for i in range(5)]
    sizes[1], sizes[2] = sizes[1] + shift, sizes[2] - shift
    table = table_of([(len(one), size) for one, size in zip(parts, sizes, strict=True)], checksums)
    return b"".join(parts) + table


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
    "pzst": pzstd,
    "zst skip": lambda text: skippable(b"note") + b"".join(one + skippable(bytes(9), 15) for one in frames(text)),
    "seekable": seekable,
    "seekable, sums": lambda text: seekable(text, checksums=True),
    "padded xz": lambda text: lzma.compress(text[:99]) + bytes(8) + lzma.compress(text[99:]) + bytes(4),
    "lzma": lambda text: lzma.compress(text, format=lzma.FORMAT_ALONE),
    "zlib": zlib.compress,
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
@pytest.mark.sampled
def test_the_same_minibatches_as_of_the_plain_file(pack: Pack, order: str) -> None:
    text = ctf(700)
    Path("plain").write_bytes(text)
    Path("packed").write_bytes(pack(text))
    assert minibatches("packed", order) == minibatches("plain", order)


@pytest.mark.sampled
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


@pytest.mark.sampled
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


SYMBOLS = bytes(b"0123456789 \n"[i % 12] for i in range(256))


def random_text(size: int) -> bytes:
    return random.Random(5).randbytes(size).translate(SYMBOLS)


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.sampled
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
    unpacker = data._decoder.unpacker
    assert data.size == len(text) and data._decoder.unpacker is unpacker  # found once
    assert data.bytes(len(text) - 5, 100) == text[-5:]
    draw = random.Random(1)
    for _ in range(60):
        at, count = draw.randrange(len(text)), draw.randrange(1, 3000)
        assert data.bytes(at, count) == text[at : at + count]
    with pytest.raises(DataError, match="was cut short"):
        data.read(np.empty(10, np.uint8), len(text) - 5)
    places = (
        [one.plain for one in data._places.known] if data._places.table is None else data._places.table.plain.tolist()
    )
    furthest = max((b - a for a, b in pairwise(places)), default=len(text))
    steps = {"gz": 1 << 15, "bgz": 1 << 17, "gz5": 1 << 15, "zst5": 1 << 16, "bz25": 1 << 16, "xz5": 1 << 16,
             "pzst": 1 << 16, "zst skip": 1 << 16, "zlib": 1 << 15,
             "seekable": 1 << 16, "seekable, sums": 1 << 16}  # fmt: skip
    assert furthest <= steps.get(kind, len(text))
    with data.stream() as file:
        assert file.seek(-4, 2) == len(text) - 4
        assert file.read() == text[-4:]
        assert file.seek(100) == file.tell() == 100
        assert file.readline() == text[100 : text.index(b"\n", 100) + 1]


def count_reads(data: Any) -> list[int]:
    """Bytes that are read from the compressed file from now on."""
    count, read = [0], data._file.bytes

    def counted(at: int, size: int) -> bytes:
        found = read(at, size)
        count[0] += len(found)
        return found

    data._file.bytes = counted
    data._decoder.begin(codecs.Restart())
    return count


@pytest.mark.parametrize("checksums", [False, True])
def test_a_seek_table_leads_to_the_frame(checksums: bool) -> None:
    """The size is known, and a jump reads a few frames of a hundred: nothing is unpacked from the start."""
    text = random_text(10_000_000)
    parts = [zstd(text[at : at + 100_000]) for at in range(0, len(text), 100_000)]
    content = b"".join(parts) + table_of([(len(one), 100_000) for one in parts], checksums)
    Path("packed").write_bytes(content)
    data: Any = data_bytes("packed")
    count = count_reads(data)
    assert data.size == len(text) and count[0] == 0
    assert data.bytes(9_900_123, 50) == text[9_900_123:9_900_173]
    assert 0 < count[0] < len(content) // 2
    assert data.bytes(0, len(text) + 1) == text


def test_starts_of_streams_are_kept_beyond_the_number_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place without a state costs little: blocks of BGZF and frames have one each, in files of any size."""
    text = random_text(400_000)
    for name, value in (("GATHERED", 1), ("APART", 1), ("MOST_PLACES", 2)):
        monkeypatch.setattr(packed, name, value)
    parts = b"".join(zstd(text[at : at + 4000]) for at in range(0, len(text), 4000))
    for whole, places in ((parts, 101), (bgzf(text), 8)):
        Path("packed").write_bytes(whole)
        data: Any = data_bytes("packed")
        assert data.size == len(text) and len(data._places.known) == places


@pytest.mark.malformed
def test_a_wrong_seek_table_is_an_error() -> None:
    """It never leads to text at another place; a table that does not describe the whole file is not used."""
    text = ctf(700)
    short = bytearray(seekable(text))
    short[-13:-9] = struct.pack("<I", len(text) // 5 - 40)
    for content in (seekable(text, 1), seekable(text, -1), seekable(text, 64), bytes(short)):
        Path("packed").write_bytes(content)
        with pytest.raises(DataError, match="The seek table at the end of the compressed file packed is wrong"):
            minibatches("packed", "randomize=false")
    for content in (seekable(text) + seekable(text), seekable(text) + zstd(text), zstd(text) + seekable(text)):
        Path("packed").write_bytes(content)
        data: Any = data_bytes("packed")
        assert data._places.table is None and data.bytes(0, 1 << 20) == text + text
    for end in range(1, 57, 7):
        Path("packed").write_bytes(seekable(text)[:-end])
        with pytest.raises(DataError, match="it ends early"):
            minibatches("packed", "randomize=false")


def test_the_number_of_places_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(200_000)
    monkeypatch.setattr(recent, "RECENT", 1)
    for name, value in (("GATHERED", 1), ("APART", 1), ("COPIES_APART", 1), ("MOST_PLACES", 8)):
        monkeypatch.setattr(packed, name, value)
    monkeypatch.setattr(codecs, "PIECE", 1 << 10)
    Path("packed").write_bytes(gzip.compress(text))
    data: Any = data_bytes("packed")
    assert data.size == len(text) and len(data._places.known) <= 8
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
@pytest.mark.sampled
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
@pytest.mark.sampled
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
        return found, str(error), error.offset
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
    assert sum(len(piece) for one in several for piece in one._pieces.recent.values()) <= 1 << 20
    assert all(one.bytes(500_000, 5) == bytes(5) for one in several)


@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
@pytest.mark.sampled
def test_many_short_streams(kind: str) -> None:
    """Time and memory are those of the text, not the square of the number of streams."""
    streams = [PACKS[kind](b"|x 1 2 |y 0:1\n")] * 20_000
    Path("packed").write_bytes(b"".join(streams))
    data: Any = data_bytes("packed")
    assert data.size == 20_000 * 14
    assert len(data._pieces.recent) < 5 and len(data._places.known) < 5


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
    with pytest.raises(DataError, match=r"at byte 0\): unpacking it needs 1,024 MB of memory, and 128 MB") as caught:
        minibatches("packed")
    assert "zstd --long=31 -dc packed" in (caught.value.hint or "")


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


@pytest.mark.parametrize(
    ("head", "name", "program"),
    [
        (b"\x04\x22\x4d\x18\x64\x40\xa7", "LZ4", "lz4 -dc"),
        (b"\x02\x21\x4c\x18\x10\0\0\0", "LZ4", "lz4 -dc"),
        (skippable(b"about") + b"\x04\x22\x4d\x18\x64\x40\xa7", "LZ4", "lz4 -dc"),
        (b"LZIP\x01\x14", "lzip", "lzip -dc"),
        (b"\x89LZO\0\r\n\x1a\n\x10\x40", "lzop", "lzop -dc"),
        (b"\x1f\x9d\x90\x7c", "compress (.Z)", "gzip -dc"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "7-Zip", "7z x -so"),
        (b"PK\3\4\x14\0", "ZIP", "unzip -p"),
        (b"Rar!\x1a\x07\x01\0", "RAR", "unrar p -inul"),
        (b"\xff\x06\0\0sNaPpY\x01", "framed Snappy", "snzip -dc"),
        (b"\x27\xb5\x2f\xfd\x24", "Zstandard of a version before 0.8", "zstd -dc"),
    ],
)
def test_formats_of_others_are_named(head: bytes, name: str, program: str) -> None:
    Path("packed").write_bytes(head + bytes(range(200)))
    Path("a.scp").write_text("u=u.mfc\n")
    write_features("u.mfc", np.zeros((5, 2), np.float32))
    uci = "readerType=UCIFastReader;file=packed;features=[dim=2;start=1]"
    for read in (
        lambda: minibatches("packed"),
        lambda: create_reader(uci),
        lambda: load_labels("packed"),
        lambda: create_reader("readerType=HTKMLFReader;f=[dim=2;scpFile=packed];l=[labelDim=2;mlfFile=packed]"),
        lambda: create_reader("readerType=HTKMLFReader;f=[dim=2;scpFile=a.scp];l=[labelDim=2;mlfFile=packed]"),
    ):
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.message == f"The file packed is compressed in the format {name}, which is not read."
        assert f": {program} packed | zstd > NEW.zst" in (caught.value.hint or "")


def test_texts_that_begin_like_compressed_files() -> None:
    """Two or three letters are not yet a format."""
    for line in (b"x^2 + 1", b"BZh1 is a name", b"LZIP", b"PK", b"7z"):
        Path("list").write_bytes(line + b"\nother\n")
        assert load_labels("list").mapping() == {0: line.decode(), 1: "other"}


@pytest.mark.malformed
def test_a_dictionary_is_named() -> None:
    """The file is whole; only what it refers to is missing."""
    samples: list[Any] = [b"%d |x %d %d |y 0:1\n" % (i, i, i * i) for i in range(2000)]
    words = zstandard.train_dictionary(2048, samples)
    Path("packed").write_bytes(zstandard.ZstdCompressor(dict_data=words).compress(ctf(50)))
    with pytest.raises(DataError, match=rf"it was compressed with a dictionary \(id {words.dict_id()}\)") as caught:
        minibatches("packed")
    assert "damaged" not in caught.value.message


@pytest.mark.thorough
@pytest.mark.malformed
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst", "zlib", "lzma"])
def test_memory_is_in_proportion_to_the_file(kind: str) -> None:
    """A line, a sequence or a list is taken into memory up to 50 times the file, and to a few megabytes at least."""
    Path("line").write_bytes(PACKS[kind](b"|x " + b"1 " * (12 << 20)))
    with pytest.raises(DataError, match="has a line or a sequence of more than 16 MB"):
        minibatches("line")
    Path("list").write_bytes(PACKS[kind](b"a\n" * (3 << 20)))
    with pytest.raises(DataError, match="it has more than 4,194,304 bytes, the limit of such a file that has"):
        load_labels("list")
