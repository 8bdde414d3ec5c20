"""Minibatches of utterances of HTKMLFReader: of reads (a few utterances) side by side, of pieces of reads."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

import numpy as np

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.common.planned import Limits
from cntkpy.readers.common.sequences import no_sequence
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.pipeline.assembly import Inputs, InStep
from cntkpy.readers.pipeline.pack import copy_samples, sequence_lengths
from cntkpy.readers.pipeline.truncated import Piece, TruncatedPacker, Waiting

log = logging.getLogger("cntkpy.readers")


def next_read(inputs: Inputs) -> tuple[list[int], bool]:
    """Return the utterances of the next read: one, and more while they are shorter than the minibatch size together."""
    state = inputs.timeline.get_state()
    size = min(inputs.minibatch_size, state["epochEnd"] - state["minibatchSourcePosition"]) - 1
    while (planned := inputs.plan(Limits(size, size))) is not None:
        if len(planned.sequences):
            return planned.sequences.tolist(), planned.end_of_sweep
    return [], False


_Read = tuple[list[int], bool]
"""Utterances, and whether the last of them ends a sweep."""


class Reads(InStep):
    """Minibatches of whole utterances: a read in each of the slots, and after it what fits without making it longer.

    Every slot has its next read at hand, which is placed after those of the first slot that stays shorter than the
    longest one, else comes first in the next minibatch.
    """

    def __init__(self, inputs: Inputs):
        super().__init__(inputs)
        self.streams = list(inputs.streams)
        self._next: list[_Read | None] = []

    def _make(self) -> Minibatch | None:
        """Place reads, then copy them."""
        slots = self.inputs.own_slots()
        lengths = self.inputs.deserializer.table.lengths
        if len(self._next) < slots:
            self._next += [self._ask() for _ in range(slots - len(self._next))]
        placed: list[tuple[_Read, int, int]] = []  # read, slot, step
        used = [0] * slots
        for slot in range(slots):
            used[slot] = self._place(placed, slot, slot, 0)
        if not placed:
            return None
        steps = max(used)
        for waiting in range(slots):
            while (read := self._next[waiting]) is not None:
                frames = _frames(read[0], lengths)
                slot = next((s for s in range(slots) if used[s] + frames < steps), None)
                if slot is None:
                    break
                used[slot] += self._place(placed, waiting, slot, used[slot])
        return self._pack(placed, steps)

    def _place(self, placed: list[tuple[_Read, int, int]], waiting: int, slot: int, step: int) -> int:
        """Put the next read of the slot `waiting` into `slot`, and get another; how many frames it has."""
        read = self._next[waiting]
        if read is None:
            return 0
        placed.append((read, slot, step))
        self._next[waiting] = self._ask()
        return _frames(read[0], self.inputs.deserializer.table.lengths)

    def _ask(self) -> _Read | None:
        read = next_read(self.inputs)
        return read if read[0] else None

    def _pack(self, placed: list[tuple[_Read, int, int]], steps: int) -> Minibatch:
        table = self.inputs.deserializer.table
        slots, ended = self.inputs.own_slots(), False
        places: list[tuple[int, int, int, int]] = []
        for (utterances, last), slot, begin in placed:
            ended |= last
            for u in utterances:
                end = begin + _frames([u], table.lengths)
                places.append((u, slot, begin, end))
                begin = end
        places.sort(key=lambda place: (place[1], place[2]))
        numbers = np.array([place[0] for place in places])
        layout = Layout(steps, slots, np.array([(i, *place[1:]) for i, place in enumerate(places)], np.int64))
        parts = self.inputs.store.begin(numbers)()
        to = layout.sequences[:, 2] * slots + layout.sequences[:, 1]
        data: dict[str, Any] = {}
        for stream in self.streams:
            counts = sequence_lengths(parts, stream.name, len(numbers))
            pieces = [self._piece(part, stream.name, counts, to) for part in parts]
            matrix = copy_samples(pieces, stream, steps * slots, slots)
            data[stream.name] = matrix if stream.sparse else matrix.reshape(steps, slots, stream.dim)
        over = self.inputs.timeline.ended and not any(self._next)
        return Minibatch(data, dict.fromkeys(data, layout), self.inputs.keys(numbers), ended, over)

    @staticmethod
    def _piece(part: Part, name: str, counts: np.ndarray, to: np.ndarray) -> Any:
        d = part.chunk.streams[name]
        return d, d.sequences[part.which], counts[part.where], to[part.where]

    def get_state(self) -> Any:
        """Return the next reads of the slots."""
        return [read and [read[0], int(read[1])] for read in self._next] or None

    def set_state(self, state: Any) -> None:
        """Take them over; None: none."""
        count = self.inputs.deserializer.table.num_sequences
        reads: list[Any] = state or []
        for number in (number for read in reads if read for number in read[0]):
            if not 0 <= number < count:
                raise no_sequence(number, count)
        self._next = [read and (list(read[0]), bool(read[1])) for read in reads]


def _frames(utterances: list[int], lengths: np.ndarray) -> int:
    return int(lengths[utterances].sum()) if len(lengths) > 1 else int(lengths[0]) * len(utterances)


class TruncatedReads(TruncatedPacker):
    """Minibatches of as many steps as the minibatch size; each slot walks through its read and then takes another.

    The first reads of an epoch go to the slots in turn. Within a minibatch a slot takes one more read at most; if that
    ends as well, the rest of the slot is a gap.
    """

    def _make(self) -> Minibatch | None:
        """Cut a piece off each slot's read."""
        t = self.inputs.timeline
        slots, steps = self.inputs.own_slots(), self.inputs.minibatch_size
        pieces: list[Piece] = []
        while len(self._queues) < slots:  # at the start every slot gets a read before any gets a second one
            self._queues.append(deque(self._read()))
        for slot, queue in enumerate(self._queues):
            if not queue:
                queue.extend(self._read())
            step = self._cut(queue, slot, 0, steps, pieces)
            if step and not queue:
                queue.extend(self._read())
                self._cut(queue, slot, step, steps, pieces)
        if not pieces:
            return None
        ended = any(w.last_of_sweep and w.used == w.length for w, _, _, _ in pieces)
        return self._pack(pieces, steps, ended, not any(self._queues) and t.ended)

    def _read(self) -> list[Waiting]:
        numbers, ended = next_read(self.inputs)
        waiting: list[Waiting] = []
        for i, number in enumerate(numbers):
            parts = self.inputs.store.begin(np.array([number]))()
            waiting.append(self._waiting(parts, number, ended and i + 1 == len(numbers)))
        return waiting
