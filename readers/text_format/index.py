"""The index of a text file: where every sequence lies, found in one buffered pass or taken from a cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..corpus import Corpus
from ..errors import DataError
from ..sequences import SequenceTable
from . import index_cache

BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\v\f\0"
NUMERIC = Corpus()


@dataclass(eq=False)
class TextIndex:
    """Sequences of a text file: the table of keys and lengths, and where each lies.

    offsets int64[N], sizes int64[N] in bytes; newline_at_end: whether the file ends in LF.
    """

    table: SequenceTable
    offsets: np.ndarray
    sizes: np.ndarray
    size: int
    newline_at_end: bool


def build_index(
    path: str, *, skip_sequence_ids: bool = False, main: str = "", chunk_size: int = 32 << 20, block: int = BLOCK,
    corpus: Corpus = NUMERIC, cache: bool = False,
) -> TextIndex:  # fmt: skip
    """Read the whole file once. main: alias of the input whose samples define the length of a sequence.

    cache: use an index kept beside the file, or keep this one.
    """
    try:
        kept = index_cache.cache_name(path, main, skip_sequence_ids, not corpus.numeric, corpus.hashed)
        found = index_cache.load(kept, path) if cache else None
        if found is None:
            with Path(path).open("rb") as file:
                found = _build(file, path, skip_sequence_ids, main.encode(), block, corpus)
            if cache:
                index_cache.save(kept, path, *found)
        return _finish(path, main, chunk_size, corpus, *found)
    except OSError as error:
        raise DataError(
            f"The input file ({path}) cannot be read: {error.strerror or error}", path=path, hint="check 'file'"
        ) from None


def _build(
    file: BinaryIO, path: str, skip_ids: bool, main: bytes, block: int, corpus: Corpus
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays keys, samples, offsets, ends of all sequences; the size of the file and whether it ends in LF."""
    from . import index_kernels as k

    named, hashed = not corpus.numeric, corpus.hashed
    begin, first = _start(file, path)
    state = np.zeros(6, np.int64)
    by_line = skip_ids or first == b"|"
    if named and by_line:
        raise DataError(
            f"The sequences of {path} have no keys, but useNumericSequenceKeys=false asks for keys.",
            path=path, hint="leave useNumericSequenceKeys out, or write a key before the first '|' of each sequence",
        )  # fmt: skip
    state[k.HASHED] = int(hashed)
    state[k.MODE] = k.LINES if by_line else k.NAMES if named else k.NUMBERS
    keys, samples = np.empty(1024, np.uint64), np.empty(1024, np.int32)
    offsets, ends = np.empty(1024, np.int64), np.empty(1024, np.int64)
    name = np.frombuffer(main, np.uint8)
    last_name = np.empty(k.LONGEST_NAME if named else 1, np.uint8)
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
            code = k.find_sequences(buffer, p, whole, at, name, keys, samples, offsets, ends, last_name, state)
            if code != k.FULL:
                break
            p = int(state[k.POSITION])
            keys, samples, offsets, ends = (_double(a) for a in (keys, samples, offsets, ends))
        if code != k.DONE:
            raise _bad_key(path, code, at + int(state[k.POSITION]), int(state[k.LINE]) + 1, named)
        at += whole
        if count == 0:
            break
        buffer[: filled - whole] = buffer[whole:filled].copy()
        held = filled - whole
    n = int(state[k.SEQUENCES])
    arrays = {"keys": keys[:n], "samples": samples[:n], "offsets": offsets[:n], "ends": ends[:n]}
    return arrays, {"size": at, "newline": newline}


def _bad_key(path: str, code: int, place: int, line: int, named: bool) -> DataError:
    from . import index_kernels as k

    if code == k.OVERFLOW:
        what = "Overflow while reading a numeric sequence id"
    elif code == k.LONG_NAME:
        what = f"A sequence key is longer than {k.LONGEST_NAME} bytes"
    else:
        what = f"Expected a sequence {'key' if named else 'id'} at the offset {place}, none was found"
    hint = (
        "a key stands at the very start of a line and ends at the first blank" if named
        else "a sequence id is a number below 2^64 at the very start of a line; "
        "skipSequenceIds=true makes every line a sequence"
    )  # fmt: skip
    return DataError(
        f"{what} (file {path}, line {line}, column 1, byte offset {place}).", path=path, line=line, hint=hint
    )


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


def _finish(
    path: str, main: str, chunk_size: int, corpus: Corpus, arrays: dict[str, np.ndarray], more: dict[str, Any]
) -> TextIndex:
    """Form the chunks."""
    from . import index_kernels as k

    keys, samples, offsets = arrays["keys"], arrays["samples"], arrays["offsets"]
    sizes = arrays["ends"] - offsets
    if main:
        keep = samples > 0
        keys, samples, offsets, sizes = keys[keep], samples[keep], offsets[keep], sizes[keep]
    if len(keys) == 0:
        raise DataError(f"No line of {path} has a sample of input '{main}', which defines the size.", path=path)
    if not corpus.numeric and not corpus.hashed:
        keys = corpus.numbers(_names(path, offsets, keys))
    first = np.empty(len(keys) + 1, np.int64)
    chunks = k.form_chunks(offsets, sizes, max(1, min(chunk_size, more["size"])), first)
    lengths = samples[:1].copy() if (samples == samples[0]).all() else samples.copy()
    table = SequenceTable(first[: chunks + 1].copy(), lengths, keys.copy(), None if corpus.numeric else corpus)
    return TextIndex(table, offsets.copy(), sizes.copy(), more["size"], more["newline"])


def _names(path: str, offsets: np.ndarray, lengths: np.ndarray) -> list[str]:
    """Keys of sequences as text; the kernel gave their lengths in bytes."""
    text = np.memmap(path, np.uint8, "r")
    pairs = zip(offsets.tolist(), lengths.tolist(), strict=True)
    return [text[at : at + n].tobytes().decode("utf-8", "backslashreplace") for at, n in pairs]


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
