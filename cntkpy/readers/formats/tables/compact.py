"""Thrift's compact protocol, in which the footer and the headers of pages of Parquet files are written.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any

_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_WHOLE = (4, 5, 6)


class CompactReader:
    """Values one after the other.

    Attributes:
        position: the first byte that is not read yet.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def fields(self, depth: int = 0) -> dict[int, Any]:
        """Return a struct: values by the numbers of fields.

        Raises:
            ValueError, IndexError: the data are damaged, or end.
        """
        values: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = number + step if step else self._whole()
            values[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return values

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("the values are nested too deep")
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
        self.position += 1
        return self._data[self.position - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self.position:
            raise ValueError
        self.position += count
        return self._data[self.position - count : self.position]

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
