"""Numbers of loading threads and of cores."""

from __future__ import annotations

import os


def threads_for(parallel: bool) -> int:
    """Threads that load: one, or one per core."""
    return max(1, os.cpu_count() or 1) if parallel else 1
