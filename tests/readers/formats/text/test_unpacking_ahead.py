"""Compressed text that a thread unpacks ahead, chunks that are parsed meanwhile: the same data, errors and memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import zstandard

from cntkpy.readers import DataError, create_reader
from cntkpy.readers.common import codecs, packed, recent
from cntkpy.readers.common.packed import PackedBytes, data_bytes
from cntkpy.readers.formats.text.parsed_ahead import ParsedAhead


def frames(text: bytes) -> bytes:
    """Frames of 30,000 bytes."""
    return b"".join(zstandard.ZstdCompressor().compress(text[i : i + 30_000]) for i in range(0, len(text), 30_000))


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "frames.zst": frames,
}


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> recent.Recent:
    """Small pieces; a memory of its own, for a megabyte."""
    monkeypatch.chdir(tmp_path)
    own = recent.Recent()
    for name, value in (("WORTH", 0), ("AHEAD", 1 << 16), ("GATHERED", 1 << 12), ("APART", 1 << 12)):
        monkeypatch.setattr(packed, name, value)
    for module in ("cntkpy.readers.common.packed", "cntkpy.readers.formats.text.deserializer"):
        monkeypatch.setattr(f"{module}.RECENTLY", own)
    monkeypatch.setattr("cntkpy.readers.formats.text.deserializer.SPARE", 1 << 18)
    monkeypatch.setattr(recent, "RECENT", 1 << 20)
    monkeypatch.setattr(codecs, "INPUT", 1 << 12)
    monkeypatch.setattr(packed, "PIECE", 1 << 13)
    monkeypatch.setattr(codecs, "PIECE", 1 << 13)
    return own


def text_of(size: int) -> bytes:
    draw = random.Random(5)
    return bytes(draw.choice(b"0123456789 \n") for _ in range(size))


def opened(kind: str, text: bytes) -> Any:
    Path(kind).write_bytes(PACKS[kind](text))
    return data_bytes(kind)


@pytest.mark.parametrize("kind", PACKS)
def test_in_order_and_with_jumps(kind: str, small: recent.Recent) -> None:
    text = text_of(200_000)
    data = opened(kind, text)
    ahead: list[int] = []
    was_read = data._pieces._was_read
    data._pieces._was_read = lambda begin, content: (ahead.append(begin), was_read(begin, content))
    with data.stream() as file:
        assert file.read(1000) == text[:1000]
        draw = random.Random(1)
        for at in range(1000, 196_000, 5000):
            assert file.read(5000) == text[at : at + 5000]
            if draw.random() < 0.3:
                place = draw.randrange(len(text) - 9)
                assert data.bytes(place, 9) == text[place : place + 9]
        assert file.read() == text[196_000:]
    assert data.size == len(text) and ahead
    data.close()
    assert small._held + sum(small._reserved.values()) <= 1 << 20


def test_of_many_threads() -> None:
    text = text_of(400_000)
    data = opened("gz", text)

    def part(begin: int) -> bool:
        out = np.empty(700, np.uint8)
        for at in range(begin, begin + 70_000, 700):
            data.read(out, at)
            if out.tobytes() != text[at : at + 700]:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(part, range(0, 320_001, 80_000)))
    data.close()


def test_a_thread_that_is_gone_is_not_waited_for() -> None:
    """A process that was forked has none of the threads."""
    text = text_of(50_000)
    data = opened("gz", text)
    data._thread, data._offset, data._until = Thread(target=print), 0, 50_000
    assert data.bytes(30_000, 9) == text[30_000:30_009]
    data.close()


def test_memory_that_others_hold(small: recent.Recent) -> None:
    """Without room for what is ahead, nothing is unpacked ahead; what is read is the same."""
    text = text_of(100_000)
    data = opened("gz", text)
    holder = recent.Recent()
    assert small.reserve(holder, 1 << 20) and not small.reserve(holder, 1)
    with data.stream() as file:
        assert b"".join(iter(lambda: file.read(3000), b"")) == text
    assert not data._pieces.ahead and len(data._pieces.recent) <= 1
    small.release(holder, 1 << 20)
    assert small.reserve(holder, 1000, spare=1000) and not small.reserve(holder, 1000, spare=1 << 20)


def test_what_is_forgotten_makes_room(small: recent.Recent) -> None:
    text = text_of(60_000)
    data = opened("gz", text)
    data.read(np.empty(60_000, np.uint8), 0)
    data.close()
    held = small._held
    data.forget(30_000)
    assert small._held < held and min(data._pieces.recent) + len(data._pieces.recent[min(data._pieces.recent)]) > 30_000
    assert small._held == sum(map(len, data._pieces.recent.values()))


def test_damage_is_found_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(100_000)
    whole = bytearray(gzip.compress(text))
    whole[len(whole) // 2] ^= 255
    Path("x.gz").write_bytes(whole)

    def messages() -> tuple[bytes, str]:
        data, found = data_bytes("x.gz"), b""
        with data.stream(0) as file:
            try:
                while block := file.read(512):
                    found += block
            except DataError as error:
                return found, error.message
        return found, ""

    ahead = messages()
    monkeypatch.setattr(packed, "WORTH", 1 << 30)
    assert messages() == ahead and "is damaged at byte" in ahead[1]


# ------------------------------------------------------------------------------------------- chunks parsed meanwhile


def ctf(sequences: int) -> bytes:
    lines = [f"{i} |x {i} {t} |y {i % 5}:1\n" for i in range(sequences) for t in range(1 + i % 3)]
    return "".join(lines).encode()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The chunks that were parsed ahead and taken; the index never has its bytes without waiting."""
    taken: list[int] = []
    take = ParsedAhead.take

    def counted(self: ParsedAhead, chunk: int) -> Any:
        found = take(self, chunk)
        taken.extend([chunk] if found is not None else [])
        return found

    monkeypatch.setattr(ParsedAhead, "take", counted)
    monkeypatch.setattr(PackedBytes, "ready", lambda self, at: False)
    monkeypatch.setattr("cntkpy.readers.formats.text.index.BLOCK_BYTES", 1 << 13)
    monkeypatch.setattr("cntkpy.readers.formats.text.index.build_index.__kwdefaults__", _defaults(1 << 13))
    return taken


def _defaults(block: int) -> dict[str, Any]:
    from cntkpy.readers.formats.text.index import build_index

    return {**(build_index.__kwdefaults__ or {}), "block": block}


def sweep(path: str, more: str, state_at: int = -1) -> list[Any]:
    reader = create_reader(f"file={path};{more};input=[x=[dim=2;format=dense];y=[dim=5;format=sparse]]")
    reader.start_minibatch_loop(50, 0)
    found: list[Any] = []
    while (m := reader.get_minibatch()) is not None:
        found.append((m.keys, m.streams["x"].tolist(), m.streams["y"].toarray().tolist()))
        if len(found) == state_at:
            found.append(reader.get_state())
    reader.close()
    return found


@pytest.mark.parametrize("order", ["randomize=false", "randomizationWindow=400"])
def test_chunks_are_those_of_the_plain_file(order: str, parsed: list[int], small: recent.Recent) -> None:
    text = ctf(3000)
    Path("plain").write_bytes(text)
    Path("x.zst").write_bytes(PACKS["zst"](text))
    more = f"{order};chunkSizeInBytes=9000"
    assert sweep("x.zst", more, state_at=7) == sweep("plain", more, state_at=7)
    assert len(parsed) > 5, "chunks were parsed ahead"
    assert not any(small._reserved.values()), "all were taken"


def test_chunks_of_a_single_deserializer(parsed: list[int]) -> None:
    text = ctf(2000)
    Path("plain").write_bytes(text)
    Path("x.zst").write_bytes(PACKS["zst"](text))

    def keys(path: str) -> list[Any]:
        reader = create_reader(
            "readerType=CompositeDataReader;randomize=false;deserializers=([type=CNTKTextFormatDeserializer;"
            f"file={path};chunkSizeInBytes=9000;input=[x=[dim=2;format=dense];y=[dim=5;format=sparse]]])"
        )
        reader.start_minibatch_loop(50, 0)
        return [(m.keys, m.streams["x"].tolist()) for m in iter(reader.get_minibatch, None)]

    assert keys("x.zst") == keys("plain") and parsed


@pytest.mark.parametrize("more", ["", ";maxErrors=5", ";traceLevel=2", ";maxErrors=5;traceLevel=0"])
def test_errors_and_warnings_come_as_of_the_plain_file(
    more: str, parsed: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """A chunk with something to report is parsed once more, when it is needed."""
    text = ctf(1500).replace(b"1000 |x 1000 0", b"1000 |x 1000 z").replace(b"700 |x", b"700 |unknown 3 |x")
    Path("plain").write_bytes(text)
    Path("x.zst").write_bytes(PACKS["zst"](text))
    caplog.set_level("INFO", "cntkpy.readers")
    found: list[Any] = []
    for path in ("plain", "x.zst"):
        caplog.clear()
        try:
            result: Any = sweep(path, f"randomize=false;prefetch=false;chunkSizeInBytes=9000{more}")
        except DataError as error:
            result = error.message.replace(path, "FILE")
        found.append((result, [one.getMessage().replace(path, "FILE") for one in caplog.records]))
    assert found[0] == found[1] and parsed
    assert "byte offset" in found[0][0] or any("unknown" in one for one in found[0][1]) or more.endswith("0")


def test_sequences_without_samples_end_it(parsed: list[int]) -> None:
    """The index leaves them out, so that numbers of chunks would be others."""
    text = ctf(1500).replace(b"900 |x 900 0 |y 0:1\n", b"900 |y 0:1\n")
    Path("plain").write_bytes(text)
    Path("x.zst").write_bytes(PACKS["zst"](text))

    def keys(path: str) -> list[Any]:
        reader = create_reader(
            f"file={path};randomize=false;chunkSizeInBytes=5000;input=[x=[dim=2;format=dense;definesMBSize=true]]"
        )
        reader.start_minibatch_loop(50, 0)
        return [(m.keys, m.streams["x"].tolist()) for m in iter(reader.get_minibatch, None)]

    assert keys("x.zst") == keys("plain") and 0 < len(parsed) < 9
