"""A read that fails by an error that may pass, of a disk or of a folder in the network, is tried again."""

from __future__ import annotations

import errno
import io
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

log = logging.getLogger("cntkpy.files")

PASSING = {errno.EIO, errno.ETIMEDOUT, errno.EAGAIN, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH}
"""Errors of a read that may pass: of a disk, or of a folder in the network."""
WAITS = (0.1, 0.3, 1.0, 3.0)
"""Seconds between attempts; CNTK makes five, without a wait."""

_T = TypeVar("_T")


def patiently(read: Callable[[], _T], what: str) -> _T:
    """What `read` gives; while it fails by an error that may pass, it is called again, after a warning and a wait.

    Args:
        read: reads, from the start, whenever it is called.
        what: what cannot be done, for the warning.

    Raises:
        OSError: of another kind, or of the last attempt; `strerror` then says how many there were.
    """
    for wait in WAITS:
        try:
            return read()
        except OSError as error:
            if not _may_pass(error):
                raise
            log.warning("WARNING: %s: %s; trying again in %g s", what, error.strerror or error, wait)
            time.sleep(wait)
    try:
        return read()
    except OSError as error:
        if not _may_pass(error):
            raise
        raise OSError(error.errno, f"{error.strerror}, {len(WAITS) + 1} times", error.filename) from None


def _may_pass(error: OSError) -> bool:
    """Whether another attempt may have more success."""
    return error.errno in PASSING


def cure(error: OSError) -> str | None:
    """What to do about an error of `patiently`, if that is known."""
    return "is the disk or the network all right?" if _may_pass(error) else None


class PatientFile(io.FileIO):
    """A file whose reads are tried again.

    Args:
        descriptor: of the open file.
        path: its name, for the warning.
    """

    def __init__(self, descriptor: int, path: str):
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: Any, /) -> Any:
        """Fill a buffer with what comes next, as far as there is something."""
        plain = super().readinto
        return patiently(lambda: plain(buffer), f"The file {self._path} cannot be read")

    def read(self, size: int | None = -1, /) -> Any:
        """So many bytes at most; all, if negative. `FileIO` would not call `readinto`."""
        return io.RawIOBase.read(self, -1 if size is None else size)

    def readall(self) -> Any:
        """All bytes that follow."""
        return io.RawIOBase.readall(self)
