"""Decorator of every Numba kernel; import this module only when a kernel is about to run.

Kernels do not check indices, so every kernel says in its docstring why those that come from data are in range. With
the environment variable NUMBA_BOUNDSCHECK=1 they are compiled with checks, and not kept: Numba's cache does not tell
the two apart. Addresses (see `words`) are not checked even then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cntkpy.readers.kernels.kept import place_for_compiled_code
from cntkpy.readers.kernels.numba_modules import config, numba

F = TypeVar("F", bound=Callable[..., Any])


def keeps_kernels() -> bool:
    """Return whether what is compiled now is kept."""
    return place_for_compiled_code() is not None and not config.BOUNDSCHECK


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
