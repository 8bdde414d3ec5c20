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

from readers.common.arguments import state_field
from readers.common.chunk import Chunk, Part
from readers.common.sequences import SequenceTable, starts_of
from readers.common.threads import threads_for
from readers.errors import DataError
from readers.streams import StreamInformation

from .randomize import Selection, mersenne, order_functions

SHIFT = 32
_FOR_EVER = 2**63 - 1


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
        """Whether several chunks may be loaded at once."""
        ...

    def load_window_chunk(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        """The sequences of a chunk and their nominal lengths int64[n]. Called on one thread at a time."""
        ...

    @property
    def table(self) -> SequenceTable:
        """Only for keys; the sizes in it mean nothing."""
        ...


AHEAD_SECONDS = 0.05
"""Chunks are loaded ahead that take about so long to load, one of them at least."""

MOST_AHEAD = 32
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
        self._pool = ThreadPoolExecutor(self._threads, "cntkpy-chunks")
        self._lock = threading.Lock()
        self._seconds, self._loads = 0.0, 0

    @property
    def depth(self) -> int:
        """How many chunks to load ahead: as many as there are threads, more of those that load quickly."""
        if not self._loads:
            return self._threads
        in_time = int(AHEAD_SECONDS * self._loads / max(self._seconds, 1e-9))
        return max(self._threads, min(in_time, MOST_AHEAD))

    def _load(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        began = time.perf_counter()
        found = self.data.load_window_chunk(chunk)
        self._seconds += time.perf_counter() - began
        self._loads += 1
        return found

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
        """Whether a chunk can be had at once."""
        found = self._chunks.get(chunk)
        return found is not None and found.done()

    def missing(self, chunks: Sequence[int]) -> bool:
        """Whether one of these chunks is not loaded, and not being loaded."""
        return any(chunk not in self._chunks for chunk in chunks)

    def loaded(self) -> set[int]:
        """The chunks that are loaded or being loaded."""
        with self._lock:
            return set(self._chunks)

    def free(self, chunks: set[int]) -> None:
        """Free these chunks."""
        with self._lock:
            for chunk in chunks:
                if (found := self._chunks.pop(chunk, None)) is not None:
                    found.cancel()

    def keep_only(self, chunks: set[int]) -> None:
        """Free all other chunks."""
        with self._lock:
            for chunk in [c for c in self._chunks if c not in chunks]:
                self._chunks.pop(chunk).cancel()

    def begin(
        self,
        sequences: np.ndarray,
        keep: np.ndarray | None = None,
        ahead: np.ndarray | None = None,
        following: object = None,
    ) -> Callable[[], list[Part]]:
        """The parts that hold these sequences, in minibatch order.

        The timeline has loaded them already, so they are there before the function is called; it says which chunks are
        not needed any more (`keep_only`).
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
        self.keep_only(set())
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Made(NamedTuple):
    """A selection that was made: where reading stands after it, the chunks it is of, and those needed from there."""

    place: tuple[int, ...]
    used: set[int]
    keep: set[int]


def _place_of(state: dict[str, Any]) -> tuple[int, ...]:
    """What tells positions apart."""
    names = ("sweepIndex", "chunkPosition", "baseCurrentSequencePositionInWindow", "baseSampleCount", "baseSweepCount")
    return tuple(int(state[name]) for name in names)


@dataclass
class _Gathered:
    """What the next minibatch has so far. limit: its samples; barren: ends of sweeps that were passed."""

    limit: int
    numbers: list[np.ndarray] = field(default_factory=list[np.ndarray])
    keep: set[int] = field(default_factory=set[int])
    taken: int = 0
    barren: int = 0
    end_of_sweep: bool = False


class LocalTimeline:
    """Sweeps over chunks in windows: one chunk in file order, or a tumbling window of shuffled chunks.

    window: chunks of this worker (in_samples: samples) that are shuffled together. A window goes on into the next
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
        self.store, self.randomize, self.seed = store, randomize, seed
        self.in_samples = in_samples and randomize
        self.window = max(1, window) if randomize else 1
        self.chunks = store.data.chunks
        self._largest = 1  # samples of a chunk
        self.workers, self.rank = 1, 0
        self._end_samples, self._end_sweeps = max_samples, max_sweeps
        self._rewind()

    def _rewind(self) -> None:
        self._sweep, self._place, self._budget = 0, 0, self.window
        self._sweeps_done, self._samples, self._sequence = 0, 0, 0
        self._part: np.ndarray | None = None
        self._next = 0
        self._ahead: set[int] = set()
        self._made: deque[_Made] = deque()
        self._earlier = self.store.loaded()  # by what was read ahead before: perhaps it is needed again

    # --------------------------------------------------------------------------------------------- windows

    def _order(self, sweep: int) -> np.ndarray:
        """Chunks of a sweep in order, int64[C]."""
        if not self.randomize:
            return np.arange(self.chunks)
        order = np.arange(self.chunks)
        order_functions(10 * len(order)).shuffle_all(mersenne(self.seed + sweep), order)
        return order

    def _mine_from(self, sweep: int, place: int) -> Iterator[int]:
        """This worker's chunks of a sweep from a place on."""
        order = self._order(sweep)
        return (int(order[at]) for at in range(place, self.chunks) if self._is_mine(at))

    def _is_mine(self, place: int) -> bool:
        """Whether this worker reads the chunk at a place of a sweep: in file order all do, and share its sequences."""
        return not self.randomize or place % self.workers == self.rank

    def _reach(self, sweep: int, place: int, budget: int) -> tuple[list[int], int, int]:
        """The part at a place of a sweep: this worker's chunks, where it ends, what remains of the budget."""
        order = self._order(sweep)
        mine: list[int] = []
        while place < self.chunks and budget > 0:
            chunk = int(order[place])
            if self._is_mine(place):
                mine.append(chunk)
                budget -= int(self.store.get(chunk)[1].sum()) if self.in_samples else 1
            place += 1
        return mine, place, budget

    def _load(self) -> None:
        """Load the part at (sweep, place): numbers and lengths of its sequences in order."""
        mine, self._end, self._left = self._reach(self._sweep, self._place, self._budget)
        self._mine = mine
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
        self._passed = self._sequence + len(numbers)
        self._largest = max([self._largest, *(int(one.sum()) for one in loaded)])
        if self.randomize:
            shuffled = np.arange(len(numbers))
            random = mersenne(self._place + self._sweep + self.seed)
            order_functions(10 * len(numbers)).shuffle_range(random, shuffled, 0, len(numbers))
        else:
            shuffled = np.flatnonzero((self._sequence + np.arange(len(numbers))) % self.workers == self.rank)
        self._part, self._starts = numbers[shuffled], starts_of(lengths[shuffled])
        self._next = min(self._next, len(self._part))
        ahead = self._coming(int(self._starts[-1] - self._starts[self._next]))
        self._ahead = set(ahead)
        self.store.ahead(ahead)

    def _coming(self, samples: int) -> list[int]:
        """The chunks behind this part that are worth loading now: none behind the end of the epoch.

        A window is needed as a whole; else the time that loading takes says how many.
        """
        if self._end_samples is not None and self._samples + samples >= self._share(self._end_samples):
            return []
        whole = self.randomize and not self.in_samples
        count = self.window if whole else self.store.depth
        if self._end_samples is not None:
            left = self._share(self._end_samples) - self._samples - samples
            count = min(count, -(-left // self._largest))
        found: list[int] = []
        sweep, place = self._sweep, self._end
        done = self._sweeps_done
        while len(found) < count:
            if place >= self.chunks:
                sweep, place, done = sweep + 1, 0, done + 1
                if whole and found:
                    break
            if (self._end_sweeps is not None and done >= self._end_sweeps) or sweep > self._sweep + 1:
                break
            found += islice(self._mine_from(sweep, place), count - len(found))
            place = self.chunks
        return found

    def _following(self) -> tuple[int, int, int]:
        """Sweep, place and budget of the part after this one."""
        done = self._end >= self.chunks
        return self._sweep + done, 0 if done else self._end, self._left if self._left > 0 else self.window

    def _advance(self) -> bool:
        """Go to the next part; whether that ends a sweep."""
        ended = self._end >= self.chunks
        self._sequence = 0 if ended else self._passed
        self._sweep, self._place, self._budget = self._following()
        self._part, self._next = None, 0
        self._sweeps_done += ended
        return ended

    # --------------------------------------------------------------------------------------------- sequences

    @property
    def ended(self) -> bool:
        """Whether the epoch is over."""
        over = self._end_sweeps is not None and self._sweeps_done >= self._end_sweeps
        return over or (self._end_samples is not None and self._samples >= self._share(self._end_samples))

    def _share(self, samples: int) -> int:
        return samples // self.workers + (self.rank < samples % self.workers)

    def waits(self, samples: int) -> bool:
        """Whether the next minibatch, of so many samples, needs a chunk that is not loaded yet."""
        place = self._sweep, self._place, self._budget
        if self._part is not None:
            if int(self._starts[-1] - self._starts[self._next]) >= samples:
                return False
            place = self._following()
        return not all(self.store.is_loaded(chunk) for chunk in self._next_chunks(*place))

    def _next_chunks(self, sweep: int, place: int, budget: int) -> list[int]:
        """This worker's chunks of the part at a place, as far as they are known without waiting."""
        return list(islice(self._mine_from(sweep, place), 1 if self.in_samples else budget))

    def _starved(self) -> bool:
        return self.randomize and self.rank >= self.chunks

    def next(self, global_limit: int, local_limit: int) -> Selection | None:
        """The next sequences of this worker, at least one, crossing chunks and sweeps; None at the end."""
        if self.ended or self._starved():
            return None
        got = _Gathered(local_limit)
        while not self.ended and self._gather(got):
            pass
        if not got.numbers and not got.end_of_sweep:
            return None
        if self._part is not None:
            got.keep.update(self._mine)
        got.keep |= self._ahead
        chosen = np.concatenate([np.empty(0, np.int64), *got.numbers])
        used = set(np.unique(chosen >> SHIFT).tolist())
        self._made.append(_Made(_place_of(self.state()), used, set(got.keep)))
        return Selection(chosen, got.end_of_sweep, self.ended, np.array(sorted(got.keep), np.int64))

    def delivered(self, position: dict[str, Any]) -> None:
        """The minibatch after which `state` is this was given out: free what nothing later needs."""
        place, made = _place_of(position), self._made
        if not any(one.place == place for one in list(made)):
            return
        passed: set[int] = set()
        while made[0].place != place:
            passed |= (gone := made.popleft()).used | gone.keep
        later = list(made)
        needed = later[0].keep.union(*(one.used | one.keep for one in later[1:]), self._ahead, self._earlier)
        self.store.free((passed | later[0].used) - needed)

    def _gather(self, got: _Gathered) -> bool:
        """Take what fits of the part at hand, or go to the next part; whether there may be more."""
        if self._part is None:
            if got.taken >= got.limit:
                return False
            self._load()
        assert self._part is not None
        got.keep.update(self._mine)
        if self._next == len(self._part):
            return self._pass_on(got)
        if got.taken >= got.limit:
            return False
        count, more = self._fitting(got.limit - got.taken, got.taken == 0)
        if count == 0:
            return False
        got.numbers.append(self._part[self._next : self._next + count])
        self._next += count
        self._samples += more
        got.taken += more
        return True

    def _pass_on(self, got: _Gathered) -> bool:
        """Go to the next part; whether there may be more: not when a whole sweep gave nothing."""
        ended = self._advance()
        got.end_of_sweep |= ended
        got.barren += ended
        nothing = got.taken == self._samples == 0 and self.workers == 1
        if got.barren and nothing and (got.barren > 1 or self.ended):
            raise DataError("The deserializer has no sequences: all its chunks are empty.")
        return got.barren <= 1 or got.taken > 0

    def _fitting(self, room: int, at_least_one: bool) -> tuple[int, int]:
        """Sequences of the part that fit, and their samples."""
        starts, first = self._starts[self._next :], int(self._starts[self._next])
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
        changed = (workers, rank) != (self.workers, self.rank)
        self.workers, self.rank = workers, rank
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
        while self._samples < begin and self.next(_FOR_EVER, 1) is not None:
            pass

    def _budget_after(self, sweeps: int) -> int:
        """What is left of the window at the start of a sweep."""
        if self.in_samples:
            return self.window
        mine = len(range(self.rank, self.chunks, self.workers)) if self.randomize else self.chunks
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
            "workers": self.workers,
            "rank": self.rank,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go where `state` was taken. With other workers, go on with the same window, at the same place of it."""
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
        self.workers, self.rank = int(state.get("workers", self.workers)), int(state.get("rank", self.rank))
