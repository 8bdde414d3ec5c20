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
from .prefetch import GROUP_SECONDS, Prefetch
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
        every = [several.selection.sequences for several in self.several]
        return every[0] if len(every) == 1 else np.concatenate(every)

    @cached_property
    def cuts(self) -> np.ndarray:
        """Minibatch m has the sequences cuts[m] .. cuts[m+1]-1: int64[M+1]."""
        return starts_of(np.concatenate([np.diff(several.cuts) for several in self.several]))

    def planned(self) -> Iterator[Planned]:
        """Yield the minibatches."""
        for several in self.several:
            s, last = several.selection, len(several.cuts) - 2
            for m, ((a, b), state) in enumerate(zip(pairwise(several.cuts), several.states, strict=True)):
                yield Planned(s, s.sequences[a:b], state, m == last and s.end_of_sweep, m == last and s.end_of_epoch)

    def separate(self) -> Iterator[tuple[Planned, list[Part] | None]]:
        """Yield each minibatch with its parts, if those are loaded."""
        for planned, (a, b) in zip(self.planned(), pairwise(self.cuts.tolist()), strict=True):
            cut = None if self.parts is None else [part.between(a, b) for part in self.parts]
            yield planned, cut and [part for part in cut if len(part.where)]


class GroupMaker:
    """Plans and makes groups of minibatches. `plan` is called by the thread that gives them out, `make` by any.

    Args:
        inputs: What minibatches are made of.
        packer: Lays out the sequences.
        loaded_bytes: About how much memory a loaded sample takes.
    """

    def __init__(self, inputs: Inputs, packer: SequencePacker, loaded_bytes: float = 0.0):
        self._inputs, self._packer = inputs, packer
        dense = sum(s.dim * s.dtype.itemsize for s in packer.streams if not s.sparse)
        self._enough = min(
            MAX_GROUP_SAMPLES,
            MAX_GROUP_DENSE_BYTES // max(dense, 1),
            int(MAX_GROUP_LOADED_BYTES / max(loaded_bytes, 1.0)),
        )
        self.restart()

    def restart(self) -> None:
        """Begin with a group of one minibatch."""
        self._most = 1  # minibatches in the next group
        self._fault: Exception | None = None  # comes after what is planned

    def plan(self) -> Group:
        """Decide what the next minibatches hold, and begin to load it."""
        inputs = self._inputs
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
                chosen = _next_planned(inputs, self._most, self._enough)
            except Exception as fault:
                if not planned:
                    raise
                self._fault = fault
                break
            if chosen is None:
                break
            planned.append(chosen)
            sequences += chosen.cuts[-1]
            if len(chosen.cuts) > 2 or chosen.selection.end_of_epoch:
                break
        group = Group(planned, inputs.timeline.state())
        self._most = min(MAX_GROUP_MINIBATCHES, GROUP_GROWTH_FACTOR * self._most)
        if planned:
            last = planned[-1].selection
            with suppress(Exception):  # it is raised again when they are made one by one
                group.load = inputs.store.begin(group.sequences, last.keep, last.ahead, last.following)
        return group

    def make(self, group: Group) -> Group:
        """Load and pack the minibatches of a group, if none of their sequences is at fault or invalid."""
        if group.load is not None:
            with suppress(Exception):  # see `plan`
                parts = group.load()
                if self._inputs.invalid.concerns(parts):
                    group.parts = parts
                else:
                    group.made = self.pack(group.planned(), group.sequences, group.cuts, parts)
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
            _made(several, data, layouts, partial(names, several.sequences))
            for several, (data, layouts) in zip(planned, packed, strict=True)
        )


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but what could not be made at once.

    Args:
        inputs: What minibatches are made of.
        maker: Makes groups of them.
        threads: Threads that make groups ahead; 0: groups are made where they are asked for.
    """

    def __init__(self, inputs: Inputs, maker: GroupMaker, threads: int = 0):
        self._inputs, self._maker = inputs, maker
        self.groups: Prefetch[Group] = Prefetch(maker.make, maker.plan, threads=threads)
        """Groups of minibatches, made ahead by threads if there are any."""
        self._left: deque[tuple[Planned, list[Part] | None]] = deque()

    def __next__(self) -> Iterable[Made]:
        """Return minibatches out of what is left of the last group, or of the next one."""
        if not self._left:
            group = next(self.groups)
            if not group.several:
                return [(None, group.state, None)]
            if group.made is not None and not self._inputs.invalid.concerns(()):
                return group.made
            self._left.extend(group.separate())
        made: list[Made] = []
        while self._left:
            try:
                made.append(self._make_one(*self._left[0]))
            except Exception:
                if not made:
                    raise
                break  # what comes before the fault is given out before it
            self._left.popleft()
        return made

    def _make_one(self, planned: Planned, parts: list[Part] | None) -> Made:
        inputs, selection = self._inputs, planned.selection
        if parts is None:
            parts = inputs.store.begin(planned.sequences, selection.keep, selection.ahead)()
        sequences, valid = inputs.invalid.without(planned.sequences, parts, end_of_sweep=planned.end_of_sweep)
        planned = planned._replace(sequences=sequences)
        return next(self._maker.pack(iter([planned]), sequences, np.array([0, len(sequences)]), valid))

    def get_state(self) -> None:
        """Nothing is held back."""

    def set_state(self, state: None) -> None:
        """Drop what was made ahead."""
        self.groups.reset()
        self._left.clear()
        self._maker.restart()


def _made(
    planned: Planned, data: dict[str, Any], layouts: dict[str, Layout], keys: Callable[[], list[int | str]]
) -> Made:
    minibatch = Minibatch(data, layouts, keys, planned.end_of_sweep, planned.end_of_epoch)
    if planned.selection.together is not None:
        whole = place(planned.selection.together)
        minibatch.columns_together = whole.T * whole.S
    return minibatch, planned.state, None


def _next_planned(inputs: Inputs, most: int, samples: int) -> Several | None:
    """Return what the timeline gives next: several minibatches if it can, None at the end of the epoch."""
    timeline = inputs.timeline
    if isinstance(timeline, Timeline):
        several = timeline.next_several(inputs.worker_size, most, samples)
        if several is not None:
            return several
    selection = inputs.select()
    return None if selection is None else Several(selection, [0, len(selection.sequences)], [timeline.state()])
