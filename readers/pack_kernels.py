"""Kernels that lay sequences out in parallel slots and copy their samples there."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def first_fit(lengths, steps):
    """Place sequences in order, each into the first slot with room. Returns slot, begin (int64[n] each), slots."""
    n = len(lengths)
    slot, begin = np.empty(n, np.int64), np.empty(n, np.int64)
    filled = np.zeros(n, np.int64)
    slots = 0
    hopeful = 0
    for i in range(n):
        s = hopeful
        while s < slots and filled[s] + lengths[i] > steps:
            s += 1
        slot[i], begin[i] = s, filled[s]
        filled[s] += lengths[i]
        slots = max(slots, s + 1)
        while hopeful < slots and filled[hopeful] == steps:
            hopeful += 1
    return slot, begin, slots


@kernel
def gather_dense(values, starts, first, count, to, slots, out):
    """Copy samples starts[first[i]] .. of each piece i to rows to[i], to[i] + slots, ... of out (rows, dim)."""
    dim = out.shape[1]
    for i in range(len(first)):
        row = to[i]
        for j in range(first[i], first[i] + count[i]):
            source, target = values[starts[j] : starts[j] + dim], out[row]
            for d in range(dim):  # of slices, so that it becomes vector instructions
                target[d] = source[d]
            row += slots


@kernel
def count_sparse(counts, first, count, to, slots, per_row):
    """Entries per row of the matrix, int64[rows + 1], written one place to the right."""
    for i in range(len(first)):
        row = to[i]
        for j in range(first[i], first[i] + count[i]):
            per_row[row + 1] = counts[j]
            row += slots


@kernel
def gather_sparse(values, indices, starts, counts, first, count, to, slots, indptr, data, columns):
    """Copy the entries of samples into CSR arrays whose indptr is ready."""
    for i in range(len(first)):
        row = to[i]
        for j in range(first[i], first[i] + count[i]):
            at, put = starts[j], indptr[row]
            for d in range(counts[j]):
                data[put + d] = values[at + d]
                columns[put + d] = indices[at + d]
            row += slots


@kernel
def spread_sparse(values, indices, starts, counts, first, count, to, slots, out):
    """Copy the entries of samples into rows of a dense matrix; of an index given twice the last value stays."""
    for i in range(len(first)):
        row = to[i]
        for j in range(first[i], first[i] + count[i]):
            for d in range(counts[j]):
                out[row, indices[starts[j] + d]] = values[starts[j] + d]
            row += slots
