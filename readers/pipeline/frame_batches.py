"""Minibatches of single samples from a deserializer that copies them straight to their rows: no chunks are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from readers.minibatch import Layout, Minibatch

from .pack import place

if TYPE_CHECKING:
    from .source import Source

PLANNED, COPIED = 8192, 4096
"""Frames whose order is asked for at once, and that are copied at once: to do so for each minibatch takes as long as
the copying itself. The minibatches of a copy share its memory."""


@runtime_checkable
class FrameData(Protocol):
    """A deserializer in frame mode that gives samples without chunks."""

    def frame_batches(self, sequences: np.ndarray, bounds: Sequence[int]) -> list[dict[str, Any]]:
        """Frames bounds[k] .. bounds[k+1]-1 of these for every k: per stream (1, n, dim), or CSR (n, dim)."""
        ...


@lru_cache(64)
def _layout(count: int) -> Layout:
    """Frames side by side; the same for all minibatches of a size."""
    layout = place(np.ones(count, np.int64))
    layout.sequences.flags.writeable = False
    return layout


class _Planned(NamedTuple):
    """Frames of a minibatch, where the timeline stands before and after it, and the frames of all workers (or 0)."""

    sequences: np.ndarray
    begin: int
    end: int
    together: int


class Frames:
    """Minibatches of frames. full: those shorter than the minibatch size are passed over."""

    def __init__(self, data: FrameData, full: bool = False):
        self._data, self._full = data, full
        self._planned: deque[_Planned] = deque()
        self._copied: deque[tuple[_Planned, dict[str, Any]]] = deque()

    def next(self, source: Source) -> Minibatch | None:
        """Take, copy."""
        if not self._copied and not self._copy(source):
            return None
        (sequences, begin, end, together), data = self._copied.popleft()
        timeline: Any = source.timeline
        timeline.position = end
        total = source.samples_per_sweep
        ended = end // total > begin // total, end >= timeline.epoch_end
        layouts = dict.fromkeys(data, _layout(len(sequences)))
        keys = partial(source.deserializer.table.names, sequences)
        return Minibatch(data, layouts, keys, *ended, columns_together=together)

    def _copy(self, source: Source) -> bool:
        """Make some of the planned minibatches; whether there are any."""
        if not self._planned:
            self._plan(source)
        some, bounds = [], [0]
        while self._planned and (not some or bounds[-1] + len(self._planned[0].sequences) <= COPIED):
            some.append(self._planned.popleft())
            bounds.append(bounds[-1] + len(some[-1].sequences))
        if some:
            sequences = np.concatenate([one.sequences for one in some])
            self._copied.extend(zip(some, self._data.frame_batches(sequences, bounds), strict=True))
        return bool(some)

    def _plan(self, source: Source) -> None:
        """What goes into the next minibatches: for a single worker those of a few thousand frames."""
        timeline: Any = source.timeline
        everybody, size = source.limits
        times = max(1, PLANNED // size) if timeline.workers == 1 else 1
        while not self._planned:
            begin = timeline.position
            selection = timeline.next(min(everybody * times, 2**62), size * times)
            if selection is None:
                return
            sequences, end = selection.sequences, timeline.position
            if timeline.workers > 1:
                together = 0 if selection.together is None else len(selection.together)
                self._add(_Planned(sequences, begin, end, together), source)
                continue
            while begin < min(end, timeline.epoch_end):
                some, sequences = sequences[:size], sequences[size:]
                self._add(_Planned(some, begin, begin + len(some), 0), source)
                begin += len(some)

    def _add(self, planned: _Planned, source: Source) -> None:
        taken = planned.end - planned.begin
        if not self._full or taken == source.minibatch_size or source.samples_per_sweep <= taken:
            self._planned.append(planned)

    def state(self) -> None:
        """Nothing is held back: the position is that of the last minibatch given out."""

    def restore(self, state: Any, source: Source) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Forget what was made ahead."""
        self._planned.clear()
        self._copied.clear()
