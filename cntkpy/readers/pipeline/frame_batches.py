"""Minibatches of single samples from a deserializer that copies them straight to their rows: no chunks are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from cntkpy.readers.contracts import NO_LIMIT, FrameData, SampleOrder
from cntkpy.readers.minibatch import Minibatch, singles

from .assembly import Inputs, Made, single

PLANNED_FRAMES, COPIED_FRAMES = 8192, 4096
"""Frames whose order is asked for at once, and that are copied at once: to do so for each minibatch takes as long as
the copying itself. The minibatches of a copy share its memory."""


class _Planned(NamedTuple):
    """Frames of a minibatch, where the timeline is before and after it, and the frames of all workers (or 0)."""

    sequences: np.ndarray
    begin: int
    end: int
    together: int


class Frames:
    """Minibatches of frames. full: those shorter than the minibatch size are passed over."""

    def __init__(self, inputs: Inputs, data: FrameData, full: bool = False):
        self._inputs, self._data, self._full = inputs, data, full
        self._planned: deque[_Planned] = deque()
        self._copied: deque[tuple[_Planned, dict[str, Any]]] = deque()

    def __next__(self) -> Iterable[Made]:
        """Return the next minibatch, and the state that the order would have if it had given out no more than that."""
        inputs = self._inputs
        if not self._copied and not self._copy():
            return single(None, inputs.timeline.state())
        (sequences, begin, end, together), data = self._copied.popleft()
        total = inputs.samples_per_sweep
        passed = inputs.minibatch_size - 1 if self._full and total > inputs.minibatch_size else 0  # is passed over
        ended = (end + passed) // total > begin // total, end + passed >= cast("SampleOrder", inputs.timeline).epoch_end
        layouts = dict.fromkeys(data, singles(len(sequences)))
        keys = partial(inputs.deserializer.table.names, sequences)
        minibatch = Minibatch(data, layouts, keys, *ended, columns_together=together)
        return single(minibatch, inputs.timeline.state() | {"minibatchSourcePosition": end})

    def _copy(self) -> bool:
        """Make some of the planned minibatches; whether there are any."""
        if not self._planned:
            self._plan()
        some: list[_Planned] = []
        bounds = [0]
        while self._planned and (not some or bounds[-1] + len(self._planned[0].sequences) <= COPIED_FRAMES):
            some.append(self._planned.popleft())
            bounds.append(bounds[-1] + len(some[-1].sequences))
        if some:
            sequences = np.concatenate([selection.sequences for selection in some])
            self._copied.extend(zip(some, self._data.frame_batches(sequences, bounds), strict=True))
        return bool(some)

    def _plan(self) -> None:
        """Select what goes into the next minibatches: for a single worker those of a few thousand frames."""
        inputs = self._inputs
        timeline = cast("SampleOrder", inputs.timeline)
        size = inputs.worker_size
        times = max(1, PLANNED_FRAMES // size) if timeline.workers == 1 else 1
        while not self._planned:
            begin = timeline.position
            selection = timeline.next(NO_LIMIT if inputs.counts_own else size * times, size * times)
            if selection is None:
                return
            sequences, end = selection.sequences, timeline.position
            if timeline.workers > 1:
                together = 0 if selection.together is None else len(selection.together)
                self._add(_Planned(sequences, begin, end, together))
                continue
            while begin < min(end, timeline.epoch_end):
                some, sequences = sequences[:size], sequences[size:]
                self._add(_Planned(some, begin, begin + len(some), 0))
                begin += len(some)

    def _add(self, planned: _Planned) -> None:
        taken = planned.end - planned.begin
        if not self._full or taken == self._inputs.minibatch_size or self._inputs.samples_per_sweep <= taken:
            self._planned.append(planned)

    def get_state(self) -> None:
        """Nothing is held back: the position is that of the last minibatch given out."""

    def set_state(self, state: None) -> None:
        """Drop what was made ahead."""
        self._planned.clear()
        self._copied.clear()
