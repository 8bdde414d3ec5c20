"""Lists: files of lines, one for an utterance, a state or a file; and lists of what they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from cntkpy.cntk_config.base.files import LIST_LIMIT
from cntkpy.readers.common.packed import read_data
from cntkpy.readers.errors import DataError

T = TypeVar("T")


def read_lines(path: str, kind: str) -> list[tuple[int, str]]:
    """Return the lines of a list with their numbers (from 1), without blank ones."""
    try:
        content = read_data(path, LIST_LIMIT)
    except OSError as error:
        raise DataError(f"Failed to open {kind}: {path}: {error.strerror or error}", path=path) from None
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [(i, line.strip(" \t")) for i, line in enumerate(text.split("\n"), 1) if line.strip(" \t")]


def picked(items: Sequence[T], which: np.ndarray) -> list[T]:
    """Return the items of these numbers, int64[n]."""
    numbers: list[int] = which.tolist()
    return [items[number] for number in numbers]
