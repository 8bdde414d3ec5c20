"""The folders of caches, whose files are run when they are read back: nobody else may be able to write there.

Compiled kernels, compiled programs and parsing tables are machine code or pickles: who can plant one of them runs what
he likes as the user. So every cache asks here for its folder, and goes without when there is none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from cntkpy.cntk_config.base.systems import folders, users


def private_folder(*parts: str) -> Path | None:
    """Return the folder `cntkpy/PARTS` of the user's caches, made if need be; without a home, one in the temporary
    folder.

    A folder that was made by a version which left it readable for others is closed.

    Returns:
        A folder without links in its path, or None where there is none that only this user can write to.
    """
    return _first(_places(), parts)


LONGEST_PATH = 78
"""Bytes of a folder in which sockets have names of up to 24 characters: systems allow 104 and more for the whole."""


def socket_folder() -> Path | None:
    """Return a folder for sockets of this user, made if need be, see `private_folder`; None where there can be none.

    It is in the temporary folder rather than with the caches, which several machines may share.
    """
    from cntkpy.cntk_config.base.systems import sockets

    if not sockets.have_paths():
        return None
    caches, temporary = list(_places())[:-1], list(_places())[-1]
    for place in (temporary, (folders.SHORT_TEMPORARY, temporary[1]), *caches):
        folder = _first([place], ("run",))
        if folder is not None and len(os.fsencode(folder)) <= LONGEST_PATH:
            return folder
    return None


def _first(places: Iterable[tuple[Path, str]], parts: tuple[str, ...]) -> Path | None:
    """Return the folder in the first of several places where there can be one that only this user can write to."""
    for base, name in places:
        try:
            base.mkdir(parents=True, exist_ok=True)
            folder = base.resolve()
            if not _is_guarded(folder):
                continue
            for part in (name, *parts):
                folder = folder / part
                _open(folder)
        except (OSError, RuntimeError):
            continue
        return folder
    return None


def is_private(folder: Path) -> bool:
    """Return whether a folder is the user's and nobody else can write to it, or put another one in its place."""
    own_number = users.own_number()
    if own_number is None:
        return folder.is_dir()
    try:
        real = folder.resolve(strict=True)
        status = real.lstat()
    except (OSError, RuntimeError):
        return False
    return (
        stat.S_ISDIR(status.st_mode) and status.st_uid == own_number and not _others_write(status) and _is_guarded(real)
    )


def _places() -> Iterator[tuple[Path, str]]:
    """Return the possible parents of caches, with the folder name in each."""
    with suppress(RuntimeError):  # no home is known
        yield folders.user_caches(), "cntkpy"
    import tempfile  # hardly ever needed

    own_number = users.own_number()
    yield Path(tempfile.gettempdir()), "cntkpy" if own_number is None else f"cntkpy-{own_number}"


def _open(folder: Path) -> None:
    """Make a folder for this user only, or see that it is one.

    Raises:
        OSError: it cannot be made, cannot be written to, or somebody else may have written to it.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise
        own_number = users.own_number()
        if own_number is not None:
            if status.st_uid != own_number or _others_write(status):
                raise
            if stat.S_IMODE(status.st_mode) & 0o077:
                folder.chmod(0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise


def _is_guarded(folder: Path) -> bool:
    """Return whether nobody else can rename a folder inside this one, or this one itself."""
    own_number = users.own_number()
    if own_number is None:
        return True
    for parent in (folder, *folder.parents):
        status = parent.stat()
        if status.st_uid not in (0, users.NOBODY, own_number):
            return False
        if _others_write(status) and not status.st_mode & stat.S_ISVTX:
            return False
    return True


def _others_write(status: os.stat_result) -> bool:
    """Return whether others may write to a folder; a group that has the user's own number is his alone."""
    of_group = status.st_mode & stat.S_IWGRP and not status.st_gid == status.st_uid == users.own_number()
    return bool(of_group or status.st_mode & stat.S_IWOTH)
