"""The index of a text file: where every sequence lies, found in one buffered pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import DataError
from ..sequences import SequenceTable

BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\v\f\0"


@dataclass(eq=False)
class TextIndex:
    """Sequences of a text file: the table of keys and lengths, and where each lies.

    offsets int64[N], sizes int64[N] in bytes; newline_at_end: whether the file ends in LF; first_line: 0-based line
    that counts as line 0.
    """

    table: SequenceTable
    offsets: np.ndarray
    sizes: np.ndarray
    size: int
    newline_at_end: bool
    begin: int


def build_index(
    path: str, *, skip_sequence_ids: bool = False, main: str = "", chunk_size: int = 32 << 20, block: int = BLOCK
) -> TextIndex:
    """Read the whole file once. main: alias of the input whose samples define the length of a sequence."""
    try:
        with Path(path).open("rb") as file:
            return _build(file, path, skip_sequence_ids, main.encode(), chunk_size, block)
    except OSError as error:
        raise DataError(
            f"The input file ({path}) cannot be read: {error.strerror or error}", path=path, hint="check 'file'"
        ) from None


def _build(file: BinaryIO, path: str, skip_ids: bool, main: bytes, chunk_size: int, block: int) -> TextIndex:
    from . import index_kernels as k

    begin, first = _start(file, path)
    state = np.zeros(5, np.int64)
    state[k.NUMBERED] = int(not skip_ids and first != b"|")
    keys, samples = np.empty(1024, np.uint64), np.empty(1024, np.int32)
    offsets, ends = np.empty(1024, np.int64), np.empty(1024, np.int64)
    name = np.frombuffer(main, np.uint8)
    buffer = np.empty(block + 64, np.uint8)
    held, at = 0, begin
    newline = True
    file.seek(begin)
    while True:
        if len(buffer) - held < block // 2 + 1:
            buffer = np.concatenate([buffer[:held], np.empty(len(buffer) + block, np.uint8)])
        count = file.readinto(memoryview(buffer)[held : len(buffer) - 8])  # type: ignore[attr-defined]
        filled = held + count
        if count == 0:
            whole = filled
            newline = held == 0
        else:
            whole = _last_newline(buffer, held, filled) + 1
            if whole == 0:
                held = filled
                continue
        p = 0
        while True:
            code = k.find_sequences(buffer, p, whole, at, name, keys, samples, offsets, ends, state)
            if code != k.FULL:
                break
            p = int(state[k.POSITION])
            keys, samples, offsets, ends = (_double(a) for a in (keys, samples, offsets, ends))
        if code != k.DONE:
            place = at + int(state[k.POSITION])
            what = "Overflow while reading a numeric sequence id" if code == k.OVERFLOW else (
                f"Expected a sequence id at the offset {place}, none was found"
            )  # fmt: skip
            raise DataError(
                f"{what} (file {path}, line {int(state[k.LINE]) + 1}, column 1, byte offset {place}).",
                path=path, line=int(state[k.LINE]) + 1,
                hint="a sequence id is a number below 2^64 at the very start of a line; "
                "skipSequenceIds=true makes every line a sequence",
            )  # fmt: skip
        at += whole
        if count == 0:
            break
        buffer[: filled - whole] = buffer[whole:filled].copy()
        held = filled - whole
    n = int(state[k.SEQUENCES])
    return _finish(path, main, chunk_size, keys[:n], samples[:n], offsets[:n], ends[:n], at, newline, begin)


def _start(file: BinaryIO, path: str) -> tuple[int, bytes]:
    """Offset of the first byte that is neither mark nor blank, and that byte."""
    head = file.read(3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(
            f"The input file ({path}) is UTF-16, which is not supported.", path=path, hint="save it as UTF-8 or ASCII"
        )
    at = 3 if head == _BOM else 0
    file.seek(at)
    while block := file.read(1 << 16):
        rest = block.lstrip(_BLANK)
        if rest:
            return at + len(block) - len(rest), rest[:1]
        at += len(block)
    raise DataError(f"Input file is empty: {path}", path=path, hint="there is no line with data in it")


def _finish(path, main, chunk_size, keys, samples, offsets, ends, size, newline, begin) -> TextIndex:
    from . import index_kernels as k

    sizes = ends - offsets
    if main:
        keep = samples > 0
        keys, samples, offsets, sizes = keys[keep], samples[keep], offsets[keep], sizes[keep]
    if len(keys) == 0:
        raise DataError(
            f"No line of {path} has a sample of input '{main.decode()}', which defines the size.", path=path
        )
    first = np.empty(len(keys) + 1, np.int64)
    chunks = k.form_chunks(offsets, sizes, max(1, min(chunk_size, size)), first)
    lengths = samples[:1].copy() if (samples == samples[0]).all() else samples.copy()
    table = SequenceTable(first[: chunks + 1].copy(), lengths, keys.copy())
    return TextIndex(table, offsets.copy(), sizes.copy(), size, newline, begin)


def _double(array: np.ndarray) -> np.ndarray:
    out = np.empty(2 * len(array), array.dtype)
    out[: len(array)] = array
    return out


def _last_newline(buffer: np.ndarray, begin: int, end: int) -> int:
    """Position of the last LF in buffer[begin:end], -1 if there is none."""
    step = 1 << 16
    while end > begin:
        low = max(begin, end - step)
        found = buffer[low:end].tobytes().rfind(b"\n")
        if found >= 0:
            return low + found
        end = low
    return -1
