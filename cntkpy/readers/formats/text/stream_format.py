"""One input of a text file."""

from __future__ import annotations

from typing import NamedTuple


class StreamFormat(NamedTuple):
    """One input of a text file: the stream's name, its name in the file, dimension, form."""

    name: str
    alias: str
    dim: int
    sparse: bool
    defines_mb_size: bool = False
