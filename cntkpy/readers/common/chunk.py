"""Loaded sequences: flat arrays per stream. A sample is a run of values, a sequence a run of samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

_BLOCK = 1 << 14

MANY_VALUES = 1 << 20
"""Values of a stream in a chunk from which on they are kept as bytes where that is possible."""


@dataclass(eq=False)
class StreamData:
    """The values of one stream for a number of sequences.

    values: float[...], or uint8[...] (see `in_bytes`); sample i is values[starts[i] : starts[i] + counts[i]] (dense:
    counts is None, always `dim`); sequence k has the samples sequences[k] .. sequences[k+1]-1; indices int32 (as
    values) only if sparse.

    Kernels copy samples without looking at bounds, so who makes one has checked: samples lie within values, counts are
    not negative, sequences go up from 0 to len(starts), indices lie from 0 to dim - 1.
    """

    dim: int
    values: np.ndarray
    starts: np.ndarray
    sequences: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None

    @property
    def sparse(self) -> bool:
        """True if samples are lists of (index, value)."""
        return self.indices is not None

    @cached_property
    def even(self) -> tuple[int, int, int] | None:
        """Start of the first sample's entries, distance between samples, and entries per sample.

        None where some samples have more entries than others, or lie closer. Words and classes are mostly even: to copy
        a shuffled sample then asks memory for half as many places.
        """
        starts, counts = self.starts, self.counts
        if counts is None or len(starts) < 2:
            return None
        entries, begin = int(counts[0]), int(starts[0])
        apart = int(starts[1]) - begin
        for index in range(0, len(starts) - 1, _BLOCK):  # what does not fit is seen early, and no large array is made
            some = starts[index : index + _BLOCK + 1]
            if (counts[index : index + _BLOCK + 1] != entries).any() or (some[1:] - some[:-1] != apart).any():
                return None
        return begin, apart, entries

    def lengths(self, which: np.ndarray) -> np.ndarray:
        """Number of samples of the given sequences, int64."""
        return self.sequences[which + 1] - self.sequences[which]


@dataclass(eq=False)
class Chunk:
    """Some sequences with all their streams.

    invalid: bool[n], sequences to be left out; None if all are good. damaged: bool[n], sequences of which something
    malformed was left out, which the deserializer has counted; None if there are none.
    """

    streams: dict[str, StreamData]
    nbytes: int = 0
    invalid: np.ndarray | None = None
    damaged: np.ndarray | None = None

    def unusable(self, which: np.ndarray) -> np.ndarray:
        """Which of these sequences are damaged in some streams only, or have no sample left: bool[n]."""
        if self.damaged is None or not self.damaged[which].any():
            return np.zeros(len(which), bool)
        lengths = np.array([data.lengths(which) for data in self.streams.values()])
        return self.damaged[which] & ((lengths != lengths[0]).any(axis=0) | (lengths[0] == 0))


@dataclass(eq=False)
class Part:
    """Sequences `which` (int64[n]) of one chunk, standing at places `where` (int64[n], ascending) of the minibatch."""

    chunk: Chunk
    which: np.ndarray
    where: np.ndarray

    def between(self, begin: int, end: int) -> Part:
        """Return the part at places begin .. end-1; its places count from begin."""
        a, b = self.where.searchsorted((begin, end)).tolist()
        return Part(self.chunk, self.which[a:b], self.where[a:b] - begin)


def dense_stream(rows: np.ndarray, sequences: np.ndarray) -> StreamData:
    """Return a dense stream from rows (samples, dim) and sequence bounds int64[n+1]."""
    dim = rows.shape[1]
    return StreamData(dim, np.ascontiguousarray(rows).reshape(-1), np.arange(len(rows)) * dim, sequences)


def in_bytes(chunk: Chunk) -> Chunk:
    """Return a chunk whose large dense streams of whole numbers from 0 to 255, as those of pixels, are bytes.

    Streams that share their values go on sharing them.
    """
    dense = {id(data.values): data.values for data in chunk.streams.values() if not data.sparse}
    made = {place: _bytes(values) for place, values in dense.items()}
    streams = {
        name: data if (values := made.get(id(data.values))) is None else replace(data, values=values)
        for name, data in chunk.streams.items()
    }
    return replace(chunk, streams=streams)


def _bytes(values: np.ndarray) -> np.ndarray | None:
    """Return values as bytes; None: they are few, or some are another number in bits, as -0."""
    if len(values) < MANY_VALUES or values.dtype == np.uint8:
        return None
    result, again = np.empty(len(values), np.uint8), np.empty(_BLOCK, values.dtype)
    bits = np.dtype(f"i{values.itemsize}")
    for index in range(0, len(values), _BLOCK):
        block = values[index : index + _BLOCK]
        with np.errstate(invalid="ignore"):
            np.copyto(result[index : index + len(block)], block, casting="unsafe")
        np.copyto(again[: len(block)], result[index : index + len(block)])
        if not np.array_equal(again[: len(block)].view(bits), block.view(bits)):
            return None
    return result
