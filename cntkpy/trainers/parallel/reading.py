"""The share of each process in the minibatches of a reader.

Either the reader itself gives every worker its share (`distributedMBReading=true`), or every worker reads everything
and takes consecutive slots of each minibatch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cntkpy.readers.contracts import MinibatchReader, SharesData
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.step.axes import rows_at
from cntkpy.trainers.step.reading import WrappedReader, innermost

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SharedReader(WrappedReader):
    """A reader whose minibatches are this process's part while it is `active`, and whole otherwise.

    Args:
        reader: Reads the data.
        rank: Number of this process, from 0.
        size: Number of processes.
        reads_share: Whether the reader gives out shares itself; None: if it can without changing the minibatches.
    """

    def __init__(self, reader: MinibatchReader, rank: int, size: int, reads_share: bool | None):
        super().__init__(reader)
        self._rank, self._size = rank, size
        inside = innermost(reader)
        # a reader that says nothing about its shares gives out those that its contract asks for
        shares = inside.gives_shares(size) if isinstance(inside, SharesData) else True
        keeps = inside.shares_keep_minibatches() if isinstance(inside, SharesData) else True
        self.reads_share = shares and (keeps if reads_share is None else reads_share)
        """Return whether the reader gives out the shares."""
        self.active = False
        """Return whether minibatches are this process's part."""

    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch. The workers are those of this reader, whatever the request says."""
        worker, workers = (self._rank, self._size) if self.active and self.reads_share else (0, 1)
        super().start(replace(request, worker=worker, workers=workers))

    def get_minibatch(self) -> Minibatch | None:
        """Return this process's part of the next minibatch, which may be empty; None after the last."""
        minibatch = self.inner.get_minibatch()
        if minibatch is None or not self.active or self.reads_share:
            return minibatch
        return part_of(minibatch, self._rank, self._size)


def part_of(minibatch: Minibatch, rank: int, size: int) -> Minibatch:
    """Return the slots of one of `size` workers: those from `S*rank//size` to `S*(rank+1)//size`.

    Where streams have sequences of different lengths, it is sequences instead of slots, each in a slot of its own.
    """
    first_layout = next(iter(minibatch.layouts.values()), None)
    if any(
        grid is not first_layout and not np.array_equal(grid.sequences, first_layout.sequences)
        for grid in minibatch.layouts.values()
        if first_layout is not None
    ):
        return _sequences_of(minibatch, rank, size)
    layouts: dict[int, tuple[Layout, NDArray[np.int64]]] = {}
    streams: dict[str, Any] = {}
    kept = np.zeros(0, np.int64)
    for name, layout in minibatch.layouts.items():
        first, last = (layout.S * r // size for r in (rank, rank + 1))
        if id(layout) not in layouts:
            slots = layout.sequences[:, 1]
            which = np.flatnonzero((first <= slots) & (slots < last))
            sequences = layout.sequences[which].copy()
            sequences[:, 0], sequences[:, 1] = np.arange(len(which)), sequences[:, 1] - first
            layouts[id(layout)] = (Layout(layout.T, last - first, sequences), which)
        kept = layouts[id(layout)][1]
        values = minibatch.streams[name]
        if isinstance(values, np.ndarray):
            streams[name] = values[:, first:last]
        else:
            cells = np.arange(layout.T)[:, None] * layout.S + np.arange(first, last)
            streams[name] = values[cells.ravel()]
    whole = minibatch.columns_together or max((grid.T * grid.S for grid in minibatch.layouts.values()), default=0)
    return Minibatch(
        streams,
        {name: layouts[id(layout)][0] for name, layout in minibatch.layouts.items()},
        [minibatch.keys[i] for i in kept] if len(minibatch.keys) > max(kept, default=-1) else [],
        minibatch.end_of_sweep,
        minibatch.end_of_epoch,
        minibatch.truncated,
        whole,
    )


def _sequences_of(minibatch: Minibatch, rank: int, size: int) -> Minibatch:
    """Return some consecutive sequences of a minibatch whose streams have layouts of their own."""
    count = minibatch.num_sequences
    first, last = (count * r // size for r in (rank, rank + 1))
    streams: dict[str, Any] = {}
    layouts: dict[str, Layout] = {}
    for name, layout in minibatch.layouts.items():
        table = layout.sequences[np.argsort(layout.sequences[:, 0], kind="stable")][first:last]
        lengths = table[:, 3] - table[:, 2]
        number = np.arange(len(table))
        steps = max(1, int(lengths.max(initial=0)))
        placed = Layout(steps, len(table), np.stack([number, number, 0 * number, lengths], axis=1))
        step, slot, owner = placed.cells
        rows = (step + table[owner, 2]) * layout.S + table[owner, 1]
        values: Any = minibatch.streams[name]
        if isinstance(values, np.ndarray):
            values = cast("NDArray[Any]", values)
            out = np.zeros((steps, len(table), values.shape[-1]), values.dtype)
            out[step, slot] = values.reshape(-1, values.shape[-1])[rows]
            streams[name] = out
        else:
            streams[name] = rows_at(values[rows], step * len(table) + slot, steps * len(table))
        layouts[name] = placed
    whole = minibatch.columns_together or max((grid.T * grid.S for grid in minibatch.layouts.values()), default=0)
    keys = list(minibatch.keys[first:last]) if len(minibatch.keys) >= last else []
    ends = minibatch.end_of_sweep, minibatch.end_of_epoch, minibatch.truncated
    return Minibatch(streams, layouts, keys, *ends, whole)
