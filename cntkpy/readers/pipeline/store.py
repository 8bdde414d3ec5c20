"""Loaded chunks: kept as long as they are needed, read ahead on background threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from cntkpy.readers.common.chunk import Chunk, Part, in_bytes
from cntkpy.readers.common.planned import LoadHints
from cntkpy.readers.common.sequences import no_sequence
from cntkpy.readers.contracts import DEFAULT_MEMORY, Deserializer

from .loads import Load, Loads
from .randomize import order_functions
from .scattered import Piece, Scattered

_NONE = np.empty(0, np.int64)


class ChunkStore:
    """Gives the sequences of a minibatch as parts of loaded chunks. One thread begins, any may wait for the parts.

    Everything is kept if it fits into `memory` bytes (or keep_everything); else only the chunks of the window at hand
    and those read ahead; if not even the window fits, batches of the sequences that come next.
    threads: that many chunks are loaded at once, and as many wait in line; 0 loads a chunk when it is asked for.
    callers: this many threads ask for chunks, and load them themselves (threads is 0).
    """

    def __init__(
        self,
        deserializer: Deserializer,
        *,
        memory: int = DEFAULT_MEMORY,
        keep_everything: bool = False,
        threads: int = 1,
        callers: int = 0,
    ):
        self.deserializer, self.memory = deserializer, memory
        self._chunks: dict[int, Load[Chunk]] = {}
        self._sizes = deserializer.chunk_bytes
        self._have = np.zeros(len(self._sizes), bool)
        self._keep_everything = keep_everything or int(self._sizes.sum()) <= memory
        self._at_once = max(threads, callers)
        self._loading: list[Load[Chunk]] = []
        self._loads = Loads(threads)
        self._scattered = Scattered(deserializer, memory, self._loads, self._at_once)

    def begin(self, sequences: np.ndarray, hints: LoadHints | None = None) -> Callable[[], list[Part]]:
        """Begin to load these sequences; the function returns their parts, in minibatch order."""
        if len(sequences) == 0:
            return list
        pieces = self._pieces(sequences, hints or LoadHints())
        return lambda: [Part(self._loads.result(load), which, where) for load, which, where in pieces]

    def _pieces(self, sequences: np.ndarray, hints: LoadHints) -> list[Piece]:
        k = order_functions(len(sequences) // 4)
        wanted, bounds, within, where = k.by_chunk(self.deserializer.table.first, sequences)
        if not len(wanted):
            table = self.deserializer.table
            missing = (sequences < 0) | (sequences >= table.num_sequences)
            raise no_sequence(int(sequences[missing][0]), table.num_sequences)
        around = wanted if hints.keep is None else hints.keep
        ahead = _NONE if hints.ahead is None else hints.ahead
        room = self.memory
        if not self._keep_everything:
            window = np.zeros(len(self._have), bool)
            window[wanted] = window[around] = True
            room -= int(self._sizes[window].sum())
            if room < 0 and np.count_nonzero(window) > 2:
                self._forget(self._have)
                return self._scattered.pieces(sequences, hints.following)
            self._scattered.clear()
            window[ahead] = True
            self._forget(self._have & ~window)
        self._load(wanted, around, ahead, room)
        several = zip(wanted.tolist(), pairwise(bounds.tolist()), strict=True)
        return [(self._get(chunk), within[a:b], where[a:b]) for chunk, (a, b) in several]

    def _get(self, chunk: int) -> Load[Chunk]:
        load = self._chunks[chunk]
        load.wanted = True
        return load

    def _load(self, wanted: np.ndarray, keep: np.ndarray, ahead: np.ndarray, room: int) -> None:
        """Begin to load what is wanted now, and as much of what comes next as threads and memory allow."""
        self._loading = [load for load in self._loading if not load.done]
        for chunk in wanted[~self._have[wanted]].tolist():
            self._begin(chunk)
        free = 2 * self._at_once - len(self._loading)
        if free <= 0:
            return
        for chunk in keep[~self._have[keep]][:free].tolist():
            self._begin(chunk)
            free -= 1
        ahead = ahead[: 2 * self._at_once]
        room -= int(self._sizes[ahead[self._have[ahead]]].sum())
        for chunk in ahead[~self._have[ahead]][: max(free, 0)].tolist():
            room -= int(self._sizes[chunk])
            if room < 0 and self._loading:
                return
            self._begin(chunk)

    def _begin(self, chunk: int) -> None:
        load = self._loads.begin(partial(self._loaded, chunk))
        self._chunks[chunk], self._have[chunk] = load, True
        self._loading.append(load)

    def _loaded(self, number: int) -> Chunk:
        """Return a chunk; what is kept for all epochs takes less memory where it can."""
        chunk = self.deserializer.load_chunk(number)
        return in_bytes(chunk) if self._keep_everything else chunk

    def _forget(self, chunks: np.ndarray) -> None:
        """Let go of chunks, bool[C]."""
        for chunk in np.flatnonzero(chunks).tolist():
            load = self._chunks.pop(chunk)
            load.cancel()
            self._have[chunk] = False

    def close(self) -> None:
        """Let go of everything."""
        self._loads.close()
        self._loading.clear()
        self._forget(self._have)
        self._scattered.clear()
