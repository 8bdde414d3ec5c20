"""Every input file is opened here.

An input is a regular file, or a pipe where the caller says so: devices and sockets are refused, a pipe to which nobody
writes does not block the program, and a text that is read whole has a limit. What a URL names is read whole, see
`url_cache`. Reads that fail with a transient error are retried, see `retry`. Files are written by `writing`.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from cntkpy.cntk_config.base.names import Url, checked_name, is_url, kind_of
from cntkpy.cntk_config.base.retry import RetryingFile, with_retries
from cntkpy.cntk_config.base.systems.files import READ_FLAGS, system_name, wait_for_bytes

TEXT_LIMIT = 64 << 20
"""Most bytes of a text that a person writes: a configuration, a network, a script."""
LIST_LIMIT = 4 << 30
"""Most bytes of a list that is read whole: labels, words, names of files."""
PIPE_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for the first bytes of a pipe."""
_READ_BYTES = 1 << 20


def open_input(path: str | os.PathLike[str], *, pipe: bool = False, buffering: int = -1) -> BinaryIO:
    """Open a file for reading bytes; `/dev/null` counts as an empty file.

    Args:
        path: its name, or a URL.
        pipe: whether it may be a pipe, which can be read once and has no size.
        buffering: as of `open`.

    Raises:
        OSError: there is none, it cannot be opened, or it is not a regular file; `strerror` says what it is.
        UserError: a package that reads the URL is missing.
    """
    if is_url(path):
        from cntkpy.cntk_config.base.url_cache import open_url

        return open_url(os.fspath(path))
    name = checked_name(path)
    try:
        descriptor = with_retries(lambda: os.open(system_name(name), READ_FLAGS), f"The file {name} cannot be opened")
    except PermissionError:
        if is_folder(name):  # which Windows does not open
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name) from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if stat.S_ISFIFO(mode) and pipe:
            _wait_for_writer(descriptor, name)
            os.set_blocking(descriptor, True)
        elif not stat.S_ISREG(mode) and not _is_null(descriptor):
            raise OSError(errno.EINVAL, f"it is {kind_of(mode)}, not a regular file", name)
        file = RetryingFile(descriptor, name)
    except BaseException:
        os.close(descriptor)
        raise
    whole = io.BufferedReader(file, io.DEFAULT_BUFFER_SIZE if buffering < 0 else buffering) if buffering else file
    return cast("BinaryIO", whole)


def read_input(path: str | os.PathLike[str], limit: int = TEXT_LIMIT, *, pipe: bool = False) -> bytes:
    """Return all bytes of a file.

    Args:
        path: its name, or a URL.
        limit: most bytes it may have.
        pipe: see `open_input`.

    Raises:
        OSError: see `open_input`; or it is larger than the limit.
        UserError: see `open_input`.
    """
    if is_url(path):
        from cntkpy.cntk_config.base.url_cache import read_url

        return read_url(os.fspath(path), limit)
    with open_input(path, pipe=pipe) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            pieces = [file.read(size + 1)]  # one byte more tells that nothing follows
            size = len(pieces[0])
            while size <= limit and (extra_data := file.read(_READ_BYTES)):
                pieces.append(extra_data)
                size += len(extra_data)
            if size <= limit:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes, the limit of such a file", os.fspath(path))


def read_start(path: str | os.PathLike[str], count: int) -> bytes:
    """Return the first bytes of a file or of what a URL names, fewer if it is shorter; errors as of `open_input`."""
    if is_url(path):
        from cntkpy.cntk_config.base.remote import RemoteObject

        return RemoteObject(os.fspath(path)).start(count)
    with open_input(path) as file:
        return file.read(count)


def file_or_url(path: str | os.PathLike[str]) -> Path | Url:
    """Return the path or URL of a name, for `open_input`, `atomic_write` and messages."""
    return Url(os.fspath(path)) if is_url(path) else Path(path)


def _answer(path: str | os.PathLike[str], question: Callable[[Path], bool]) -> bool:
    try:
        return question(Path(path))
    except (OSError, ValueError):
        return False


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file or folder of this name; a name that cannot be one has none."""
    return _answer(path, Path.exists)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a regular file of this name; a name that cannot be one has none."""
    return _answer(path, Path.is_file)


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a folder of this name; a name that cannot be one has none."""
    return _answer(path, Path.is_dir)


def _is_null(descriptor: int) -> bool:
    """Return whether an open file is `/dev/null`."""
    status = os.fstat(descriptor)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == Path(os.devnull).stat().st_rdev


def _wait_for_writer(descriptor: int, name: str) -> None:
    """Wait until a pipe has bytes or its writer has closed it."""
    if not wait_for_bytes(descriptor, PIPE_TIMEOUT_SECONDS):
        raise OSError(errno.EAGAIN, f"it is a pipe, and nobody wrote to it for {PIPE_TIMEOUT_SECONDS:.0f} s", name)
