"""The folders that systems have for caches and for temporary files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SHORT_TEMPORARY = Path("/tmp")
"""The temporary folder whose name is short, where `TMPDIR` is too long for the names of sockets."""


def user_caches() -> Path:
    """Return the folder of this user's caches.

    Raises:
        RuntimeError: the user has no home.
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    path = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return path if path.is_absolute() else Path.home() / ".cache"
