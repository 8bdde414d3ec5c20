"""The one decorator of every Numba kernel; import this module only when a kernel is about to run.

Compiled kernels are kept in the user's cache folder, in a folder named after the sources: Numba looks at the file of a
kernel only, not at the kernels that it calls.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config

config: Any = numba_config
_OLD = 60 * 24 * 3600.0


@cache
def place_for_compiled_code() -> str:
    """The folder of compiled kernels, made if need be; without a writable home, one in the temporary folder."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return str(config.CACHE_DIR)
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted([*here.rglob("*_kernels.py"), here / "words.py", here / "jit.py"]):
        digest.update(source.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    for parent in (
        home / "cntkpy",
        Path(tempfile.gettempdir()) / f"cntkpy-{os.getuid() if os.name == 'posix' else ''}",
    ):
        place = parent / "kernels" / digest.hexdigest()[:16]
        try:
            if not place.is_dir():
                place.mkdir(parents=True)
                _remove_old(place.parent)
            if os.access(place, os.W_OK):
                os.utime(place)
                return str(place)
        except OSError:
            continue
    return str(config.CACHE_DIR)


def _remove_old(parent: Path) -> None:
    """Remove the kernels of versions not used for two months."""
    for folder in parent.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < time.time() - _OLD:
            shutil.rmtree(folder, ignore_errors=True)


def kernel(function: Callable[..., Any], *, nogil: bool = True, **options: Any) -> Callable[..., Any]:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock (unless not nogil)."""
    before = config.CACHE_DIR
    config.CACHE_DIR = place_for_compiled_code()
    try:
        return numba.njit(function, cache=True, nogil=nogil, error_model="numpy", **options)
    finally:
        config.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is always copied into its callers: for a few lines called once per number."""
    return kernel(function, forceinline=True)


def brief(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that keeps the interpreter lock: for what is done sooner than the lock is got back."""
    return kernel(function, nogil=False)
