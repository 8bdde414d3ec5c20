"""Disk cache of blocks read from URLs, limited in bytes; evicts the least recently used first.

A block is a file whose name is a hash of the object's URL with user and query, its tag, time of change and size, and
the number of the block: an object that has changed has other blocks. Files are written under a temporary name and
renamed, so several processes share them. Where there is no private folder, or no room, nothing is kept.

A server that knows no ranges of bytes sends an object once, to a file without a name, from which ranges are read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO, cast

from cntkpy.cntk_config.base.cache_folders import private_folder
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.http import NoRanges
from cntkpy.cntk_config.base.remote import RemoteError, RemoteObject
from cntkpy.cntk_config.base.writing import atomic_write

log = logging.getLogger("cntkpy.files")
TOGETHER = 16
"""Most blocks of one request."""
SETTING = "CNTKPY_URL_CACHE_MB"
"""The variable of the environment with the most megabytes that are kept; 0: none."""
USUAL_MB = 4096


class CachedObject(RemoteObject):
    """An object behind a URL whose blocks are kept on the disk. Arguments and errors as of `RemoteObject`."""

    block_bytes = 4 << 20
    """Bytes of a block; fewer at the end of the object."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._copy: BinaryIO | None = None
        """All of the object, where the server knows no ranges."""
        self._lock = Lock()

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.size // self.block_bytes)

    @property
    def cached(self) -> bool:
        """True if blocks are kept: the server says when the object has changed, and there is a place for them."""
        return bool(self.stamp) and most_bytes() > 0 and _folder() is not None

    def blocks(self, first: int, last: int) -> list[bytes]:
        """Return the blocks first .. last. What is not kept is asked for: neighbours in one request."""
        contents = {number: content for number in range(first, last + 1) if (content := self._kept(number)) is not None}
        number = first
        while number <= last:
            if number in contents:
                number += 1
                continue
            end = number + 1
            while end <= last and end not in contents and end - number < TOGETHER:
                end += 1
            whole = self.fetch(number * self.block_bytes, min(self.size, end * self.block_bytes))
            for index in range(number, end):
                contents[index] = whole[(index - number) * self.block_bytes : (index + 1 - number) * self.block_bytes]
                self._keep(index, contents[index])
            number = end
        return [contents[number] for number in range(first, last + 1)]

    def fetch(self, begin: int, end: int) -> bytes:
        """Return the bytes begin .. end - 1, see `RemoteObject`."""
        if self._copy is None:
            try:
                return super().fetch(begin, end)
            except NoRanges:
                pass
        with self._lock:
            if self._copy is None:
                self._copy = self._downloaded()
            self._copy.seek(begin)
            return self._copy.read(end - begin)

    def close(self) -> None:
        """Let go of what is not kept for later."""
        with self._lock:
            if self._copy is not None:
                self._copy.close()
                self._copy = None

    def _downloaded(self) -> BinaryIO:
        """Return a file with the whole object; its blocks are kept, too."""
        log.info("The server of %s sends no ranges of bytes. Reading all %d bytes.", self.shown, self.size)
        file = cast("BinaryIO", tempfile.TemporaryFile(dir=_folder()))  # noqa: SIM115 - `close` closes it

        def restart() -> None:
            file.seek(0)
            file.truncate()

        try:
            self.download(file.write, restart)
            file.seek(0)
            if self.size <= most_bytes():
                for number in range(self.count):
                    self._keep(number, file.read(self.block_bytes))
        except BaseException:
            file.close()
            raise
        return file

    def _path(self, number: int) -> Path | None:
        folder = _folder() if self.cached else None
        if folder is None:
            return None
        return folder / f"{hashlib.sha256(self.stamp.encode()).hexdigest()[:40]}-{number}"

    def _kept(self, number: int) -> bytes | None:
        path = self._path(number)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                content = file.read(self.block_bytes + 1)
            os.utime(path)  # it was used just now
        except OSError:
            return None
        return content if len(content) == min(self.block_bytes, self.size - number * self.block_bytes) else None

    def _keep(self, number: int, content: bytes) -> None:
        path = self._path(number)
        if path is None or len(content) > most_bytes():
            return
        try:
            _make_room(path.parent, most_bytes() - len(content))
            with atomic_write(path, through_link=False) as file:
                file.write(content)
        except OSError as error:
            log.info("What was read from %s cannot be kept: %s", self.shown, error.strerror or error)


def open_url(url: str) -> BinaryIO:
    """Return an object behind a URL as a file without a name on this machine: all of it is read.

    Raises:
        OSError: it cannot be read. UserError: a package is missing.
    """
    cached_object = CachedObject(url)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        last = cached_object.count
        for number in range(0, last, TOGETHER):
            file.writelines(cached_object.blocks(number, min(last, number + TOGETHER) - 1))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return cast("BinaryIO", file)


def read_url(url: str, limit: int) -> bytes:
    """Return all bytes of an object behind a URL.

    Raises:
        OSError: it cannot be read, or has more than `limit` bytes. UserError: a package is missing.
    """
    cached_object = CachedObject(url)
    if cached_object.size > limit:
        raise RemoteError(f"it has more than {limit:,} bytes, the limit of such a file", url, "check the URL")
    return b"".join(cached_object.blocks(0, cached_object.count - 1))


@cache
def most_bytes() -> int:
    """Bytes that may be kept, from the environment.

    Raises:
        UserError: the variable is not a number.
    """
    setting = os.environ.get(SETTING, "").strip() or str(USUAL_MB)
    if not (setting.isascii() and setting.isdigit() and len(setting) < 10):
        message = f"the variable {SETTING} of the environment is '{setting}', not a number of megabytes"
        raise UserError("BadValue", message, hint=f"write {SETTING}={USUAL_MB}, or 0 to keep nothing")
    return int(setting) << 20


@cache
def _folder() -> Path | None:
    return private_folder("urls")


def _make_room(folder: Path, most: int) -> None:
    """Remove the least recently used blocks until the others have at most this number of bytes."""
    rows: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process has removed it
                about = entry.stat(follow_symlinks=False)
                rows.append((about.st_mtime, about.st_size, entry.path))
    held = sum(size for _, size, _ in rows)
    for _, size, path in sorted(rows):
        if held <= most:
            return
        with suppress(OSError):
            Path(path).unlink()
        held -= size
