"""Primitives of the original's binary files (actions-and-training, Appendix A.1): little-endian, nothing aligned.

Every size is compared with what is left of the file before anything is allocated.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from networks.graph import shapes
from networks.graph.shapes import Shape

MAX_RANK = 64
TYPES = {4: np.dtype("<f4"), 8: np.dtype("<f8")}


class BadFile(Exception):
    """The bytes are not what they should be."""


class NotSupported(Exception):
    """A part of a model that this library cannot represent."""


class Reader:
    """Reads one file from front to back."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self.content) - self.position

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.left:
            raise BadFile(f"it ends early: {count} bytes are expected at {self.position}, there are {self.left}")
        self.position += count
        return self.content[self.position - count : self.position]

    def _number(self, form: str, size: int) -> Any:
        return struct.unpack("<" + form, self.take(size))[0]

    def u64(self) -> int:
        """An unsigned integer of 8 bytes."""
        return self._number("Q", 8)

    def i64(self) -> int:
        """An integer of 8 bytes."""
        return self._number("q", 8)

    def u32(self) -> int:
        """An unsigned integer of 4 bytes."""
        return self._number("I", 4)

    def i32(self) -> int:
        """An integer of 4 bytes."""
        return self._number("i", 4)

    def f32(self) -> float:
        """A number of 4 bytes."""
        return self._number("f", 4)

    def f64(self) -> float:
        """A number of 8 bytes."""
        return self._number("d", 8)

    def real(self, size: int) -> float:
        """A number of 4 or 8 bytes."""
        return self.f32() if size == 4 else self.f64()

    def boolean(self) -> bool:
        """One byte, 0 or 1."""
        value = self.take(1)[0]
        if value > 1:
            raise BadFile(f"0 or 1 is expected at {self.position - 1}, not {value}")
        return bool(value)

    def text(self) -> str:
        """UTF-16 up to a zero."""
        start = end = self.position
        while True:
            end = self.content.find(b"\0\0", end)
            if end < 0:
                raise BadFile(f"the text at {start} does not end")
            if (end - start) % 2 == 0:
                break
            end += 1
        self.position = end + 2
        return self.content[start:end].decode("utf-16-le", "replace")

    def marker(self, name: str) -> None:
        """A text that must be there."""
        if not self.try_marker(name):
            raise BadFile(f"the mark {name} is expected at {self.position}")

    def try_marker(self, name: str) -> bool:
        """A text that may be there; nothing is read if it is not."""
        expected = name.encode("utf-16-le") + b"\0\0"
        found = self.content.startswith(expected, self.position)
        if found:
            self.position += len(expected)
        return found

    def count(self, size: int) -> int:
        """A number of things of at least `size` bytes each, which must fit into the rest of the file."""
        number = self.u64()
        if number * size > self.left:
            raise BadFile(f"{number} entries at {self.position - 8} do not fit into the file")
        return number

    def shape(self, old: bool = False) -> Shape:
        """A shape; `old`: it may be three numbers (channels, width, height) of 8 bytes, as in old files."""
        rank, first = self.u32(), self.u32()
        if old and first == 0:
            return (self.u64(), self.u64(), rank)
        if not 0 < rank <= MAX_RANK:
            raise BadFile(f"a shape of {rank} axes at {self.position - 8}")
        return (first, *(self.u32() for _ in range(rank - 1)))

    def booleans(self) -> tuple[bool, ...]:
        """A list of booleans."""
        return tuple(self.boolean() for _ in range(self.count(1)))

    def matrix(self, size: int) -> np.ndarray:
        """A dense matrix of elements of `size` bytes, as an array (columns, rows)."""
        kind = self.take(1)
        if kind == b"s":
            raise NotSupported(f"the matrix at {self.position - 1} is sparse")
        if kind != b"d":
            raise BadFile(f"a matrix is expected at {self.position - 1}")
        self.marker("BMAT")
        given = self.u64()
        if given != size:
            raise BadFile(f"the matrix at {self.position - 8} has elements of {given} bytes, not {size}")
        self.text()
        form = self.i32()
        if form != 0:
            raise BadFile(f"the matrix at {self.position - 4} has the format {form}, which is not supported")
        rows, columns = self.u64(), self.u64()
        data = self.take(rows * columns * size)
        self.marker("EMAT")
        if rows * columns == 0:
            return np.zeros((0, 0), TYPES[size])
        return np.frombuffer(data, TYPES[size]).reshape(columns, rows)


def fitted(matrix: np.ndarray, shape: Shape) -> np.ndarray:
    """A matrix as the array of a node of that shape."""
    if 0 in shape or shapes.size(shape) != matrix.size:
        raise BadFile(f"{matrix.size} values do not fit the shape {shapes.text(shape)}")
    return matrix.reshape(tuple(reversed(shape)))
