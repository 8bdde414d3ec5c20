"""Retries of reads that fail with a transient error of a disk or of a network mount."""

from __future__ import annotations

import errno
import io
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

log = logging.getLogger("cntkpy.files")

TRANSIENT_ERRORS = {errno.EIO, errno.ETIMEDOUT, errno.EAGAIN, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH}
"""Errors of a read after which another attempt may succeed."""
RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0)
"""The time before each retry; CNTK makes as many attempts, without waiting."""

_T = TypeVar("_T")


def with_retries(read: Callable[[], _T], activity: str) -> _T:
    """Return the result of `read`, which is called again, after a warning and a wait, if it fails with a transient
    error.

    Args:
        read: reads, from the start, whenever it is called.
        activity: what failed, for the warning.

    Raises:
        OSError: an error that is not transient, or that of the last attempt, whose `strerror` has their number.
    """
    waits = iter(RETRY_SECONDS)
    while True:
        try:
            return read()
        except OSError as error:
            if not _is_transient(error):
                raise
            if (wait := next(waits, None)) is None:
                times = f"{error.strerror}, {len(RETRY_SECONDS) + 1} times"
                raise OSError(error.errno, times, error.filename) from None
            log.warning("WARNING: %s: %s; trying again in %g s", activity, error.strerror or error, wait)
            time.sleep(wait)


def _is_transient(error: OSError) -> bool:
    """Return whether another attempt may succeed."""
    return error.errno in TRANSIENT_ERRORS


def cure(error: OSError) -> str | None:
    """Return a hint for an error of `with_retries`, if there is one."""
    return "check the disk or the network mount" if _is_transient(error) else None


class RetryingFile(io.FileIO):
    """A file whose reads are retried.

    Args:
        descriptor: of the open file.
        path: its name, for the warning.
    """

    def __init__(self, descriptor: int, path: str):
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: Any, /) -> Any:
        """Read the next bytes into a buffer."""
        plain = super().readinto
        return with_retries(lambda: plain(buffer), f"The file {self._path} cannot be read")

    def read(self, size: int | None = -1, /) -> Any:
        """Read at most `size` bytes, all if it is negative. `FileIO` would not call `readinto`."""
        return io.RawIOBase.read(self, -1 if size is None else size)

    def readall(self) -> Any:
        """Read all bytes that follow."""
        return io.RawIOBase.readall(self)
