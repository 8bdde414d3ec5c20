"""A user's deserializer together with others: its sequences are counted first and numbered through all chunks."""

from __future__ import annotations

from threading import Lock

import numpy as np

from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.chunk_cache import ChunkCache, bytes_of
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.user.deserializer import UserData

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
            chunk, own_streams = data.load_window_chunk(number)
            lengths.append(own_streams)
            sizes.append(bytes_of(chunk))
        counts = [len(own_length) for own_length in lengths]
        if not sum(counts):
            raise DataError(f"{self._name} has no sequences: all its chunks are empty.")
        self.table = SequenceTable(starts_of(counts), np.concatenate(lengths).astype(np.int32))
        self.chunk_bytes = np.array(sizes, np.int64)
        self._one_by_one = Lock()
        self._cache = ChunkCache(self.load_chunk, self.table.first, CACHED)

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk in order."""
        if self._data.thread_safe:
            result, lengths = self._data.load_window_chunk(chunk)
        else:
            with self._one_by_one:
                result, lengths = self._data.load_window_chunk(chunk)
        expected = int(self.table.first[chunk + 1] - self.table.first[chunk])
        if len(lengths) != expected:
            raise DataError(
                f"{self._name}.get_chunk({chunk}) gave {len(lengths)} sequences, before it gave {expected}",
                hint="a chunk has to be the same each time",
            )
        result.nbytes = int(self.chunk_bytes[chunk])
        return result

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these sequences, in the given order."""
        return self._cache.sequences(sequences)
