"""The order of the data. Every order is a function of (data, chunking, window, seed + sweep), nothing else.

A randomizer walks an endless timeline of samples, sweep after sweep, and hands out sequences by their number in the
deserializer's table.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.readers.common.arguments import state_field
from cntkpy.readers.common.planned import NO_LIMIT, Limits, LoadHints, Planned, State, join
from cntkpy.readers.common.sequences import SequenceTable, Starts, starts_of
from cntkpy.readers.contracts import DEFAULT_MEMORY, LoadsWholeChunks
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.kernels.budget import fits_budget

log = logging.getLogger("cntkpy.readers")
WHOLE_DATA = (2**64 - 1) >> 2
_MAX_INT64 = 2**63 - 1
_NO_OWNER = np.empty(0, np.int32)
_NO_CHUNKS = np.empty(0, np.int64)
_DRAW_WORK, _SEEDING_WORK = 10, 2000  # work, see `fits_budget`
_CHUNKS_AHEAD = 64  # chunks beyond the window that are announced, so that they can be read ahead


def order_functions(work: int) -> Any:
    """`order_kernels`, or the fallbacks if the work fits the budget."""
    if fits_budget(work):
        from cntkpy.readers.kernels import order_fallback as functions
    else:
        from cntkpy.readers.kernels import order_kernels as functions
    return functions


def chunks_in_memory(data: Any, memory: int = DEFAULT_MEMORY) -> int | None:
    """Return a window, in chunks, that stays in memory; None where all data do, or single sequences are quickly loaded.

    Beyond that a shuffled order would load whole chunks for single sequences, again and again.

    Args:
        data: a deserializer.
        memory: bytes of loaded data that are kept.
    """
    if not (isinstance(data, LoadsWholeChunks) and data.whole_chunks) or int(data.chunk_bytes.sum()) <= memory:
        return None
    window = max(1, memory // max(1, int(data.chunk_bytes.max())) - 1)  # a minibatch may reach into the next window
    log.info(
        "The data take %d MB, of which %d MB are kept: %s are shuffled among each other. randomizationWindow sets "
        "another number of samples; smaller chunks are shuffled better.",
        int(data.chunk_bytes.sum()) >> 20,
        memory >> 20,
        "the samples of a chunk" if window == 1 else f"those of {window} chunks",
    )
    return window


def mersenne(seed: int) -> np.ndarray:
    """Return a Mersenne Twister seeded with this number: its state, for `random_kernels.draw`."""
    if fits_budget(_SEEDING_WORK):
        from cntkpy.readers.kernels.random_fallback import mt_seed
    else:
        from cntkpy.readers.kernels.random_kernels import mt_seed
    return mt_seed(np.uint64(seed % 2**64))


def window_order(count: int, window: int, seed: int) -> np.ndarray:
    """Return a permutation of 0 .. count - 1, int64[count], in which nothing moves by more than half the window."""
    if fits_budget(60 * count):
        from cntkpy.readers.kernels.random_fallback import window_order
    else:
        from cntkpy.readers.kernels.shuffle_kernels import window_order
    return window_order(count, window, seed)


class ChunkRandomizer:
    """Order of the chunks in a sweep, and around each placed chunk the window its sequences may come from."""

    def __init__(self, table: SequenceTable, window: int = WHOLE_DATA, *, in_chunks: bool = False, seed: int = 0):
        self.table, self.window, self.in_chunks, self.seed = table, min(window, WHOLE_DATA), in_chunks, seed

    def random(self, sweep: int) -> np.ndarray:
        """Return the generator at the start of a sweep."""
        return mersenne(self.seed + sweep)

    def order(self, sweep: int) -> np.ndarray:
        """Chunks in the order of the sweep, int64[C]."""
        order = np.arange(self.table.num_chunks)
        if len(order) == 1:
            return order  # to seed a generator takes as long as all the rest of a small sweep
        order_functions(_DRAW_WORK * len(order)).shuffle_all(self.random(sweep), order)
        return order

    def windows(self, order: np.ndarray) -> np.ndarray:
        """[begin, end) of the window around every placed chunk, int64[C, 2]."""
        if not self.in_chunks:
            samples = np.diff(self.table.chunk_starts)[order]
            return order_functions(_DRAW_WORK * len(order)).windows_in_samples(starts_of(samples), self.window)
        count, width = len(order), max(self.window, 1)
        begin = np.maximum(np.arange(count) - self.window // 2, 0)
        end = np.minimum(begin + width, count)
        return np.stack([np.where(begin + width > count, np.maximum(count - width, 0), begin), end], axis=1)


class SequenceRandomizer:
    """Order of the sequences in a sweep: a rolling shuffle inside the windows of the chunks."""

    def __init__(self, table: SequenceTable, seed: int = 0):
        self.table, self.seed = table, seed

    def random(self, sweep: int) -> np.ndarray:
        """Return the generator at the start of a sweep."""
        return mersenne(self.seed + sweep)

    def order(self, sweep: int, chunks: np.ndarray, windows: np.ndarray) -> np.ndarray:
        """Sequence numbers in the order of the sweep, an integer[N] (32 bits if that is enough)."""
        first, state = self.table.first, self.random(sweep)
        total = int(first[-1])
        number = np.int32 if total < 2**31 else np.int64
        if bool((windows == [0, len(chunks)]).all()):  # every place may trade with every other
            values = np.empty(total, number)
            k = order_functions(_DRAW_WORK * total)
            k.number_places(first, chunks, values)
            k.shuffle_all(state, values)
            return values
        from cntkpy.readers.kernels import order_kernels as k

        sizes = np.diff(first)[chunks]
        starts = starts_of(sizes)
        home = np.repeat(np.arange(len(chunks), dtype=np.int32), sizes)
        rank = np.arange(total, dtype=number)
        rank -= np.repeat(starts[:-1].astype(number), sizes)
        k.shuffle_sequences(state, starts, windows, home, rank)
        k.number_ranks(first, chunks, home, rank)
        return rank


@dataclass(eq=False)
class Sweep:
    """One sweep laid out.

    order, an integer[N] (None: 0..N-1); starts in samples (None: all of one length); owner int32[N] decides
    which worker reads a sequence (empty: its place in the sweep). chunks int64[C], windows int64[C, 2] and ends
    int64[C] (sequences up to the end of each placed chunk) for a shuffled sweep.
    """

    number: int
    order: np.ndarray | None
    lengths: np.ndarray
    starts: Starts | None
    owner: np.ndarray
    chunks: np.ndarray | None = None
    windows: np.ndarray | None = None
    ends: np.ndarray | None = None


class Timeline:
    """Position, epochs and sweeps: what the two randomizers share.

    Several workers take the minibatch of one worker and share it, so that all are at the same place and some may
    get nothing; where `limits.minibatch` is `NO_LIMIT`, each takes at least one sequence of its own.
    """

    cuts_at_epoch_end = True
    fills_up_to_epoch_end = False

    def __init__(self, table: SequenceTable, *, cross_sweeps: bool = False):
        self.table, self.cross_sweeps = table, cross_sweeps
        self.limits = Limits(1, 1)
        self.position, self.epoch_end = 0, NO_LIMIT
        self.workers, self.rank = 1, 0
        self._sweep: Sweep | None = None

    def lay_out(self, number: int) -> Sweep:
        """The order of a sweep."""
        raise NotImplementedError

    def starved(self) -> bool:
        """Return True if this worker can never get any data."""
        return False

    @property
    def ended(self) -> bool:
        """True after the end of the epoch."""
        return self.position >= self.epoch_end

    def __next__(self) -> Planned:
        """Return the next minibatch, of at least one sequence; several if `limits` ask for them."""
        if self.ended or self.starved():
            raise StopIteration
        planned = self._take_several() if self.limits.count > 1 else None
        if planned is None and (planned := join(self._take_over_sweeps())) is None:
            raise StopIteration
        return planned

    def get_state(self) -> State:
        """Return the position."""
        return {
            "minibatchSourcePosition": self.position,
            "epochEnd": self.epoch_end,
            "workers": self.workers,
            "rank": self.rank,
        }

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or to a position.

        Only the minibatchSourcePosition of a state is needed; the rest stays as it is.
        """
        if isinstance(state, EpochRequest):
            size = self.table.num_samples if state.samples is None else state.samples
            position, end = size * state.epoch, size * (state.epoch + 1)
            workers, rank = state.workers, state.worker
            if end > _MAX_INT64:
                raise ValueError("Too big epoch size can cause bit overflow")
        else:
            position, end = state_field(state, "minibatchSourcePosition"), int(state.get("epochEnd", self.epoch_end))
            workers, rank = int(state.get("workers", self.workers)), int(state.get("rank", self.rank))
        if workers != self.workers:
            self._sweep = None
        self.workers, self.rank, self.epoch_end = workers, rank, end
        self.seek(position)

    def seek(self, position: int) -> None:
        """Go to a sample of the timeline; one inside a sequence means the next sequence."""
        sweep = self.sweep(position // self.table.num_samples)
        base = sweep.number * self.table.num_samples
        self.position = base + self._start_of(sweep, self._index_of(sweep, position - base))

    def sweep(self, number: int) -> Sweep:
        """Sweep `number`, laid out once."""
        if self._sweep is None or self._sweep.number != number:
            self._sweep = None
            self._sweep = self.lay_out(number)
        return self._sweep

    def _index_of(self, sweep: Sweep, offset: int) -> int:
        """First sequence that starts at or after `offset` samples."""
        if sweep.starts is None:
            length = int(sweep.lengths[0])
            return -(-offset // length)
        return sweep.starts.searchsorted(offset)

    def _start_of(self, sweep: Sweep, index: int) -> int:
        return sweep.starts[index] if sweep.starts is not None else index * int(sweep.lengths[0])

    def _take_over_sweeps(self) -> list[Planned]:
        """Take the sequences of the next minibatch; a part of it from each sweep."""
        parts: list[Planned] = []
        left, own_left = self.limits.minibatch, self.limits.worker
        at_least_one = True
        while True:
            part, taken, local_taken = self._take(left, own_left, at_least_one)
            if part is None:
                return parts
            parts.append(part)
            left, own_left = left - taken, own_left - local_taken
            at_least_one = at_least_one and not local_taken
            unfinished = part.end_of_sweep and not part.end_of_epoch and left > 0 and own_left > 0
            if not (self.cross_sweeps and unfinished):
                return parts

    def _take_several(self) -> Planned | None:
        """Return a plan of several minibatches at once for a single worker.

        None where a minibatch may reach into the next sweep, and for several workers.
        """
        if self.workers > 1:
            return None
        total, limits = self.table.num_samples, self.limits
        sweep = self.sweep(self.position // total)
        base = self.position
        begin = self._index_of(sweep, base - sweep.number * total)
        ends = 0 if len(sweep.lengths) == 1 else len(sweep.lengths) - begin
        cuts, taken = order_functions(limits.count + ends // 32).take_several(
            sweep.lengths,
            begin,
            self.table.num_sequences,
            limits.worker,
            self.epoch_end - base,
            self.cuts_at_epoch_end,
            self.fills_up_to_epoch_end,
            self.cross_sweeps,
            limits.count,
            limits.samples,
        )
        if len(taken) == 0:
            return None
        end = begin + int(cuts[-1])
        self.position = base + int(taken[-1])
        ended = self.position - sweep.number * total >= total
        state = self.get_state()
        states = [{**state, "minibatchSourcePosition": position} for position in (base + taken).tolist()]
        return self._planned(sweep, begin, end, ended, states, cuts.tolist())

    def _take(self, minibatch_size: int, worker_size: int, at_least_one: bool) -> tuple[Planned | None, int, int]:
        """Take sequences of this sweep, and return how many samples of all workers, and of this one."""
        total = self.table.num_samples
        sweep = self.sweep(self.position // total)
        offset = self.position - sweep.number * total
        begin = self._index_of(sweep, offset)
        left = self.epoch_end - self.position if self.cuts_at_epoch_end else NO_LIMIT
        if self.fills_up_to_epoch_end:
            minibatch_size = min(minibatch_size, left)
        together = self.workers > 1 and self.limits.minibatch < NO_LIMIT
        k = order_functions(_DRAW_WORK * min(minibatch_size, self.table.num_sequences - begin))
        end, taken, local_taken = k.take(
            sweep.lengths,
            begin,
            self.table.num_sequences,
            sweep.owner,
            self.workers,
            self.rank,
            min(minibatch_size, total - offset),
            min(worker_size, NO_LIMIT),
            left,
            at_least_one,
            together,
        )
        if end == begin:
            return None, 0, 0
        self.position += taken
        planned = self._planned(sweep, begin, end, offset + taken >= total, [self.get_state()])
        if together:
            planned.together = np.broadcast_to(sweep.lengths, self.table.num_sequences)[begin:end]
        return planned, taken, local_taken

    def _planned(
        self, sweep: Sweep, begin: int, end: int, ended: bool, states: list[State], cuts: list[int] | None = None
    ) -> Planned:
        """Return this worker's sequences at the places begin..end-1 of a sweep. ended: the sweep is over."""
        sequences = self._at(sweep, begin, end)
        keep, ahead = self._needed(sweep, begin, end)
        hints = LoadHints(keep, ahead, lambda count: self._at(sweep, end, end + count * self.workers))
        runs = ((sweep.number, len(sequences)),)
        return Planned(sequences, states, ended, self.position >= self.epoch_end, hints, cuts, sweeps=runs)

    def _at(self, sweep: Sweep, begin: int, end: int) -> np.ndarray:
        """Return this worker's sequences at these places of a sweep, int64[n]."""
        end = min(end, self.table.num_sequences)
        places = order_functions((end - begin) // 32).count_up(begin, end)
        if self.workers > 1:
            owner = sweep.owner[begin:end] if len(sweep.owner) else places
            places = places[owner % self.workers == self.rank]
        return places if sweep.order is None else sweep.order[places].astype(np.int64, copy=False)

    def _needed(self, sweep: Sweep, begin: int, end: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Chunks of the window around the sequences begin..end-1 of a sweep, and those after it."""
        return None, None


class BlockRandomizer(Timeline):
    """The shuffled order. Never takes a sequence that starts at or after the end of the epoch.

    A minibatch at the end of an epoch holds what fits into the rest of it, at least one sequence. With cross_sweeps
    (the Python data API) it is filled up to its own size instead, so that no tiny one is left over.
    """

    def __init__(
        self,
        table: SequenceTable,
        window: int = WHOLE_DATA,
        *,
        in_chunks: bool = False,
        seed: int = 0,
        cross_sweeps: bool = False,
    ):
        super().__init__(table, cross_sweeps=cross_sweeps)
        self.fills_up_to_epoch_end = not cross_sweeps
        self._chunks = ChunkRandomizer(table, window, in_chunks=in_chunks, seed=seed)
        self._sequences = SequenceRandomizer(table, seed)

    def starved(self) -> bool:
        """Chunks are dealt out to workers: one beyond their number gets none."""
        return self.rank >= self.table.num_chunks

    def lay_out(self, number: int) -> Sweep:
        """Shuffle chunks, then sequences."""
        table = self.table
        chunks = self._chunks.order(number)
        windows = self._chunks.windows(chunks)
        order = self._sequences.order(number, chunks, windows)
        lengths, starts = table.lengths, None
        if len(lengths) > 1:
            lengths = lengths[order]
            starts = Starts(lengths)
        owner = _NO_OWNER
        if self.workers > 1:
            place = np.empty(table.num_chunks, np.int32)
            place[chunks] = np.arange(table.num_chunks)
            owner = place[np.searchsorted(table.first, order, side="right") - 1]
        ends = np.cumsum(np.diff(table.first)[chunks])
        return Sweep(number, order, lengths, starts, owner, chunks, windows, ends)

    def _needed(self, sweep: Sweep, begin: int, end: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        assert sweep.chunks is not None and sweep.windows is not None and sweep.ends is not None
        if len(sweep.chunks) == 1:
            return sweep.chunks, None
        low, high = sweep.ends.searchsorted((begin, end - 1), "right")
        first, last = int(sweep.windows[low, 0]), int(sweep.windows[high, 1])
        # Chunks are dealt out to workers by their place in the sweep.
        mine = first + (self.rank - first) % self.workers
        next_one = last + (self.rank - last) % self.workers
        unfinished = sweep.chunks[next_one : next_one + _CHUNKS_AHEAD * self.workers : self.workers]
        return sweep.chunks[mine : last : self.workers], unfinished


class NoRandomizer(Timeline):
    """The order of the file. A minibatch is cut at the end of a sweep only, so an epoch may overshoot its end."""

    def __init__(self, table: SequenceTable, *, cross_sweeps: bool = False, cuts_at_epoch_end: bool = False):
        super().__init__(table, cross_sweeps=cross_sweeps)
        self.cuts_at_epoch_end = cuts_at_epoch_end
        self._same: Sweep | None = None
        self._window: tuple[int, int, np.ndarray, np.ndarray] = 0, 0, _NO_CHUNKS, _NO_CHUNKS
        """Sequences from, to; the chunks around and after them."""

    def starved(self) -> bool:
        """Sequences are dealt out to workers: one beyond their number would look for its own in all sweeps to come."""
        return self.cross_sweeps and self.rank >= self.table.num_sequences

    def lay_out(self, number: int) -> Sweep:
        """All sweeps are alike."""
        if self._same is None:
            lengths = self.table.lengths
            starts = Starts(lengths) if len(lengths) > 1 else None
            self._same = Sweep(number, None, lengths, starts, _NO_OWNER)
        return Sweep(number, None, self._same.lengths, self._same.starts, _NO_OWNER)

    def _needed(self, sweep: Sweep, begin: int, end: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        first, last, keep, ahead = self._window
        if not first <= begin < end <= last:
            low, high = map(int, self.table.first.searchsorted((begin, end - 1), "right"))
            keep, ahead = np.arange(low - 1, high), np.arange(high, min(high + _CHUNKS_AHEAD, self.table.num_chunks))
            self._window = int(self.table.first[high - 1]), int(self.table.first[high]), keep, ahead
        return keep, ahead
