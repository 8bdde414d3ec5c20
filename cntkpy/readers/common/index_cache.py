"""The index of a text file kept next to it, so that the next run need not read the whole file first.

The cache is an .npz archive of the index's arrays with a description of the data file: size, times of change, and a
checksum over blocks spread evenly over it. The archive has a checksum for each array. A cache that belongs to another
state of the file is rebuilt; so is a damaged one, with a warning. An index that cannot be written is not kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.common.beginnings import current

log = logging.getLogger("cntkpy.readers")
VERSION = 7
BLOCKS, BLOCK = 32, 64 << 10
Arrays = dict[str, np.ndarray]
Details = dict[str, Any]


def cache_name(path: str, main: str, skip_ids: bool, named: bool, hashed: bool) -> str:
    """CNTK's name of the cache, but for the version."""
    return f"{path}.{main or '_'}.{skip_ids:d}.{named:d}.{hashed:d}.v{VERSION}.cache"


def describe(path: str) -> dict[str, Any]:
    """Size, time of change and checksum of a data file."""
    with open_input(path) as file:
        stat = os.fstat(file.fileno())
        digest = hashlib.blake2b(digest_size=16)
        last = max(0, stat.st_size - BLOCK)
        for position in np.unique(np.linspace(0, last, BLOCKS).astype(np.int64)).tolist():
            file.seek(position)
            digest.update(file.read(BLOCK))
    return {
        "version": VERSION,
        "order": sys.byteorder,
        "size": stat.st_size,
        "time": stat.st_mtime_ns,
        "changed": stat.st_ctime_ns,  # also moves where the time of change was set back
        "checksum": digest.hexdigest(),
    }


def load(cache: str, path: str, is_sound: Callable[[Arrays, Details, int], bool]) -> tuple[Arrays, Details] | None:
    """Return the arrays of a cached index and what was kept with them; None if there is none that fits the file.

    Args:
        cache: the file with the index.
        path: the data file.
        is_sound: whether arrays and what was kept with them can be the index of a data file of so many bytes; it may
            raise a KeyError.
    """
    try:
        file = open_input(cache)
    except OSError:
        return None
    try:
        with file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
            if not all(isinstance(value, np.ndarray) for value in arrays.values()):  # members of other kinds are bytes
                raise ValueError("no array")
            about = json.loads(arrays.pop("about").tobytes())
            if about["file"] != describe(path):
                return None
            if is_sound(arrays, about["more"], about["file"]["size"]):
                return arrays, about["more"]
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        RuntimeError,
        MemoryError,
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
    ):
        pass
    log.warning("The index kept in %s is damaged. Rebuilding it.", cache)
    return None


def save(cache: str, path: str, arrays: Arrays, details: Details) -> None:
    """Keep an index, but not one of the beginning of a file."""
    if current() is not None:
        return
    try:
        about = json.dumps({"file": describe(path), "more": details})
        with atomic_write(cache, through_link=False) as file:
            np.savez(file, about=np.frombuffer(about.encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    except OSError as error:
        log.info("The index of %s cannot be kept: %s", path, error)
