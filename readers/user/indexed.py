"""A user's deserializer together with others: its sequences are counted first and numbered through all chunks."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np

from readers.common.chunk import Chunk, StreamData
from readers.common.sequences import SequenceTable, starts_of
from readers.errors import DataError
from readers.user.deserializer import UserData

CACHED = 4
"""So many chunks are kept for sequences that are asked for one by one."""


class IndexedUserData:
    """The data of a user's deserializer as sequences whose number and lengths are known.

    Every chunk is loaded once to count them. The key of a sequence is its number, which other deserializers are joined
    by.

    Args:
        data: the deserializer.
    """

    def __init__(self, data: UserData) -> None:
        self._data = data
        self.streams = data.streams
        self.defines_mb_size = any(stream.m_defines_mb_size for stream in data.streams)
        self._name = type(data.deserializer).__name__
        lengths: list[np.ndarray] = []
        sizes: list[int] = []
        for number in range(data.chunks):
            chunk, own = data.load_window_chunk(number)
            lengths.append(own)
            sizes.append(_bytes(chunk))
        counts = [len(own) for own in lengths]
        if not sum(counts):
            raise DataError(f"{self._name} has no sequences: all its chunks are empty.")
        self.table = SequenceTable(starts_of(counts), np.concatenate(lengths).astype(np.int32))
        self.chunk_bytes = np.array(sizes, np.int64)
        self._loaded: OrderedDict[int, Chunk] = OrderedDict()
        self._lock, self._one_by_one = Lock(), Lock()

    def load_chunk(self, chunk: int) -> Chunk:
        """All sequences of a chunk in order."""
        if self._data.thread_safe:
            found, lengths = self._data.load_window_chunk(chunk)
        else:
            with self._one_by_one:
                found, lengths = self._data.load_window_chunk(chunk)
        expected = int(self.table.first[chunk + 1] - self.table.first[chunk])
        if len(lengths) != expected:
            raise DataError(
                f"{self._name}.get_chunk({chunk}) gave {len(lengths)} sequences, before it gave {expected}",
                hint="a chunk has to be the same each time",
            )
        found.nbytes = int(self.chunk_bytes[chunk])
        return found

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these sequences, in the given order."""
        chunks = np.searchsorted(self.table.first, sequences, side="right") - 1
        used, which = np.unique(chunks, return_inverse=True)
        loaded = [self._cached(number) for number in used.tolist()]
        within = sequences - self.table.first[chunks]
        streams = {
            stream.name: _taken([chunk.streams[stream.name] for chunk in loaded], which.reshape(-1), within)
            for stream in self.streams
        }
        found = Chunk(streams)
        found.nbytes = _bytes(found)
        return found

    def _cached(self, number: int) -> Chunk:
        with self._lock:
            if number in self._loaded:
                self._loaded.move_to_end(number)
                return self._loaded[number]
        chunk = self.load_chunk(number)
        with self._lock:
            self._loaded[number] = chunk
            while len(self._loaded) > CACHED:
                self._loaded.popitem(last=False)
        return chunk


def _taken(parts: list[StreamData], which: np.ndarray, within: np.ndarray) -> StreamData:
    """Sequences `within[k]` of part `which[k]`, in this order."""
    at = starts_of([len(part.sequences) for part in parts])[which] + within
    every = np.concatenate([part.sequences for part in parts])
    first, lengths = every[at], every[at + 1] - every[at]
    samples_before = starts_of([len(part.starts) for part in parts])
    values_before = starts_of([len(part.values) for part in parts])
    bounds = starts_of(lengths)
    samples = np.repeat(first + samples_before[which] - bounds[:-1], lengths) + np.arange(int(bounds[-1]))
    starts = np.concatenate([part.starts + before for part, before in zip(parts, values_before, strict=False)])
    values = np.concatenate([part.values for part in parts])
    if parts[0].counts is None:
        return StreamData(parts[0].dim, values, starts[samples], bounds)
    counts = np.concatenate([np.asarray(part.counts) for part in parts])
    indices = np.concatenate([np.asarray(part.indices) for part in parts])
    return StreamData(parts[0].dim, values, starts[samples], bounds, counts[samples], indices)


def _bytes(chunk: Chunk) -> int:
    arrays = [one for s in chunk.streams.values() for one in (s.values, s.starts, s.sequences, s.counts, s.indices)]
    return sum(one.nbytes for one in arrays if one is not None)
