"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Generator[IO[Any], None, None]:
    """Open a temporary file beside `path`; on success it takes the place of `path` in one step.

    Missing parent folders are made. The data is on the disk (fsync) before the rename. When the body fails, or the
    disk is full, `path` is left as it was and the temporary file is removed. Text modes write UTF-8 and keep `\\n`.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target = target.resolve()
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)
    try:
        with open(handle, mode, encoding=encoding, newline=newline) as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_usual_mode(target))
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    _sync_folder(target.parent)


def _usual_mode(target: Path) -> int:
    """The permissions of the file that is replaced, or what a plain `open` would give a new one."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
