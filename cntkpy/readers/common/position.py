"""A position in bytes that can be read at any place: a file object for programs that want one."""

from __future__ import annotations

import io
from typing import Any, Protocol


class Anywhere(Protocol):
    """Bytes that can be read at any place."""

    @property
    def size(self) -> int:
        """Number of entries."""
        ...

    def read_some(self, view: memoryview, offset: int) -> int:
        """Read some bytes from byte `offset` on; 0 at the end."""
        ...


class Position(io.RawIOBase):
    """A position, moved by reading and seeking."""

    def __init__(self, of: Anywhere) -> None:
        super().__init__()
        self.of, self._position = of, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is; in a compressed file at the cost of unpacking."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a position; to find the end of a compressed file it is unpacked."""
        start = (0, self._position)[whence] if whence < 2 else self.of.size
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes into a buffer."""
        count = self.of.read_some(memoryview(buffer).cast("B"), self._position)
        self._position += count
        return count
