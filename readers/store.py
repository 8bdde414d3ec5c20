"""Loaded chunks: kept as long as they are needed, read ahead on background threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from .chunk import Chunk
from .pack import Part
from .scattered import Scattered
from .sequences import Deserializer

DEFAULT_MEMORY = 256 << 20
_NONE = np.empty(0, np.int64)


class ChunkStore:
    """Gives the sequences of a minibatch as parts of loaded chunks.

    Everything is kept if it fits into `memory` bytes (or keep_everything); else only the chunks of the window at hand
    and those read ahead; if not even the window fits, batches of the sequences that come next.
    threads: that many chunks are loaded at once, and as many wait in line; 0 loads a chunk when it is asked for.
    """

    def __init__(
        self,
        deserializer: Deserializer,
        *,
        memory: int = DEFAULT_MEMORY,
        keep_everything: bool = False,
        threads: int = 1,
    ):
        self.deserializer, self.memory = deserializer, memory
        self._chunks: dict[int, Chunk | Future[Chunk]] = {}
        self._sizes = deserializer.chunk_bytes
        self._have = np.zeros(len(self._sizes), bool)
        self._keep_everything = keep_everything or int(self._sizes.sum()) <= memory
        self._threads = threads
        self._loading: list[Future[Chunk]] = []
        self._pool = ThreadPoolExecutor(threads, "cntkpy-chunks") if threads else None
        self._scattered = Scattered(deserializer, memory, self._pool, threads)

    def fetch(
        self,
        sequences: np.ndarray,
        keep: np.ndarray | None = None,
        ahead: np.ndarray | None = None,
        following: Callable[[int], np.ndarray] | None = None,
    ) -> list[Part]:
        """The parts that hold these sequences (numbers in the table), in minibatch order.

        keep: chunks of the window, which will be needed again; ahead: chunks after it, in order of need; following:
        see `selection.Selection`.
        """
        if len(sequences) == 0:
            return []
        first = self.deserializer.table.first
        low, high = first.searchsorted((sequences.min(), sequences.max()), "right") - 1
        chunks = None if low == high else first.searchsorted(sequences, "right") - 1
        wanted = np.array([low]) if chunks is None else np.unique(chunks)
        keep, ahead = wanted if keep is None else keep, _NONE if ahead is None else ahead
        room = self.memory
        if not self._keep_everything:
            window = np.zeros(len(self._have), bool)
            window[wanted] = window[keep] = True
            room -= int(self._sizes[window].sum())
            if room < 0 and np.count_nonzero(window) > 2:
                self._forget(self._have)
                return self._scattered.fetch(sequences, following)
            self._scattered.clear()
            window[ahead] = True
            self._forget(self._have & ~window)
        if self._pool is not None:
            self._load(wanted, keep, ahead, room)
        if chunks is None:
            chunk = int(low)
            return [Part(self._get(chunk), sequences - first[chunk], np.arange(len(sequences)))]
        parts = []
        for chunk in wanted.tolist():
            where = np.flatnonzero(chunks == chunk)
            parts.append(Part(self._get(chunk), sequences[where] - first[chunk], where))
        return parts

    def _get(self, chunk: int) -> Chunk:
        have = self._chunks.get(chunk)
        if isinstance(have, Chunk):
            return have
        found = self.deserializer.load_chunk(chunk) if have is None else have.result()
        self._chunks[chunk], self._have[chunk] = found, True
        return found

    def _load(self, wanted: np.ndarray, keep: np.ndarray, ahead: np.ndarray, room: int) -> None:
        """Begin to load what is wanted now, and as much of what comes next as threads and memory allow."""
        assert self._pool is not None
        self._loading = [one for one in self._loading if not one.done()]
        for chunk in wanted[~self._have[wanted]].tolist():
            self._begin(chunk)
        free = 2 * self._threads - len(self._loading)
        if free <= 0:
            return
        for chunk in keep[~self._have[keep]][:free].tolist():
            self._begin(chunk)
            free -= 1
        ahead = ahead[: 2 * self._threads]
        room -= int(self._sizes[ahead[self._have[ahead]]].sum())
        for chunk in ahead[~self._have[ahead]][: max(free, 0)].tolist():
            room -= int(self._sizes[chunk])
            if room < 0 and self._loading:
                return
            self._begin(chunk)

    def _begin(self, chunk: int) -> None:
        assert self._pool is not None
        future = self._pool.submit(self.deserializer.load_chunk, chunk)
        self._chunks[chunk], self._have[chunk] = future, True
        self._loading.append(future)

    def _forget(self, chunks: np.ndarray) -> None:
        """Let go of chunks, bool[C]."""
        for chunk in np.flatnonzero(chunks).tolist():
            have = self._chunks.pop(chunk)
            if isinstance(have, Future):
                have.cancel()
            self._have[chunk] = False

    def close(self) -> None:
        """Let go of everything."""
        self._forget(self._have)
        self._scattered.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
