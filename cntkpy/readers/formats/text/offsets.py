"""Places in a file in ascending order, in four bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_LOW = 2**32 - 1
_SOME = 1 << 16
"""Places looked at at once: they stay in the cache of the processor."""


@dataclass(frozen=True, eq=False)
class Offsets:
    """Ascending byte offsets; an index gives them as int64.

    low: uint32[n], the offsets modulo 2^32; turns: int64[k], the number of the first offset of at least 2^32, of at
    least 2 * 2^32, ... (n if there is none).
    """

    low: np.ndarray
    turns: np.ndarray

    @classmethod
    def of(cls, offsets: np.ndarray) -> Offsets:
        """Return these, int64[n]."""
        highest = int(offsets[-1]) >> 32 if len(offsets) else 0
        turns = offsets.searchsorted(np.arange(1, highest + 1) << 32)
        return cls((offsets & _LOW).astype(np.uint32), turns.astype(np.int64))

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, which: int | slice | np.ndarray) -> np.ndarray:
        result = self.low[which].astype(np.int64)
        if not len(self.turns):
            return result
        if not isinstance(which, slice):
            return result + (self.turns.searchsorted(which, "right") << 32)
        begin, _, step = which.indices(len(self))
        if step != 1:
            raise IndexError("a step")
        for turn in self.turns[self.turns < begin + len(result)].tolist():
            result[max(0, turn - begin) :] += 2**32
        return result

    def searchsorted(self, offset: int) -> int:
        """Count the offsets that are at most this one."""
        high, count = offset >> 32, len(self)
        bounds = [0, *self.turns.tolist()]
        if high >= len(bounds):
            return count
        first, end = min(bounds[high], count), min([*bounds, count][high + 1], count)
        return first + int(self.low[first:end].searchsorted(np.uint32(offset & _LOW), "right"))

    def shifted(self, first: int) -> Offsets:
        """Without the first ones."""
        return Offsets(self.low[first:], np.maximum(self.turns - first, 0))

    def chosen(self, which: np.ndarray) -> Offsets:
        """Select the offsets of these numbers, int64[m], which ascend."""
        return Offsets(self.low[which], which.searchsorted(self.turns))

    def tolist(self) -> list[int]:
        """As integers."""
        return self[:].tolist()

    def ascend(self) -> bool:
        """Return whether the arrays are offsets, each larger than the one before."""
        bounds = [0, *self.turns.tolist(), len(self)]
        return bounds == sorted(bounds) and all(
            bool(
                (
                    self.low[begin + 1 : min(begin + _SOME + 1, end)] > self.low[begin : min(begin + _SOME, end - 1)]
                ).all()
            )
            for first, end in pairwise(bounds)
            for begin in range(first, end - 1, _SOME)
        )


def joined(parts: Sequence[Offsets]) -> Offsets:
    """Join the offsets of parts of a file: each but the last ends with the first place of the next one, counted once.

    The turns of a part are those between its first and its last place.
    """
    counts = np.cumsum([0, *(len(part) - 1 for part in parts)])[:-1]
    low = np.concatenate([*(part.low[:-1] for part in parts), parts[-1].low[-1:]])
    return Offsets(low, np.concatenate([part.turns + count for part, count in zip(parts, counts, strict=True)]))
