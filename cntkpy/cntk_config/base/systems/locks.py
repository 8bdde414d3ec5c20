"""Locks on open files that end with the processes that hold them, however these end.

Linux and macOS have `flock`. Windows has locks of ranges of bytes, which keep others from reading these bytes; so one
byte far behind what files hold is locked.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

BYTE = (1 << 31) - 2
"""The byte that is locked on Windows, whose function takes offsets below 2 GB."""
PROBE_SECONDS = 0.2
"""Seconds after which a lock is more than a look at the file: `cntkpy runs` tries locks, and releases them at once."""
CAN_BE_PASSED_ON = sys.platform != "win32"
"""True if a process that gets the descriptor of a locked file holds the lock, too."""


def lock(descriptor: int, shared: bool = False) -> bool | None:
    """Lock an open file, without waiting.

    Args:
        descriptor: of a file of which this process has no other lock.
        shared: others may have a shared lock at the same time. Windows has none: the first of them alone has it.

    Returns:
        True: it is locked, until the descriptor is closed. False: another process has a lock. None: there are no
        locks, as on some network mounts.
    """
    if (fcntl := _module("fcntl")) is not None:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True
    if (msvcrt := _module("msvcrt")) is not None:
        return _lock_byte(msvcrt, descriptor)
    return None


def lock_soon(descriptor: int, shared: bool = False) -> bool | None:
    """Lock an open file like `lock`, but wait for one that has a lock for a moment, to see whether others have one."""
    until = time.monotonic() + PROBE_SECONDS
    while (locked := lock(descriptor, shared)) is False and time.monotonic() < until:
        time.sleep(PROBE_SECONDS / 20)
    return locked


def remove_locked(descriptor: int, path: Path) -> None:
    """Remove a file and close it, so that nobody locks it in between who believes that it stays there.

    Raises:
        OSError: it cannot be removed. It is closed all the same.
    """
    try:
        if CAN_BE_PASSED_ON:
            path.unlink()
    finally:
        os.close(descriptor)
    if not CAN_BE_PASSED_ON:  # Windows removes no file that a process has open, so nobody else has it, either
        path.unlink()


def _lock_byte(msvcrt: Any, descriptor: int) -> bool | None:
    try:
        offset = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, offset, os.SEEK_SET)
    except OSError:
        return None
    return True


def _module(name: str) -> Any:
    """Return a module that only some systems have, or None; the type checker knows those of its own system."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
