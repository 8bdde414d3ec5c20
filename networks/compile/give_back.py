"""Memory that compiling has used and freed goes back to the system: glibc keeps it, in the heap of each thread."""

import ctypes
import functools
import sys
from collections.abc import Callable


def give_back() -> None:
    """Have the allocator give back what is free; nothing is done where it has no such function."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """`malloc_trim`, which glibc has alone."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:  # a program without dynamic libraries
        return None
