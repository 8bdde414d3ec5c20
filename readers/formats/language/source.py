"""Epochs over a corpus: blocks of sentences, ordered and grouped, each group one minibatch or several.

Every epoch begins at the start of the corpus. Sentences of a block are shuffled, then grouped; the groups are given out
in order. So a position is small: where the block begins, how it was shuffled, and which group is next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cntk_config.base.diagnostics import UserError
from readers.errors import ArgumentError
from readers.minibatch import Minibatch
from readers.pipeline.pack import make_csr
from readers.pipeline.prefetch import Prefetcher
from readers.streams import StreamInformation

from .corpus import Block, Corpus, Place


@dataclass
class Position:
    """Where reading stands.

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


class Groups:
    """Sentences of a block by group: `members` of all groups one after the other, group g from starts[g] on."""

    def __init__(self, order: np.ndarray, group: np.ndarray):
        """order: sentences, int64[n]; group: number of the group of each of them; the numbers need not be dense."""
        by_group = np.argsort(group, kind="stable")
        self.members = order[by_group]
        sizes = np.bincount(group) if len(group) else np.zeros(0, np.int64)
        self.starts = np.append(0, np.cumsum(sizes[sizes > 0]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, group: int) -> np.ndarray:
        return self.members[self.starts[group] : self.starts[group + 1]]


class SentenceSource(ABC):
    """Minibatches of sentences, with the interface of `readers.pipeline.source.Source`."""

    kind = "SequenceReader"

    def __init__(self, corpus: Corpus, streams: Sequence[StreamInformation], *, shuffles: bool, prefetch: bool = True):
        self.corpus, self.streams, self.shuffles = corpus, streams, shuffles
        self.repeats = False
        """Whether an epoch of given size goes on at the start of the corpus when the corpus ends."""
        self.class_names: dict[str, Callable[[], dict[int, str]]] = {}
        """The words of streams and of sections of labels, by number."""
        self._position = self._delivered = Position()
        self._block: Block | None = None
        self._following: Block | None = None
        self._groups = Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._prefetcher: Prefetcher[tuple[Minibatch | None, Position]] = Prefetcher(self._produce, int(prefetch))
        corpus.block()  # an empty corpus is an error now

    @property
    def files(self) -> list[str]:
        """The corpus."""
        return [self.corpus.path]

    @abstractmethod
    def permutation(self, count: int, seed: int) -> np.ndarray:
        """The sentences of a block in the order of this seed, int64[count]."""

    @abstractmethod
    def seed(self, position: Position) -> int:
        """The seed of the block that is about to be loaded."""

    @abstractmethod
    def group(self, lengths: np.ndarray, minibatch_size: int) -> np.ndarray:
        """Number of the group of every sentence, by their lengths in order; groups are given out by these numbers."""

    @abstractmethod
    def pack(self, block: Block, members: np.ndarray, position: Position) -> tuple[Minibatch, int, bool]:
        """The next minibatch of a group, what the epoch counts it as, and whether the group ends with it."""

    def prepare(self, minibatch_size: int) -> None:  # noqa: B027
        """Called at the start of an epoch."""

    @cached_property
    def measures(self) -> tuple[int, int]:
        """Tokens of all sentences, and those of the longest; reads the whole corpus."""
        found = [(int(block.bounds[-1]), int(block.lengths.max())) for block in self.corpus.blocks()]
        return sum(tokens for tokens, _ in found), max(longest for _, longest in found)

    @property
    def samples_per_sweep(self) -> int:
        """Samples of the whole corpus."""
        return self.measures[0]

    def start(self, minibatch_size: int, epoch: int, epoch_size: int | None, workers: int = 1, rank: int = 0) -> None:
        """Go to the start of an epoch."""
        self._only_one(workers)
        self._prefetcher.reset()
        calls = self._delivered.calls or self.calls_before(epoch, epoch_size, minibatch_size)
        self._position = self._delivered = Position(epoch, epoch_size, minibatch_size, calls=calls)
        self._block = self._following = None
        self.prepare(minibatch_size)

    def calls_before(self, epoch: int, epoch_size: int | None, minibatch_size: int) -> int:
        """Minibatches that epochs before this one asked for, if the order depends on them."""
        return 0

    def _only_one(self, workers: int) -> None:
        if workers > 1:
            raise UserError(
                "OneWorkerOnly",
                f"{self.kind} reads for one worker only, there are {workers}",
                hint="sentences are not shared out among workers; train in one process",
            )

    def next(self) -> Minibatch | None:
        """The next minibatch, None at the end of the epoch."""
        minibatch, self._delivered = self._prefetcher.next()
        return minibatch

    def _produce(self) -> tuple[Minibatch | None, Position]:
        at = self._position
        if at.over:
            return None, at
        now = self._position = Position(**{**vars(at), "calls": at.calls + 1})
        if self._is_over(at) or not self._has_group(now, at.calls):
            now.over = True
            return None, now
        assert self._block is not None
        minibatch, counts, ends = self.pack(self._block, self._groups[now.group], now)
        now.counted += counts
        if ends:
            now.group, now.step = now.group + 1, 0
        if now.group == len(self._groups) and self._next_block() is None:
            minibatch.end_of_sweep = True
            minibatch.end_of_epoch = not self._starts_again(now)
        minibatch.end_of_epoch |= self._is_over(now)
        return minibatch, now

    def _is_over(self, at: Position) -> bool:
        return at.epoch_size is not None and at.counted > at.epoch_size

    def _starts_again(self, at: Position) -> bool:
        return self.repeats and at.epoch_size is not None

    def _next_block(self) -> Block | None:
        if self._following is None and self._block is not None:
            self._following = self.corpus.block(self._block.end)
        return self._following

    def _has_group(self, now: Position, calls: int) -> bool:
        """Go to the next block if this one has no more groups; False at the end of the corpus."""
        if self._block is not None and now.group < len(self._groups):
            return True
        block = self.corpus.block() if self._block is None else self._next_block()
        if block is None and self._starts_again(now):
            block = self.corpus.block()
        if block is None:
            return False
        now.number += 1
        now.begin, now.group, now.step = block.begin, 0, 0
        now.seed = self.seed(Position(**{**vars(now), "calls": calls}))
        self._enter(block, now)
        return True

    def _enter(self, block: Block, at: Position) -> None:
        self._block, self._following = block, None
        self._groups = self._ordered(block, at.seed, at.minibatch_size)

    def _ordered(self, block: Block, seed: int, minibatch_size: int) -> Groups:
        lengths = block.lengths
        order = self.permutation(len(lengths), seed) if self.shuffles else np.arange(len(lengths))
        return Groups(order, self.group(lengths[order], minibatch_size))

    def state(self) -> dict[str, Any]:
        """Where reading stands after the last minibatch that was given out."""
        return {"version": 1, "reader": self.kind, **asdict(self._delivered)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state` was taken."""
        if not isinstance(state, dict) or state.get("reader") != self.kind:
            raise ArgumentError(f"this is not the position of a {self.kind}")
        self._prefetcher.reset()
        known = {name: value for name, value in state.items() if name in vars(self._position)}
        if known.get("begin") is not None:
            known["begin"] = Place(*known["begin"])
        self._position = self._delivered = at = Position(**{**vars(self._position), **known})
        self._block = self._following = None
        self.prepare(at.minibatch_size)
        if at.begin is not None and not at.over:
            block = self.corpus.block(at.begin)
            if block is None:
                raise ArgumentError(f"the corpus {self.corpus.path} is not the one that this position belongs to")
            self._enter(block, at)

    def change(self, minibatch_size: int, workers: int, rank: int) -> None:
        """Go on with another minibatch size, at the next sentences."""
        self._only_one(workers)
        self.restore(self.state() | {"minibatch_size": minibatch_size})

    def close(self) -> None:
        """Stop reading ahead."""
        self._prefetcher.close()


def sparse_rows(columns: np.ndarray, counts: np.ndarray | None, dim: int, dtype: np.dtype) -> Any:
    """CSR matrix of ones: row i has counts[i] of them (None: each has one), at the next of the `columns`."""
    if counts is None:
        indptr = np.arange(len(columns) + 1, dtype=np.int32)
    else:
        indptr = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=indptr[1:])
    return make_csr(np.ones(len(columns), dtype), columns.astype(np.int32), indptr, dim)
