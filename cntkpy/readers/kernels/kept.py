"""The folder in which compiled kernels are kept; Numba is not imported to look for it.

It is named after the sources: Numba looks at the file of a kernel only, not at the kernels that it calls.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from cntkpy.cntk_config.base.cache_folders import is_private, private_folder

log = logging.getLogger("cntkpy.readers")

_MAX_AGE_SECONDS = 60 * 24 * 3600.0


def are_kept() -> bool:
    """Return whether a process has kept kernels of this version."""
    if value := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(value).is_dir()
    parent = private_folder("kernels")
    return parent is not None and (parent / _name()).is_dir()


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
    folder = private_folder("kernels", _name())
    if folder is None:
        return None
    with suppress(OSError):
        os.utime(folder)
        _remove_old(folder.parent)
    return str(folder)


@cache
def _name() -> str:
    """Return the name of the folder of this version."""
    here = Path(__file__).parents[1]
    digest = hashlib.sha256(version("numba").encode())
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
    return digest.hexdigest()[:16]


def _made(folder: Path) -> Path:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _remove_old(parent: Path) -> None:
    """Remove the kernels of versions not used for two months."""
    for folder in parent.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < time.time() - _MAX_AGE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
