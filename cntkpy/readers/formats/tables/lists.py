"""Columns of Parquet with lists of floating-point numbers, all as long as each other: their pages one after the other.

pyarrow decodes two levels for every number and makes lists of them, which takes most of its time. Where all lists are
of one size and nothing is missing, the levels are a pattern, which a kernel recognises by its runs; the numbers are
copied as they are. Whatever is different is left to pyarrow, damaged files included, so that it words all errors.

https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .footer import ColumnChunk
from .library import arrow, broken
from .pages import DATA_PAGE, DICTIONARY_PAGE, page_header

_TYPES: dict[int, type[np.generic]] = {4: np.float32, 5: np.float64}
"""Physical types."""
_PLAIN_CODEC, _SNAPPY = 0, 1
_PLAIN, _RLE, _CODES = 0, 3, (2, 8)
"""Encodings; `_CODES` are places in the dictionary."""
_MOST_PAGE_BYTES = 1 << 26
_MOST_TIMES = 64
"""The largest compression ratio that is believed: bytes of decoded numbers for each byte of a column chunk."""


class _Other(Exception):
    """The column is not as expected here."""


class _Page(NamedTuple):
    """A page: its type, how many values it has, their encoding, and its bytes."""

    kind: int
    values: int
    encoding: int
    data: np.ndarray


def are_numbers(kind: Any) -> bool:
    """Return whether a type of Arrow is a list of floating-point numbers as Parquet has them."""
    types = arrow().types
    lists = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    return lists and (types.is_float32(kind.value_type) or types.is_float64(kind.value_type))


def lists_of(file: BinaryIO, chunk: ColumnChunk, rows: int, level: int, kind: Any) -> Any:
    """Return the lists of a column chunk, an Arrow array; None: pyarrow has to read them.

    Args:
        file: the Parquet file.
        chunk: the column chunk, which lies within the file.
        rows: of the row group.
        level: the definition level of a number that is there.
        kind: the type of the column, of which `are_numbers` is true.
    """
    try:
        return _array(_numbers(file, chunk, rows, level, kind), rows, kind)
    except (_Other, struct.error, *broken()):
        return None


def _array(numbers: Any, rows: int, kind: Any) -> Any:
    """Numbers in a buffer as lists."""
    pa = arrow()
    size = numbers.size // (kind.value_type.bit_width // 8) // rows
    values = pa.Array.from_buffers(kind.value_type, rows * size, [None, numbers])
    if pa.types.is_fixed_size_list(kind):
        _expect(size == kind.list_size)
        return pa.Array.from_buffers(kind, rows, [None], children=[values])
    bounds = np.arange(rows + 1, dtype=np.int64) * size
    offsets = bounds.astype(np.int32 if pa.types.is_list(kind) else np.int64)
    _expect(int(offsets[-1]) == int(bounds[-1]))
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(offsets)], children=[values])


def _numbers(file: BinaryIO, chunk: ColumnChunk, rows: int, level: int, kind: Any) -> Any:
    """Return the numbers of a column chunk, a buffer."""
    from .list_kernels import MOST_BITS, pattern, unpack

    dtype = np.dtype(_TYPES[chunk.kind])
    _expect(dtype.itemsize * 8 == kind.value_type.bit_width)
    size, remainder = divmod(chunk.values, max(rows, 1))
    _expect(rows > 0 and size > 0 and not remainder and chunk.codec in (_PLAIN_CODEC, _SNAPPY))
    _expect(chunk.values * dtype.itemsize <= _MOST_TIMES * chunk.nbytes)
    buffer = arrow().allocate_buffer(chunk.values * dtype.itemsize)
    numbers = np.frombuffer(buffer, dtype)
    pages, done, dictionary = _Pages(file, chunk), 0, None
    while done < chunk.values:
        page = pages.next()
        if page.kind == DICTIONARY_PAGE:
            _expect(page.encoding in (_PLAIN, _CODES[0]) and dictionary is None)
            _expect(len(page.data) == page.values * dtype.itemsize)
            dictionary = page.data.copy().view(dtype)
            continue
        _expect(page.kind == DATA_PAGE and 0 < page.values <= chunk.values - done)
        starts, data = _cut(page.data)
        defined, data = _cut(data)
        _expect(pattern(starts, 1, page.values, done, size, 0, 1))
        _expect(pattern(defined, level.bit_length(), page.values, 0, 1, level, level))
        out = numbers[done : done + page.values]
        if page.encoding == _PLAIN:
            _expect(len(data) == out.nbytes)
            out.view(np.uint8)[:] = data
        else:
            if page.encoding not in _CODES or dictionary is None or int(data[0]) > MOST_BITS:
                raise _Other
            codes = np.empty(page.values, np.int32)
            _expect(unpack(data[1:], int(data[0]), codes) == page.values)
            _expect(0 <= int(codes.min()) <= int(codes.max()) < len(dictionary))
            np.take(dictionary, codes, out=out, mode="clip")  # the mode that makes no copy
        done += page.values
    return buffer


def _expect(condition: bool) -> None:
    if not condition:
        raise _Other


def _cut(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels, which stand behind the number of their bytes, and what follows them."""
    end = 4 + struct.unpack("<I", data[:4].tobytes())[0]
    _expect(end <= len(data))
    return data[4:end], data[end:]


class _Pages:
    """The pages of a column chunk, one after the other."""

    def __init__(self, file: BinaryIO, chunk: ColumnChunk) -> None:
        self._file, self._position, self._end = file, chunk.begin, chunk.begin + chunk.nbytes
        self._codec = arrow().Codec("snappy") if chunk.codec == _SNAPPY else None
        self._packed = np.empty(0, np.uint8)

    def next(self) -> _Page:
        """Return the next page, decompressed. Its bytes stay what they are until the page after it is asked for."""
        header, self._position = page_header(self._file, self._position, self._end)
        kind, size, packed = header[1], header[2], header[3]
        about = header[7] if kind == DICTIONARY_PAGE else header[5]
        if kind == DATA_PAGE:
            _expect(about[3] == about[4] == _RLE)
        _expect(0 <= packed <= self._end - self._position and 0 <= size <= _MOST_PAGE_BYTES)
        if len(self._packed) < packed:
            self._packed = np.empty(packed, np.uint8)
        data = self._packed[:packed]
        self._file.seek(self._position)
        self._position += packed
        _expect(self._file.readinto(data) == packed)  # type: ignore[attr-defined]
        return _Page(kind, int(about[1]), about[2], self._unpacked(data, size))

    def _unpacked(self, data: np.ndarray, size: int) -> np.ndarray:
        if self._codec is None:
            _expect(len(data) == size)
            return data
        _expect(_snappy_size(data[:5].tobytes()) == size)  # else the end would be left as the memory was
        return np.frombuffer(self._codec.decompress(data, size), np.uint8)


def _snappy_size(data: bytes) -> int:
    """Return the number of bytes data compressed by snappy are; data: the first five bytes."""
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number
    raise _Other
