"""Epochs over a corpus: blocks of sentences, ordered and grouped, each group one minibatch or several.

Every epoch begins at the start of the corpus. Sentences of a block are shuffled, then grouped; the groups are given out
in order. So a position is small: where the block begins, how it was shuffled, and which group is next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise, repeat
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.narrowing import is_dict
from cntkpy.readers.common.planned import State
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline.pack import make_csr
from cntkpy.readers.pipeline.prefetch import Prefetch
from cntkpy.readers.pipeline.whole import (
    GROUP_GROWTH_FACTOR,
    MAX_GROUP_DENSE_BYTES,
    MAX_GROUP_MINIBATCHES,
    MAX_GROUP_SAMPLES,
)
from cntkpy.readers.streams import StreamInformation

from . import codes as k
from .corpus import Block, Corpus, Place
from .kernels import layers
from .pieces import Pieces


@dataclass
class Position:
    """Position of reading.

    counted: what the size of the epoch counts, so far. begin: of the block, None before the first. seed: the block was
    shuffled with. number: of the block in its epoch. group, step: what comes next. calls: minibatches asked for so far.
    """

    epoch: int = 0
    epoch_size: int | None = None
    minibatch_size: int = 1
    counted: int = 0
    begin: Place | None = None
    seed: int = 0
    number: int = -1
    group: int = 0
    step: int = 0
    calls: int = 0
    over: bool = False

    @property
    def is_past_epoch(self) -> bool:
        """True if more was counted than the epoch has."""
        return self.epoch_size is not None and self.counted > self.epoch_size


class Groups:
    """Sentences of a block by group: `members` of all groups one after the other, group g from starts[g] on."""

    def __init__(self, order: np.ndarray, group: np.ndarray):
        """order: sentences, int64[n]; group: number of the group of each of them; the numbers need not be dense."""
        by_group = stable_order(group)
        self.members = order[by_group]
        sizes = np.bincount(group) if len(group) else np.zeros(0, np.int64)
        self.starts = np.append(0, np.cumsum(sizes[sizes > 0]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def has_step(self, position: Position, lengths: np.ndarray, unlabelled: int) -> bool:
        """Return whether there are this group and this step of it, or the group is the one after the last.

        Args:
            position: Has the group and the step.
            lengths: Tokens of each sentence of the block, int64[n].
            unlabelled: Tokens at the end of a sentence that are no step.
        """
        if not 0 <= position.group < len(self):
            return position.group == len(self)
        first, end = self.starts[position.group : position.group + 2]
        return 0 <= position.step < int(lengths[self.members[first:end]].max()) - unlabelled


@dataclass(eq=False)
class Run:
    """Position of reading before several minibatches, and after each of them: after int64[n, 3], counted, group, step.

    number: how many of the minibatches were given out.
    """

    start: Position
    after: np.ndarray
    number: int = 0

    def position(self, number: int) -> Position:
        """After so many of them."""
        if number == 0:
            return self.start
        counted, group, step = self.after[number - 1].tolist()
        return replace(self.start, counted=counted, group=group, step=step, calls=self.start.calls + number)


_NONE = np.zeros((0, 3), np.int64)
_Made = tuple[Run, Iterator[Minibatch]]
"""Positions of minibatches, none at the end of the epoch, and the minibatches."""


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """Return the places of numbers >= 0, the smallest first; NumPy sorts those of 16 bits in a third of the time."""
    small = len(numbers) > 0 and int(numbers.max()) < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if small else numbers, kind="stable")


class SentenceFormat(ABC):
    """The order and the layout of the sentences of one reader.

    Args:
        corpus: The sentences.
        streams: What minibatches have of them.

    Attributes:
        kind: The name of the reader.
        unlabelled: Tokens at the end of a sentence that are no step.
        truncates: Whether sentences resume from one minibatch to the next.
        seeds_by_calls: Whether the order of a block depends on the number of minibatches before it.
    """

    kind = "SequenceReader"
    unlabelled = 0
    truncates = False
    seeds_by_calls = False

    def __init__(self, corpus: Corpus, streams: Sequence[StreamInformation]):
        self.corpus, self.streams = corpus, streams

    def samples(self) -> int:
        """Samples of the whole corpus; reads all of it, once."""
        return self.corpus.measures.tokens

    def prepare(self, minibatch_size: int) -> None:  # noqa: B027
        """Called at the start of an epoch."""

    @abstractmethod
    def permutation(self, count: int, seed: int) -> np.ndarray:
        """Return the sentences of a block in the order of this seed, int64[count]."""

    @abstractmethod
    def seed(self, position: Position) -> int:
        """Return the seed of the block that is about to be loaded."""

    @abstractmethod
    def group(self, lengths: np.ndarray, minibatch_size: int) -> np.ndarray:
        """Number of the group of every sentence, by their lengths in order; groups are given out by these numbers."""

    @abstractmethod
    def plan(self, block: Block, groups: Groups, position: Position, most: int, cells: int) -> np.ndarray:
        """Return the table of the next pieces, see `lay_kernels.plan_pieces`."""

    @abstractmethod
    def counts(self, table: np.ndarray) -> np.ndarray:
        """Return the size of each piece as the epoch counts it, int64[M]."""

    @abstractmethod
    def pack(self, pieces: Pieces) -> dict[str, Iterator[Any]]:
        """By stream, what each minibatch has of it."""


class SentenceSource:
    """Minibatches of sentences, as `cntkpy.readers.contracts.EpochSource` wants them.

    Args:
        format: The order and the layout of the sentences.
        shuffles: Whether the sentences of each block are shuffled.
        repeats: Whether an epoch of given size continues at the start of the corpus when the corpus ends.
        prefetch: Whether minibatches are made ahead.
    """

    def __init__(self, format: SentenceFormat, *, shuffles: bool, repeats: bool = False, prefetch: bool = True):
        self._format, self._shuffles, self._repeats = format, shuffles, repeats
        self.corpus, self.streams = format.corpus, format.streams
        self.class_names: dict[str, Callable[[], dict[int, str]]] = {}
        """The words of streams and of sections of labels, by number."""
        self._position = Position()
        self._run = Run(self._position, _NONE)
        self._block: Block | None = None
        self._following: Block | None = None
        self._groups = Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._taken: Iterator[Minibatch] = iter(())
        self._interrupted = False
        """True after an error or Ctrl-C while a minibatch was made, which has to be made again."""
        self._made: Prefetch[_Made] = Prefetch(self._produce, plan=lambda: None, threads=int(prefetch), is_last=_is_end)
        self._most = 1  # minibatches made at once
        self.corpus.block()  # an empty corpus is an error now

    @property
    def files(self) -> list[str]:
        """The corpus."""
        return [self.corpus.path]

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole corpus."""
        return self._format.samples()

    def _start(self, request: EpochRequest) -> None:
        if request.workers > 1:
            raise UserError(
                "OneWorkerOnly",
                f"{self._format.kind} reads for one worker only, there are {request.workers}",
                hint="sentences are not shared out among workers; train in one process",
            )
        self._forget()
        epoch, samples, size = request.epoch, request.samples, request.minibatch_size
        calls = self._delivered_position().calls or self._calls_before(epoch, samples, size)
        self._go_to(Position(epoch, samples, size, calls=calls))
        self._format.prepare(size)

    def _forget(self) -> None:
        """Drop the minibatches that were prepared."""
        self._made.reset()
        self._taken, self._interrupted = iter(()), False
        self._most = 1

    def _go_to(self, position: Position) -> None:
        self._position, self._run = position, Run(position, _NONE)
        self._block = self._following = None

    def _delivered_position(self) -> Position:
        return self._run.position(self._run.number)

    def _calls_before(self, epoch: int, epoch_size: int | None, minibatch_size: int) -> int:
        """Minibatches that epochs before this one asked for, if the order depends on them.

        Epochs are gone through as if they had been read: a resumed training has the order of one that was not stopped.
        """
        calls = 0
        if not (self._shuffles and self._format.seeds_by_calls):
            return 0
        for _ in range(epoch):
            counted = 0
            for block in self.corpus.blocks():
                sizes = np.diff(self._ordered(block, calls, minibatch_size).starts)
                line_numbers = counted + np.append(0, np.cumsum(sizes))
                fits = line_numbers[:-1] <= (2**62 if epoch_size is None else epoch_size)
                calls, counted = calls + int(fits.sum()), int(line_numbers[-1])
                if not fits.all():
                    break
            calls += 1
        return calls

    def leave_reading_ahead(self) -> None:
        """Make minibatches where they are asked for, from now on; see `ReadsAhead`."""
        self._made.threads = 0

    def __next__(self) -> Minibatch:
        """Return the next minibatch; the end of the epoch is that of the iteration."""
        if self._interrupted:
            self.set_state(self.get_state())
        try:
            minibatch = next(self._taken, None)
            if minibatch is None:
                self._run, self._taken = next(self._made)
                minibatch = next(self._taken, None)
        except BaseException:
            self._interrupted = True
            raise
        if minibatch is None:
            raise StopIteration
        self._run.number += 1
        return minibatch

    def _produce(self, plan: None) -> _Made:
        """Make the arrays of the next minibatches, one at least; the consumer makes the minibatches of them.

        To hand over one takes as long as to make it, and minibatches that are kept cost garbage collections.
        """
        position = replace(self._position)
        if not position.over and (position.is_past_epoch or not self._has_group(position)):
            position.over, position.calls = True, position.calls + 1
        if position.over:
            self._position = position
            return Run(position, _NONE), iter(())
        assert self._block is not None
        pieces, run = self._next_pieces(self._block, position)
        after = run.position(len(run.after))
        ends_sweep = after.group == len(self._groups) and self._next_block() is None
        ends_epoch = after.is_past_epoch or (ends_sweep and not self._starts_again(after))
        self._position = after
        self._most = min(GROUP_GROWTH_FACTOR * self._most, MAX_GROUP_MINIBATCHES)
        packed = self._format.pack(pieces)
        return run, _minibatches(pieces, packed, self._format.truncates, (ends_sweep, ends_epoch))

    def _next_pieces(self, block: Block, position: Position) -> tuple[Pieces, Run]:
        """Return the pieces of the next minibatches, up to the end of the epoch."""
        groups = self._groups
        table = self._format.plan(block, groups, position, self._most, _most_samples(self.streams))
        counted = position.counted + np.cumsum(self._format.counts(table))
        if position.epoch_size is not None:
            count = int(np.searchsorted(counted, position.epoch_size, "right")) + 1
            table, counted = table[: count + 1], counted[:count]
        functions, unlabelled = layers(int(table[-1, k.FIRST])), self._format.unlabelled
        sequences, which = functions.sequences_of(table, block.bounds, groups.members, groups.starts, unlabelled)
        pieces = Pieces(block, table, sequences, which, position.epoch, position.calls)
        return pieces, _run_of(table, position, counted)

    def _starts_again(self, position: Position) -> bool:
        return self._repeats and position.epoch_size is not None

    def _next_block(self) -> Block | None:
        if self._following is None and self._block is not None:
            self._following = self.corpus.block(self._block.end)
        return self._following

    def _has_group(self, now: Position) -> bool:
        """Go to the next block if this one has no more groups; False at the end of the corpus."""
        if self._block is not None and now.group < len(self._groups):
            return True
        block = self.corpus.block() if self._block is None else self._next_block()
        block = self.corpus.block() if block is None and self._starts_again(now) else block
        if block is None:
            return False
        now.number += 1
        now.begin, now.group, now.step = block.begin, 0, 0
        now.seed = self._format.seed(now)
        self._enter(block, now)
        return True

    def _enter(self, block: Block, position: Position) -> None:
        self._block, self._following = block, None
        self._groups = self._ordered(block, position.seed, position.minibatch_size)

    def _ordered(self, block: Block, seed: int, minibatch_size: int) -> Groups:
        lengths = block.lengths
        order = self._format.permutation(len(lengths), seed) if self._shuffles else np.arange(len(lengths))
        return Groups(order, self._format.group(lengths[order], minibatch_size))

    def get_state(self) -> State:
        """Return the position after the last minibatch that was given out."""
        return {"version": 1, "reader": self._format.kind, **asdict(self._delivered_position())}

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or resume exactly where `get_state` was called."""
        if isinstance(state, EpochRequest):
            self._start(state)
            return
        if not is_dict(state) or state.get("reader") != self._format.kind:
            raise ArgumentError(f"this is not the position of a {self._format.kind}")
        self._forget()
        known = {name: value for name, value in state.items() if name in vars(self._position)}
        begin = known.get("begin")
        position = replace(self._position, **known | {"begin": None if begin is None else Place(*begin)})
        self._go_to(position)
        self._format.prepare(position.minibatch_size)
        if position.begin is not None and not position.over:
            block = self.corpus.block(position.begin)
            if block is not None:
                self._enter(block, position)
            if block is None or not self._groups.has_step(position, block.lengths, self._format.unlabelled):
                raise ArgumentError(f"the corpus {self.corpus.path} is not the one that this position belongs to")

    def close(self) -> None:
        """Stop reading ahead."""
        self._made.close()


def _most_samples(streams: Sequence[StreamInformation]) -> int:
    """Return the most samples that are laid out at once."""
    bytes_of_cell = sum(stream.dim * stream.dtype.itemsize for stream in streams if not stream.sparse)
    return min(MAX_GROUP_SAMPLES, MAX_GROUP_DENSE_BYTES // max(bytes_of_cell, 1))


def _run_of(table: np.ndarray, position: Position, counted: np.ndarray) -> Run:
    """Return a position with those after each of the pieces of a table."""
    step = table[:-1, k.STEP_BEGIN] + table[:-1, k.STEPS]
    ended = step == table[:-1, k.LONGEST]
    return Run(position, np.stack([counted, table[:-1, k.GROUP] + ended, step * ~ended], axis=1))


def _minibatches(
    pieces: Pieces, packed: dict[str, Iterator[Any]], truncates: bool, ends: tuple[bool, bool]
) -> Iterator[Minibatch]:
    """Yield minibatches; ends: whether the sweep and the epoch end with the last."""
    names, firsts = tuple(packed), pieces.column(k.FIRST)
    keys: list[int | str] = (pieces.block.begin.sentence + pieces.which).tolist()
    ended = chain(repeat((False, False), len(firsts) - 2), [ends])
    streams = map(dict, map(zip, repeat(names), zip(*packed.values(), strict=True)))
    several = zip(streams, pieces.layouts(), pieces.columns(), pairwise(firsts), ended)  # noqa: B905  # takes time
    for values, layout, columns, (a, b), (sweep, epoch) in several:
        yield Minibatch(values, dict.fromkeys(names, layout), keys[a:b], sweep, epoch, truncates, columns)


def _is_end(made: _Made) -> bool:
    return not len(made[0].after)


def sparse_rows(columns: np.ndarray, counts: np.ndarray | None, dim: int, dtype: np.dtype) -> Any:
    """CSR matrix of ones: row i has counts[i] of them (None: each has one), at the next of the `columns`."""
    if counts is None:
        indptr = np.arange(len(columns) + 1, dtype=np.int32)
    else:
        indptr = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=indptr[1:])
    return make_csr(np.ones(len(columns), dtype), columns.astype(np.int32), indptr, dim)
