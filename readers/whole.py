"""Minibatches of whole sequences, several small ones made at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .minibatch import Minibatch
from .pack import Part, SequencePacker, place
from .randomize import Timeline
from .selection import Selection
from .sequences import starts_of

if TYPE_CHECKING:
    from .source import Source

MOST_TOGETHER = 64
"""Minibatches made at once: each then costs a tenth of what it costs alone, if it is small."""
MANY = 1 << 14
"""Samples after which no further minibatch is added."""
LARGE_DENSE, LARGE = 1 << 18, 1 << 22
"""Bytes of dense data, and of all that is loaded for the minibatches, after which none is added."""


class _Planned(NamedTuple):
    """The sequences of a minibatch, the selection that they are from, what ends with them, the state after them."""

    sequences: np.ndarray
    selection: Selection
    end_of_sweep: bool
    end_of_epoch: bool
    state: dict[str, Any]


@dataclass(eq=False)
class Group:
    """Minibatches that are made at once: what they hold, and what became of it.

    load: waits for the parts; None if nothing could be loaded. state: of the timeline after them. made: the minibatches
    and the states after them, None if they have to be made one by one.
    """

    planned: Sequence[_Planned]
    state: dict[str, Any]
    load: Callable[[], list[Part]] | None = None
    parts: list[Part] | None = None
    made: list[tuple[Minibatch, dict[str, Any]]] | None = None
    fault: Exception | None = None


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but what could not be made at once.

    `plan` is called on one thread at a time, `make` on any, `take` by the one that gives minibatches out.
    loaded_bytes: about how much memory a loaded sample takes.
    """

    def __init__(self, packer: SequencePacker, loaded_bytes: float = 0.0):
        self._packer = packer
        dense = sum(s.dim * s.dtype.itemsize for s in packer.streams if not s.sparse)
        self._enough = min(MANY, LARGE_DENSE // max(dense, 1), int(LARGE / max(loaded_bytes, 1.0)))
        self._fault: Exception | None = None  # comes after what is planned
        self._left: deque[tuple[_Planned, list[Part] | None]] = deque()

    def next_several(self, source: Source) -> list[tuple[Minibatch | None, dict[str, Any]]]:
        """At least one minibatch, None at the end of the epoch, and the state of the timeline after each."""
        return self.take(source, lambda: self.make(source, self.plan(source)))

    def plan(self, source: Source) -> Group:
        """Decide what the next minibatches hold, and begin to load it."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        planned: list[_Planned] = []
        while len(planned) < MOST_TOGETHER and sum(len(one.sequences) for one in planned) <= self._enough:
            try:
                more = _next_planned(source, self._enough)
            except Exception as fault:
                if not planned:
                    raise
                self._fault = fault
                break
            planned += more
            if len(more) != 1 or more[0].end_of_epoch:
                break
        group = Group(planned, source.timeline.state())
        if planned:
            last = planned[-1].selection
            try:
                group.load = source.store.begin(_sequences(planned), last.keep, last.ahead, last.following)
            except Exception as fault:
                group.fault = fault
        return group

    def make(self, source: Source, group: Group) -> Group:
        """Load and pack the minibatches of a group, if none of their sequences is at fault or invalid."""
        if group.load is not None:
            try:
                group.parts = group.load()
                if not source.invalid.concerns(group.parts):
                    group.made = self._pack(source, group.planned, group.parts)
            except Exception as fault:
                group.fault = fault
        return group

    def take(self, source: Source, more: Callable[[], Group]) -> list[tuple[Minibatch | None, dict[str, Any]]]:
        """As `next_several`, out of what is left of the last group, or of the group that `more` gives."""
        if not self._left:
            group = more()
            if not group.planned:
                return [(None, group.state)]
            if group.made is not None and not source.invalid.concerns(()):
                return [*group.made]
            self._left.extend(zip(group.planned, _cut(group), strict=True))
            if group.fault is not None and len(group.planned) == 1:
                raise group.fault
        made: list[tuple[Minibatch | None, dict[str, Any]]] = []
        while self._left:
            try:
                made.append(self._make_one(source, *self._left[0]))
            except Exception:
                if not made:
                    raise
                break  # what comes before the fault is given out before it
            self._left.popleft()
        return made

    def _make_one(
        self, source: Source, one: _Planned, parts: list[Part] | None
    ) -> tuple[Minibatch, dict[str, Any]]:
        if parts is None:
            parts = source.store.fetch(one.sequences, one.selection.keep, one.selection.ahead)
        sequences, valid = source.invalid.without(one.sequences, parts, source)
        return self._pack(source, [one._replace(sequences=sequences)], valid)[0]

    def _pack(
        self, source: Source, planned: Sequence[_Planned], parts: Sequence[Part]
    ) -> list[tuple[Minibatch, dict[str, Any]]]:
        cuts = starts_of([len(one.sequences) for one in planned])
        keys, made = source.keys(_sequences(planned)), []
        packed = self._packer.pack_several(parts, cuts)
        for (data, layouts), one, (a, b) in zip(packed, planned, pairwise(cuts.tolist()), strict=True):
            minibatch = Minibatch(data, layouts, keys[a:b], one.end_of_sweep, one.end_of_epoch)
            if one.selection.together is not None:
                whole = place(one.selection.together)
                minibatch.columns_together = whole.T * whole.S
            made.append((minibatch, one.state))
        return made

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any, source: Source) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Forget what is left."""
        self._left.clear()
        self._fault = None


def _sequences(planned: Sequence[_Planned]) -> np.ndarray:
    return planned[0].sequences if len(planned) == 1 else np.concatenate([one.sequences for one in planned])


def _cut(group: Group) -> list[list[Part] | None]:
    """The parts of each minibatch, None if they could not be loaded together."""
    if group.parts is None:
        return [None] * len(group.planned)
    cuts = starts_of([len(one.sequences) for one in group.planned]).tolist()
    return [[part for all_ in group.parts if len((part := all_.between(a, b)).where)] for a, b in pairwise(cuts)]


def _next_planned(source: Source, samples: int) -> list[_Planned]:
    """What the timeline gives next: several minibatches if it can, none at the end of the epoch."""
    timeline = source.timeline
    several = (
        timeline.next_several(min(source.limits), MOST_TOGETHER, samples) if isinstance(timeline, Timeline) else None
    )
    if several is None:
        selection = timeline.next(*source.limits)
        if selection is None:
            return []
        one = _Planned(selection.sequences, selection, selection.end_of_sweep, selection.end_of_epoch, timeline.state())
        return [one]
    selection, state = several.selection, timeline.state()
    planned = [
        _Planned(selection.sequences[a:b], selection, False, False, {**state, "minibatchSourcePosition": position})
        for (a, b), position in zip(pairwise(several.cuts), several.positions, strict=True)
    ]
    planned[-1] = planned[-1]._replace(end_of_sweep=selection.end_of_sweep, end_of_epoch=selection.end_of_epoch)
    return planned
