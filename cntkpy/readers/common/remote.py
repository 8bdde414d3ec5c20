"""Data behind a URL, read by fsspec in ranges of bytes: the same methods as of a local file."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import BinaryIO, cast

import numpy as np

from cntkpy.cntk_config.base.names import public_name as shown
from cntkpy.cntk_config.base.remote import RemoteError
from cntkpy.cntk_config.base.url_cache import CachedObject
from cntkpy.readers.common.position import Position
from cntkpy.readers.errors import DataError

KEPT = 64 << 20
"""Bytes of an object that are kept in memory."""


class RemoteBytes:
    """An object behind a URL, at any place and from any thread.

    Args:
        url: where it is. Credentials come from the places that fsspec looks at.

    Raises:
        DataError: it is not there, or cannot be read after several attempts; also of the methods.
        UserError: a package is missing.
    """

    descriptor = -1
    """Kernels cannot read from it."""
    packed = False
    """True if it is compressed."""
    local = False
    """True if it is a file of this machine."""

    def __init__(self, url: str) -> None:
        self.path = shown(url)
        with self._errors("cannot be opened: "):
            self._object = CachedObject(url)
        self.size = self._object.size
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()

    def read(self, into: np.ndarray, offset: int) -> None:
        """Fill a uint8 array from byte `offset` on."""
        if offset + len(into) > self.size:
            raise self.cut_short()
        block = self._object.block_bytes
        first, last = offset // block, (offset + len(into) - 1) // block
        view, got = into.data, 0
        if last > first + 1:  # a chunk: one request, for whole blocks if these are kept on the disk
            with self._errors("cannot be read at "):
                if self._object.cached:
                    whole = memoryview(b"".join(self._object.blocks(first, last)))
                    view[:] = whole[offset - first * block :][: len(view)]
                else:
                    view[:] = self._object.fetch(offset, offset + len(into))
            return
        while got < len(view):
            got += self.read_some(view[got:], offset + got)

    def read_some(self, view: memoryview, offset: int) -> int:
        """Read some bytes from byte `offset` on; 0 at the end."""
        if offset >= self.size or not len(view):
            return 0
        block = self._object.block_bytes
        number = offset // block
        content = self._block(number)
        result = memoryview(content)[offset - number * block :][: len(view)]
        view[: len(result)] = result
        return len(result)

    def bytes(self, offset: int, length: int) -> bytes:
        """Return these bytes; fewer at the end."""
        out = np.empty(max(0, min(length, self.size - offset)), np.uint8)
        if len(out):
            self.read(out, offset)
        return out.tobytes()

    def stream(self, buffering: int = -1) -> BinaryIO:
        """Return the object as a file of its own position."""
        raw = Position(self)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 16) if buffering else raw)

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            self._blocks.clear()
        self._object.close()

    def cut_short(self) -> DataError:
        """Return the error of an object that has fewer bytes than it had."""
        return DataError(f"The data at {self.path} became shorter while they were read.", path=self.path)

    def _block(self, number: int) -> bytes:
        with self._lock:  # two threads do not ask for the same block at once
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
            with self._errors("cannot be read at "):
                (result,) = self._object.blocks(number, number)
            self._blocks[number] = result
            while len(self._blocks) > KEPT // self._object.block_bytes:
                self._blocks.popitem(last=False)
            return result

    @contextmanager
    def _errors(self, action: str) -> Generator[None, None, None]:
        """Errors of requests name the data."""
        try:
            yield
        except RemoteError as error:
            message = f"The data at {self.path} {action}{error.strerror}."
            raise DataError(message, path=self.path, hint=error.hint) from None
