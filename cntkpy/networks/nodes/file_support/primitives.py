"""Primitives of CNTK's first binary format: little-endian, nothing aligned.

They are listed in docs/specification/actions-and-training.md A.1.
Every size is compared with what is left of the file before anything is allocated.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.records import BadFile, NotSupported

MAX_RANK = 64
TYPES = {2: np.dtype("<f2"), 4: np.dtype("<f4"), 8: np.dtype("<f8")}


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
        """Return the next bytes."""
        if count > self.left:
            raise BadFile(f"it ends early: {count} bytes are expected, there are {self.left}", self.position)
        self.position += count
        return self.content[self.position - count : self.position]

    def _number(self, form: str, size: int) -> Any:
        return struct.unpack("<" + form, self.take(size))[0]

    def u64(self) -> int:
        """Return an unsigned integer of 8 bytes."""
        return self._number("Q", 8)

    def i64(self) -> int:
        """Return an integer of 8 bytes."""
        return self._number("q", 8)

    def u32(self) -> int:
        """Return an unsigned integer of 4 bytes."""
        return self._number("I", 4)

    def i32(self) -> int:
        """Return an integer of 4 bytes."""
        return self._number("i", 4)

    def f32(self) -> float:
        """Return a number of 4 bytes."""
        return self._number("f", 4)

    def f64(self) -> float:
        """Return a number of 8 bytes."""
        return self._number("d", 8)

    def real(self, size: int) -> float:
        """Return a number of 2, 4 or 8 bytes."""
        return self._number({2: "e", 4: "f", 8: "d"}[size], size)

    def boolean(self) -> bool:
        """Return one byte, 0 or 1."""
        value = self.take(1)[0]
        if value > 1:
            raise BadFile(f"0 or 1 is expected, not {value}", self.position - 1)
        return bool(value)

    def text(self) -> str:
        """UTF-16 up to a zero."""
        start = end = self.position
        while True:
            end = self.content.find(b"\0\0", end)
            if end < 0:
                raise BadFile("a text does not end", start)
            if (end - start) % 2 == 0:
                break
            end += 1
        self.position = end + 2
        return self.content[start:end].decode("utf-16-le", "replace")

    def bytes_text(self) -> str:
        """Bytes up to a zero."""
        start, end = self.position, self.content.find(b"\0", self.position)
        if end < 0:
            raise BadFile("a text does not end", start)
        self.position = end + 1
        return self.content[start:end].decode("utf-8", "replace")

    def marker(self, name: str) -> None:
        """A text that must be there."""
        if not self.try_marker(name):
            raise BadFile(f"the mark {name} is expected", self.position)

    def try_marker(self, name: str) -> bool:
        """Return a text that may be there; nothing is read if it is not."""
        sees = self.sees(name)
        if sees:
            self.position += 2 * len(name) + 2
        return sees

    def sees(self, name: str, ahead: int = 0) -> bool:
        """Return whether a text stands `ahead` bytes after the position."""
        return self.content.startswith(name.encode("utf-16-le") + b"\0\0", self.position + ahead)

    def count(self, size: int) -> int:
        """Return a number of things of at least `size` bytes each, which must fit into the rest of the file."""
        number = self.u64()
        if number * size > self.left:
            raise BadFile(f"{number} entries do not fit into the file", self.position - 8)
        return number

    def shape(self, old: bool = False) -> Shape:
        """Return a shape; `old`: it may be three numbers (channels, width, height) of 8 bytes, as in old files."""
        rank, first = self.u32(), self.u32()
        if old and first == 0:
            return (self.u64(), self.u64(), rank)
        if not 0 < rank <= MAX_RANK:
            raise BadFile(f"a shape of {rank} axes", self.position - 8)
        return (first, *(self.u32() for _ in range(rank - 1)))

    def booleans(self) -> tuple[bool, ...]:
        """Return a list of booleans."""
        return tuple(self.boolean() for _ in range(self.count(1)))

    def sizes(self) -> tuple[int, ...]:
        """Return a list of unsigned integers."""
        return tuple(self.u64() for _ in range(self.count(8)))

    def matrix(self, size: int) -> np.ndarray:
        """Return the elements of a dense matrix, column by column; `size` bytes each."""
        start = self.position
        kind = self.take(1)
        if kind == b"s":
            raise NotSupported(f"the matrix at byte {start} is sparse")
        if kind != b"d":
            raise BadFile("a matrix is expected", start)
        self.marker("BMAT")
        number = self.u64()
        if number != size:
            raise BadFile(f"a matrix has elements of {number} bytes, not {size}", self.position - 8)
        self.text()
        form = self.i32()
        if form != 0:
            raise BadFile(f"a matrix has the format {form}, which is not supported", self.position - 4)
        rows, columns = self.u64(), self.u64()
        data = self.take(rows * columns * size)
        self.marker("EMAT")
        return np.frombuffer(data, TYPES[size])
