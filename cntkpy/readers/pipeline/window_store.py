"""Chunks of unknown size: loaded where a window needs them, and freed when nothing can ask for them again."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cntkpy.readers.common.chunk import Chunk, Part
from cntkpy.readers.common.planned import State
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.streams import StreamInformation

SHIFT = 32
"""Bits of the position of a sequence in its chunk."""


@runtime_checkable
class WindowedData(Protocol):
    """Data that come in chunks of unknown size."""

    @property
    def streams(self) -> Sequence[StreamInformation]:
        """The streams of every sequence."""
        ...

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        ...

    @property
    def thread_safe(self) -> bool:
        """True if several chunks may be loaded at once."""
        ...

    def load_window_chunk(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        """Return the sequences of a chunk and their nominal lengths int64[n]. Called on one thread at a time."""
        ...

    @property
    def table(self) -> SequenceTable:
        """Only for keys; the sizes in it mean nothing."""
        ...


LOAD_AHEAD_SECONDS = 0.05
"""Seconds of loading that chunks are loaded ahead, one chunk at least."""

MAX_CHUNKS_AHEAD = 32
"""At most that many chunks are loaded ahead, where a window does not need more."""


class WindowStore:
    """Loads chunks, the ones needed soon on background threads, and keeps those of the windows at hand.

    They are kept until nothing that was given out so far can ask for them again: going back to the last minibatch
    loads nothing twice.
    """

    def __init__(self, data: WindowedData):
        self.data = data
        self._chunks: dict[int, Future[tuple[Chunk, np.ndarray]]] = {}
        self._threads = threads_for(True) if data.thread_safe else 1
        self._pool = ThreadPoolExecutor(self._threads, "cntkpy-chunks")  # always these threads call the data
        self._lock = threading.Lock()
        self._seconds, self._count = 0.0, 0

    @property
    def depth(self) -> int:
        """Number of chunks to load ahead: as many as there are threads, more of those that load quickly."""
        if not self._count:
            return self._threads
        in_time = int(LOAD_AHEAD_SECONDS * self._count / max(self._seconds, 1e-9))
        return max(self._threads, min(in_time, MAX_CHUNKS_AHEAD))

    def _load(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        began = time.perf_counter()
        loaded = self.data.load_window_chunk(chunk)
        self._seconds += time.perf_counter() - began
        self._count += 1
        return loaded

    def ahead(self, chunks: Sequence[int]) -> None:
        """Begin to load chunks that will be asked for."""
        with self._lock:
            for chunk in chunks:
                if chunk not in self._chunks:
                    self._chunks[chunk] = self._pool.submit(self._load, chunk)

    def get(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        """Return a chunk and the nominal lengths of its sequences."""
        self.ahead([chunk])
        try:
            return self._chunks[chunk].result()
        except BaseException:
            self._chunks.pop(chunk, None)
            raise

    def is_loaded(self, chunk: int) -> bool:
        """Return whether a chunk is loaded."""
        load = self._chunks.get(chunk)
        return load is not None and load.done()

    def missing(self, chunks: Sequence[int]) -> bool:
        """Return whether one of these chunks is not loaded, and not being loaded."""
        return any(chunk not in self._chunks for chunk in chunks)

    def loaded(self) -> set[int]:
        """Return the chunks that are loaded or being loaded."""
        with self._lock:
            return set(self._chunks)

    def free(self, chunks: set[int]) -> None:
        """Free these chunks."""
        with self._lock:
            for chunk in chunks:
                if (load := self._chunks.pop(chunk, None)) is not None:
                    load.cancel()

    def begin(self, sequences: np.ndarray, hints: object = None) -> Callable[[], list[Part]]:
        """Return a function that returns the parts that hold these sequences, in minibatch order.

        The timeline has loaded them already, so they are there before the function is called; it frees the chunks
        that are not needed any more.
        """
        del hints
        chunks = sequences >> SHIFT
        parts: list[Part] = []
        for chunk in np.unique(chunks).tolist():
            where = np.flatnonzero(chunks == chunk)
            parts.append(Part(self.get(chunk)[0], sequences[where] - (chunk << SHIFT), where))
        return lambda: parts

    def close(self) -> None:
        """Free all chunks."""
        self.free(self.loaded())
        self._pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class _Use:
    """Chunks of a planned minibatch.

    Attributes:
        place: The place of the order after it.
        used: Chunks that its sequences are of.
        keep: Chunks that are needed from there.
    """

    place: tuple[int, ...]
    used: set[int]
    keep: set[int]


class ChunkUses:
    """The chunks of the minibatches that were planned and not yet given out.

    Args:
        store: Has the chunks.
    """

    def __init__(self, store: WindowStore):
        self._store, self._uses = store, deque[_Use]()

    def clear(self) -> None:
        """Forget all minibatches."""
        self._uses.clear()

    def add(self, state: State, sequences: np.ndarray, keep: set[int]) -> None:
        """Add a minibatch, the state of the order after it, and the chunks that are needed from there."""
        self._uses.append(_Use(_place_of(state), set(np.unique(sequences >> SHIFT).tolist()), set(keep)))

    def delivered(self, state: State, needed: set[int]) -> None:
        """Free the chunks that no minibatch after this state needs, except those in `needed`."""
        place, uses = _place_of(state), self._uses
        if not any(use.place == place for use in list(uses)):
            return
        passed: set[int] = set()
        while uses[0].place != place:
            passed |= (gone := uses.popleft()).used | gone.keep
        later = list(uses)
        needed = later[0].keep.union(*(use.used | use.keep for use in later[1:]), needed)
        self._store.free((passed | later[0].used) - needed)


def _place_of(state: State) -> tuple[int, ...]:
    """Return the fields of a state that distinguish positions."""
    names = ("sweepIndex", "chunkPosition", "baseCurrentSequencePositionInWindow", "baseSampleCount", "baseSweepCount")
    return tuple(int(state[name]) for name in names)
