"""Minibatches of whole sequences, several small ones made at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .minibatch import Minibatch
from .pack import SequencePacker, place
from .randomize import Timeline
from .selection import Selection

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


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but what is planned.

    loaded_bytes: about how much memory a loaded sample takes.
    """

    def __init__(self, packer: SequencePacker, loaded_bytes: float = 0.0):
        self._packer = packer
        dense = sum(s.dim * s.dtype.itemsize for s in packer.streams if not s.sparse)
        self._enough = min(MANY, LARGE_DENSE // max(dense, 1), int(LARGE / max(loaded_bytes, 1.0)))
        self._planned: deque[_Planned] = deque()
        self._fault: Exception | None = None  # comes after what is planned

    def next_several(self, source: Source) -> list[tuple[Minibatch | None, dict[str, Any]]]:
        """At least one minibatch, None at the end of the epoch, and the state of the timeline after each."""
        if not self._planned:
            self._plan(source)
        return [*self._make_planned(source)] or [(None, source.timeline.state())]

    def _plan(self, source: Source) -> None:
        """Decide what the next minibatches hold."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        while len(self._planned) < MOST_TOGETHER and sum(len(one.sequences) for one in self._planned) <= self._enough:
            try:
                planned = _next_planned(source, self._enough)
            except Exception as fault:
                if not self._planned:
                    raise
                self._fault = fault
                return
            self._planned.extend(planned)
            if len(planned) != 1 or planned[0].end_of_epoch:
                return

    def _make_planned(self, source: Source) -> list[tuple[Minibatch, dict[str, Any]]]:
        """The planned minibatches, made all at once if none of their sequences is at fault."""
        if len(self._planned) > 1:
            try:
                together = self._make(source, list(self._planned))
            except Exception:
                together = None
            if together is not None:
                self._planned.clear()
                return together
        ready: list[tuple[Minibatch, dict[str, Any]]] = []
        while self._planned:
            try:
                ready += self._make(source, [self._planned[0]]) or []
            except Exception:
                if not ready:
                    raise
                break  # what comes before the fault is given out before it
            self._planned.popleft()
        return ready

    def _make(self, source: Source, planned: Sequence[_Planned]) -> list[tuple[Minibatch, dict[str, Any]]] | None:
        """Minibatches and states; None of several of which some sequences are invalid: they are made one by one."""
        cuts = np.array([0, *(len(one.sequences) for one in planned)]).cumsum()
        sequences = np.concatenate([one.sequences for one in planned]) if len(planned) > 1 else planned[0].sequences
        last = planned[-1].selection
        following = last.following if planned[-1] is self._planned[-1] else None
        parts = source.store.fetch(sequences, last.keep, last.ahead, following)
        if source.invalid.concerns(parts):
            if len(planned) > 1:
                return None
            sequences, parts = source.invalid.without(sequences, parts, source)
            cuts[1] = len(sequences)
        keys, made = source.keys(sequences), []
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
        """Forget what is planned."""
        self._planned.clear()
        self._fault = None


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
