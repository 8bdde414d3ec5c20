"""Sequences to minibatches: the layout, and the samples copied to their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .chunk import Chunk, StreamData
from .errors import DataError
from .minibatch import Layout
from .streams import StreamInformation


@dataclass(eq=False)
class Part:
    """Sequences `which` (int64[n]) of one chunk, standing at places `where` (int64[n]) of the minibatch."""

    chunk: Chunk
    which: np.ndarray
    where: np.ndarray


def sequence_lengths(parts: Sequence[Part], name: str, count: int) -> np.ndarray:
    """Samples of one stream in each sequence of the minibatch, int64[count]."""
    if len(parts) == 1:
        return parts[0].chunk.streams[name].lengths(parts[0].which)
    out = np.empty(count, np.int64)
    for part in parts:
        out[part.where] = part.chunk.streams[name].lengths(part.which)
    return out


def place(lengths: np.ndarray) -> Layout:
    """First-fit layout of whole sequences: T is the longest, each goes to the first slot with room."""
    n = len(lengths)
    steps = int(lengths.max(initial=0))
    if steps <= 1 or bool((lengths == steps).all()):
        sequences = np.zeros((n, 4), np.int64)
        sequences[:, 0] = sequences[:, 1] = np.arange(n)
        sequences[:, 3] = lengths
        return Layout(steps, n, sequences)
    from . import pack_kernels as k

    slot, begin, slots = k.first_fit(lengths, steps)
    table = np.empty((n, 4), np.int64)
    table[:, 0], table[:, 1], table[:, 2] = np.arange(n), slot, begin
    np.add(begin, lengths, out=table[:, 3])
    return Layout(steps, int(slots), table)


def copy_samples(
    pieces: Sequence[tuple[StreamData, np.ndarray, np.ndarray, np.ndarray]], stream: StreamInformation, rows: int,
    slots: int, *, dense: bool = False,
) -> Any:  # fmt: skip
    """A matrix (rows, dim), dense or CSR, with samples copied in and zeros elsewhere.

    Pieces are (data, first sample int64[n], number of samples int64[n], row int64[n]); sample j of a piece goes to row
    row + j * slots. dense: give a sparse stream as a dense matrix.
    """
    from . import pack_kernels as k

    if dense or not stream.sparse:
        out = np.zeros((rows, stream.dim), stream.dtype)
        for data, first, count, to in pieces:
            if data.indices is not None:
                k.spread_sparse(data.values, data.indices, data.starts, data.counts, first, count, to, slots, out)
            else:
                k.gather_dense(data.values, data.starts, first, count, to, slots, out)
        return out
    indptr = np.zeros(rows + 1, np.int64)
    for data, first, count, to in pieces:
        k.count_sparse(data.counts, first, count, to, slots, indptr)
    np.cumsum(indptr, out=indptr)
    values, columns = np.empty(int(indptr[-1]), stream.dtype), np.empty(int(indptr[-1]), np.int32)
    for data, first, count, to in pieces:
        k.gather_sparse(
            data.values, data.indices, data.starts, data.counts, first, count, to, slots, indptr, values, columns
        )
    return make_csr(values, columns, indptr.astype(np.int32), stream.dim)


def make_csr(values: np.ndarray, columns: np.ndarray, indptr: np.ndarray, dim: int) -> Any:
    """A CSR matrix (rows, dim) of arrays that are known to fit: scipy's constructor looks at every index."""
    pattern = _empty_matrix(len(indptr) - 1, dim, values.dtype)
    matrix = object.__new__(type(pattern))
    matrix.__dict__.update(pattern.__dict__, data=values, indices=columns, indptr=indptr)
    return matrix


@lru_cache(256)
def _empty_matrix(rows: int, dim: int, dtype: np.dtype) -> Any:
    """A CSR matrix to copy: making one takes longer than filling a small one."""
    import scipy.sparse

    return scipy.sparse.csr_matrix((rows, dim), dtype=dtype)


class SequencePacker:
    """Whole sequences side by side, packed first-fit; each stream has its own layout."""

    def __init__(self, streams: Sequence[StreamInformation]):
        self.streams = list(streams)

    def pack(self, parts: Sequence[Part], count: int) -> tuple[dict[str, Any], dict[str, Layout]]:
        """Streams and layouts of `count` sequences."""
        data, layouts = {}, {}
        known: list[tuple[np.ndarray, Layout]] = []
        for stream in self.streams:
            lengths = sequence_lengths(parts, stream.name, count)
            layout = next((old for have, old in known if np.array_equal(have, lengths)), None)
            if layout is None:
                layout = self.place(lengths)
                known.append((lengths, layout))
            rows = layout.sequences[:, 2] * layout.S + layout.sequences[:, 1]
            pieces = []
            for part in parts:
                d = part.chunk.streams[stream.name]
                pieces.append((d, d.sequences[part.which], lengths[part.where], rows[part.where]))
            matrix = copy_samples(pieces, stream, layout.T * layout.S, layout.S)
            data[stream.name] = matrix if stream.sparse else matrix.reshape(layout.T, layout.S, stream.dim)
            layouts[stream.name] = layout
        return data, layouts

    def place(self, lengths: np.ndarray) -> Layout:
        """The layout of sequences of these lengths."""
        return place(lengths)


class FramePacker(SequencePacker):
    """Every sequence is one sample: T = 1, a slot each."""

    def place(self, lengths: np.ndarray) -> Layout:
        """As many slots as sequences."""
        longer = lengths[lengths != 1]
        if len(longer):
            raise DataError(
                f"Detected a non-frame sequence of size {int(longer[0])} in frame mode.",
                hint="leave frameMode out to read sequences of several samples",
            )
        return place(lengths)
