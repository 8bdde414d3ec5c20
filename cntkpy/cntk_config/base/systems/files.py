"""Open, read at an offset, replace and sync files; names of devices."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Of `os.open`, to read bytes; opening a pipe does not wait for a writer."""
WRITE_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
"""Of `os.open`, to write bytes, besides those that say how."""
OWN_FILE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Of `os.open`: it fails at a link, and does not wait for the other side of a pipe."""
DEVICE = re.compile(r"/dev/(null|stdout|stderr|tty|full|fd/[0-9]+|pts/[0-9]+)|/proc/self/fd/[0-9]+")
"""Names that are not files: of devices, and of what this process has open. Only the system makes them."""
_DONT_KEEP = 0x80
"""RWF_DONTCACHE of Linux, for which Python has no name."""
HAS_DRIVES = sys.platform == "win32"
"""True if paths begin with the letter of a drive."""
IN_USE_SECONDS = 2.0
"""Seconds to retry on Windows the replacement of a file that another program, such as a virus scanner, has open."""
IN_USE_POLL_SECONDS = 0.05


def system_name(name: str) -> str:
    """Return the name of a file on this system: configurations write `/dev/null` for no file, which Windows calls
    `nul`.
    """
    return os.devnull if name == "/dev/null" else name


def can_read_at() -> bool:
    """Return whether files are read at any place without a position that threads share."""
    return hasattr(os, "preadv")


def read_at(descriptor: int, view: memoryview, offset: int) -> int:
    """Read bytes at a place, where `can_read_at`; how many there were.

    Raises:
        OSError: as of `os.preadv`.
    """
    return os.preadv(descriptor, [view], offset)


def read_past(descriptor: int, view: memoryview, offset: int) -> int:
    """As `read_at`; the system does not keep what it reads from the disk for this, if it can leave that (Linux 6.14).

    Raises:
        OSError: as of `os.preadv`.
    """
    if sys.platform == "linux":
        try:
            return os.preadv(descriptor, [view], offset, _DONT_KEEP)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    return read_at(descriptor, view, offset)


def wait_for_bytes(descriptor: int, seconds: float) -> bool:
    """Wait until a pipe has bytes or its writer has closed it; False: nothing came. Windows does not wait."""
    import select  # a pipe is rare

    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    end = time.monotonic() + seconds
    while not poll.poll(max(0.0, 1000 * (end - time.monotonic()))):
        if time.monotonic() >= end:
            return False
    return True


def once_free(change: Callable[[], object]) -> None:
    """Replace or remove a file; Windows refuses that while a program has it open, and is asked again for a while.

    Raises:
        OSError: what the change raises.
    """
    end = time.monotonic() + IN_USE_SECONDS
    while True:
        try:
            change()
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() >= end:
                raise
        time.sleep(IN_USE_POLL_SECONDS)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can: Windows opens no folders."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
