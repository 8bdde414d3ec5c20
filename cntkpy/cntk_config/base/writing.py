"""Every file that others read is written here.

Most files are written under another name and take their place in one step (`atomic_write`), so that a reader never
sees half of one. What has to be written in place, such as a log, is opened here as well (`open_in_place`): it is a
regular file of this user that is reached through no link, so that nobody can have another file overwritten. See
docs/security.md. A test finds whatever is opened for writing elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, TextIO

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.names import checked_name, is_url, kind_of, public_name
from cntkpy.cntk_config.base.systems import users
from cntkpy.cntk_config.base.systems.files import (
    DEVICE,
    OWN_FILE_FLAGS,
    WRITE_FLAGS,
    once_free,
    sync_folder,
    system_name,
)

LONGEST_NAME = 230
"""Bytes of a name to which the ending of a temporary file can be added."""


class NotOurFile(OSError):
    """Error: a name is not a regular file of this user, or a link leads to it; `strerror` says which."""


def why_not_written(path: str | os.PathLike[str]) -> str:
    """Why no file can be written under a name: it belongs to a folder or a device, or cannot be one. Empty if it can.

    A folder that is missing, or where nothing may be written, is not looked at.
    """
    if is_url(path):  # the server says it
        return ""
    try:
        mode = Path(checked_name(path)).stat().st_mode
    except (FileNotFoundError, PermissionError):
        return "" if Path(path).name else "the name is missing"
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISDIR(mode):
        return "there is a folder of that name"
    return "" if stat.S_ISREG(mode) else f"it is {kind_of(mode)}, not a regular file"


def why_no_folder(path: str | os.PathLike[str]) -> str:
    """Why the folder of a file cannot be made or written to, as far as is known without trying; empty if it can.

    A name that no file can have has no folder, either.
    """
    name = os.fspath(path)
    if is_url(name):
        return ""
    try:
        Path(checked_name(name)).lstat()
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENAMETOOLONG):
            return error.strerror or str(error)
    for folder in Path(name).absolute().parents:
        try:
            mode = folder.stat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{folder}: {error.strerror or error}"
        if not stat.S_ISDIR(mode):
            return f"{folder} is {kind_of(mode)}, not a folder"
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in the folder {folder}"
    return ""


# ---- in one step

_temporaries: set[str] = set()


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "wb", *, through_link: bool = True, durable: bool = True
) -> Generator[IO[Any], None, None]:
    """Open a temporary file in the folder of `path`; on success it takes the place of `path` in one step.

    Missing parent folders are made. When the body fails, or the disk is full, `path` is left as it was and the
    temporary file is removed. Text modes write UTF-8 and keep `\\n`.

    Args:
        path: the file; or a URL, where the object appears when all of it is written.
        mode: as of `open`.
        through_link: a link under this name stays, and the file that it leads to is replaced; for names that users
            give. False: the link itself is replaced.
        durable: the data are on the disk (fsync) before the file takes its place.

    Raises:
        OSError: the name cannot be that of a file, or the file cannot be written; `strerror` says why.
        NotOurFile: a link under this name was made by another user.
        UserError: a package that writes to the URL is missing.
    """
    if is_url(path):
        with _uploaded(os.fspath(path), mode) as file:
            yield file
        return
    if why := why_not_written(path):
        raise OSError(errno.EINVAL, why, os.fspath(path))
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if through_link:
        target = target_of(target)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    import tempfile

    with _named(path):
        handle, temporary = tempfile.mkstemp(prefix=f".{_short(target.name)}.", suffix=".tmp", dir=target.parent)
    _temporaries.add(temporary)
    try:
        with open(handle, mode, encoding=encoding, newline=newline) as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        with _named(path):
            Path(temporary).chmod(_usual_mode(target))
            once_free(lambda: Path(temporary).replace(target))
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    finally:
        _temporaries.discard(temporary)
    if durable:
        sync_folder(target.parent)


@contextlib.contextmanager
def _uploaded(url: str, mode: str) -> Generator[IO[Any], None, None]:
    """A temporary file of this machine whose content is written to a URL on success."""
    from cntkpy.cntk_config.base.remote import local_name, upload

    name = local_name(url)
    if name is not None:
        with atomic_write(name, mode) as file:
            yield file
        return
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cntkpy-") as folder:
        handle = os.open(Path(folder, "object"), os.O_RDWR | os.O_CREAT | WRITE_FLAGS, 0o600)
        with open(handle, mode, encoding=encoding, newline=newline) as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
        upload(str(Path(folder, "object")), url)


def remove_temporaries() -> None:
    """Remove the temporary files that are being written; the process is to end without another clean-up."""
    for temporary in list(_temporaries):
        with contextlib.suppress(OSError):
            Path(temporary).unlink()


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
        raise UserError("CannotWrite", not_written(error, path)) from None


@contextlib.contextmanager
def _named(path: str | os.PathLike[str]) -> Generator[None, None, None]:
    """Errors have the name of the file that is written, not that of the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def not_written(error: OSError, path: str | os.PathLike[str]) -> str:
    """Return the message about a file that cannot be written; the error names the file if it can.

    Args:
        error: what `atomic_write` raised, or a write to its file.
        path: the file that it is if the error does not say.
    """
    return f"{shown(error.filename or path)} cannot be written: {error.strerror or error}"


def shown(path: str | os.PathLike[str]) -> str:
    """Return the name of a file in a message: a line break or a NUL in it is written as in Python."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in public_name(path))


def target_of(path: Path) -> Path:
    """Return the file that a link leads to; a path that is no link is returned as it is.

    Raises:
        NotOurFile: the link belongs to somebody else than this user, the owner of its folder, and the system.
    """
    if not path.is_symlink():
        return path
    if not _is_trusted(path.lstat(), path.parent):
        raise NotOurFile(errno.EPERM, "it is a link that another user has made", str(path))
    return path.resolve()


def _short(name: str) -> str:
    """Return the name of a file, or its beginning where a longer one would be too long."""
    return name if len(os.fsencode(name)) <= LONGEST_NAME else name[:40]


def _usual_mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or what a plain `open` would give a new one."""
    with contextlib.suppress(OSError):
        st_mode = target.lstat().st_mode
        if stat.S_ISREG(st_mode):
            return st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# ---- in place


def open_in_place(path: str | os.PathLike[str], *, append: bool = False) -> int:
    """Open a file for reading and writing, and create it if it is missing; what is in it stays.

    Args:
        path: its name. Its parent folders may be links, the file itself may not. The names of devices are opened as
            they are.
        append: every write goes to the end, and nothing is read.

    Returns:
        The descriptor.

    Raises:
        NotOurFile: there is a link, a file with a second name (a hard link), a folder, a pipe, a device or a socket of
            that name, or a file of another user.
        OSError: it cannot be opened.
    """
    name = checked_name(path)
    how = os.O_WRONLY | os.O_APPEND if append else os.O_RDWR
    how |= WRITE_FLAGS
    if DEVICE.fullmatch(name):
        return os.open(system_name(name), how)
    file = Path(name)
    how |= OWN_FILE_FLAGS
    while True:
        with contextlib.suppress(FileExistsError):
            return os.open(name, how | os.O_CREAT | os.O_EXCL, 0o666)
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            return _open_existing(file, how)


def why_not_in_place(path: str | os.PathLike[str]) -> str:
    """Why `open_in_place` would refuse what is under a name; empty if it would not, or there is nothing yet."""
    try:
        name = checked_name(path)
        if not DEVICE.fullmatch(name):
            _check(Path(name).lstat(), Path(name))
    except (FileNotFoundError, PermissionError):
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _open_existing(file: Path, how: int) -> int:
    """Open a file that may be written in place, see `open_in_place`."""
    _check(file.lstat(), file)  # opening a device or a pipe may already change something
    try:
        descriptor = os.open(file, how)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotOurFile(errno.ELOOP, "it is a link", str(file)) from None
    try:
        _check(os.fstat(descriptor), file)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_text_in_place(path: str | os.PathLike[str], errors: str = "strict") -> TextIO:
    """Open a text file of UTF-8 to whose end lines are written at once; what is in it stays, see `empty`.

    Args:
        path, see `open_in_place`, which has the errors.
        errors: what becomes of characters that cannot be encoded, as of `open`.
    """
    descriptor = open_in_place(path, append=True)
    return open(descriptor, "a", encoding="utf-8", errors=errors, buffering=1)  # noqa: PTH123 - a descriptor


def empty(file: TextIO) -> None:
    """Truncate a file; leave a device or a pipe alone."""
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.truncate(0)


def _check(status: os.stat_result, file: Path) -> None:
    """Check that a file may be written in place.

    Raises:
        NotOurFile: it may not.
    """
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        raise NotOurFile(errno.ELOOP, "it is a link", str(file))
    if not stat.S_ISREG(mode):
        reason = "a folder" if stat.S_ISDIR(mode) else kind_of(mode)
        raise NotOurFile(errno.EINVAL, f"it is {reason}, not a regular file", str(file))
    if status.st_nlink > 1:
        raise NotOurFile(errno.EMLINK, "the file has a second name (a hard link)", str(file))
    if not _is_trusted(status, file.parent):
        raise NotOurFile(errno.EPERM, "the file belongs to another user", str(file))


def _is_trusted(status: os.stat_result, folder: Path) -> bool:
    """Return whether something in a folder belongs to this user, to the owner of the folder, or to the system."""
    own_number = users.own_number()
    return own_number is None or status.st_uid in (own_number, 0, users.NOBODY) or status.st_uid == folder.stat().st_uid
