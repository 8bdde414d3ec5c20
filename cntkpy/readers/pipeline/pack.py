"""Sequences to minibatches: the layout, and the samples copied to their cells."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.systems import memory
from cntkpy.readers.common.chunk import Part, StreamData
from cntkpy.readers.errors import DataError
from cntkpy.readers.kernels.budget import fits_budget
from cntkpy.readers.minibatch import Layout, singles
from cntkpy.readers.streams import StreamInformation


def _functions(work: int) -> Any:
    """`pack_kernels`, or the fallbacks if the work fits the budget."""
    if fits_budget(work):
        from cntkpy.readers.kernels import pack_fallback as functions
    else:
        from cntkpy.readers.kernels import pack_kernels as functions
    return functions


def sequence_lengths(parts: Sequence[Part], name: str, count: int) -> np.ndarray:
    """Samples of one stream in each sequence of the minibatch, int64[count]."""
    out, k = np.empty(count, np.int64), _functions(count // 8)
    for part in parts:
        k.lengths_to(part.chunk.streams[name].sequences, part.which, part.where, out)
    return out


def place(lengths: np.ndarray) -> Layout:
    """First-fit layout of whole sequences: T is the longest, each goes to the first slot with room."""
    k = _functions(10 * len(lengths))
    table, steps, slots, _, _ = k.first_fit(lengths.astype(np.int64, copy=False), np.array([0, len(lengths)]))
    return Layout(int(steps[0]), int(slots[0]), table)


Runs = tuple[StreamData, np.ndarray, np.ndarray, np.ndarray]
"""Samples to be copied: the data, and of n runs of samples the first, how many, and the row of the first, int64[n]."""
Copy = tuple[StreamData, np.ndarray, np.ndarray]
"""Samples to be copied: the data, the samples int64[n], the row of each int64[n]."""


def copy_samples(
    pieces: Sequence[Runs], stream: StreamInformation, rows: int, slots: int, *, dense: bool = False
) -> Any:
    """Return a matrix (rows, dim), dense or CSR, with samples copied in and zeros elsewhere.

    Sample j of a run goes to row row + j * slots. dense: give a sparse stream as a dense matrix.
    """
    k = _functions(rows)
    copies: list[Copy] = [(d, *k.samples_of_runs(first, count, row, slots)) for d, first, count, row in pieces]
    if dense or not stream.sparse:
        return _dense(copies, stream, rows)
    return make_csr(*_csr(copies, stream, rows), stream.dim)


def _dense(pieces: Sequence[Copy], stream: StreamInformation, rows: int) -> np.ndarray:
    k = _functions(rows * stream.dim // 32)
    full = all(d.indices is None for d, _, _ in pieces) and sum(len(samples) for _, samples, _ in pieces) == rows
    out = (np.empty if full else np.zeros)(_fitting(rows, stream), stream.dtype)
    for d, samples, to in pieces:
        if d.indices is not None:
            k.spread_sparse(d.values, d.indices, d.starts, d.counts, samples, to, out)
        else:
            k.gather_dense(d.values, d.starts, samples, to, out)
    return out


def _fitting(rows: int, stream: StreamInformation) -> tuple[int, int]:
    """Return the shape of a minibatch of this many samples.

    Raises:
        DataError: This machine has not enough memory for it.
    """
    size = rows * stream.dim * np.dtype(stream.dtype).itemsize
    if size > _memory():
        raise DataError(
            f"a minibatch of {rows} samples of the dense stream '{stream.name}', which has {stream.dim} values each, "
            f"takes {size / 1e9:.1f} GB; this machine has {_memory() / 1e9:.1f} GB",
            hint="is the dimension right? Make minibatches smaller, or the stream sparse",
        )
    return rows, stream.dim


@cache
def _memory() -> int:
    """Bytes of memory of this machine; the largest number where the system does not say."""
    return memory.of_machine() or sys.maxsize


def _csr(pieces: Sequence[Copy], stream: StreamInformation, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, columns int32[nonzeros] and row bounds int32[rows + 1] of a CSR matrix."""
    k = _functions(2 * rows)
    indptr = np.zeros(rows + 1, np.int32)
    for d, samples, to in pieces:
        if d.even is not None:
            k.note_as_many(d.even[2], to, indptr)
        else:
            k.note_entries(d.counts, samples, to, indptr)
    k.add_up(indptr)
    values, columns = np.empty(int(indptr[-1]), stream.dtype), np.empty(int(indptr[-1]), np.int32)
    for d, samples, to in pieces:
        if d.even is not None:
            k.copy_even_entries(d.values, d.indices, *d.even, samples, to, indptr, values, columns)
        else:
            k.copy_entries(d.values, d.indices, d.starts, samples, to, indptr, values, columns)
    return values, columns, indptr


def make_csr(values: np.ndarray, columns: np.ndarray, indptr: np.ndarray, dim: int) -> Any:
    """Return a CSR matrix (rows, dim) of arrays that are known to fit: scipy's constructor looks at every index."""
    matrix: Any = object.__new__(_csr_matrix())
    attributes = _ATTRIBUTES.copy()
    attributes["_shape"] = len(indptr) - 1, dim
    attributes["data"], attributes["indices"], attributes["indptr"] = values, columns, indptr
    matrix.__dict__ = attributes
    return matrix


def split_csr(
    values: np.ndarray, columns: np.ndarray, row_bounds: np.ndarray, entries: np.ndarray, places: np.ndarray, dim: int
) -> Iterator[Any]:
    """CSR matrices as `make_csr` makes them, of arrays that lie one after the other.

    Matrix m has the entries entries[m] .. entries[m+1]-1, and the row bounds row_bounds[places[m]:places[m+1]].
    """
    kind, attributes = _csr_matrix(), _ATTRIBUTES
    bounds, begin = pairwise(entries.tolist()), places.tolist()
    for (first, end), a, b in zip(bounds, begin, begin[1:], strict=False):  # as `make_csr`, whose call costs a fifth
        matrix: Any = object.__new__(kind)
        members = attributes.copy()
        members["_shape"] = b - a - 1, dim
        members["data"], members["indices"], members["indptr"] = values[first:end], columns[first:end], row_bounds[a:b]
        matrix.__dict__ = members
        yield matrix


_ATTRIBUTES: dict[str, Any] = {}
"""Attributes of an empty CSR matrix."""


@cache
def _csr_matrix() -> type[Any]:
    """Return the class, whose matrices are made of a copy of attributes: its constructor takes longer than filling
    one.
    """
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    _ATTRIBUTES.update(vars(scipy.sparse.csr_matrix((1, 1))))
    return scipy.sparse.csr_matrix


class SequencePacker:
    """Whole sequences side by side, packed first-fit; each stream has its own layout."""

    def __init__(self, streams: Sequence[StreamInformation]):
        self.streams = list(streams)

    def pack(self, parts: Sequence[Part], count: int) -> tuple[dict[str, Any], dict[str, Layout]]:
        """Streams and layouts of `count` sequences."""
        return next(self.pack_several(parts, np.array([0, count])))

    def pack_several(
        self, parts: Sequence[Part], cuts: np.ndarray
    ) -> Iterator[tuple[dict[str, Any], dict[str, Layout]]]:
        """Streams and layouts of minibatches: number m has the sequences cuts[m] .. cuts[m+1]-1 of the parts.

        The arrays of all are made together, each is a view: that is much less work where minibatches are small. The
        views are made one by one as they are asked for.
        """
        matrices: list[Iterator[Any]] = []
        laid: list[_Laid] = []
        for stream in self.streams:
            data = [part.chunk.streams[stream.name] for part in parts]
            layout = next((known for known in laid if known.is_of(data)), None) or self._lay(
                stream.name, parts, cuts, laid
            )
            laid.append(layout)
            pieces: list[Copy] = [(d, *samples) for d, samples in zip(data, layout.samples, strict=True)]
            rows = layout.layouts.rows
            if stream.sparse:
                matrices.append(_split_csr(_csr(pieces, stream, int(rows[-1])), rows, stream.dim))
            else:
                matrices.append(layout.layouts.split(_dense(pieces, stream, int(rows[-1]))))
        names = [stream.name for stream in self.streams]
        return (
            _together(names, matrices, [stream_layout.layouts for stream_layout in laid])
            if names
            else (({}, {}) for _ in pairwise(cuts))
        )

    def _lay(self, name: str, parts: Sequence[Part], cuts: np.ndarray, earlier: Sequence[_Laid]) -> _Laid:
        """Lay out a stream; like one of the `earlier`, if its sequences are as long."""
        k = _functions(int(cuts[-1]))
        lengths = sequence_lengths(parts, name, int(cuts[-1]))
        layouts = next((laid.layouts for laid in earlier if k.same(laid.layouts.lengths, lengths)), None)
        if layouts is None:
            self.check(lengths, name)
            layouts = _Layouts(lengths, cuts, *k.first_fit(lengths, cuts))
        every = [part.chunk.streams[name].sequences for part in parts]
        samples = [
            k.samples_of(rows, part.which, part.where, layouts.lengths, layouts.places)
            for rows, part in zip(every, parts, strict=True)
        ]
        return _Laid(every, layouts, samples)

    def check(self, lengths: np.ndarray, name: str) -> None:
        """Accept sequences of any length."""


class _Laid(NamedTuple):
    """Layout of a stream: bounds of sequences in each chunk, layouts, the samples and rows of each part."""

    sequences: Sequence[np.ndarray]
    layouts: _Layouts
    samples: Sequence[tuple[np.ndarray, np.ndarray]]

    def is_of(self, data: Sequence[StreamData]) -> bool:
        """Return whether another stream has the same bounds, not only equal ones."""
        return all(bounds is chunk.sequences for bounds, chunk in zip(self.sequences, data, strict=True))


@dataclass(eq=False)
class _Layouts:
    """Layouts of several minibatches, whose sequences have these lengths int64[n]; the rest: see `first_fit`."""

    lengths: np.ndarray
    cuts: np.ndarray
    table: np.ndarray
    steps: np.ndarray
    slots: np.ndarray
    places: np.ndarray
    rows: np.ndarray

    def __iter__(self) -> Iterator[Layout]:
        if bool((self.lengths == 1).all()):
            return map(singles, np.diff(self.cuts).tolist())
        several = zip(self.steps.tolist(), self.slots.tolist(), pairwise(self.cuts.tolist()), strict=True)
        return (Layout(t, s, self.table[a:b]) for t, s, (a, b) in several)

    def split(self, whole: np.ndarray) -> Iterator[np.ndarray]:
        """Return the rows (rows, dim) of each minibatch as an array (T, S, dim)."""
        several = zip(self.steps.tolist(), self.slots.tolist(), pairwise(self.rows.tolist()), strict=True)
        return (whole[a:b].reshape(t, s, whole.shape[1]) for t, s, (a, b) in several)


def _together(
    names: Sequence[str], matrices: Sequence[Iterator[Any]], layouts: Sequence[_Layouts]
) -> Iterator[tuple[dict[str, Any], dict[str, Layout]]]:
    """Yield the values and layouts of all streams, by minibatch."""
    several = zip(*matrices, strict=True)
    if all(layout is layouts[0] for layout in layouts):
        for layout, values in zip(layouts[0], several, strict=True):
            yield dict(zip(names, values, strict=False)), dict.fromkeys(names, layout)  # type: ignore[misc]
        return
    for places, values in zip(zip(*layouts, strict=True), several, strict=True):
        yield dict(zip(names, values, strict=False)), dict(zip(names, places, strict=False))


def _split_csr(arrays: tuple[np.ndarray, np.ndarray, np.ndarray], rows: np.ndarray, dim: int) -> Iterator[Any]:
    """CSR matrices of the rows rows[m] .. rows[m+1]-1."""
    values, columns, indptr = arrays
    if len(rows) == 2:
        return iter([make_csr(values, columns, indptr, dim)])
    bounds, entries = _functions(20 * len(rows)).split_rows(indptr, rows)
    return split_csr(values, columns, bounds, entries, rows + np.arange(len(rows)), dim)


class NotAFrame(DataError):
    """A sequence that is not one sample, in frame mode.

    Args:
        place: the place of the sequence in what was packed.
        size: how many samples it has.
        stream: the name of the stream.
        key: that of the sequence, where it is known.
    """

    def __init__(self, place: int, size: int, stream: str, key: int | str | None = None) -> None:
        self.place, self.size, self.stream = place, size, stream
        which = "it is one" if key is None else f"it is sequence {key}"
        super().__init__(
            f"Detected a non-frame sequence of size {size} in frame mode.",
            hint=f"{which} of the stream '{stream}'; leave frameMode out to read sequences of several samples",
        )


class FramePacker(SequencePacker):
    """Every sequence is one sample: T = 1, a slot each."""

    def check(self, lengths: np.ndarray, name: str) -> None:
        """There must be no longer ones, and none that are empty."""
        longer = np.flatnonzero(lengths != 1)
        if len(longer):
            raise NotAFrame(int(longer[0]), int(lengths[longer[0]]), name)
