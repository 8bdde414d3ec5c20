"""The one decorator of every Numba kernel; import this module only when a kernel is about to run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _place_for_compiled_code() -> None:
    """Numba writes compiled kernels beside the sources, else under the user's cache folder; if neither is writable
    (a system package run without a home), use the temporary folder so that a read-only home is no error."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    here = Path(__file__).parent
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    if os.access(here, os.W_OK):
        return
    try:
        (home / "cntkpy" / "numba").mkdir(parents=True, exist_ok=True)
        place = home / "cntkpy" / "numba"
    except OSError:
        place = Path(tempfile.gettempdir()) / f"cntkpy-numba-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    os.environ["NUMBA_CACHE_DIR"] = str(place)


_place_for_compiled_code()

import numba  # noqa: E402


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock."""
    return numba.njit(function, cache=True, nogil=True, error_model="numpy")


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is always copied into its callers: for a few lines called once per number."""
    return numba.njit(function, cache=True, nogil=True, error_model="numpy", forceinline=True)
