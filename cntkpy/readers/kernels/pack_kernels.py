"""Kernels that lay sequences out in parallel slots and copy their samples there."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import brief, kernel
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s, Reals
from cntkpy.readers.kernels.words import borrowed, prefetch

FAR, NEAR = 64, 32
"""Prefetch distances, in samples, of a sample's place and of its data: those of shuffled
sequences lie anywhere."""


@brief
def first_fit(lengths: Int64s, cuts: Int64s):
    """Place the sequences cuts[m] .. cuts[m+1]-1 of each minibatch m in order, each into the first slot with room.

    In a minibatch of sequences of one length each gets its own slot. Returns int64[n, 4] with number, slot, begin and
    end of each; steps (the longest length) and slots, int64[M] each; int64[n, 2] with the row of the first sample of
    each, where cell (t, s) of minibatch m is row t * slots[m] + s after those of the minibatches before, and slots[m];
    the rows before each minibatch, int64[M+1].

    In range: cuts go up from 0 to n, the length of lengths; a minibatch has no more slots than sequences.
    """
    n, several = len(lengths), len(cuts) - 1
    table, places = np.empty((n, 4), np.int64), np.empty((n, 2), np.int64)
    steps, slots = np.zeros(several, np.int64), np.zeros(several, np.int64)
    rows = np.zeros(several + 1, np.int64)
    filled = np.empty(n, np.int64)
    for m in range(several):
        first, end = cuts[m], cuts[m + 1]
        shortest = lengths[first] if first < end else np.int64(0)
        for i in range(first, end):
            steps[m], shortest = max(steps[m], lengths[i]), min(shortest, lengths[i])
        apart = steps[m] <= 1 or shortest == steps[m]
        used, hopeful = 0, 0  # all slots before `hopeful` are full
        for i in range(first, end):
            s = used if apart else hopeful
            while s < used and filled[s] + lengths[i] > steps[m]:
                s += 1
            if s == used:
                filled[s] = 0
                used += 1
            table[i, 0], table[i, 1], table[i, 2], table[i, 3] = i - first, s, filled[s], filled[s] + lengths[i]
            filled[s] += lengths[i]
            while not apart and hopeful < used and filled[hopeful] == steps[m]:
                hopeful += 1
        slots[m], rows[m + 1] = used, rows[m] + steps[m] * used
        for i in range(first, end):
            places[i, 0], places[i, 1] = rows[m] + table[i, 2] * used + table[i, 1], used
    return table, steps, slots, places, rows


@brief
def lengths_to(sequences: Int64s, which: Int64s, where: Int64s, out: Int64s):
    """Numbers of samples of sequences to the places `where` of out; sequences: the samples before each one.

    In range: which and where come from `by_chunk`, which has checked them against the table; every stream of a chunk
    has as many sequences as the table says.
    """
    for i in range(len(which)):
        out[where[i]] = sequences[which[i] + 1] - sequences[which[i]]


@brief
def samples_of(sequences: Int64s, which: Int64s, where: Int64s, lengths: Int64s, places: Int64s):
    """The samples of sequences, and the row of each: places[where, 0], that + places[where, 1], ...; int64[n] each.

    Where sequences have many lengths, a processor does not foresee where each ends, and what it fetched too early is
    lost; so what lies far away is looked at afterwards, sample by sample. In range: as in `lengths_to`, which has given
    these lengths; n is their sum.
    """
    total = np.int64(0)
    for i in range(len(where)):
        total += lengths[where[i]]
    samples, rows, n = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for i in range(len(which)):
        sequence, row = sequences[which[i]], places[where[i], 0]
        for _ in range(lengths[where[i]]):
            samples[n], rows[n] = sequence, row
            sequence += 1
            row += places[where[i], 1]
            n += 1
    return samples, rows


@brief
def samples_of_runs(first: Int64s, count: Int64s, row: Int64s, apart: Int):
    """The samples first[i], first[i] + 1, ... of runs, and their rows row[i], row[i] + apart, ...; int64[n] each.

    In range: n is the sum of `count`.
    """
    total = np.int64(0)
    for i in range(len(count)):
        total += count[i]
    samples, rows, n = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for i in range(len(first)):
        for j in range(count[i]):
            samples[n], rows[n] = first[i] + j, row[i] + j * apart
            n += 1
    return samples, rows


@brief
def same(a: Int64s, b: Int64s):
    """Return whether two arrays of the same length are equal: both have a place for each sequence of the minibatch."""
    for i in range(len(a)):  # noqa: SIM110  Numba knows no all()
        if a[i] != b[i]:
            return False
    return True


@kernel
def gather_dense(values: Reals | Bytes, starts: Int64s, samples: Int64s, rows: Int64s, out: Reals):
    """Copy samples to rows of out (rows, dim).

    In range: samples lie within the bounds of sequences, which with starts are made by the deserializer: it has checked
    that values[starts[j] : starts[j] + dim] exists (see `StreamData`). Rows come from the layout of these lengths.
    """
    dim = out.shape[1]
    values, out = borrowed(values), borrowed(out)
    for i in range(len(samples)):
        if i + FAR < len(samples):
            prefetch(starts, samples[i + FAR])
        if i + NEAR < len(samples):
            prefetch(values, starts[samples[i + NEAR]])
        begin = starts[samples[i]]
        source, target = values[begin : begin + dim], out[rows[i]]
        for d in range(dim):  # of slices, so that it becomes vector instructions
            target[d] = source[d]


@brief
def note_entries(counts: Int32s, samples: Int64s, rows: Int64s, indptr: Int32s):
    """Entries of each row that a sample goes to, one place to the right in int32[rows + 1].

    In range: as in `gather_dense`.
    """
    for i in range(len(samples)):
        if i + FAR < len(samples):
            prefetch(counts, samples[i + FAR])
        indptr[rows[i] + 1] = counts[samples[i]]


@brief
def note_as_many(entries: Int, rows: Int64s, indptr: Int32s):
    """As `note_entries`, where all samples have as many. In range: as there."""
    for i in range(len(rows)):
        indptr[rows[i] + 1] = entries


@brief
def add_up(indptr: Int32s):
    """Turn the numbers of entries per row into the entries before each row; no index comes from data."""
    for i in range(len(indptr) - 1):
        indptr[i + 1] += indptr[i]


@kernel
def copy_entries(
    values: Reals,
    indices: Int32s,
    starts: Int64s,
    samples: Int64s,
    rows: Int64s,
    indptr: Int32s,
    data: Reals,
    columns: Int32s,
):
    """Copy the entries of samples into CSR arrays whose indptr is ready.

    In range: as in `gather_dense`; data and columns are as long as indptr says, and a row has room for the entries of
    its sample, which none has less than none of (see `StreamData`).
    """
    values, indices, data, columns = borrowed(values), borrowed(indices), borrowed(data), borrowed(columns)
    for i in range(len(samples)):
        if i + FAR < len(samples):
            prefetch(starts, samples[i + FAR])
        if i + NEAR < len(samples):
            prefetch(values, starts[samples[i + NEAR]])
            prefetch(indices, starts[samples[i + NEAR]])
        start, put = starts[samples[i]], indptr[rows[i]]
        for d in range(indptr[rows[i] + 1] - put):
            data[put + d] = values[start + d]
            columns[put + d] = indices[start + d]


@kernel
def copy_even_entries(
    values: Reals,
    indices: Int32s,
    begin: Int,
    apart: Int,
    entries: Int,
    samples: Int64s,
    rows: Int64s,
    indptr: Int32s,
    data: Reals,
    columns: Int32s,
):
    """As `copy_entries`, of samples with this many entries each: those of sample j begin at begin + j * apart.

    In range: as there; the places of the samples have been compared with these (`StreamData.even`).
    """
    values, indices, data, columns = borrowed(values), borrowed(indices), borrowed(data), borrowed(columns)
    for i in range(len(samples)):
        if i + NEAR < len(samples):
            prefetch(values, begin + samples[i + NEAR] * apart)
            prefetch(indices, begin + samples[i + NEAR] * apart)
        position, put = begin + samples[i] * apart, indptr[rows[i]]
        if entries == 1:  # words and classes: a loop takes longer to begin than to copy one
            data[put], columns[put] = values[position], indices[position]
        else:
            for d in range(entries):
                data[put + d] = values[position + d]
                columns[put + d] = indices[position + d]


@brief
def split_rows(indptr: Int32s, rows: Int64s):
    """The row bounds of a CSR matrix cut before rows[m]: those of each piece from 0 on, one piece after the other.

    Also the entries before each cut, int64[len(rows)]. In range: rows go up from 0 to the rows of the matrix.
    """
    local, entries = np.empty(rows[-1] + len(rows) - 1, np.int32), np.empty(len(rows), np.int64)
    for m in range(len(rows)):
        entries[m] = indptr[rows[m]]
    for m in range(len(rows) - 1):
        for i in range(rows[m], rows[m + 1] + 1):
            local[i + m] = indptr[i] - entries[m]
    return local, entries


@kernel
def spread_sparse(
    values: Reals,
    indices: Int32s,
    starts: Int64s,
    counts: Int32s,
    samples: Int64s,
    rows: Int64s,
    out: Reals,
):
    """Copy the entries of samples into rows of a dense matrix; of an index given twice the last value stays.

    In range: as in `gather_dense`; indices are below the dimension of the stream, each deserializer checks its own.
    """
    for i in range(len(samples)):
        begin = starts[samples[i]]
        for d in range(begin, begin + counts[samples[i]]):
            out[rows[i], indices[d]] = values[d]
