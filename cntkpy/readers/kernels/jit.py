"""Decorator of every Numba kernel; import this module only when a kernel is about to run.

Compiled kernels are kept in the user's cache folder, in a folder named after the sources: Numba looks at the file of a
kernel only, not at the kernels that it calls.

Kernels do not check indices, so every kernel says in its docstring why those that come from data are in range. With
the environment variable NUMBA_BOUNDSCHECK=1 they are compiled with checks, and not kept: Numba's cache does not tell
the two apart. Addresses (see `words`) are not checked even then.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from cntkpy.cntk_config.base.cache_folders import is_private, private_folder
from cntkpy.readers.kernels.numba_modules import config, numba

log = logging.getLogger("cntkpy.readers")

F = TypeVar("F", bound=Callable[..., Any])
_MAX_AGE_SECONDS = 60 * 24 * 3600.0


@cache
def place_for_compiled_code() -> str | None:
    """Return the folder of compiled kernels, made if need be; None: none are kept. See
    `cntkpy.cntk_config.base.cache_folders`."""
    value = os.environ.get("NUMBA_CACHE_DIR")
    if value:
        if is_private(_made(Path(value))):
            return value
        log.warning("WARNING: others may write to NUMBA_CACHE_DIR=%s: no compiled kernels are kept there.", value)
        return None
    here = Path(__file__).parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    other_files = (
        "kernels/words.py",
        "kernels/jit.py",
        "kernels/text_codes.py",
        "formats/text/events.py",
        "formats/text/tables.py",
        "formats/language/codes.py",
        "formats/htk/mlf_codes.py",
    )
    for source in sorted([*here.rglob("*_kernels.py"), *(here / name for name in other_files)]):
        digest.update(source.read_bytes())
    folder = private_folder("kernels", digest.hexdigest()[:16])
    if folder is None:
        return None
    with suppress(OSError):
        os.utime(folder)
        _remove_old(folder.parent)
    return str(folder)


def keeps_kernels() -> bool:
    """Return whether what is compiled now is kept."""
    return place_for_compiled_code() is not None and not config.BOUNDSCHECK


def _made(folder: Path) -> Path:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _remove_old(parent: Path) -> None:
    """Remove the kernels of versions not used for two months."""
    for folder in parent.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < time.time() - _MAX_AGE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def kernel(function: F, *, nogil: bool = True, **options: Any) -> F:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock (unless not nogil)."""
    previous_cache_dir, place = config.CACHE_DIR, place_for_compiled_code()
    config.CACHE_DIR = place or previous_cache_dir
    try:
        compiled: Any = numba.njit(function, cache=keeps_kernels(), nogil=nogil, error_model="numpy", **options)
        return compiled
    finally:
        config.CACHE_DIR = previous_cache_dir


def part(function: F, **options: Any) -> F:
    """Return a kernel that only kernels call: a way into it from Python would take a fifth of compiling it."""
    return kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


def inlined(function: F) -> F:
    """Return a part that is always copied into its callers: for a few lines called once per number."""
    return part(function, forceinline=True)


def brief(function: F) -> F:
    """Return a kernel that keeps the interpreter lock: for what is done sooner than the lock is got back."""
    return kernel(function, nogil=False)
