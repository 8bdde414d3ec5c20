"""Minibatches of whole sequences, several small ones made at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.common.planned import Planned, State
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline.pack import NotAFrame, SequencePacker, place

from .assembly import Inputs, Made
from .prefetch import GROUP_SECONDS, Prefetch

MAX_GROUP_MINIBATCHES = 256
"""Minibatches made at once: each then costs a tenth of what it costs alone, if it is small."""
MAX_GROUP_SAMPLES = 1 << 16
"""Samples after which no further minibatch is added."""
MAX_GROUP_DENSE_BYTES, MAX_GROUP_LOADED_BYTES = 1 << 21, 1 << 22
"""Bytes of dense data, and of all that is loaded for the minibatches, after which none is added."""
GROUP_GROWTH_FACTOR = 4
"""The first minibatch is made alone, so that the start is fast; every group may have so many times the minibatches
of the one before."""


@dataclass(eq=False)
class Group:
    """Minibatches that are loaded and packed at once.

    Attributes:
        planned: The minibatches, none at the end of the epoch.
        state: State of the order after them.
        load: Waits for the parts; None once it was called, and where loading could not begin.
        parts: The parts, where minibatches have to be made one by one, and all could be loaded.
        made: The minibatches; None if they have to be made one by one.
    """

    planned: Sequence[Planned]
    state: State
    load: Callable[[], list[Part]] | None = None
    parts: list[Part] | None = None
    made: Iterator[Made] | None = None

    @cached_property
    def sequences(self) -> np.ndarray:
        """Sequences of all minibatches, int64[n]."""
        arrays = [planned.sequences for planned in self.planned]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    @cached_property
    def cuts(self) -> np.ndarray:
        """Minibatch m has the sequences cuts[m] .. cuts[m+1]-1: int64[M+1]."""
        return starts_of(np.concatenate([planned.sizes for planned in self.planned]))

    def each(self) -> Iterator[Planned]:
        """Yield the minibatches, each alone."""
        return chain.from_iterable(planned.each() for planned in self.planned)

    def separate(self) -> Iterator[tuple[Planned, list[Part] | None]]:
        """Yield each minibatch with its parts, if those are loaded."""
        for planned, (a, b) in zip(self.each(), pairwise(self.cuts.tolist()), strict=True):
            cut = None if self.parts is None else [part.between(a, b) for part in self.parts]
            yield planned, cut and [part for part in cut if len(part.where)]


class GroupLoader:
    """The stage between order and packer: chooses the minibatches of a group, and begins to load them.

    Args:
        inputs: Parts that minibatches are made of.
        loaded_bytes: About how much memory a loaded sample takes.
    """

    def __init__(self, inputs: Inputs, loaded_bytes: float = 0.0):
        self._inputs = inputs
        dense = sum(s.dim * s.dtype.itemsize for s in inputs.streams if not s.sparse)
        self._max_samples = min(
            MAX_GROUP_SAMPLES,
            MAX_GROUP_DENSE_BYTES // max(dense, 1),
            int(MAX_GROUP_LOADED_BYTES / max(loaded_bytes, 1.0)),
        )
        self.set_state(None)

    def __next__(self) -> Group:
        """Return the next group, whose minibatches are being loaded."""
        inputs = self._inputs
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        limits = replace(inputs.limits, count=self._max_minibatches, samples=self._max_samples)
        planned: list[Planned] = []
        sequences = 0
        end = time.perf_counter() + GROUP_SECONDS
        while len(planned) < limits.count and sequences <= limits.samples:
            if planned and (time.perf_counter() > end or inputs.waits()):
                break
            try:
                chosen = inputs.plan(limits)
            except Exception as fault:
                if not planned:
                    raise
                self._fault = fault
                break
            if chosen is None:
                break
            planned.append(chosen)
            sequences += len(chosen.sequences)
            if len(chosen.states) > 1 or chosen.end_of_epoch:
                break
        self._max_minibatches = min(MAX_GROUP_MINIBATCHES, GROUP_GROWTH_FACTOR * self._max_minibatches)
        group = Group(planned, inputs.timeline.get_state())
        if planned:
            with suppress(Exception):  # it is raised again when they are made one by one
                group.load = inputs.store.begin(group.sequences, planned[-1].hints)
        return group

    def get_state(self) -> None:
        """Nothing is held back."""

    def set_state(self, state: None) -> None:
        """Begin with a group of one minibatch."""
        self._max_minibatches = 1  # of the next group
        self._fault: Exception | None = None  # comes after what is planned


class GroupPacker:
    """Packs groups. Any thread may call it."""

    def __init__(self, inputs: Inputs, packer: SequencePacker):
        self._inputs, self._packer = inputs, packer

    def __call__(self, group: Group) -> Group:
        """Load and pack the minibatches of a group, if none of their sequences is at fault or invalid."""
        if group.load is not None:
            with suppress(Exception):  # it is raised again when they are made one by one
                parts = group.load()
                if self._inputs.invalid.concerns(parts):
                    group.parts = parts
                else:
                    group.made = self.pack(group.each(), group.sequences, group.cuts, parts)
            group.load = None  # with it go the chunks
        return group

    def pack(
        self, planned: Iterator[Planned], sequences: np.ndarray, cuts: np.ndarray, parts: Sequence[Part]
    ) -> Iterator[Made]:
        """Return minibatches that are made as they are asked for; their arrays are made at once."""
        names = self._inputs.deserializer.table.names  # not inputs.keys: a minibatch need not keep the reader
        try:
            packed = self._packer.pack_several(parts, cuts)
        except NotAFrame as error:
            key = names(sequences[error.place : error.place + 1])[0]
            raise NotAFrame(error.place, error.size, error.stream, key) from None
        return (
            _made(minibatch, data, layouts, partial(names, minibatch.sequences))
            for minibatch, (data, layouts) in zip(planned, packed, strict=True)
        )


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but what could not be made at once.

    Args:
        inputs: Parts that minibatches are made of.
        loader: Chooses groups of them.
        packer: Lays out the sequences.
        threads: Threads that pack groups ahead; 0: groups are packed where they are asked for.
    """

    def __init__(self, inputs: Inputs, loader: GroupLoader, packer: SequencePacker, threads: int = 0):
        self._inputs, self._loader = inputs, loader
        self._pack = GroupPacker(inputs, packer)
        self.groups: Prefetch[Group] = Prefetch(self._pack, loader.__next__, threads=threads)
        """Groups of minibatches, packed ahead by threads if there are any."""
        self.set_state(None)

    def __next__(self) -> Made:
        """Return the next minibatch of the last group, or the first one of the next group."""
        for made in self._made:
            return made
        if not self._unpacked:
            group = next(self.groups)
            if not group.planned:
                return None, group.state, None
            if group.made is not None and not self._inputs.invalid.concerns(()):
                self._made = group.made
                return next(self._made)
            self._unpacked.extend(group.separate())
        made = self._make_one(*self._unpacked[0])
        self._unpacked.popleft()
        return made

    def _make_one(self, planned: Planned, parts: list[Part] | None) -> Made:
        inputs = self._inputs
        if parts is None:
            parts = inputs.store.begin(planned.sequences, replace(planned.hints, following=None))()
        sequences, valid = inputs.invalid.without(planned.sequences, parts, end_of_sweep=planned.end_of_sweep)
        planned = replace(planned, sequences=sequences)
        return next(self._pack.pack(iter([planned]), sequences, np.array([0, len(sequences)]), valid))

    def get_state(self) -> None:
        """Nothing is held back."""

    def set_state(self, state: None) -> None:
        """Drop the minibatches that were prepared."""
        self.groups.reset()
        self._loader.set_state(None)
        self._made: Iterator[Made] = iter(())
        self._unpacked: deque[tuple[Planned, list[Part] | None]] = deque()


def _made(
    planned: Planned, data: dict[str, Any], layouts: dict[str, Layout], keys: Callable[[], list[int | str]]
) -> Made:
    minibatch = Minibatch(data, layouts, keys, planned.end_of_sweep, planned.end_of_epoch)
    if planned.together is not None:
        whole = place(planned.together)
        minibatch.columns_together = whole.T * whole.S
    return minibatch, planned.states[0], None
