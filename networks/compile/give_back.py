"""Memory that compiling has used goes back to the system.

That is what it has freed, which glibc keeps in the heap of each thread, and where much memory is needed next, the code
of the compiler: pages of a file that are read again as soon as they are needed, from where the system keeps them.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DONTNEED = 4
"""`MADV_DONTNEED` of Linux: pages of a file that nobody has written to are read again when they are touched."""

MUCH = 64 << 20
"""Bytes of a program's arguments from which on the code of the compiler, some 60 MiB, does not stay beside them."""


def give_back(needed: int = 0) -> None:
    """Have the system take back what is free; nothing is done where there is no such function.

    Args:
        needed: bytes of the arguments of the program that was compiled.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)
    advise = _function("madvise") if needed >= MUCH else None
    if advise is not None:
        for start, size in _compiler():
            advise(ctypes.c_void_p(start), ctypes.c_size_t(size), DONTNEED)


@functools.cache
def _function(name: str) -> Callable[..., Any] | None:
    """A function of the C library; `malloc_trim` has glibc alone."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except OSError:  # a program without dynamic libraries
        return None


def _compiler() -> list[tuple[int, int]]:
    """Where the code of JAX's libraries lies now, with its size: mapped files that nobody writes to."""
    spec = find_spec("jaxlib")
    if spec is None or spec.origin is None:
        return []
    found: list[tuple[int, int]] = []
    folder = f"{Path(spec.origin).resolve().parent}/"
    try:
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    for line in mapped.splitlines():
        place, rights, *_, path = line.split(maxsplit=5)
        if rights == "r-xp" and path.startswith(folder):
            start, end = (int(edge, 16) for edge in place.split("-"))
            found.append((start, end - start))
    return found
