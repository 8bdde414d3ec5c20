"""Chunks of a compressed text file that are parsed while its index is made, where that waits for unpacked bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .offsets import Offsets
from .parse import Parsed


class Kept(NamedTuple):
    """A parsed chunk; if there is something to report, also its text, and where its sequences begin there, int64[n]."""

    parsed: Parsed
    text: np.ndarray
    begins: np.ndarray
    nbytes: int


Parse = Callable[[np.ndarray, np.ndarray, np.ndarray], Kept | None]
"""Parses sequences that follow each other, given their offsets int64[n], sizes int64[n] and samples int32[n]; None if
they are not to be kept."""


class ParsedAhead:
    """The first chunks, until each is taken.

    Args:
        maximum: bytes of a chunk, see `index_kernels.form_chunks`.
        parse: see `Parse`; after a None there are no more chunks.
    """

    def __init__(self, maximum: int, parse: Parse) -> None:
        self._maximum, self._parse = max(1, maximum), parse
        self._chunks: dict[int, Kept] = {}
        self._done = 0
        self._first = 0
        self._ended = False

    def more(self, offsets: Offsets, samples: np.ndarray) -> bool:
        """Parse the next chunk if it is complete; whether it was. See `index.Meanwhile`."""
        if self._ended or len(offsets) - 1 <= self._first:
            return False
        begin = self._first
        # A chunk ends before the first sequence whose end lies too far from its begin.
        fitting = offsets.searchsorted(int(offsets[begin]) + self._maximum) - 1 - begin
        end = begin + max(1, fitting)
        if fitting == len(offsets) - 1 - begin:
            return False
        counts = samples[begin:end]
        parsed = None
        if counts.all():  # the index leaves out sequences without samples
            parsed = self._parse(offsets[begin:end], np.diff(offsets[begin : end + 1]), counts.astype(np.int32))
        if parsed is None:
            self._ended = True
            return False
        self._chunks[self._done] = parsed
        self._done, self._first = self._done + 1, end
        return True

    def take(self, chunk: int) -> Kept | None:
        """Return a chunk that was parsed ahead; None if it was not, or was taken before."""
        return self._chunks.pop(chunk, None)
