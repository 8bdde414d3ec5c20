"""Minibatches of single samples from a deserializer that copies them straight to their rows: no chunks are kept."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cntkpy.readers.common.planned import Planned
from cntkpy.readers.contracts import FrameData
from cntkpy.readers.minibatch import Minibatch, singles

from .assembly import Inputs, Made

PLANNED_FRAMES, COPIED_FRAMES = 8192, 4096
"""Frames whose order is asked for at once, and that are copied at once: to do so for each minibatch takes as long as
the copying itself. The minibatches of a copy share its memory."""


class Frames:
    """Minibatches of frames.

    Args:
        inputs: What minibatches are made of.
        data: Copies frames.
        full: Whether minibatches shorter than the minibatch size are passed over.
    """

    def __init__(self, inputs: Inputs, data: FrameData, full: bool = False):
        self._inputs, self._data, self._full = inputs, data, full
        self._planned: deque[Planned] = deque()
        self._copied: deque[tuple[Planned, dict[str, Any]]] = deque()

    def __next__(self) -> Made:
        """Return the next minibatch, and the state that the order would have if it had given out no more than that."""
        inputs = self._inputs
        if not self._copied and not self._copy():
            return None, inputs.timeline.get_state(), None
        planned, data = self._copied.popleft()
        layouts = dict.fromkeys(data, singles(len(planned.sequences)))
        keys = partial(inputs.deserializer.table.names, planned.sequences)
        together = 0 if planned.together is None else len(planned.together)
        ends = planned.end_of_sweep, planned.end_of_epoch
        return Minibatch(data, layouts, keys, *ends, columns_together=together), planned.states[0], None

    def _copy(self) -> bool:
        """Make some of the planned minibatches; return whether there are any."""
        if not self._planned:
            self._plan()
        some: list[Planned] = []
        bounds = [0]
        while self._planned and (not some or bounds[-1] + len(self._planned[0].sequences) <= COPIED_FRAMES):
            some.append(self._planned.popleft())
            bounds.append(bounds[-1] + len(some[-1].sequences))
        if some:
            sequences = np.concatenate([planned.sequences for planned in some])
            self._copied.extend(zip(some, self._data.frame_batches(sequences, bounds), strict=True))
        return bool(some)

    def _plan(self) -> None:
        """Select the frames of the next minibatches: a few thousand frames at once for a single worker."""
        inputs = self._inputs
        limits = replace(inputs.limits, count=max(1, PLANNED_FRAMES // inputs.worker_size))
        position = inputs.timeline.get_state()["minibatchSourcePosition"]
        while not self._planned and (chosen := inputs.plan(limits)) is not None:
            for planned in chosen.each():
                begin, position = position, planned.states[0]["minibatchSourcePosition"]
                if not self._full or self._is_full(position - begin):
                    self._planned.append(self._with_ends(planned, begin, position) if self._full else planned)

    def _is_full(self, frames: int) -> bool:
        return frames == self._inputs.minibatch_size or self._inputs.samples_per_sweep <= frames

    def _with_ends(self, planned: Planned, begin: int, end: int) -> Planned:
        """Return a minibatch that ends a sweep and an epoch if all after it are passed over."""
        total, size = self._inputs.samples_per_sweep, self._inputs.minibatch_size
        passed = size - 1 if total > size else 0
        return replace(
            planned,
            end_of_sweep=(end + passed) // total > begin // total,
            end_of_epoch=end + passed >= planned.states[0]["epochEnd"],
        )

    def get_state(self) -> None:
        """Nothing is held back: the position is that of the last minibatch given out."""

    def set_state(self, state: None) -> None:
        """Drop the minibatches that were prepared."""
        self._planned.clear()
        self._copied.clear()
