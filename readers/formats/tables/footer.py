"""The smallest and largest values of columns, and where columns lie, out of the footer of a Parquet file.

pyarrow knows them, too, but ends the process where the metadata of a column are damaged: an exception of C++ leaves
`ColumnChunkMetaData` there, and `pyarrow.dataset` the same way. So the few fields that are needed are read here.
The fields: https://parquet.apache.org/docs/file-format/metadata/.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from .compact import CompactReader

MAGIC = b"PAR1"
LARGEST = 4 << 20
"""Bytes of a footer that is read; larger ones, of thousands of columns, take seconds."""
_FORMATS = {4: ("<i", "<I", "<f"), 8: ("<q", "<Q", "<d")}
"""Of values by their bytes: signed, unsigned, floating."""
_ROW_GROUPS, _COLUMNS, _METADATA, _PATH, _STATISTICS, _NULLS, _HIGH, _LOW = 4, 1, 3, 3, 12, 3, 5, 6
_KIND, _CODEC, _VALUES, _NBYTES, _DATA, _DICTIONARY, _ELSEWHERE = 1, 4, 5, 7, 9, 11, 1
"""Numbers of fields."""
_DAMAGED = (ValueError, LookupError, struct.error, AttributeError, TypeError, OSError)


class Statistics(NamedTuple):
    """What is known of the values of a column in a row group; low and high may be out of reach of the values."""

    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None


class ColumnChunk(NamedTuple):
    """Where the values of a column in a row group lie.

    kind: the number of the physical type; codec: that of the compression; values: how many, nulls included; begin: the
    first byte in the file; nbytes: so many, compressed.
    """

    path: tuple[str, ...]
    kind: int
    codec: int
    values: int
    begin: int
    nbytes: int


def statistics(file: BinaryIO, size: int) -> list[dict[str, Statistics]]:
    """The statistics of every row group by the names of columns; nothing where there are none or the footer is damaged.

    Args:
        file: the Parquet file.
        size: its bytes.
    """
    try:
        return [_of_group(group) for group in _groups(file, size)]
    except _DAMAGED:
        return []


def column_chunks(file: BinaryIO, size: int) -> list[list[ColumnChunk]]:
    """The column chunks of every row group within the file; nothing where the footer is damaged.

    Args:
        file: the Parquet file.
        size: its bytes.
    """
    try:
        found = [[_chunk(column) for column in group[_COLUMNS]] for group in _groups(file, size)]
    except _DAMAGED:
        return []
    inside = all(one.begin >= 0 <= one.nbytes <= size - one.begin for group in found for one in group)
    return found if inside else []


def _groups(file: BinaryIO, size: int) -> list[Any]:
    """The row groups of the footer; it raises one of `_DAMAGED`."""
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != MAGIC or not 0 < length <= min(LARGEST, size - 8):
        return []
    file.seek(size - 8 - length)
    return CompactReader(file.read(length)).fields().get(_ROW_GROUPS, [])


def number_of(value: bytes | None, *, signed: bool, floating: bool) -> int | float | None:
    """A number of 4 or 8 bytes; None for others."""
    if value is None or len(value) not in _FORMATS:
        return None
    formats = _FORMATS[len(value)]
    return struct.unpack(formats[2] if floating else formats[0] if signed else formats[1], value)[0]


def _of_group(group: Mapping[int, Any]) -> dict[str, Statistics]:
    found: dict[str, Statistics] = {}
    for column in group[_COLUMNS]:
        metadata = column.get(_METADATA, {})
        path, known = metadata.get(_PATH, []), metadata.get(_STATISTICS)
        if len(path) == 1 and known is not None:
            low, high = (one if isinstance(one := known.get(name), bytes) else None for name in (_LOW, _HIGH))
            nulls = known.get(_NULLS)
            found[path[0].decode()] = Statistics(low, high, nulls if isinstance(nulls, int) else None)
    return found


def _chunk(column: Mapping[int, Any]) -> ColumnChunk:
    known = column[_METADATA]
    if _ELSEWHERE in column:
        raise ValueError("the column is in another file")
    begin = min(known[_DATA], known.get(_DICTIONARY) or known[_DATA])  # 0: some writers say so where there is none
    path = tuple(part.decode() for part in known[_PATH])
    return ColumnChunk(path, known[_KIND], known[_CODEC], known[_VALUES], begin, known[_NBYTES])
