"""The bytes of a file at any place, from any thread: read into arrays of their own."""

from __future__ import annotations

import io
import os
import threading
import weakref
from collections.abc import Callable
from typing import BinaryIO, cast

import numpy as np

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.retry import cure, with_retries
from cntkpy.cntk_config.base.systems import memory
from cntkpy.cntk_config.base.systems.files import can_read_at, read_at, read_past
from cntkpy.readers.common.position import Position
from cntkpy.readers.errors import DataError


class FileBytes:
    """A file opened for reading.

    Args:
        path: its name.
        file: the file, if it is open already: one that has no name, made from the one of this name.

    Raises:
        DataError: it cannot be opened; also of the methods, where it cannot be read.
    """

    def __init__(self, path: str, file: io.FileIO | None = None):
        self.path = path
        try:
            self._file = file or cast("io.FileIO", open_input(path, buffering=0))  # kept for the life of the reader
        except OSError as error:
            raise DataError(
                f"The data file {path} cannot be opened: {error.strerror or error}", path=path, hint="check its name"
            ) from None
        self.close = weakref.finalize(self, self._file.close)
        self.size = os.fstat(self._file.fileno()).st_size
        self._lock = threading.Lock()

    packed = False
    """True if it is compressed: see `packed.PackedBytes`, which has the same methods."""

    local = True
    """True if it is a file of this machine."""

    def stream(self, buffering: int = -1) -> BinaryIO:
        """Return the file opened once more, with a position of its own."""
        return open_input(self.path, buffering=buffering)

    def too_large_to_keep(self) -> bool:
        """Return whether the system cannot keep the file in memory until it is read again."""
        return can_read_at() and (memory.of_machine() or self.size) < self.size

    def passing(self) -> io.RawIOBase:
        """Return the file with a position of its own; what is read lets the system forget nothing else that it
        keeps.
        """
        return Position(_Passing(self))

    def fileno(self) -> int:
        """Return the number of the open file."""
        return self._file.fileno()

    def read(self, into: np.ndarray, offset: int) -> None:
        """Fill a uint8 array from byte `offset` on."""
        view, got = into.data, 0
        while got < len(view):
            count = self._with_retries(view[got:], offset + got)
            if not count:
                raise self.cut_short()
            got += count

    @property
    def descriptor(self) -> int:
        """The descriptor that kernels read from; -1 where they cannot."""
        return self._file.fileno() if can_read_at() else -1

    def pieces(self, into: np.ndarray, offset: np.ndarray, sizes: np.ndarray, places: np.ndarray) -> None:
        """Fill parts of a uint8 array: into[places[i] : places[i] + sizes[i]] from byte at[i] on, all int64."""
        if len(sizes) and (sizes.min() < 0 or places.min() < 0 or int((places + sizes).max()) > len(into)):
            raise ValueError("a piece does not fit the array")
        done, descriptor = 0, self.descriptor
        while done < len(offset):
            if descriptor >= 0:
                from cntkpy.readers.kernels.row_kernels import read_pieces

                done = read_pieces(descriptor, offset, sizes, places, into, done)
            if done < len(offset):  # what could not be read in one go, or is not there
                place = int(places[done])
                self.read(into[place : place + int(sizes[done])], int(offset[done]))
                done += 1

    def read_past(self, view: memoryview, offset: int) -> int:
        """Read some bytes from byte `offset` on, see `systems.files.read_past`; 0 at the end."""
        return self._with_retries(view, offset, read_past)

    def _with_retries(
        self, view: memoryview, position: int, read: Callable[[int, memoryview, int], int] = read_at
    ) -> int:
        """Read some bytes; a disk or a network that fails gets more attempts.

        Raises:
            DataError: All attempts have failed.
        """
        reason = f"The data file {self.path} cannot be read at byte {position}"
        try:
            if can_read_at():
                return with_retries(lambda: read(self._file.fileno(), view, position), reason)
            with self._lock:
                self._file.seek(position)
                return self._file.readinto(view) or 0  # retries by itself
        except OSError as error:
            raise DataError(f"{reason}: {error.strerror or error}", path=self.path, hint=cure(error)) from None

    def bytes(self, offset: int, length: int) -> bytes:
        """Return these bytes; fewer at the end of the file."""
        out = np.empty(max(0, min(length, self.size - offset)), np.uint8)
        self.read(out, offset)
        return out.tobytes()

    def window(self, offset: int, length: int, dtype: np.dtype) -> np.ndarray:
        """Return these bytes as elements, read into an array: a mapped file that becomes shorter would end the
        process.
        """
        if os.fstat(self._file.fileno()).st_size < offset + length:
            raise self.cut_short()  # before anything is allocated
        result = np.empty(length // dtype.itemsize, dtype)
        self.read(result.view(np.uint8), offset)
        return result

    def cut_short(self) -> DataError:
        """Return the error of a file that has fewer bytes than it had."""
        return DataError(f"The data file {self.path} was cut short while it was read.", path=self.path)


class _Passing:
    """A file as `Position` wants it, read past the memory of the system."""

    def __init__(self, of: FileBytes) -> None:
        self.size, self._of = of.size, of

    def read_some(self, view: memoryview, offset: int) -> int:
        """Read some bytes from byte `offset` on; 0 at the end."""
        return self._of.read_past(view, offset)
