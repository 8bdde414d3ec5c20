"""The smallest and largest values of columns, and where columns lie, out of the footer of a Parquet file.

pyarrow knows them, too, but ends the process where the metadata of a column are damaged: an exception of C++ leaves
`ColumnChunkMetaData` there, and `pyarrow.dataset` the same way. So the few fields that are needed are read here.
The fields: https://parquet.apache.org/docs/file-format/metadata/.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from .compact import CompactReader

MAGIC = b"PAR1"
LARGEST = 4 << 20
"""Bytes of a footer that is read; larger ones, of thousands of columns, take seconds."""
_FORMATS = {4: ("<i", "<I", "<f"), 8: ("<q", "<Q", "<d")}
"""Of values by their bytes: signed, unsigned, floating."""
_SCHEMA, _ROW_GROUPS, _COLUMNS, _METADATA, _PATH, _STATISTICS, _NULLS, _HIGH, _LOW = 2, 4, 1, 3, 3, 12, 3, 5, 6
_KIND, _CODEC, _VALUES, _NBYTES, _DATA, _DICTIONARY, _ELSEWHERE = 1, 4, 5, 7, 9, 11, 1
_NAME, _CHILDREN, _CONVERTED, _LOGICAL, _TIME, _TIMESTAMP, _UNIT = 4, 5, 6, 10, 7, 8, 2
"""Numbers of fields."""
_UNITS = {1: 10**3, 2: 10**6, 3: 10**9}
"""Parts of a second by the field that a unit of time has, and by the converted types of older files."""
_CONVERTED_UNITS = {7: 10**3, 8: 10**6, 9: 10**3, 10: 10**6}
_MOST_COLUMNS = 10_000
_DAMAGED = (ValueError, LookupError, struct.error, AttributeError, TypeError, OSError)


class Statistics(NamedTuple):
    """Statistics of a column in a row group; low and high may be out of reach of the values.

    per_second: of times of day and timestamps, the parts of a second that values count.
    """

    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None
    per_second: int | None = None


class ColumnChunk(NamedTuple):
    """Location of a column's values in a row group.

    kind: the number of the physical type; codec: that of the compression; values: how many, nulls included; begin: the
    first byte in the file; nbytes: the compressed size.
    """

    path: tuple[str, ...]
    kind: int
    codec: int
    values: int
    begin: int
    nbytes: int


def statistics(file: BinaryIO, size: int) -> list[dict[str, Statistics]]:
    """Return the statistics of every row group by the names of columns; nothing where there are none or the footer is
    damaged.

    A field of a column of structs has the name `column.field`.

    Args:
        file: the Parquet file.
        size: its bytes.
    """
    try:
        values = _fields(file, size)
        units = _units(values[_SCHEMA])
        return [_of_group(group, units) for group in values.get(_ROW_GROUPS, [])]
    except _DAMAGED:
        return []


def column_chunks(file: BinaryIO, size: int) -> list[list[ColumnChunk]]:
    """Return the column chunks of every row group within the file; nothing where the footer is damaged.

    Args:
        file: the Parquet file.
        size: its bytes.
    """
    try:
        chunks = [[_chunk(column) for column in group[_COLUMNS]] for group in _fields(file, size).get(_ROW_GROUPS, [])]
    except _DAMAGED:
        return []
    inside = all(column.begin >= 0 <= column.nbytes <= size - column.begin for group in chunks for column in group)
    return chunks if inside else []


def _fields(file: BinaryIO, size: int) -> dict[int, Any]:
    """Return the fields of the footer; none where it is too large or none. It raises one of `_DAMAGED`."""
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != MAGIC or not 0 < length <= min(LARGEST, size - 8):
        raise ValueError("no footer that is read")
    file.seek(size - 8 - length)
    return CompactReader(file.read(length)).fields()


def number_of(value: bytes | None, *, signed: bool, floating: bool) -> int | float | None:
    """Return a number of 1 (a boolean), 4 or 8 bytes; None for others."""
    if value is None or len(value) not in _FORMATS:
        return value[0] if value is not None and len(value) == 1 else None
    formats = _FORMATS[len(value)]
    return struct.unpack(formats[2] if floating else formats[0] if signed else formats[1], value)[0]


def _of_group(group: Mapping[int, Any], units: Mapping[tuple[bytes, ...], int]) -> dict[str, Statistics]:
    result: dict[str, Statistics] = {}
    nested: dict[str, Statistics] = {}
    for column in group[_COLUMNS]:
        metadata = column.get(_METADATA, {})
        path, known = tuple(metadata.get(_PATH, [])), metadata.get(_STATISTICS)
        if path and known is not None:
            low, high = (value if isinstance(value := known.get(name), bytes) else None for name in (_LOW, _HIGH))
            nulls = known.get(_NULLS)
            of = result if len(path) == 1 else nested
            of[b".".join(path).decode()] = Statistics(
                low, high, nulls if isinstance(nulls, int) else None, units.get(path)
            )
    return nested | result


def _units(schema: Sequence[Mapping[int, Any]]) -> dict[tuple[bytes, ...], int]:
    """Parts of a second by the paths of columns of times. The schema is a tree, each node before what is in it."""
    numbers: dict[tuple[bytes, ...], int] = {}
    open_nodes: list[tuple[bytes, int]] = []
    for node in schema[1:_MOST_COLUMNS]:
        while open_nodes and not open_nodes[-1][1]:
            open_nodes.pop()
        if open_nodes:
            open_nodes[-1] = open_nodes[-1][0], open_nodes[-1][1] - 1
        if (inside := node.get(_CHILDREN, 0)) > 0:
            open_nodes.append((node[_NAME], inside))
        elif (unit := _unit(node)) is not None:
            numbers[*(name for name, _ in open_nodes), node[_NAME]] = unit
    return numbers


def _unit(node: Mapping[int, Any]) -> int | None:
    logical = node.get(_LOGICAL, {})
    time = logical.get(_TIMESTAMP, logical.get(_TIME))
    if time is None:
        return _CONVERTED_UNITS.get(node.get(_CONVERTED, -1))
    return next((_UNITS[kind] for kind in time[_UNIT] if kind in _UNITS), None)


def _chunk(column: Mapping[int, Any]) -> ColumnChunk:
    known = column[_METADATA]
    if _ELSEWHERE in column:
        raise ValueError("the column is in another file")
    begin = min(known[_DATA], known.get(_DICTIONARY) or known[_DATA])  # 0: some writers say so where there is none
    path = tuple(part.decode() for part in known[_PATH])
    return ColumnChunk(path, known[_KIND], known[_CODEC], known[_VALUES], begin, known[_NBYTES])
