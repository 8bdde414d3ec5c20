"""The share of each process in the minibatches of a reader.

Either the reader itself gives every worker its share (`distributedMBReading=true`), or every worker reads everything
and takes consecutive slots of each minibatch.
"""

from typing import Any

import numpy as np

from readers.minibatch import Layout, Minibatch
from readers.reader import Reader


class SharedReader:
    """A reader whose minibatches are this process's part, while `active`; else all of them.

    **Arguments:**

    - `reader`: reads the data.
    - `rank`, `size`: which process this is, and how many there are.
    - `reads_share`: whether the reader gives out shares itself; `None`: if it can without changing the minibatches.
    """

    def __init__(self, reader: Reader, rank: int, size: int, reads_share: bool | None):
        self._reader, self._rank, self._size = reader, rank, size
        wanted = keeps_minibatches(reader) if reads_share is None else reads_share
        self.reads_share = wanted and can_share(reader) and has_enough_chunks(reader, size)
        self.active = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def start_minibatch_loop(self, minibatch_size: int, epoch: int, requested_epoch_samples: int | None = None) -> None:
        """Go to the start of an epoch; see `Reader.start_minibatch_loop`."""
        workers = (self._rank, self._size) if self.active and self.reads_share else (0, 1)
        self._reader.start_minibatch_loop(minibatch_size, epoch, requested_epoch_samples, *workers)

    def get_minibatch(self) -> Minibatch | None:
        """This process's part of the next minibatch, which may be empty; `None` after the last."""
        minibatch = self._reader.get_minibatch()
        if minibatch is None or not self.active or self.reads_share:
            return minibatch
        return part_of(minibatch, self._rank, self._size)


def can_share(reader: Reader) -> bool:
    """Whether a reader can give out shares: those of the language readers cannot."""
    from readers.data_api.base import MinibatchSourceBase
    from readers.pipeline.source import Source

    return not hasattr(reader, "source") or isinstance(reader.source, Source | MinibatchSourceBase)


def keeps_minibatches(reader: Reader) -> bool:
    """Whether the shares that a reader gives out make up the minibatches that one process would have.

    Not so where slots are divided before sequences are dealt out to them: HTKMLFReader with utterances, truncation;
    and nobody knows what a user's source does.
    """
    from readers.data_api.base import MinibatchSourceBase
    from readers.pipeline.records import RecordSource
    from readers.pipeline.source import Source, WholeSequences

    source = getattr(reader, "source", None)
    if not isinstance(source, Source):
        return not isinstance(source, MinibatchSourceBase)
    return isinstance(source, RecordSource) or isinstance(source._assembler, WholeSequences)


def has_enough_chunks(reader: Reader, workers: int) -> bool:
    """Whether there are chunks of data for all workers, as far as the reader deals out chunks at all."""
    table = getattr(getattr(getattr(reader, "source", None), "deserializer", None), "table", None)
    return table is None or table.num_chunks >= workers or not hasattr(reader.source.timeline, "starved")


def part_of(minibatch: Minibatch, rank: int, size: int) -> Minibatch:
    """The slots of one of `size` workers: those from `S*rank//size` to `S*(rank+1)//size`."""
    layouts: dict[int, tuple[Layout, np.ndarray]] = {}
    streams, kept = {}, np.zeros(0, np.int64)
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
    whole = max((layout.T * layout.S for layout in minibatch.layouts.values()), default=0)
    return Minibatch(
        streams,
        {name: layouts[id(layout)][0] for name, layout in minibatch.layouts.items()},
        [minibatch.keys[i] for i in kept] if len(minibatch.keys) > max(kept, default=-1) else [],
        minibatch.end_of_sweep,
        minibatch.end_of_epoch,
        minibatch.truncated,
        whole,
    )
