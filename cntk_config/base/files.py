"""Every input file is opened here, and every file that others read is written here.

An input is a regular file, or a pipe where the caller says so: devices and sockets are refused, a pipe to which nobody
writes does not hold the program, and a text that is read whole has a limit. A read that fails by an error that may
pass is tried again, see `patience`. A file is written under another name and
takes its place in one step, so that a reader never sees half of one.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from cntk_config.base.diagnostics import UserError
from cntk_config.base.patience import PatientFile, patiently

TEXT_LIMIT = 64 << 20
"""Most bytes of a text that a person writes: a configuration, a network, a script."""
LIST_LIMIT = 4 << 30
"""Most bytes of a list that is read whole: labels, words, names of files."""
PATIENCE = 10.0
"""Seconds to wait for the first bytes of a pipe."""
LONGEST_NAME = 230
"""Bytes of a name to which the ending of a temporary file can be added."""
_PIECE = 1 << 20
_NUL = "the name has a NUL character in it"
_KINDS = (
    (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISREG, "a file"),
)  # fmt: skip


def open_input(path: str | os.PathLike[str], *, pipe: bool = False, buffering: int = -1) -> BinaryIO:
    """Open a file for reading bytes; `/dev/null` counts as an empty file.

    Args:
        path: its name.
        pipe: whether it may be a pipe, which can be read once and has no size.
        buffering: as of `open`.

    Raises:
        OSError: there is none, it cannot be opened, or it is no regular file; `strerror` says what it is.
    """
    name = os.fspath(path)
    if "\0" in name:
        raise OSError(errno.EINVAL, _NUL, name.replace("\0", "\\0"))
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # opening a pipe does not wait for a writer
    descriptor = patiently(lambda: os.open(name, flags), f"The file {name} cannot be opened")
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if stat.S_ISFIFO(mode) and pipe:
            _wait_for_writer(descriptor, name)
            os.set_blocking(descriptor, True)
        elif not stat.S_ISREG(mode) and not _is_null(descriptor):
            raise OSError(errno.EINVAL, f"it is {_kind_of(mode)}, not a regular file", name)
        file = PatientFile(descriptor, name)
    except BaseException:
        os.close(descriptor)
        raise
    whole = io.BufferedReader(file, io.DEFAULT_BUFFER_SIZE if buffering < 0 else buffering) if buffering else file
    return cast("BinaryIO", whole)


def read_input(path: str | os.PathLike[str], limit: int = TEXT_LIMIT, *, pipe: bool = False) -> bytes:
    """All bytes of a file.

    Args:
        path: its name.
        limit: most bytes it may have.
        pipe: see `open_input`.

    Raises:
        OSError: see `open_input`; or it is larger than the limit.
    """
    with open_input(path, pipe=pipe) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            pieces = [file.read(size + 1)]  # one byte more tells that nothing follows
            size = len(pieces[0])
            while size <= limit and (more := file.read(_PIECE)):
                pieces.append(more)
                size += len(more)
            if size <= limit:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes, the limit of such a file", os.fspath(path))


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file or folder of this name; a name that cannot be one has none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def why_not_written(path: str | os.PathLike[str]) -> str:
    """Why no file can be written under a name: it belongs to a folder or a device, or cannot be one. Empty if it can.

    A folder that is missing, or where nothing may be written, is not looked at.
    """
    if "\0" in os.fspath(path):
        return _NUL
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, PermissionError):
        return "" if Path(path).name else "the name is missing"
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISDIR(mode):
        return "there is a folder of that name"
    return "" if stat.S_ISREG(mode) else f"it is {_kind_of(mode)}, not a regular file"


def why_no_folder(path: str | os.PathLike[str]) -> str:
    """Why the folder of a file cannot be made or written to, as far as can be told without trying; empty if it can."""
    if "\0" in os.fspath(path):
        return _NUL
    for folder in Path(path).absolute().parents:
        try:
            mode = folder.stat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{folder}: {error.strerror or error}"
        if not stat.S_ISDIR(mode):
            return f"{folder} is {_kind_of(mode)}, not a folder"
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in the folder {folder}"
    return ""


def _kind_of(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "something else")


def _is_null(descriptor: int) -> bool:
    """Whether an open file is `/dev/null`."""
    found = os.fstat(descriptor)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev


def _wait_for_writer(descriptor: int, name: str) -> None:
    """Wait until a pipe has bytes or its writer has closed it."""
    import select  # a pipe is rare

    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    end = time.monotonic() + PATIENCE
    while not poll.poll(max(0.0, 1000 * (end - time.monotonic()))):
        if time.monotonic() >= end:
            raise OSError(errno.EAGAIN, f"it is a pipe, and nobody wrote to it for {PATIENCE:.0f} s", name)


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
    handle, temporary = tempfile.mkstemp(prefix=f".{_short(target.name)}.", suffix=".tmp", dir=target.parent)
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


@contextlib.contextmanager
def output_file(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """`atomic_write` for what a user asked to be written: what goes wrong is an error that names the file.

    Raises:
        UserError: it cannot be written.
    """
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or error
        raise UserError("CannotWrite", f"{os.fspath(path)} cannot be written: {reason}") from None


def _short(name: str) -> str:
    """The name of a file, or its beginning where a longer one would be too long."""
    return name if len(os.fsencode(name)) <= LONGEST_NAME else name[:40]


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
