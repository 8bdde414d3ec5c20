"""One training at a time writes the files of a model: a lock next to it, and the files that a killed run left there.

The lock is a file `.NAME.lock` with the machine and the process in it, held by the operating system: it ends
with the process however that ends. Where the file system knows no such locks, what the file says decides.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems import locks
from cntkpy.cntk_config.base.systems.processes import start_of
from cntkpy.cntk_config.base.writing import NotOurFile, open_in_place, shown

log = logging.getLogger("cntkpy.trainers")
_EPOCH = r"(\.\d+)?(\.ckp|\.partial)?"
_TEMPORARY = r"\.[a-z0-9_]{8}\.tmp"


@contextlib.contextmanager
def only_run_of(model_path: str) -> Generator[None]:
    """Hold the lock of a model, and remove the temporary files of runs that were killed.

    Where the lock cannot be written, because the folder is read-only or the disk is full, there is none.

    Raises:
        UserError: another run holds it; or what is there is no regular file of this user, or a link leads to it.
    """
    model = Path(model_path)
    lock = model.with_name(f".{model.name}.lock")
    descriptor = None
    try:
        model.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _hold(lock, model_path)
        _tidy(model)
    except NotOurFile as error:
        message = f"the lock {shown(lock)} of the model {shown(model_path)} cannot be held: {error.strerror}"
        raise UserError("CannotWrite", message, hint="remove it, or give this run another modelPath") from None
    except UserError:  # somebody else holds it
        raise
    except (OSError, ValueError) as error:
        log.debug("There is no lock %s: %s", lock, error)
    try:
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                locks.remove_locked(descriptor, lock)


def _hold(lock: Path, model_path: str) -> int:
    """Create the lock, or take over one that nobody holds; return its open file."""
    while True:
        descriptor = open_in_place(lock)
        try:
            holder = _holder(descriptor)
            if not _taken(descriptor, holder):
                raise _in_use(model_path, lock, holder)
            if _is_at(descriptor, lock):  # else its holder has removed it meanwhile
                if holder.get("host") not in (None, platform.node()):
                    log.warning(
                        "The lock %s was left behind by process %s on %s; it is taken over.",
                        lock,
                        holder.get("process"),
                        holder["host"],
                    )
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, json.dumps(_own()).encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _taken(descriptor: int, holder: dict[str, object]) -> bool:
    """Return whether the lock is ours now."""
    taken = locks.lock(descriptor)
    if taken is not None:
        return taken
    return not (holder and holder.get("host") == platform.node() and _is_running(holder))


def _is_running(holder: dict[str, object]) -> bool:
    process = holder.get("process")
    if not isinstance(process, int) or process == os.getpid():
        return False
    started = start_of(process)
    return started is not None and started == holder.get("started")


def _own() -> dict[str, object]:
    return {
        "host": platform.node(),
        "process": os.getpid(),
        "started": start_of(os.getpid()),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _holder(descriptor: int) -> dict[str, object]:
    """Return the contents of a lock; nothing, if it cannot be read."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = json.loads(os.read(descriptor, 4096))
    except ValueError:
        return {}
    return cast("dict[str, Any]", holder) if isinstance(holder, dict) else {}


def _is_at(descriptor: int, lock: Path) -> bool:
    """Return whether the open file is the one that is there."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def _in_use(model_path: str, lock: Path, holder: dict[str, object]) -> UserError:
    who = ""
    if holder:
        who = f": process {holder.get('process')} on {holder.get('host')}, since {holder.get('since')}"
    return UserError(
        "ModelInUse",
        f"another run is training {model_path}{who}",
        hint=f"wait for it, stop it, or give this run another modelPath; the lock is {lock}",
    )


def _tidy(model: Path) -> None:
    """Remove the temporary files of runs that were killed while they saved. Only the holder of the lock may."""
    ours = re.compile(rf"\.{re.escape(model.name)}{_EPOCH}{_TEMPORARY}")
    for path in model.parent.iterdir():
        if path.name.startswith(".") and ours.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()
