"""Sequences from all over the data, in an order known ahead: loaded in large batches instead of one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.contracts import Deserializer

from .loads import Load, Loads

FIRST_BATCH_BYTES, BATCH_GROWTH_FACTOR = 1 << 20, 4
"""Bytes of the first batch that is read ahead, and how much larger the next ones are: the start is fast."""
MEMORY_PER_BATCH = 8
"""The largest batch is this part of the memory."""
_NONE = np.empty(0, np.int64)
Piece = tuple[Load[Chunk], np.ndarray, np.ndarray]
"""A `pack.Part` of a chunk that is being loaded."""


@dataclass(eq=False)
class _Batch:
    """Sequences whose loading was begun; those before `used` were given out."""

    numbers: np.ndarray
    load: Load[Chunk]
    used: int = 0

    def agreeing(self, sequences: np.ndarray) -> int:
        """Count the first of these that come next, all or as far as the batch goes; 0 if others do."""
        mine = self.numbers[self.used : self.used + len(sequences)]
        return len(mine) if (mine == sequences[: len(mine)]).all() else 0


class Scattered:
    """Batches of sequences in order of need. ahead: batches that are loaded besides the one in use."""

    def __init__(self, deserializer: Deserializer, memory: int, loads: Loads, ahead: int):
        self._deserializer, self._loads, self._ahead = deserializer, loads, ahead
        self._most = memory // MEMORY_PER_BATCH
        self._bytes_each = np.maximum(deserializer.chunk_bytes, 1) / np.maximum(np.diff(deserializer.table.first), 1)
        self._batches: deque[_Batch] = deque()
        self._next_size = 0  # bytes
        self._expected = _NONE  # the sequence that comes after the last batch, if that is used up
        self._careful = 0  # sequences up to the end of a batch that failed: they are loaded as they are asked for

    def pieces(self, sequences: np.ndarray, following: Callable[[int], np.ndarray] | None) -> list[Piece]:
        """Locate these sequences: a batch, their places in it and among `sequences`.

        following: gives about so many of those that come after them.
        """
        pieces: list[Piece] = []
        position = 0
        if self._batches and self._batches[0].load.error is not None:
            self._careful = len(self._batches[0].numbers)  # again, up to the sequence at fault
            self.clear()
        if len(self._expected) and self._expected[0] != sequences[0]:
            self.clear()
        while position < len(sequences):
            if not self._batches:
                self._begin(sequences[position:], following)
            count = self._batches[0].agreeing(sequences[position:])
            if count == 0:
                self.clear()
                continue
            batch = self._batches[0]
            batch.load.wanted = True
            pieces.append(
                (batch.load, np.arange(batch.used, batch.used + count), np.arange(position, position + count))
            )
            batch.used += count
            position += count
            if batch.used == len(batch.numbers):
                self._batches.popleft()
        self._expected = _NONE if self._batches or following is None else following(1)
        while following is not None and self._ahead and not self._careful and len(self._batches) <= self._ahead:
            begun = sum(len(batch.numbers) - batch.used for batch in self._batches)
            if not self._begin(_NONE, following, begun):
                break
        return pieces

    def _begin(self, sequences: np.ndarray, following: Callable[[int], np.ndarray] | None, begun: int = 0) -> bool:
        """Return a batch of these sequences, and of those that follow as many as it should have. begun: pass over so
        many.
        """
        numbers = sequences
        careful, self._careful = self._careful, max(self._careful - len(sequences), 0)
        room = self._next_size - self._bytes(sequences).sum()
        if following is not None and room > 0 and not careful:
            numbers_ahead = following(begun + int(room / self._bytes_each.min()) + 1)[begun:]
            sizes = self._bytes(numbers_ahead).cumsum()
            numbers = np.concatenate([sequences, numbers_ahead[: int(np.searchsorted(sizes, float(room))) + 1]])
        self._next_size = min(max(self._next_size * BATCH_GROWTH_FACTOR, FIRST_BATCH_BYTES), self._most)
        if len(numbers) == 0:
            return False
        load = self._loads.begin(partial(self._deserializer.load_sequences, numbers))
        self._batches.append(_Batch(numbers, load))
        return True

    def _bytes(self, sequences: np.ndarray) -> np.ndarray:
        """Return an estimate of the bytes of each sequence, float64[n]."""
        return self._bytes_each[self._deserializer.table.first.searchsorted(sequences, "right") - 1]

    def clear(self) -> None:
        """Let go of everything."""
        for batch in self._batches:
            batch.load.cancel()
        self._batches.clear()
        self._next_size, self._expected = 0, _NONE
