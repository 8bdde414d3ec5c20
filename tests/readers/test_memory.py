"""What a file can make a reader allocate is bounded: large numbers at any place of any file take little memory (R7)."""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import create_reader
from cntkpy.readers.formats.htk.archive import write_features
from cntkpy.readers.formats.image.decode import PictureError, decode
from cntkpy.readers.formats.image.transforms.opencv import opencv
from cntkpy.readers.formats.kaldi.write import ArchiveWriter
from tests.readers.formats.binary.test_binary import example
from tests.readers.formats.cbf.test_cbf import FILE as CBF

pytestmark = pytest.mark.malformed

MOST, TIMES = 64 << 20, 100
"""Bytes that a reader may take for a small file, and for each byte of it."""
HUGE = [struct.pack(form, value) for value in (2**31 - 1, 2**24, 2**28 + 3) for form in ("<i", ">i")]
HUGE += [b"\xff" * 4, b"\xff" * 8, b"\xff" * 7 + b"\x7f", struct.pack("<q", 2**40), struct.pack(">q", 2**40)]
LINES = b"".join(b"%d |x %d 1.5 |y 1:1\n" % (i, i) for i in range(40))
MLF = b'#!MLF!#\n"*/u.lab"\n0 300000 sil 0\n300000 500000 a 1\n.\n'


def seekable(text: bytes) -> bytes:
    parts = [zstandard.ZstdCompressor().compress(one) for one in (text[:100], text[100:])]
    rows = struct.pack("<4I", len(parts[0]), 100, len(parts[1]), len(text) - 100)
    table = rows + struct.pack("<IBI", 2, 0, 0x8F92EAB1)
    return b"".join(parts) + struct.pack("<II", 0x184D2A5E, len(table)) + table


def picture(kind: str) -> bytes:
    rows = np.random.default_rng(1).integers(0, 255, (9, 8, 3)).astype(np.uint8)
    return opencv().imencode(f".{kind}", rows)[1].tobytes()


def features(folder: Path) -> bytes:
    write_features(str(folder / "u.mfc"), np.ones((5, 2), np.float32))
    (folder / "a.scp").write_text("u=u.mfc\n")
    return (folder / "u.mfc").read_bytes()


def archive(folder: Path) -> bytes:
    with (folder / "a.ark").open("wb") as file:
        writer = ArchiveWriter(file, None, "a.ark")
        writer.write_matrix("u", np.ones((5, 2), np.float32))
        writer.write_matrix("v", np.ones((3, 2), np.float32))
    return (folder / "a.ark").read_bytes()


def label_archive(folder: Path) -> bytes:
    content = archive(folder)
    (folder / "f.ark").write_bytes(content)
    with (folder / "l.ark").open("wb") as file:
        writer = ArchiveWriter(file, None, "l.ark")
        writer.write_integers("u", np.array([0, 1, 1, 0, 1]))
        writer.write_integers("v", np.array([0, 1, 1]))
    return (folder / "l.ark").read_bytes()


CTF = "file=packed;randomize=false;traceLevel=0;input=[x=[dim=2;format=dense];y=[dim=5;format=sparse]]"
IMAGES = (
    "deserializers=([type={kind}ImageDeserializer;file={file};input=[features=[transforms=([type=Scale;width=4;height=4;"
    "channels=3])];labels=[labelDim=5]]]);randomize=false;traceLevel=0"
)
HTK = "deserializers=([type=HTKFeatureDeserializer;input=[x=[dim=2;scpFile={}]]]);randomize=false"
CASES: dict[str, tuple[str, Callable[[Path], bytes], str]] = {
    "cbf": ("a.cbf", lambda _: CBF, "readerType=CNTKBinaryReader;file=a.cbf;randomize=false"),
    "binary": ("a.bin", lambda folder: example(folder / "a.bin"), "readerType=BinaryReader;file=a.bin"),
    "htk": ("u.mfc", features, HTK.format("a.scp")),
    "kaldi": (
        "a.ark",
        archive,
        'deserializers=([type=KaldiFeatureDeserializer;input=[x=[rx="ark:a.ark";dim=2]]]);randomize=false',
    ),
    "kaldi labels": (
        "l.ark",
        label_archive,
        'deserializers=([type=KaldiFeatureDeserializer;input=[x=[rx="ark:f.ark";dim=2]]]:'
        '[type=KaldiLabelDeserializer;input=[y=[mlfFile="ark:l.ark";labelDim=2]]]);randomize=false',
    ),
    **{
        f"text in {kind}": ("packed", lambda _, pack=pack: pack(LINES), CTF)
        for kind, pack in (
            ("gzip", gzip.compress),
            ("bzip2", bz2.compress),
            ("xz", lzma.compress),
            ("lzma", lambda text: lzma.compress(text, format=lzma.FORMAT_ALONE)),
            ("zlib", zlib.compress),
            ("zstd", zstandard.ZstdCompressor().compress),
            ("seekable", seekable),
        )
    },
}


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The file with a large number somewhere: in its first bytes, in its last ones, or anywhere."""
    number = draw.choice(HUGE)
    at = draw.choice((draw.randrange(min(len(content), 64)), -draw.randrange(1, 65), draw.randrange(len(content))))
    at %= len(content)
    found = content[:at] + number + content[at + len(number) :]
    return found[: len(content)] if draw.random() < 0.8 else found


def read(section: str) -> None:
    reader = create_reader(section)
    reader.start_minibatch_loop(50, 0)
    with suppress(UserError):
        for _ in range(3):
            if reader.get_minibatch() is None:
                break
    reader.close()


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled
def test_large_numbers_take_no_memory(name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read or refused; NumPy's and Python's memory is counted."""
    monkeypatch.chdir(tmp_path)
    file, make, section = CASES[name]
    content, draw = make(tmp_path), random.Random(7)
    (tmp_path / file).write_bytes(content)
    read(section)
    refused = 0
    for _ in range(count):
        case = mutated(content, draw)
        (tmp_path / file).write_bytes(case)
        tracemalloc.start()
        try:
            read(section)
        except UserError:
            refused += 1
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < MOST + TIMES * len(case), case.hex()
    assert refused


@pytest.mark.parametrize("kind", ["png", "jpg", "bmp", "webp", "tiff", "gif", "ppm"])
def test_pictures_that_announce_large_sizes_are_not_decoded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCV is not asked to decode more than 64 megapixels of a file that is small."""
    content, draw, cv2 = picture(kind), random.Random(3), opencv()
    asked: list[int] = []
    plain = cv2.imdecode

    def counted(data: np.ndarray, flags: int) -> Any:
        found = plain(data, flags)
        asked.append(0 if found is None else found.size)
        return found

    monkeypatch.setattr(cv2, "imdecode", counted)
    assert decode(content).shape == (9, 8, 3)
    for _ in range(150):
        with suppress(PictureError):
            decode(mutated(content, draw))
    assert max(asked) <= 3 << 26


BLANK = {
    "bmp": b"BM"
    + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, 12000, 12000, 1, 24, 0, 0, 0, 0, 0, 0)
    + bytes(50),
    "gif": b"GIF89a" + struct.pack("<HHBBB", 12000, 12000, 0, 0, 0) + bytes(50),
    "webp": b"RIFF\x64\0\0\0WEBPVP8L\x40\0\0\0\x2f" + struct.pack("<I", 11999 | 11999 << 14) + bytes(50),
    "webp, lossy": b"RIFF\x64\0\0\0WEBPVP8 \x40\0\0\0\x10\0\0\x9d\x01\x2a"
    + struct.pack("<HH", 12000, 12000)
    + bytes(50),
    "webp, extended": b"RIFF\x64\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\xdf\x2e\0" * 2 + bytes(50),
}


@pytest.mark.parametrize("kind", BLANK)
def test_a_picture_of_few_bytes_does_not_claim_many_pixels(kind: str) -> None:
    with pytest.raises(PictureError, match="it claims to be 12000 x 12000 pixels, more than 2000 for each of its"):
        decode(BLANK[kind])


def test_a_blank_page_is_read() -> None:
    """Nothing on 35 megapixels takes 23 kB."""
    page = np.full((7016, 4961), 255, np.uint8)
    content = opencv().imencode(".png", page, [opencv().IMWRITE_PNG_BILEVEL, 1])[1].tobytes()
    assert len(content) < 25_000
    assert decode(content, grayscale=True).shape == page.shape


@pytest.mark.thorough
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_lists_and_pictures_of_little_that_unpack_to_much(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    features(tmp_path)
    line = b"0\t1\t" + base64.b64encode(picture("png")) + b"\n"
    cases = {
        "readerType=UCIFastReader;file=packed;randomize=none;features=[dim=2;start=0]": b"1 " * (9 << 20),
        HTK.format("packed"): b"a\n" * (5 << 19),
        "readerType=HTKMLFReader;x=[dim=2;scpFile=a.scp];y=[labelDim=2;mlfFile=packed]": MLF + b"1 " * (9 << 20),
        IMAGES.format(kind="Base64", file="packed"): line + b"0\t1\t" + b"AAAA" * (5 << 20),
        IMAGES.format(kind="", file="packed"): b"a.png\t1\n" * (3 << 18),
    }
    for section, text in cases.items():
        Path("packed").write_bytes(pack(text))
        tracemalloc.start()
        try:
            with pytest.raises(UserError) as caught:
                read(section)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert "packed" in str(caught.value), section
        assert peak < 400 << 20, (section, peak >> 20)
