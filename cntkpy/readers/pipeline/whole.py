"""Minibatches of whole sequences, several small ones made at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.common.selection import Selection, Several
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline.pack import NotAFrame, SequencePacker, place

from .assembly import Inputs, Made
from .prefetch import GROUP_SECONDS
from .randomize import Timeline

MAX_GROUP_MINIBATCHES = 256
"""Minibatches made at once: each then costs a tenth of what it costs alone, if it is small."""
MAX_GROUP_SAMPLES = 1 << 16
"""Samples after which no further minibatch is added."""
MAX_GROUP_DENSE_BYTES, MAX_GROUP_LOADED_BYTES = 1 << 21, 1 << 22
"""Bytes of dense data, and of all that is loaded for the minibatches, after which none is added."""
GROUP_GROWTH_FACTOR = 4
"""The first minibatch is made alone, so that the start is fast; every group may have so many times the minibatches
of the one before."""


class Planned(NamedTuple):
    """A minibatch that the timeline has chosen.

    Attributes:
        selection: The selection that it is from, which may have several minibatches.
        sequences: The sequences of this minibatch, int64[n].
        state: State of the timeline after it.
        end_of_sweep: Whether a sweep ends with it.
        end_of_epoch: Whether the epoch ends with it.
    """

    selection: Selection
    sequences: np.ndarray
    state: dict[str, Any]
    end_of_sweep: bool
    end_of_epoch: bool


@dataclass(eq=False)
class Group:
    """Minibatches that are made at once: what they hold, and what became of it.

    state: of the timeline after them. load: waits for the parts. made: None if they have to be made one by one, out of
    the parts if all could be loaded.
    """

    several: Sequence[Several]
    state: dict[str, Any]
    load: Callable[[], list[Part]] | None = None
    parts: list[Part] | None = None
    made: Iterator[Made] | None = None

    @cached_property
    def sequences(self) -> np.ndarray:
        """Of all minibatches, int64[n]."""
        every = [one.selection.sequences for one in self.several]
        return every[0] if len(every) == 1 else np.concatenate(every)

    @cached_property
    def cuts(self) -> np.ndarray:
        """Minibatch m has the sequences cuts[m] .. cuts[m+1]-1: int64[M+1]."""
        return starts_of(np.concatenate([np.diff(one.cuts) for one in self.several]))

    def planned(self) -> Iterator[Planned]:
        """Yield the minibatches."""
        for one in self.several:
            s, last = one.selection, len(one.cuts) - 2
            for m, ((a, b), state) in enumerate(zip(pairwise(one.cuts), one.states, strict=True)):
                yield Planned(s, s.sequences[a:b], state, m == last and s.end_of_sweep, m == last and s.end_of_epoch)

    def separate(self) -> Iterator[tuple[Planned, list[Part] | None]]:
        """Yield each minibatch with its parts, if those are loaded."""
        for planned, (a, b) in zip(self.planned(), pairwise(self.cuts.tolist()), strict=True):
            cut = None if self.parts is None else [part.between(a, b) for part in self.parts]
            yield planned, cut and [part for part in cut if len(part.where)]


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but what could not be made at once.

    `plan` and `take` are called by the thread that gives minibatches out, `make` by any.
    loaded_bytes: about how much memory a loaded sample takes.
    """

    def __init__(self, packer: SequencePacker, loaded_bytes: float = 0.0):
        self._packer = packer
        dense = sum(s.dim * s.dtype.itemsize for s in packer.streams if not s.sparse)
        self._enough = min(
            MAX_GROUP_SAMPLES,
            MAX_GROUP_DENSE_BYTES // max(dense, 1),
            int(MAX_GROUP_LOADED_BYTES / max(loaded_bytes, 1.0)),
        )
        self._most = 1  # minibatches in the next group
        self._fault: Exception | None = None  # comes after what is planned
        self._left: deque[tuple[Planned, list[Part] | None]] = deque()

    def assemble(self, inputs: Inputs) -> Iterable[Made]:
        """At least one minibatch, None at the end of the epoch, and the state of the timeline after each."""
        return self.take(inputs, lambda: self.make(inputs, self.plan(inputs)))

    def plan(self, inputs: Inputs) -> Group:
        """Decide what the next minibatches hold, and begin to load it."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        planned: list[Several] = []
        sequences = 0
        end = time.perf_counter() + GROUP_SECONDS
        while len(planned) < self._most and sequences <= self._enough:
            if planned and (time.perf_counter() > end or inputs.waits()):
                break
            try:
                more = _next_planned(inputs, self._most, self._enough)
            except Exception as fault:
                if not planned:
                    raise
                self._fault = fault
                break
            if more is None:
                break
            planned.append(more)
            sequences += more.cuts[-1]
            if len(more.cuts) > 2 or more.selection.end_of_epoch:
                break
        group = Group(planned, inputs.timeline.state())
        self._most = min(MAX_GROUP_MINIBATCHES, GROUP_GROWTH_FACTOR * self._most)
        if planned:
            last = planned[-1].selection
            with suppress(Exception):  # it is raised again when they are made one by one
                group.load = inputs.store.begin(group.sequences, last.keep, last.ahead, last.following)
        return group

    def make(self, inputs: Inputs, group: Group) -> Group:
        """Load and pack the minibatches of a group, if none of their sequences is at fault or invalid."""
        if group.load is not None:
            with suppress(Exception):  # see `plan`
                parts = group.load()
                if inputs.invalid.concerns(parts):
                    group.parts = parts
                else:
                    group.made = self._pack(inputs, group.planned(), group.sequences, group.cuts, parts)
            group.load = None  # with it go the chunks
        return group

    def take(self, inputs: Inputs, more: Callable[[], Group]) -> Iterable[Made]:
        """As `assemble`, out of what is left of the last group, or of the group that `more` gives."""
        if not self._left:
            group = more()
            if not group.several:
                return [(None, group.state, None)]
            if group.made is not None and not inputs.invalid.concerns(()):
                return group.made
            self._left.extend(group.separate())
        made: list[Made] = []
        while self._left:
            try:
                made.append(self._make_one(inputs, *self._left[0]))
            except Exception:
                if not made:
                    raise
                break  # what comes before the fault is given out before it
            self._left.popleft()
        return made

    def _make_one(self, inputs: Inputs, planned: Planned, parts: list[Part] | None) -> Made:
        selection = planned.selection
        if parts is None:
            parts = inputs.store.begin(planned.sequences, selection.keep, selection.ahead)()
        sequences, valid = inputs.invalid.without(planned.sequences, parts, end_of_sweep=planned.end_of_sweep)
        planned = planned._replace(sequences=sequences)
        return next(self._pack(inputs, iter([planned]), sequences, np.array([0, len(sequences)]), valid))

    def _pack(
        self, inputs: Inputs, planned: Iterator[Planned], sequences: np.ndarray, cuts: np.ndarray, parts: Sequence[Part]
    ) -> Iterator[Made]:
        """The arrays of minibatches at once, the minibatches themselves as they are asked for."""
        names = inputs.deserializer.table.names  # and not inputs.keys: who keeps a minibatch need not keep the reader
        try:
            packed = self._packer.pack_several(parts, cuts)
        except NotAFrame as error:
            key = names(sequences[error.place : error.place + 1])[0]
            raise NotAFrame(error.place, error.size, error.stream, key) from None
        return (
            _made(one, data, layouts, partial(names, one.sequences))
            for one, (data, layouts) in zip(planned, packed, strict=True)
        )

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any, inputs: Inputs) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Forget what is left."""
        self._left.clear()
        self._most, self._fault = 1, None


def _made(
    planned: Planned, data: dict[str, Any], layouts: dict[str, Layout], keys: Callable[[], list[int | str]]
) -> Made:
    minibatch = Minibatch(data, layouts, keys, planned.end_of_sweep, planned.end_of_epoch)
    if planned.selection.together is not None:
        whole = place(planned.selection.together)
        minibatch.columns_together = whole.T * whole.S
    return minibatch, planned.state, None


def _next_planned(inputs: Inputs, most: int, samples: int) -> Several | None:
    """What the timeline gives next: several minibatches if it can, None at the end of the epoch."""
    timeline = inputs.timeline
    if isinstance(timeline, Timeline):
        several = timeline.next_several(inputs.worker_size, most, samples)
        if several is not None:
            return several
    selection = inputs.select()
    return None if selection is None else Several(selection, [0, len(selection.sequences)], [timeline.state()])
