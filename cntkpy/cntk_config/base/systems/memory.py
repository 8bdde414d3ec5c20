"""Memory of this machine and of this process. Windows is not asked."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any


def of_machine() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def of_process() -> int | None:
    """Bytes of memory of this process now; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return None


def peak_of_process() -> int | None:
    """Bytes of memory that this process has had at most; None where the system does not say."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def release_freed() -> None:
    """Give memory that was freed back to the system, where the C library keeps it otherwise: that of glibc."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """Return `malloc_trim` of the C library; None: it has none."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
