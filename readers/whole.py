"""Minibatches of whole sequences, several small ones made at once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from .minibatch import Minibatch
from .pack import SequencePacker, place
from .randomize import Selection

if TYPE_CHECKING:
    from .source import Source

MOST_TOGETHER = 16
"""Minibatches made at once: each then costs a quarter of what it costs alone, if it is small."""
LARGE = 1 << 18
"""Bytes of dense data after which no further minibatch is added."""


class WholeSequences:
    """Whole sequences (or frames) in minibatches; nothing is held back but minibatches that are ready."""

    def __init__(self, packer: SequencePacker):
        self._packer = packer
        self._sample_bytes = sum(s.dim * s.dtype.itemsize for s in packer.streams if not s.sparse)
        self._selected: deque[tuple[Selection, dict[str, Any]]] = deque()
        self._ready: deque[tuple[Minibatch, dict[str, Any]]] = deque()
        self._fault: Exception | None = None  # comes after what is selected
        self.position: dict[str, Any] | None = None
        """Of the timeline, after the minibatch given out last; None if the timeline stands there itself."""

    def next(self, source: Source) -> Minibatch | None:
        """The next minibatch, None at the end of the epoch."""
        if not self._ready and not self._selected:
            self._select(source)
        if not self._ready and self._selected:
            try:
                self._ready.extend(self._make(source, len(self._selected)))
            except Exception:
                if len(self._selected) == 1:
                    raise
                self._ready.extend(self._make(source, 1))  # what comes before the fault is given out before it
        if not self._ready:
            self.position = None
            return None
        minibatch, self.position = self._ready.popleft()
        return minibatch

    def _select(self, source: Source) -> None:
        """Decide what the next minibatches hold."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        size = 0
        while len(self._selected) < MOST_TOGETHER and size <= LARGE:
            try:
                selection = source.timeline.next(*source.limits)
            except Exception as fault:
                if not self._selected:
                    raise
                self._fault = fault
                return
            if selection is None:
                return
            self._selected.append((selection, source.timeline.state()))
            if selection.end_of_epoch:
                return
            size += len(selection.sequences) * self._sample_bytes

    def _make(self, source: Source, count: int) -> list[tuple[Minibatch, dict[str, Any]]]:
        """The first `count` selected minibatches."""
        several = [self._selected[i] for i in range(count)]
        selections = [selection for selection, _ in several]
        last = selections[-1]
        sequences = selections[0].sequences if count == 1 else np.concatenate([s.sequences for s in selections])
        parts = source.store.fetch(sequences, last.keep, last.ahead)
        cuts = np.array([0, *(len(s.sequences) for s in selections)]).cumsum()
        if source.invalid.concerns(parts):
            if count > 1:
                return self._make(source, 1)
            sequences, parts = source.invalid.without(sequences, parts, source)
            cuts[1] = len(sequences)
        keys, made = source.keys(sequences), []
        packed = self._packer.pack_several(parts, cuts)
        for (data, layouts), (s, position), a, b in zip(
            packed, several, cuts[:-1].tolist(), cuts[1:].tolist(), strict=True
        ):
            minibatch = Minibatch(data, layouts, keys[a:b], s.end_of_sweep, s.end_of_epoch)
            if s.together is not None:
                whole = place(s.together)
                minibatch.columns_together = whole.T * whole.S
            made.append((minibatch, position))
        for _ in several:
            self._selected.popleft()
        return made

    def state(self) -> None:
        """Nothing."""

    def restore(self, state: Any, source: Source) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Forget what is ready."""
        self._selected.clear()
        self._ready.clear()
        self._fault = self.position = None
