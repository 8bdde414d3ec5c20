"""Loaded chunks: kept as long as they are needed, read ahead on a background thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from .chunk import Chunk
from .pack import Part
from .sequences import Deserializer

DEFAULT_MEMORY = 256 << 20


class ChunkStore:
    """Gives the sequences of a minibatch as parts of loaded chunks.

    Everything is kept if it fits into `memory` bytes (or keep_everything); else only the chunks of the window at hand;
    if not even these fit, single sequences are read as they are needed and nothing is kept.
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
        self._chunks: OrderedDict[int, Chunk | Future[Chunk]] = OrderedDict()
        self._sizes = deserializer.chunk_bytes
        self._keep_everything = keep_everything or int(self._sizes.sum()) <= memory
        self._pool = ThreadPoolExecutor(threads, "cntkpy-chunks") if threads else None

    def fetch(self, sequences: np.ndarray, keep: np.ndarray | None) -> list[Part]:
        """The parts that hold these sequences (numbers in the table), in minibatch order."""
        table = self.deserializer.table
        if len(sequences) == 0:
            return []
        if table.num_chunks == 1 and self._keep_everything:
            return [Part(self._get(0), sequences, np.arange(len(sequences)))]
        chunks = np.searchsorted(table.first, sequences, side="right") - 1
        low, high = chunks.min(), chunks.max()
        wanted = chunks[:1] if low == high else np.unique(chunks)
        if not self._keep_everything:
            window = wanted if keep is None else np.union1d(wanted, keep)
            if int(self._sizes[window].sum()) > self.memory and len(window) > 2:
                self._chunks.clear()
                n = np.arange(len(sequences))
                return [Part(self.deserializer.load_sequences(sequences), n, n)]
            for chunk in [c for c in self._chunks if c not in set(window.tolist())]:
                del self._chunks[chunk]
        if keep is not None and self._pool is not None:
            self._read_ahead(int(c) for c in keep if c not in wanted)
        if len(wanted) == 1:
            which = sequences - table.first[wanted[0]]
            return [Part(self._get(int(wanted[0])), which, np.arange(len(sequences)))]
        parts = []
        for c in wanted.tolist():
            where = np.flatnonzero(chunks == c)
            parts.append(Part(self._get(c), sequences[where] - table.first[c], where))
        return parts

    def _get(self, chunk: int) -> Chunk:
        have = self._chunks.get(chunk)
        if have is None:
            have = self.deserializer.load_chunk(chunk)
        elif isinstance(have, Future):
            have = have.result()
        self._chunks[chunk] = have
        return have

    def _read_ahead(self, chunks: Iterable[int]) -> None:
        """Start loading the first of these chunks that is not there."""
        assert self._pool is not None
        for chunk in chunks:
            have = self._chunks.get(chunk)
            if have is None:
                self._chunks[chunk] = self._pool.submit(self.deserializer.load_chunk, chunk)
                return
            if isinstance(have, Future) and not have.done():
                return

    def close(self) -> None:
        """Let go of everything."""
        self._chunks.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
