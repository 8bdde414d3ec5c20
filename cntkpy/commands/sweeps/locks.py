"""Locks that end with the processes that hold them, however these end."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cntkpy.cntk_config.base.systems.locks import lock
from cntkpy.cntk_config.base.writing import open_in_place

POLL_SECONDS = 0.05


def hold(path: Path) -> int | None:
    """Lock a file, which is made; None: another process has it.

    The lock ends with the last process that has the returned descriptor open. A file system without locks grants it.
    """
    descriptor = open_in_place(path)
    if lock(descriptor) is False:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def held(path: Path) -> Generator[None]:
    """Wait for a lock, and hold it meanwhile."""
    while (descriptor := hold(path)) is None:
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        with suppress(OSError):
            os.close(descriptor)
