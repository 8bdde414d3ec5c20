"""Bytes of pictures: from files, or out of zip archives named `archive.zip@/inner/name`."""

from __future__ import annotations

import os
import threading
import zipfile
import zlib
from pathlib import Path

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.names import is_url
from cntkpy.cntk_config.base.retry import cure, with_retries
from cntkpy.readers.common.remote import RemoteBytes

from .decode import MOST_BYTES, PictureError

MAX_BASE64_BYTES = MOST_BYTES // 3 * 4 + 4096
"""Most bytes to be read at once: a picture as base64."""


def split(path: str) -> tuple[str, str] | None:
    """Archive and name of the member; None for a plain file. Backslashes of the member become slashes.

    >>> split("a.zip@/b/c.png"), split("a@2x.png")
    (('a.zip', 'b/c.png'), None)
    """
    places = [position for position in (path.find("@/"), path.find("@\\")) if position >= 0]
    if not places:
        return None
    position = min(places)
    return path[:position], path[position + 2 :].replace("\\", "/")


def read_file(path: str, begin: int = 0, count: int | None = None) -> bytes:
    """Bytes of a file, by default all of them.

    Raises:
        PictureError: they cannot be read, after five attempts if a disk or a network fails; or they are too many.
    """
    try:
        return _read(path, begin, count)
    except PictureError:
        raise
    except FileNotFoundError:
        raise PictureError("there is no such file", hint=_where(path)) from None
    except OSError as error:
        raise PictureError(error.strerror or str(error), hint=cure(error)) from None
    except ValueError as error:
        raise PictureError(str(error)) from None


def _where(path: str) -> str | None:
    """Return what to change in the name of a missing file, or a note on the folder in which it was searched."""
    if ".zip@" in path:
        return f"a member of an archive is written {path.replace('.zip@', '.zip@/', 1)}"
    if "\\" in path and os.sep == "/":
        return f"folders are divided by /: {path.replace(chr(92), '/')}"
    relative = "the path begins at the current directory; .../ in front stands for the folder of the map file"
    return None if Path(path).is_absolute() else relative


def _read(path: str, begin: int, count: int | None) -> bytes:
    with open_input(path, buffering=0) as file:
        size = os.fstat(file.fileno()).st_size if count is None else count
        if size > MAX_BASE64_BYTES:
            raise PictureError(f"the file has {size} bytes, more than the limit of {MAX_BASE64_BYTES}")
        if begin:
            file.seek(begin)
        data = file.read(size)
        while 0 < len(data) < size and (extra_data := file.read(size - len(data))):
            data += extra_data
        return data


def _zip(path: str) -> zipfile.ZipFile:
    """Return an archive; of one behind a URL only the members that are asked for are read."""
    if is_url(path):
        file = RemoteBytes(path).stream()
        return zipfile.ZipFile(file)
    open_input(path).close()
    return with_retries(lambda: zipfile.ZipFile(path), f"The archive {path} cannot be read")


class Archives:
    """Zip archives, each opened once. Reading is safe from several threads."""

    def __init__(self) -> None:
        self._open: dict[str, zipfile.ZipFile] = {}
        self._lock = threading.Lock()

    def has(self, archive: str, member: str) -> bool:
        """Return whether an archive has a member. Raises PictureError if the archive cannot be opened."""
        return member in self._archive(archive).NameToInfo

    def read(self, archive: str, member: str) -> bytes:
        """Return all bytes of a member."""
        opened = self._archive(archive)
        info = opened.NameToInfo.get(member)
        if info is None:
            raise PictureError(f"the archive {archive} has no '{member}'")
        if info.file_size > MOST_BYTES:
            raise PictureError(
                f"it would take {info.file_size} bytes unpacked, more than the limit of {MOST_BYTES}",
                hint="a picture of a few bytes that becomes so large is a zip bomb",
            )

        def read() -> bytes:
            with opened.open(info) as file:
                return file.read(info.file_size)

        try:
            return with_retries(read, f"The picture {member} of {archive} cannot be read")
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise PictureError(f"it cannot be unpacked: {error}") from None
        except OSError as error:
            raise PictureError(error.strerror or str(error), hint=cure(error)) from None

    def _archive(self, path: str) -> zipfile.ZipFile:
        with self._lock:
            if path not in self._open:
                try:
                    self._open[path] = _zip(path)
                except FileNotFoundError:
                    raise PictureError(f"there is no archive {path}", hint=_where(path)) from None
                except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
                    raise PictureError(f"the archive {path} cannot be opened: {error}") from None
            return self._open[path]

    def close(self) -> None:
        """Close all."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()
