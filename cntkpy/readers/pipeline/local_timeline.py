"""The order of data whose lengths are known only once they are loaded: deserializers that users write in Python.

Sequences are numbered chunk * 2^32 + position in the chunk. Windows of chunks are loaded one after the other; every
worker counts its own samples.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from cntkpy.readers.common.arguments import state_field
from cntkpy.readers.common.chunk import Chunk, Part
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.errors import DataError
from cntkpy.readers.streams import StreamInformation

from .randomize import Selection, mersenne, order_functions

SHIFT = 32
_NO_LIMIT = 2**63 - 1


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
        """The sequences of a chunk and their nominal lengths int64[n]. Called on one thread at a time."""
        ...

    @property
    def table(self) -> SequenceTable:
        """Only for keys; the sizes in it mean nothing."""
        ...


LOAD_AHEAD_SECONDS = 0.05
"""Chunks are loaded ahead that take about so long to load, one of them at least."""

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
        """A chunk and the nominal lengths of its sequences."""
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
        """The chunks that are loaded or being loaded."""
        with self._lock:
            return set(self._chunks)

    def free(self, chunks: set[int]) -> None:
        """Free these chunks."""
        with self._lock:
            for chunk in chunks:
                if (load := self._chunks.pop(chunk, None)) is not None:
                    load.cancel()

    def begin(
        self,
        sequences: np.ndarray,
        keep: np.ndarray | None = None,
        ahead: np.ndarray | None = None,
        following: object = None,
    ) -> Callable[[], list[Part]]:
        """The parts that hold these sequences, in minibatch order.

        The timeline has loaded them already, so they are there before the function is called; it frees the chunks
        that are not needed any more.
        """
        del keep, ahead, following
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


class _Made(NamedTuple):
    """A selection that was made: where reading is after it, the chunks it is of, and those needed from there."""

    place: tuple[int, ...]
    used: set[int]
    keep: set[int]


def _place_of(state: dict[str, Any]) -> tuple[int, ...]:
    """Return what distinguishes positions."""
    names = ("sweepIndex", "chunkPosition", "baseCurrentSequencePositionInWindow", "baseSampleCount", "baseSweepCount")
    return tuple(int(state[name]) for name in names)


@dataclass
class _Gathered:
    """Sequences of the next minibatch so far. worker_size: its samples; barren: ends of sweeps that were passed."""

    worker_size: int
    numbers: list[np.ndarray] = field(default_factory=list[np.ndarray])
    keep: set[int] = field(default_factory=set[int])
    taken: int = 0
    barren: int = 0
    end_of_sweep: bool = False


@dataclass
class _ChunkOrder:
    """The order of chunks in each sweep, and which of them this worker reads.

    Attributes:
        chunks: How many there are.
        shuffled: Whether each sweep has an order of its own; else it is that of the file.
        seed: Of the first sweep's order.
        workers, rank: How many workers read, and the number of this one.
    """

    chunks: int
    shuffled: bool
    seed: int
    workers: int = 1
    rank: int = 0

    def of_sweep(self, sweep: int) -> np.ndarray:
        """Chunks of a sweep in order, int64[chunks]."""
        order = np.arange(self.chunks)
        if self.shuffled:
            order_functions(10 * len(order)).shuffle_all(mersenne(self.seed + sweep), order)
        return order

    def own_from(self, sweep: int, place: int) -> Iterator[int]:
        """This worker's chunks of a sweep from a place on."""
        order = self.of_sweep(sweep)
        return (int(order[position]) for position in range(place, self.chunks) if self.is_own(position))

    def is_own(self, place: int) -> bool:
        """Return whether this worker reads the chunk at a place of a sweep: in file order all do, and share it."""
        return not self.shuffled or place % self.workers == self.rank


@dataclass
class _Window:
    """The loaded part of a window, up to the end of a sweep at most.

    Attributes:
        chunks: This worker's chunks in it.
        sequences: Their sequences, in the order in which they are given out.
        starts: int64[n + 1], the samples before each of them.
        end: Where the part after it begins in the sweep.
        left: What remains of the window's size then.
        passed: Sequences of the sweep up to its end.
    """

    chunks: list[int]
    sequences: np.ndarray
    starts: np.ndarray
    end: int
    left: int
    passed: int

    def samples_from(self, sequence: int) -> int:
        """Samples of the sequences from one on."""
        return int(self.starts[-1] - self.starts[sequence])


class LocalTimeline:
    """Sweeps over chunks in windows: one chunk in file order, or a tumbling window of shuffled chunks.

    window: chunks of this worker (in_samples: samples) that are shuffled together. A window continues in the next
    sweep, but sequences of different sweeps are not mixed; so it is loaded sweep by sweep.
    """

    def __init__(
        self,
        store: WindowStore,
        *,
        randomize: bool,
        window: int = 128,
        in_samples: bool = False,
        seed: int = 0,
        max_samples: int | None = None,
        max_sweeps: int | None = None,
    ):
        self.store, self.order = store, _ChunkOrder(store.data.chunks, randomize, seed)
        self.in_samples = in_samples and randomize
        self.window = max(1, window) if randomize else 1
        self._largest = 1  # samples of a chunk
        self._end_samples, self._end_sweeps = max_samples, max_sweeps
        self._rewind()

    def _rewind(self) -> None:
        self._sweep, self._place, self._budget = 0, 0, self.window
        self._sweeps_done, self._samples, self._sequence = 0, 0, 0
        self._part: _Window | None = None
        self._next = 0
        self._ahead: set[int] = set()
        self._made: deque[_Made] = deque()
        self._earlier = self.store.loaded()  # by what was read ahead before: perhaps it is needed again

    # --------------------------------------------------------------------------------------------- windows

    def _reach(self, sweep: int, place: int, budget: int) -> tuple[list[int], int, int]:
        """The part at a place of a sweep: this worker's chunks, where it ends, what remains of the budget."""
        order = self.order.of_sweep(sweep)
        mine: list[int] = []
        while place < self.order.chunks and budget > 0:
            chunk = int(order[place])
            if self.order.is_own(place):
                mine.append(chunk)
                budget -= int(self.store.get(chunk)[1].sum()) if self.in_samples else 1
            place += 1
        return mine, place, budget

    def _load(self) -> _Window:
        """Load the part at (sweep, place)."""
        mine, end, left = self._reach(self._sweep, self._place, self._budget)
        if self._earlier:
            self._earlier -= set(mine)
            if self.store.missing(mine):  # what comes now was not read before
                self.store.free(self._earlier)
                self._earlier.clear()
        self.store.ahead(mine)
        loaded = [self.store.get(chunk)[1] for chunk in mine]
        lengths = np.concatenate([np.empty(0, np.int64), *loaded])
        numbers = np.concatenate(
            [np.empty(0, np.int64), *((c << SHIFT) + np.arange(len(n)) for c, n in zip(mine, loaded, strict=True))]
        )
        self._largest = max([self._largest, *(int(item.sum()) for item in loaded)])
        if self.order.shuffled:
            shuffled = np.arange(len(numbers))
            random = mersenne(self._place + self._sweep + self.order.seed)
            order_functions(10 * len(numbers)).shuffle_range(random, shuffled, 0, len(numbers))
        else:
            shuffled = np.flatnonzero((self._sequence + np.arange(len(numbers))) % self.workers == self.rank)
        starts, passed = starts_of(lengths[shuffled]), self._sequence + len(numbers)
        part = self._part = _Window(mine, numbers[shuffled], starts, end, left, passed)
        self._next = min(self._next, len(part.sequences))
        ahead = self._coming(part)
        self._ahead = set(ahead)
        self.store.ahead(ahead)
        return part

    def _coming(self, part: _Window) -> list[int]:
        """The chunks after a part that are worth loading now: none after the end of the epoch.

        A window is needed as a whole; else the time that loading takes says how many.
        """
        samples = part.samples_from(self._next)
        if self._end_samples is not None and self._samples + samples >= self._share(self._end_samples):
            return []
        whole = self.order.shuffled and not self.in_samples
        count = self.window if whole else self.store.depth
        if self._end_samples is not None:
            left = self._share(self._end_samples) - self._samples - samples
            count = min(count, -(-left // self._largest))
        chunks: list[int] = []
        sweep, place = self._sweep, part.end
        done = self._sweeps_done
        while len(chunks) < count:
            if place >= self.order.chunks:
                sweep, place, done = sweep + 1, 0, done + 1
                if whole and chunks:
                    break
            if (self._end_sweeps is not None and done >= self._end_sweeps) or sweep > self._sweep + 1:
                break
            chunks += islice(self.order.own_from(sweep, place), count - len(chunks))
            place = self.order.chunks
        return chunks

    def _following(self, part: _Window) -> tuple[int, int, int]:
        """Sweep, place and budget of the part after this one."""
        done = part.end >= self.order.chunks
        return self._sweep + done, 0 if done else part.end, part.left if part.left > 0 else self.window

    def _advance(self, part: _Window) -> bool:
        """Go to the next part; whether that ends a sweep."""
        ended = part.end >= self.order.chunks
        self._sequence = 0 if ended else part.passed
        self._sweep, self._place, self._budget = self._following(part)
        self._part, self._next = None, 0
        self._sweeps_done += ended
        return ended

    # --------------------------------------------------------------------------------------------- sequences

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.order.workers

    @property
    def rank(self) -> int:
        """The number of this one."""
        return self.order.rank

    @property
    def ended(self) -> bool:
        """True after the end of the epoch."""
        over = self._end_sweeps is not None and self._sweeps_done >= self._end_sweeps
        return over or (self._end_samples is not None and self._samples >= self._share(self._end_samples))

    def _share(self, samples: int) -> int:
        return samples // self.order.workers + (self.order.rank < samples % self.order.workers)

    def waits(self, samples: int) -> bool:
        """Return whether the next minibatch, of this many samples, needs a chunk that is not loaded yet."""
        place = self._sweep, self._place, self._budget
        if self._part is not None:
            if self._part.samples_from(self._next) >= samples:
                return False
            place = self._following(self._part)
        sweep, position, budget = place  # a window in samples has at least one chunk; how many is not known before
        needed = islice(self.order.own_from(sweep, position), 1 if self.in_samples else budget)
        return not all(self.store.is_loaded(chunk) for chunk in needed)

    def next(self, minibatch_size: int, worker_size: int) -> Selection | None:
        """The next sequences of this worker, at least one, crossing chunks and sweeps; None at the end."""
        if self.ended or (self.order.shuffled and self.order.rank >= self.order.chunks):
            return None
        got = _Gathered(worker_size)
        while not self.ended and self._gather(got):
            pass
        if not got.numbers and not got.end_of_sweep:
            return None
        if self._part is not None:
            got.keep.update(self._part.chunks)
        got.keep |= self._ahead
        chosen = np.concatenate([np.empty(0, np.int64), *got.numbers])
        used = set(np.unique(chosen >> SHIFT).tolist())
        self._made.append(_Made(_place_of(self.state()), used, set(got.keep)))
        return Selection(chosen, got.end_of_sweep, self.ended, np.array(sorted(got.keep), np.int64))

    def delivered(self, position: dict[str, Any]) -> None:
        """The minibatch after which `state` is this was given out: free what nothing later needs."""
        place, made = _place_of(position), self._made
        if not any(item.place == place for item in list(made)):
            return
        passed: set[int] = set()
        while made[0].place != place:
            passed |= (gone := made.popleft()).used | gone.keep
        later = list(made)
        needed = later[0].keep.union(*(item.used | item.keep for item in later[1:]), self._ahead, self._earlier)
        self.store.free((passed | later[0].used) - needed)

    def _gather(self, got: _Gathered) -> bool:
        """Take what fits of the part at hand, or go to the next part; whether there may be more."""
        part = self._part
        if part is None:
            if got.taken >= got.worker_size:
                return False
            part = self._load()
        got.keep.update(part.chunks)
        if self._next == len(part.sequences):
            return self._pass_on(got, part)
        if got.taken >= got.worker_size:
            return False
        count, samples = self._fitting(part, got.worker_size - got.taken, got.taken == 0)
        if count == 0:
            return False
        got.numbers.append(part.sequences[self._next : self._next + count])
        self._next += count
        self._samples += samples
        got.taken += samples
        return True

    def _pass_on(self, got: _Gathered, part: _Window) -> bool:
        """Go to the next part; whether there may be more: not when a whole sweep gave nothing."""
        ended = self._advance(part)
        got.end_of_sweep |= ended
        got.barren += ended
        nothing = got.taken == self._samples == 0 and self.order.workers == 1
        if got.barren and nothing and (got.barren > 1 or self.ended):
            raise DataError("The deserializer has no sequences: all its chunks are empty.")
        return got.barren <= 1 or got.taken > 0

    def _fitting(self, part: _Window, room: int, at_least_one: bool) -> tuple[int, int]:
        """Sequences of the part that fit, and their samples."""
        starts, first = part.starts[self._next :], int(part.starts[self._next])
        count = int(np.searchsorted(starts[1:], first + room, side="right"))
        if self._end_samples is not None:  # a sequence that begins before the limit is taken whole
            left = self._share(self._end_samples) - self._samples
            count = min(count, int(np.searchsorted(starts[:-1], first + left, side="left")))
        if at_least_one:
            count = max(count, 1)
        return count, int(starts[count]) - first

    # --------------------------------------------------------------------------------------------- position

    def start_epoch(self, epoch: int, size: int | None, workers: int = 1, rank: int = 0) -> None:
        """Go to an epoch of `size` samples, or of one sweep. Samples in front of it are passed over by loading them."""
        changed = (workers, rank) != (self.order.workers, self.order.rank)
        self.order.workers, self.order.rank = workers, rank
        if changed:
            self._rewind()
        if size is None:
            self._end_sweeps, self._end_samples = epoch + 1, None
            if self._sweeps_done != epoch or self._place or self._next:
                self._rewind()
                self._sweep = self._sweeps_done = epoch
                self._budget = self._budget_after(epoch)
            return
        self._end_sweeps, self._end_samples = None, size * (epoch + 1)
        begin = self._share(size * epoch)
        if self._samples > begin or epoch == 0:
            self._rewind()
        while self._samples < begin and self.next(_NO_LIMIT, 1) is not None:
            pass

    def _budget_after(self, sweeps: int) -> int:
        """Return what is left of the window at the start of a sweep."""
        if self.in_samples:
            return self.window
        order = self.order
        mine = len(range(order.rank, order.chunks, order.workers)) if order.shuffled else order.chunks
        return self.window - sweeps * mine % self.window

    def state(self) -> dict[str, Any]:
        """The position under CNTK's names, JSON-able."""
        return {
            "sweepIndex": self._sweep,
            "chunkPosition": self._place,
            "currentSequencePosition": self._sequence,
            "baseCurrentSequencePositionInWindow": self._next,
            "baseSweepCount": self._sweeps_done,
            "baseSampleCount": self._samples,
            "windowLeft": self._budget,
            "endSamples": self._end_samples,
            "endSweeps": self._end_sweeps,
            "workers": self.order.workers,
            "rank": self.order.rank,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go where `state` was taken. With other workers, continue with the same window, at the same place of it."""
        sweep, place, position = (
            state_field(state, name) for name in ("sweepIndex", "chunkPosition", "baseCurrentSequencePositionInWindow")
        )
        self._rewind()
        self._sweep, self._place, self._next = sweep, place, position
        self._sequence = int(state.get("currentSequencePosition", 0))
        self._sweeps_done = int(state.get("baseSweepCount", self._sweep))
        self._samples = int(state.get("baseSampleCount", 0))
        self._budget = int(state.get("windowLeft", self.window))
        self._end_samples = state.get("endSamples", self._end_samples)
        self._end_sweeps = state.get("endSweeps", self._end_sweeps)
        self.order.workers = int(state.get("workers", self.order.workers))
        self.order.rank = int(state.get("rank", self.order.rank))
