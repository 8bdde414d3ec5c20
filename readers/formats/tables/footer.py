"""The smallest and largest values of columns, out of the footer of a Parquet file.

pyarrow knows them, too, but ends the process where the metadata of a column are damaged: an exception of C++ leaves
`ColumnChunkMetaData` there, and `pyarrow.dataset` the same way. So the few fields that filters need are read here.
The footer is Thrift's compact protocol, see https://parquet.apache.org/docs/file-format/metadata/.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"PAR1"
LARGEST = 4 << 20
"""Bytes of a footer that is read; larger ones, of thousands of columns, take seconds."""
_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_WHOLE = (4, 5, 6)
_FORMATS = {4: ("<i", "<I", "<f"), 8: ("<q", "<Q", "<d")}
"""Of values by their bytes: signed, unsigned, floating."""
_SCHEMA, _ROW_GROUPS, _COLUMNS, _METADATA, _PATH, _STATISTICS, _NULLS, _HIGH, _LOW = 2, 4, 1, 3, 3, 12, 3, 5, 6
_NAME, _CHILDREN, _CONVERTED, _LOGICAL, _TIME, _TIMESTAMP, _UNIT = 4, 5, 6, 10, 7, 8, 2
"""Numbers of fields."""
_UNITS = {1: 10**3, 2: 10**6, 3: 10**9}
"""Parts of a second by the field that a unit of time has, and by the converted types of older files."""
_CONVERTED_UNITS = {7: 10**3, 8: 10**6, 9: 10**3, 10: 10**6}
_MOST_COLUMNS = 10_000


class Statistics(NamedTuple):
    """What is known of the values of a column in a row group; low and high may be out of reach of the values.

    per_second: of times of day and timestamps, the parts of a second that values count.
    """

    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None
    per_second: int | None = None


def statistics(file: BinaryIO, size: int) -> list[dict[str, Statistics]]:
    """The statistics of every row group by the names of columns; nothing where there are none or the footer is damaged.

    A field of a column of structs has the name `column.field`.

    Args:
        file: the Parquet file.
        size: its bytes.
    """
    try:
        file.seek(size - 8)
        length, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or not 0 < length <= min(LARGEST, size - 8):
            return []
        file.seek(size - 8 - length)
        found = _Reader(file.read(length)).fields()
        units = _units(found[_SCHEMA])
        return [_of_group(group, units) for group in found.get(_ROW_GROUPS, [])]
    except (ValueError, LookupError, struct.error, AttributeError, TypeError, OSError, RecursionError):
        return []


def number_of(value: bytes | None, *, signed: bool, floating: bool) -> int | float | None:
    """A number of 1 (a boolean), 4 or 8 bytes; None for others."""
    if value is None or len(value) not in _FORMATS:
        return value[0] if value is not None and len(value) == 1 else None
    formats = _FORMATS[len(value)]
    return struct.unpack(formats[2] if floating else formats[0] if signed else formats[1], value)[0]


def _of_group(group: Mapping[int, Any], units: Mapping[tuple[bytes, ...], int]) -> dict[str, Statistics]:
    found: dict[str, Statistics] = {}
    nested: dict[str, Statistics] = {}
    for column in group[_COLUMNS]:
        metadata = column.get(_METADATA, {})
        path, known = tuple(metadata.get(_PATH, [])), metadata.get(_STATISTICS)
        if path and known is not None:
            low, high = (one if isinstance(one := known.get(name), bytes) else None for name in (_LOW, _HIGH))
            nulls = known.get(_NULLS)
            of = found if len(path) == 1 else nested
            of[b".".join(path).decode()] = Statistics(
                low, high, nulls if isinstance(nulls, int) else None, units.get(path)
            )
    return nested | found


def _units(schema: Sequence[Mapping[int, Any]]) -> dict[tuple[bytes, ...], int]:
    """Parts of a second by the paths of columns of times. The schema is a tree, each node before what is in it."""
    found: dict[tuple[bytes, ...], int] = {}
    open_nodes: list[tuple[bytes, int]] = []
    for node in schema[1:_MOST_COLUMNS]:
        while open_nodes and not open_nodes[-1][1]:
            open_nodes.pop()
        if open_nodes:
            open_nodes[-1] = open_nodes[-1][0], open_nodes[-1][1] - 1
        if (inside := node.get(_CHILDREN, 0)) > 0:
            open_nodes.append((node[_NAME], inside))
        elif (unit := _unit(node)) is not None:
            found[*(name for name, _ in open_nodes), node[_NAME]] = unit
    return found


def _unit(node: Mapping[int, Any]) -> int | None:
    logical = node.get(_LOGICAL, {})
    time = logical.get(_TIMESTAMP, logical.get(_TIME))
    if time is None:
        return _CONVERTED_UNITS.get(node.get(_CONVERTED, -1))
    return next((_UNITS[kind] for kind in time[_UNIT] if kind in _UNITS), None)


class _Reader:
    """Values of Thrift's compact protocol, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def fields(self, depth: int = 0) -> dict[int, Any]:
        """A struct: values by the numbers of fields."""
        if depth > _DEEPEST:
            raise ValueError
        found: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = number + step if step else self._whole()
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _WHOLE:
            return self._whole()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.fields(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if count > len(self._data):
                raise ValueError
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise ValueError

    def _whole(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
