"""How HTKMLFReader makes minibatches: of frames, of reads (a few utterances) side by side, of pieces of reads."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..minibatch import Layout, Minibatch
from ..pack import FramePacker, Part, copy_samples, sequence_lengths
from ..source import Source
from ..streams import StreamInformation
from ..truncated import TruncatedPacker, _Waiting

log = logging.getLogger("cntkpy.readers")


class Frames:
    """Minibatches of frames. full: ones shorter than the minibatch size are passed over."""

    def __init__(self, streams: Sequence[StreamInformation], full: bool):
        self._packer, self._full = FramePacker(streams), full

    def next(self, source: Source) -> Minibatch | None:
        """Take, fetch, pack."""
        timeline: Any = source.timeline
        while True:
            before = timeline.position
            selection = timeline.next(*source.limits)
            if selection is None:
                return None
            taken = timeline.position - before
            if not self._full or taken == source.minibatch_size or source.samples_per_sweep <= taken:
                break
        parts = source.store.fetch(selection.sequences, selection.keep)
        data, layouts = self._packer.pack(parts, len(selection.sequences))
        return Minibatch(
            data, layouts, source.keys(selection.sequences), selection.end_of_sweep, selection.end_of_epoch
        )

    def state(self) -> None:
        """Nothing is held back."""

    def restore(self, state: Any, source: Source) -> None:
        """Nothing to do."""

    def clear(self) -> None:
        """Nothing to do."""


def next_read(source: Source) -> tuple[list[int], bool]:
    """The utterances of the next read: one, and more while they are shorter than the minibatch size together."""
    timeline: Any = source.timeline
    limit = min(source.minibatch_size, timeline.epoch_end - timeline.position) - 1
    while (selection := timeline.next(limit, limit)) is not None:
        if len(selection.sequences):
            return selection.sequences.tolist(), selection.end_of_sweep
    return [], False


class Reads:
    """Minibatches of whole utterances: a read in each of the slots, and behind it what fits without making it longer."""

    def __init__(self, streams: Sequence[StreamInformation], slots: int):
        self.streams, self.slots = list(streams), slots
        self._pending: list[tuple[list[int], bool]] = []

    def next(self, source: Source) -> Minibatch | None:
        """Place reads, then copy them."""
        slots = self._slots(source)
        lengths = source.deserializer.table.lengths
        rows: list[tuple[list[int], int, int]] = []  # utterances, slot, step
        used = [0] * slots
        ended = False
        for slot in range(slots):
            if (read := self._ask(source)) is None:
                break
            rows.append((read[0], slot, 0))
            used[slot] = _frames(read[0], lengths)
            ended |= read[1]
        if not rows:
            return None
        steps = max(used)
        for slot in range(len(rows)):
            while (read := self._ask(source)) is not None:
                size = _frames(read[0], lengths)
                if used[slot] + size >= steps:
                    self._pending.insert(0, read)
                    break
                rows.append((read[0], slot, used[slot]))
                used[slot] += size
                ended |= read[1]
        slots = len([u for u in used if u])
        return self._pack(rows, steps, slots, source, ended)

    def _slots(self, source: Source) -> int:
        t = source.timeline
        return max(1, self.slots // t.workers + (t.rank < self.slots % t.workers))

    def _ask(self, source: Source) -> tuple[list[int], bool] | None:
        if self._pending:
            return self._pending.pop(0)
        read = next_read(source)
        return read if read[0] else None

    def _pack(
        self, rows: list[tuple[list[int], int, int]], steps: int, slots: int, source: Source, ended: bool
    ) -> Minibatch:
        table = source.deserializer.table
        places = []
        for utterances, slot, begin in rows:
            for u in utterances:
                end = begin + _frames([u], table.lengths)
                places.append((u, slot, begin, end))
                begin = end
        places.sort(key=lambda place: (place[1], place[2]))
        numbers = np.array([place[0] for place in places])
        layout = Layout(steps, slots, np.array([(i, *place[1:]) for i, place in enumerate(places)], np.int64))
        parts = source.store.fetch(numbers, None)
        to = layout.sequences[:, 2] * slots + layout.sequences[:, 1]
        data: dict[str, Any] = {}
        for stream in self.streams:
            counts = sequence_lengths(parts, stream.name, len(numbers))
            pieces = [self._piece(part, stream.name, counts, to) for part in parts]
            matrix = copy_samples(pieces, stream, steps * slots, slots)
            data[stream.name] = matrix if stream.sparse else matrix.reshape(steps, slots, stream.dim)
        over = source.timeline.ended and not self._pending
        return Minibatch(data, dict.fromkeys(data, layout), source.keys(numbers), ended, over)

    @staticmethod
    def _piece(part: Part, name: str, counts: np.ndarray, to: np.ndarray) -> Any:
        d = part.chunk.streams[name]
        return d, d.sequences[part.which], counts[part.where], to[part.where]

    def state(self) -> Any:
        """Reads that were taken but did not fit."""
        return [[utterances, int(ended)] for utterances, ended in self._pending] or None

    def restore(self, state: Any, source: Source) -> None:
        """Take them over."""
        self._pending = [(list(utterances), bool(ended)) for utterances, ended in state or []]

    def clear(self) -> None:
        """Forget them."""
        self._pending = []


def _frames(utterances: list[int], lengths: np.ndarray) -> int:
    return int(lengths[utterances].sum()) if len(lengths) > 1 else int(lengths[0]) * len(utterances)


class TruncatedReads(TruncatedPacker):
    """Minibatches of as many steps as the minibatch size; each slot walks through its read and then takes another.

    Within a minibatch a slot takes one more read at most; if that ends as well, the rest of the slot is a gap.
    """

    def __init__(self, streams: Sequence[StreamInformation], slots: int):
        super().__init__(streams, 1)
        self.slots = slots

    def next(self, source: Source) -> Minibatch | None:
        """Cut a piece off each slot's read."""
        t = source.timeline
        self.length = source.minibatch_size
        slots = max(1, self.slots // t.workers + (t.rank < self.slots % t.workers))
        pieces: list[tuple[_Waiting, int, int, int]] = []
        while len(self._queues) < slots:
            self._queues.append(deque())
        for slot, queue in enumerate(self._queues):
            step, refills = 0, 2 - bool(queue)
            while step < self.length:
                if not queue:
                    if not refills:
                        break
                    refills -= 1
                    queue.extend(self._read(source))
                    if not queue:
                        break
                w = queue[0]
                count = min(w.length - w.used, self.length - step)
                pieces.append((w, slot, step - w.used, count))
                step += count
                w.used += count
                if w.used == w.length:
                    queue.popleft()
        if not pieces:
            return None
        ended = any(w.last_of_sweep and w.used == w.length for w, _, _, _ in pieces)
        return self._pack(pieces, source, ended, not any(self._queues) and t.ended)

    def _read(self, source: Source) -> list[_Waiting]:
        numbers, ended = next_read(source)
        found = []
        for i, number in enumerate(numbers):
            parts = source.store.fetch(np.array([number]), None)
            found.append(self._waiting(parts, number, ended and i + 1 == len(numbers), 0))
        return found

