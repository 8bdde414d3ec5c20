"""The order of data whose sequences are single records: file order, or blocks of records shuffled each by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.common.arguments import state_field
from cntkpy.readers.common.planned import Limits, LoadHints, Planned, State
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.contracts import AUTO_BLOCK
from cntkpy.readers.epochs import EpochRequest

from .randomize import window_order


def _misfit(message: str) -> UserError:
    return UserError("BadValue", message)


class RecordOrder:
    """Epochs over records numbered 0, 1, ... of an endlessly repeated data set.

    block: records that are shuffled among each other; 0 for none, AUTO_BLOCK for the whole epoch. full: minibatches
    that are smaller than asked for are not given out. wraps: a full minibatch continues at the start of the data, an
    epoch of a given size is made a multiple of the minibatch. complain: makes the error for a block that does not fit.
    """

    def __init__(
        self,
        table: SequenceTable,
        block: int = 0,
        *,
        full: bool = False,
        wraps: bool = False,
        complain: Callable[[str], UserError] = _misfit,
    ):
        self.table = table
        self.position = self.epoch_end = 0
        self.workers, self.rank = 1, 0
        self._asked, self._full, self._wraps, self._complain = block, full, wraps, complain
        self._count = table.num_samples
        self.limits, self.epoch_size = Limits(1, 1), self._count
        self._permutation: tuple[int, int, np.ndarray] | None = None

    def _start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch of records; without their number it is one sweep."""
        count, step = self._count, self._step(request.minibatch_size)
        self.workers, self.rank = request.workers, request.worker
        length = count if request.samples is None else request.samples
        if request.samples is not None and self._full and self._wraps:
            length = -(-length // step) * step
        self.epoch_size = length
        self._check(length, step)
        self.position = request.epoch * length
        self.epoch_end = self.position + length
        if request.samples is None and self._full:
            self.epoch_end -= length % step

    def _step(self, minibatch_size: int) -> int:
        """Return the records of a minibatch."""
        return max(1, min(minibatch_size, self._count))

    def _check(self, length: int, step: int) -> None:
        if self._asked <= 0:
            return
        block = max(self._asked, step)
        if length % block or block % step:
            raise self._complain(
                f"randomize={self._asked} must be a multiple of the minibatch size ({step}) "
                f"and divide the size of the epoch ({length})"
            )

    @property
    def block(self) -> int:
        """Records shuffled among each other, 0 for none."""
        if self._asked == AUTO_BLOCK:
            return min(self.epoch_size, self._count)
        return max(self._asked, self._step(self.limits.minibatch)) if self._asked else 0

    @property
    def ended(self) -> bool:
        """True after the end of the epoch."""
        return self._next_size() == 0

    def get_state(self) -> State:
        """Return the position."""
        return {
            "minibatchSourcePosition": self.position,
            "epochEnd": self.epoch_end,
            "epochSize": self.epoch_size,
            "workers": self.workers,
            "rank": self.rank,
        }

    def set_state(self, state: State | EpochRequest) -> None:
        """Go to the start of an epoch, or to a position, whose minibatchSourcePosition alone is needed."""
        if isinstance(state, EpochRequest):
            self._start(state)
            return
        self.position = state_field(state, "minibatchSourcePosition")
        self.epoch_end = int(state.get("epochEnd", self.epoch_end))
        self.epoch_size = int(state.get("epochSize", self.epoch_size))
        self.workers, self.rank = int(state.get("workers", self.workers)), int(state.get("rank", self.rank))

    def _next_size(self) -> int:
        """Records of the next minibatch, 0 at the end of the epoch."""
        step = self._step(self.limits.minibatch)
        size = min(step, self.epoch_end - self.position)
        if not (self._full and self._wraps):
            size = min(size, self._count - self.position % self._count)
        return 0 if self._full and size < step else max(size, 0)

    def __next__(self) -> Planned:
        """Return the records of the next minibatch; each worker gets its share of them, which may be empty."""
        size = self._next_size()
        if size == 0:
            raise StopIteration
        records, keep = self._records(size)
        begin, self.position = self.position, self.position + size
        low, high = (size * r // self.workers for r in (self.rank, self.rank + 1))
        swept = self.position // self._count > begin // self._count
        return Planned(records[low:high], [self.get_state()], swept, self.ended, LoadHints(keep))

    def _records(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next records, and the chunks that they or the records after them need."""
        block, count = self.block, self._count
        if not block:
            records = np.arange(self.position, self.position + size) % count
            return records, self._chunks_of(int(records[0]), size, 1)
        parts: list[np.ndarray] = []
        position, left = self.position, size
        while left:
            number, within = divmod(position, block)
            taken = min(left, block - within)
            parts.append(number * block + self._order(number, block)[within : within + taken])
            position, left = position + taken, left - taken
        first = self.position - self.position % block
        return np.concatenate(parts) % count, self._chunks_of(first % count, block, 0)

    def _chunks_of(self, begin: int, size: int, extra: int) -> np.ndarray:
        """Return the chunks of records begin .. begin + size - 1, and some more, in order of need."""
        table = self.table
        if size >= self._count:
            return np.arange(table.num_chunks)
        low, high = map(int, np.searchsorted(table.first, [begin, (begin + size - 1) % self._count], side="right") - 1)
        if high < low or begin + size > self._count:
            high += table.num_chunks
        return np.arange(low, min(high + 1 + extra, low + table.num_chunks)) % table.num_chunks

    def _order(self, number: int, block: int) -> np.ndarray:
        """Return the permutation of a block."""
        have = self._permutation
        if have is None or have[:2] != (number, block):
            have = self._permutation = (number, block, window_order(block, block, number))
        return have[2]
