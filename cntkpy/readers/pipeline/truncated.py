"""Truncated back-propagation through time: long sequences cut into pieces of a fixed length, slot by slot."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.common.planned import Limits
from cntkpy.readers.errors import ArgumentError, DataError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline.pack import Runs, copy_samples, sequence_lengths

from .assembly import Inputs, InStep


@dataclass(eq=False)
class Waiting:
    """A sequence in a slot's queue: its number in the table, its data, how many samples were given out."""

    sequence: int
    part: Part
    length: int
    used: int
    last_of_sweep: bool


Piece = tuple[Waiting, int, int, int]
"""A sequence, its slot, the step where it would begin, and how many samples of it are given out."""


class TruncatedPacker(InStep):
    """Every minibatch has T = truncation length and a fixed number of slots, each with its own queue of sequences.

    truncation_length: 0 divides the minibatch size among the slots of the epoch.
    """

    def __init__(self, inputs: Inputs, truncation_length: int = 0):
        super().__init__(inputs)
        self.streams, self._length = list(inputs.streams), truncation_length
        self._queues: list[deque[Waiting]] = []

    def _make(self) -> Minibatch | None:
        """Fill the queues, cut a piece off each."""
        t = self.inputs.timeline
        steps = self._length or max(1, self.inputs.minibatch_size // self.inputs.slots)
        slots = max(1, self.inputs.minibatch_size // steps)
        if t.workers > slots:
            raise ArgumentError(
                f"{t.workers} workers are more than the parallel sequences of a minibatch.",
                "raise the minibatch size to at least the truncation length times the number of workers",
            )
        slots = slots // t.workers + (t.rank < slots % t.workers)
        while len(self._queues) < slots:
            self._queues.append(deque())
        for queue in self._queues:
            unread = sum(w.length - w.used for w in queue)
            while unread <= steps and (waiting := self._ask()):
                queue.append(waiting)
                unread += waiting.length
        pieces: list[Piece] = []
        for slot, queue in enumerate(self._queues):
            self._cut(queue, slot, 0, steps, pieces)
        if not pieces:
            return None
        ended = any(w.last_of_sweep and w.used == w.length for w, _, _, _ in pieces)
        over = not any(self._queues) and t.ended
        return self._pack(pieces, steps, ended, over)

    @staticmethod
    def _cut(queue: deque[Waiting], slot: int, step: int, steps: int, pieces: list[Piece]) -> int:
        """Cut pieces off a slot's queue from a step on, until it or the minibatch ends; the step after them."""
        while queue and step < steps:
            w = queue[0]
            count = min(w.length - w.used, steps - step)
            pieces.append((w, slot, step - w.used, count))
            step += count
            w.used += count
            if w.used == w.length:
                queue.popleft()
        return step

    def _ask(self) -> Waiting | None:
        """Return one more sequence from the randomizer."""
        while (planned := self.inputs.plan(Limits(1, 1))) is not None:
            parts = self.inputs.store.begin(planned.sequences, planned.hints)()
            sequences, parts = self.inputs.invalid.without(planned.sequences, parts, end_of_sweep=planned.end_of_sweep)
            if len(sequences):
                return self._waiting(parts, int(sequences[0]), planned.end_of_sweep)
        return None

    def _waiting(self, parts: Sequence[Part], sequence: int, last_of_sweep: bool, used: int = 0) -> Waiting:
        lengths = [int(sequence_lengths(parts, s.name, 1)[0]) for s in self.streams]
        if len(set(lengths)) > 1:
            key, sizes = self.inputs.keys(np.array([sequence]))[0], " and ".join(map(str, lengths))
            raise DataError(
                "For BPTT sequences between different input stream should have the same length.",
                hint=f"the streams of sequence {key} have {sizes} samples",
            )
        if not 0 <= used <= max(0, lengths[0] - 1):
            raise DataError(
                f"Sequence {sequence} has {lengths[0]} samples, but {used} of them were used when the state was saved.",
                hint="the state of the reader belongs to other data: did the files change since it was saved?",
            )
        return Waiting(sequence, parts[0], lengths[0], used, last_of_sweep)

    def _pack(self, pieces: list[Piece], steps: int, ended: bool, over: bool) -> Minibatch:
        slots = len(self._queues)
        table = np.array([[i, slot, begin, begin + w.length] for i, (w, slot, begin, _) in enumerate(pieces)])
        layout = Layout(steps, slots, table.astype(np.int64))
        data: dict[str, Any] = {}
        for stream in self.streams:
            copies: list[Runs] = []
            for w, slot, begin, count in pieces:
                d = w.part.chunk.streams[stream.name]
                step = max(begin, 0)
                first = d.sequences[w.part.which] + (step - begin)
                copies.append((d, first, np.array([count]), np.array([step * slots + slot])))
            matrix = copy_samples(copies, stream, steps * slots, slots)
            data[stream.name] = matrix if stream.sparse else matrix.reshape(steps, slots, stream.dim)
        keys = self.inputs.keys(np.array([w.sequence for w, _, _, _ in pieces]))
        return Minibatch(data, dict.fromkeys(data, layout), keys, ended, over, truncated=True)

    def get_state(self) -> list[list[list[int]]]:
        """Per slot, the sequences waiting: number, samples used, whether last of its sweep."""
        return [[[w.sequence, w.used, int(w.last_of_sweep)] for w in queue] for queue in self._queues]

    def set_state(self, state: Any) -> None:
        """Load the waiting sequences again; None: none."""
        queues: list[Any] = state or []
        self._queues = []
        for rows in queues:
            queue: deque[Waiting] = deque()
            for sequence, used, last in rows:
                parts = self.inputs.store.begin(np.array([sequence]))()
                queue.append(self._waiting(parts, sequence, bool(last), used))
            self._queues.append(queue)
