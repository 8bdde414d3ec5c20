"""Pure-Python fallbacks of `pack_kernels`: the same arguments, the same results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def first_fit(
    lengths: np.ndarray, cuts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Place the sequences of each minibatch in order, each into the first slot with room."""
    n, several = len(lengths), len(cuts) - 1
    if n and int(lengths.min()) == int(lengths.max()):
        return _side_by_side(lengths, cuts)
    table, places = np.empty((n, 4), np.int64), np.empty((n, 2), np.int64)
    steps, slots, rows = np.zeros(several, np.int64), np.zeros(several, np.int64), np.zeros(several + 1, np.int64)
    for m, (first, end) in enumerate(pairwise(cuts.tolist())):
        mine, own_table = lengths[first:end], table[first:end]
        longest = steps[m] = int(mine.max()) if end > first else 0
        own_table[:, 0] = np.arange(end - first)
        if longest <= 1 or int(mine.min()) == longest:
            own_table[:, 1], own_table[:, 2], own_table[:, 3] = own_table[:, 0], 0, mine
            used = end - first
        else:
            used = _fill(mine.tolist(), longest, own_table)
        slots[m], rows[m + 1] = used, rows[m] + longest * used
        places[first:end, 0] = rows[m] + own_table[:, 2] * used + own_table[:, 1]
        places[first:end, 1] = used
    return table, steps, slots, places, rows


def _side_by_side(
    lengths: np.ndarray, cuts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`first_fit` where all lengths are the same: each sequence has a slot of its own."""
    counts, length = np.diff(cuts), int(lengths[0])
    within = np.arange(len(lengths)) - np.repeat(cuts[:-1], counts)
    rows = np.concatenate([[0], (length * counts).cumsum()])
    table, places = np.zeros((len(lengths), 4), np.int64), np.empty((len(lengths), 2), np.int64)
    table[:, 0] = table[:, 1] = within
    table[:, 3] = length
    places[:, 0], places[:, 1] = np.repeat(rows[:-1], counts) + within, np.repeat(counts, counts)
    return table, np.where(counts > 0, length, 0), counts, places, rows


def _fill(lengths: list[int], longest: int, table: np.ndarray) -> int:
    """Slot, begin and end of sequences of several lengths; returns how many slots there are."""
    filled: list[int] = []
    rows: list[tuple[int, int, int]] = []
    hopeful = 0  # all slots before are full
    for length in lengths:
        s = hopeful
        while s < len(filled) and filled[s] + length > longest:
            s += 1
        if s == len(filled):
            filled.append(0)
        rows.append((s, filled[s], filled[s] + length))
        filled[s] += length
        while hopeful < len(filled) and filled[hopeful] == longest:
            hopeful += 1
    table[:, 1:] = rows
    return len(filled)


def lengths_to(sequences: np.ndarray, which: np.ndarray, where: np.ndarray, out: np.ndarray) -> None:
    """Numbers of samples of sequences to the places `where` of out."""
    out[where] = sequences[which + 1] - sequences[which]


def samples_of(
    sequences: np.ndarray, which: np.ndarray, where: np.ndarray, lengths: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of sequences, and the row of each: places[where, 0], that + places[where, 1], ..."""
    first, count, row = sequences[which].astype(np.int64, copy=False), lengths[where], places[where, 0]
    if bool((count == 1).all()):
        return first, row
    return samples_of_runs(first, count, row, np.repeat(places[where, 1], count))


def samples_of_runs(
    first: np.ndarray, count: np.ndarray, row: np.ndarray, apart: int | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples first[i], first[i] + 1, ... of runs, and their rows row[i], row[i] + apart, ..."""
    within = _within(count)
    return np.repeat(first, count) + within, np.repeat(row, count) + within * apart


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of the same length are equal."""
    return bool((a == b).all())


def _within(count: np.ndarray) -> np.ndarray:
    """0 .. count[0]-1, 0 .. count[1]-1, ..."""
    offsets = count.cumsum(dtype=np.int64)
    return np.arange(int(offsets[-1]) if len(offsets) else 0) - np.repeat(offsets - count, count)


def gather_dense(
    values: np.ndarray, starts: np.ndarray, samples: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> None:
    """Copy samples to rows of out (rows, dim)."""
    if not len(samples):
        return
    dim, size = out.shape[1], values.strides[0]
    windows = np.lib.stride_tricks.as_strided(values, (len(values) - dim + 1, dim), (size, size), writeable=False)
    out[rows] = windows[starts[samples]]


def note_entries(counts: np.ndarray, samples: np.ndarray, rows: np.ndarray, indptr: np.ndarray) -> None:
    """Entries of each row that a sample goes to, one place to the right in int32[rows + 1]."""
    indptr[rows + 1] = counts[samples]


def note_as_many(entries: int, rows: np.ndarray, indptr: np.ndarray) -> None:
    """As `note_entries`, where all samples have as many."""
    indptr[rows + 1] = entries


def add_up(indptr: np.ndarray) -> None:
    """Turn the numbers of entries per row into the entries before each row."""
    np.cumsum(indptr, out=indptr)


def copy_entries(
    values: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    samples: np.ndarray,
    rows: np.ndarray,
    indptr: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Copy the entries of samples into CSR arrays whose indptr is ready."""
    put = indptr[rows]
    several = indptr[rows + 1] - put
    within = _within(several)
    position, put = np.repeat(starts[samples], several) + within, np.repeat(put, several) + within
    data[put], columns[put] = values[position], indices[position]


def copy_even_entries(
    values: np.ndarray,
    indices: np.ndarray,
    begin: int,
    apart: int,
    entries: int,
    samples: np.ndarray,
    rows: np.ndarray,
    indptr: np.ndarray,
    data: np.ndarray,
    columns: np.ndarray,
) -> None:
    """As `copy_entries`, of samples with this many entries each: those of sample j begin at begin + j * apart."""
    put, position = indptr[rows][:, None] + np.arange(entries), (begin + samples * apart)[:, None] + np.arange(entries)
    data[put], columns[put] = values[position], indices[position]


def split_rows(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row bounds of a CSR matrix cut before rows[m], one piece after the other; the entries before each
    cut.
    """
    entries = indptr[rows].astype(np.int64)
    indptrs = [
        indptr[a : b + 1] - offset for (a, b), offset in zip(pairwise(rows.tolist()), entries.tolist(), strict=False)
    ]
    return np.concatenate(indptrs).astype(np.int32, copy=False), entries


def spread_sparse(
    values: np.ndarray,
    indices: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    samples: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    """Copy the entries of samples into rows of a dense matrix; of an index given twice the last value stays."""
    several = counts[samples]
    position = np.repeat(starts[samples], several) + _within(several)
    out[np.repeat(rows, several), indices[position]] = values[position]
