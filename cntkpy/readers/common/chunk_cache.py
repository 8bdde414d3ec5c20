"""Single sequences out of data that are loaded chunk by chunk: the last chunks are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.sequences import starts_of


class ChunkCache:
    """The chunks that were asked for last.

    Args:
        load: loads a chunk; called from any thread.
        first: int64[C+1], sequences before each chunk.
        most: chunks that are kept.
        room: bytes that the kept chunks may take together; the last one is kept in any case.
    """

    def __init__(self, load: Callable[[int], Chunk], first: np.ndarray, most: int, room: int = 2**62) -> None:
        self._load, self._first, self._most, self._room = load, first, most, room
        self._kept: OrderedDict[int, Chunk] = OrderedDict()
        self._lock = Lock()

    def sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these sequences (numbers in the table), in the given order."""
        chunks = np.searchsorted(self._first, sequences, side="right") - 1
        used, which = np.unique(chunks, return_inverse=True)
        loaded = [self._chunk(number) for number in used.tolist()]
        within = sequences - self._first[chunks]
        names = list(loaded[0].streams)
        streams = {name: _taken([chunk.streams[name] for chunk in loaded], which.reshape(-1), within) for name in names}
        chunk = Chunk(streams)
        chunk.nbytes = bytes_of(chunk)
        return chunk

    def _chunk(self, number: int) -> Chunk:
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        chunk = self._load(number)
        with self._lock:
            self._kept[number] = chunk
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._size() > self._room):
                self._kept.popitem(last=False)
        return chunk

    def _size(self) -> int:
        return sum(chunk.nbytes for chunk in self._kept.values())


def _taken(parts: Sequence[StreamData], which: np.ndarray, within: np.ndarray) -> StreamData:
    """Sequences `within[k]` of part `which[k]`, in this order."""
    position = starts_of([len(part.sequences) for part in parts])[which] + within
    every = np.concatenate([part.sequences for part in parts])
    first, lengths = every[position], every[position + 1] - every[position]
    samples_before = starts_of([len(part.starts) for part in parts])
    bounds = starts_of(lengths)
    samples = np.repeat(first - bounds[:-1], lengths) + np.arange(int(bounds[-1]))
    of = np.repeat(which, lengths)
    dim, sparse = parts[0].dim, parts[0].counts is not None
    if not sparse:
        rows = np.empty((len(samples), dim), parts[0].values.dtype)
        for number, part in enumerate(parts):
            mine = np.flatnonzero(of == number)
            rows[mine] = part.values[part.starts[samples[mine]][:, None] + np.arange(dim)]
        return StreamData(dim, rows.reshape(-1), np.arange(len(rows), dtype=np.int64) * dim, bounds)
    samples = samples + samples_before[of]
    values_before = starts_of([len(part.values) for part in parts])
    starts = np.concatenate([part.starts + previous for part, previous in zip(parts, values_before, strict=False)])
    counts = np.concatenate([np.asarray(part.counts) for part in parts])
    indices = np.concatenate([np.asarray(part.indices) for part in parts])
    values = np.concatenate([part.values for part in parts])
    return StreamData(dim, values, starts[samples], bounds, counts[samples], indices)


def bytes_of(chunk: Chunk) -> int:
    """Return the memory of the arrays of a chunk."""
    arrays = [array for s in chunk.streams.values() for array in (s.values, s.starts, s.sequences, s.counts, s.indices)]
    return sum(array.nbytes for array in arrays if array is not None)
