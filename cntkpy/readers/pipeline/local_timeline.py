"""The order of data whose lengths are known only once they are loaded: deserializers that users write in Python.

Sequences are numbered chunk * 2^32 + position in the chunk. Windows of chunks are loaded one after the other; every
worker counts its own samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from cntkpy.readers.common.arguments import state_field
from cntkpy.readers.common.planned import NO_LIMIT, Limits, LoadHints, Planned, State
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.errors import DataError

from .randomize import mersenne, order_functions
from .window_store import SHIFT, ChunkUses, WindowStore


@dataclass
class _Gathered:
    """Sequences of the next minibatch so far.

    Attributes:
        worker_size: Samples that it should have.
        numbers: The sequences.
        keep: Chunks that were passed.
        taken: Samples of the sequences.
        barren: Ends of sweeps that were passed.
        end_of_sweep: Whether there was one.
    """

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
        workers: How many workers read.
        rank: The number of this one.
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
        """Return this worker's chunks of a sweep from a place on."""
        order = self.of_sweep(sweep)
        return (int(order[position]) for position in range(place, self.chunks) if self.is_own(position))

    def share(self, samples: int) -> int:
        """Return this worker's share of the samples of all workers."""
        return samples // self.workers + (self.rank < samples % self.workers)

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


@dataclass
class _Position:
    """Position of reading, with CNTK's names in a saved state.

    Attributes:
        sweep: The sweep.
        place: The place of the next part of a window among the chunks of the sweep.
        sequence: Sequences of the sweep before that part.
        next: The next sequence in the part.
        sweeps_done: Ends of sweeps that were passed.
        samples: Samples of this worker that were given out.
        budget: What remains of the size of the window.
    """

    sweep: int = 0
    place: int = 0
    sequence: int = 0
    next: int = 0
    sweeps_done: int = 0
    samples: int = 0
    budget: int = 0

    def get_state(self) -> State:
        """Return the position."""
        return {name: getattr(self, field) for name, field in _STATE_NAMES.items()}

    @staticmethod
    def of_state(state: State, window: int) -> _Position:
        """Return the position that a state holds; `window` is the size of a whole window."""
        required = ("sweepIndex", "chunkPosition", "baseCurrentSequencePositionInWindow")
        sweep, place, sequence = (state_field(state, name) for name in required)
        return _Position(
            sweep,
            place,
            int(state.get("currentSequencePosition", 0)),
            sequence,
            int(state.get("baseSweepCount", sweep)),
            int(state.get("baseSampleCount", 0)),
            int(state.get("windowLeft", window)),
        )


_STATE_NAMES = {
    "sweepIndex": "sweep",
    "chunkPosition": "place",
    "currentSequencePosition": "sequence",
    "baseCurrentSequencePositionInWindow": "next",
    "baseSweepCount": "sweeps_done",
    "baseSampleCount": "samples",
    "windowLeft": "budget",
}


@dataclass
class EpochEnd:
    """The end of the data, or of an epoch: samples of all workers, or sweeps; None: there is no such end."""

    samples: int | None = None
    sweeps: int | None = None

    def samples_left(self, position: _Position, order: _ChunkOrder) -> int:
        """Return the number of samples that this worker reads up to the limit."""
        return NO_LIMIT if self.samples is None else order.share(self.samples) - position.samples


class _Windows:
    """Loads windows of chunks, part by part.

    Args:
        store: Loads chunks.
        order: The order of chunks, and the share of this worker.
        size: Chunks of this worker that are shuffled together; with `in_samples`, samples.
        in_samples: Whether the size is counted in samples.
    """

    def __init__(self, store: WindowStore, order: _ChunkOrder, size: int, in_samples: bool):
        self._store, self._order = store, order
        self.size, self.in_samples = size, in_samples
        self._largest_chunk = 1  # samples

    def chunks_from(self, position: _Position) -> tuple[list[int], int, int]:
        """Return this worker's chunks of a part, where it ends in the sweep, what remains of the budget."""
        order = self._order.of_sweep(position.sweep)
        place, budget = position.place, position.budget
        chunks: list[int] = []
        while place < self._order.chunks and budget > 0:
            chunk = int(order[place])
            if self._order.is_own(place):
                chunks.append(chunk)
                budget -= int(self._store.get(chunk)[1].sum()) if self.in_samples else 1
            place += 1
        return chunks, place, budget

    def load(self, position: _Position, chunks: list[int], end: int, left: int) -> _Window:
        """Return a part that has these chunks; the other arguments are those of a `_Window`."""
        self._store.ahead(chunks)
        loaded = [self._store.get(chunk)[1] for chunk in chunks]
        lengths = np.concatenate([np.empty(0, np.int64), *loaded])
        numbers = np.concatenate(
            [np.empty(0, np.int64), *((c << SHIFT) + np.arange(len(n)) for c, n in zip(chunks, loaded, strict=True))]
        )
        self._largest_chunk = max([self._largest_chunk, *(int(chunk_lengths.sum()) for chunk_lengths in loaded)])
        order = self._order
        if order.shuffled:
            chosen = np.arange(len(numbers))
            random = mersenne(position.place + position.sweep + order.seed)
            order_functions(10 * len(numbers)).shuffle_range(random, chosen, 0, len(numbers))
        else:
            chosen = np.flatnonzero((position.sequence + np.arange(len(numbers))) % order.workers == order.rank)
        passed = position.sequence + len(numbers)
        return _Window(chunks, numbers[chosen], starts_of(lengths[chosen]), end, left, passed)

    def after(self, position: _Position, part: _Window) -> _Position:
        """Return the start of the part after this one, which is at a position."""
        done = part.end >= self._order.chunks
        return replace(
            position,
            sweep=position.sweep + done,
            place=0 if done else part.end,
            sequence=0 if done else part.passed,
            next=0,
            sweeps_done=position.sweeps_done + done,
            budget=part.left if part.left > 0 else self.size,
        )

    def needed_after(self, position: _Position, part: _Window, end: EpochEnd) -> list[int]:
        """Return the chunks after a part that are worth loading now: none after the end of the epoch.

        A window is needed as a whole; else the time that loading takes decides how many.
        """
        order, whole = self._order, self._order.shuffled and not self.in_samples
        left = end.samples_left(position, order) - part.samples_from(position.next)
        count = min(self.size if whole else self._store.depth, -(-left // self._largest_chunk))
        chunks: list[int] = []
        sweep, place, done = position.sweep, part.end, position.sweeps_done
        while len(chunks) < count:
            if place >= order.chunks:
                sweep, place, done = sweep + 1, 0, done + 1
                if whole and chunks:
                    break
            if (end.sweeps is not None and done >= end.sweeps) or sweep > position.sweep + 1:
                break
            chunks += islice(order.own_from(sweep, place), count - len(chunks))
            place = order.chunks
        return chunks

    def budget_after(self, sweeps: int) -> int:
        """Return the rest of the window at the start of a sweep."""
        if self.in_samples:
            return self.size
        order = self._order
        mine = len(range(order.rank, order.chunks, order.workers)) if order.shuffled else order.chunks
        return self.size - sweeps * mine % self.size


class LocalTimeline:
    """Sweeps over chunks in windows: one chunk in file order, or a tumbling window of shuffled chunks.

    A window continues in the next sweep, but sequences of different sweeps are not mixed; so it is loaded sweep by
    sweep.

    Args:
        store: Loads chunks.
        randomize: Whether chunks and sequences are shuffled.
        window: Chunks of this worker that are shuffled together; with `in_samples`, samples.
        in_samples: Whether the window is counted in samples.
        seed: Added to the number of the sweep.
        end: The end of the data.
    """

    def __init__(
        self,
        store: WindowStore,
        *,
        randomize: bool,
        window: int = 128,
        in_samples: bool = False,
        seed: int = 0,
        end: EpochEnd | None = None,
    ):
        self.store, self.order = store, _ChunkOrder(store.data.chunks, randomize, seed)
        self.limits = Limits(NO_LIMIT, 1)
        self._windows = _Windows(store, self.order, max(1, window) if randomize else 1, in_samples and randomize)
        self._end = end or EpochEnd()
        self._uses = ChunkUses(store)
        self._go_to(_Position(budget=self._windows.size))

    def _go_to(self, position: _Position) -> None:
        self._position = position
        self._part: _Window | None = None
        self._ahead: set[int] = set()
        self._uses.clear()
        self._earlier = self.store.loaded()  # by what was read ahead before: perhaps it is needed again

    def _load(self) -> _Window:
        """Load the part at the position."""
        chunks, end, left = self._windows.chunks_from(self._position)
        if self._earlier:
            self._earlier -= set(chunks)
            if self.store.missing(chunks):  # what comes now was not read before
                self.store.free(self._earlier)
                self._earlier.clear()
        part = self._part = self._windows.load(self._position, chunks, end, left)
        self._position.next = min(self._position.next, len(part.sequences))
        ahead = self._windows.needed_after(self._position, part, self._end)
        self._ahead = set(ahead)
        self.store.ahead(ahead)
        return part

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
        over = self._end.sweeps is not None and self._position.sweeps_done >= self._end.sweeps
        return over or self._end.samples_left(self._position, self.order) <= 0

    @property
    def waits(self) -> bool:
        """True if the next minibatch needs a chunk that is not loaded yet."""
        start = self._position
        if self._part is not None:
            if self._part.samples_from(start.next) >= self.limits.worker:
                return False
            start = self._windows.after(start, self._part)
        # A window in samples has at least one chunk; how many is not known before.
        count = 1 if self._windows.in_samples else start.budget
        return not all(map(self.store.is_loaded, islice(self.order.own_from(start.sweep, start.place), count)))

    def __next__(self) -> Planned:
        """Return the next sequences of this worker, at least one, crossing chunks and sweeps."""
        planned = self._take(self.limits.worker)
        if planned is None:
            raise StopIteration
        return planned

    def _take(self, worker_size: int) -> Planned | None:
        """Return a minibatch of at most so many samples, of one sequence at least; None at the end of the epoch."""
        if self.ended or (self.order.shuffled and self.rank >= self.order.chunks):
            return None
        got = _Gathered(worker_size)
        while not self.ended and self._gather(got):
            pass
        if not got.numbers and not got.end_of_sweep:
            return None
        if self._part is not None:
            got.keep.update(self._part.chunks)
        got.keep |= self._ahead
        chosen, state = np.concatenate([np.empty(0, np.int64), *got.numbers]), self.get_state()
        self._uses.add(state, chosen, got.keep)
        return Planned(chosen, [state], got.end_of_sweep, self.ended, LoadHints(np.array(sorted(got.keep), np.int64)))

    def delivered(self, state: State) -> None:
        """Free the chunks that no minibatch after this state needs."""
        self._uses.delivered(state, self._ahead | self._earlier)

    def _gather(self, got: _Gathered) -> bool:
        """Take the fitting samples of the current part, or move to the next part; return whether more may follow."""
        part = self._part
        if part is None:
            if got.taken >= got.worker_size:
                return False
            part = self._load()
        got.keep.update(part.chunks)
        if self._position.next == len(part.sequences):
            return self._pass_on(got, part)
        if got.taken >= got.worker_size:
            return False
        count, samples = self._fitting(part, got.worker_size - got.taken, got.taken == 0)
        if count == 0:
            return False
        got.numbers.append(part.sequences[self._position.next : self._position.next + count])
        self._position.next += count
        self._position.samples += samples
        got.taken += samples
        return True

    def _pass_on(self, got: _Gathered, part: _Window) -> bool:
        """Go to the next part; whether there may be more: not when a whole sweep gave nothing."""
        position, self._part = self._position, None
        self._position = self._windows.after(position, part)
        ended = self._position.sweep > position.sweep
        got.end_of_sweep |= ended
        got.barren += ended
        nothing = got.taken == self._position.samples == 0 and self.order.workers == 1
        if got.barren and nothing and (got.barren > 1 or self.ended):
            raise DataError("The deserializer has no sequences: all its chunks are empty.")
        return got.barren <= 1 or got.taken > 0

    def _fitting(self, part: _Window, room: int, at_least_one: bool) -> tuple[int, int]:
        """Sequences of the part that fit, and their samples."""
        starts, first = part.starts[self._position.next :], int(part.starts[self._position.next])
        count = int(np.searchsorted(starts[1:], first + room, side="right"))
        left = self._end.samples_left(self._position, self.order)  # a sequence that begins before it is taken whole
        count = min(count, int(np.searchsorted(starts[:-1], first + left, side="left")))
        if at_least_one:
            count = max(count, 1)
        return count, int(starts[count]) - first

    def get_state(self) -> State:
        """Return the position under CNTK's names."""
        return {
            **self._position.get_state(),
            "endSamples": self._end.samples,
            "endSweeps": self._end.sweeps,
            "workers": self.workers,
            "rank": self.rank,
        }

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or to a position.

        Samples in front of an epoch of given size are passed over by loading them. With other workers, a position
        continues with the same window, at the same place of it.
        """
        if isinstance(state, EpochRequest):
            self._start(state)
            return
        position = _Position.of_state(state, self._windows.size)
        self._go_to(position)
        self._end = EpochEnd(state.get("endSamples", self._end.samples), state.get("endSweeps", self._end.sweeps))
        self.order.workers, self.order.rank = int(state.get("workers", self.workers)), int(state.get("rank", self.rank))

    def _start(self, request: EpochRequest) -> None:
        epoch = request.epoch
        changed = (request.workers, request.worker) != (self.workers, self.rank)
        self.order.workers, self.order.rank = request.workers, request.worker
        if changed:
            self._go_to(_Position(budget=self._windows.size))
        here = self._position
        if request.samples is None:
            self._end = EpochEnd(sweeps=epoch + 1)
            if here.sweeps_done != epoch or here.place or here.next:
                self._go_to(_Position(epoch, sweeps_done=epoch, budget=self._windows.budget_after(epoch)))
            return
        self._end = EpochEnd(samples=request.samples * (epoch + 1))
        begin = self.order.share(request.samples * epoch)
        if here.samples > begin or epoch == 0:
            self._go_to(_Position(budget=self._windows.size))
        while self._position.samples < begin and self._take(1) is not None:
            pass
