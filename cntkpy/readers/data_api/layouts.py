"""Sequences side by side: every one in a slot of its own, from the first step on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cntkpy.readers.minibatch import Layout

from .batches import Batch


def layout_of(lengths: np.ndarray) -> Layout:
    """Return the layout of sequences of these lengths, int64[N]."""
    n = np.arange(len(lengths))
    return Layout(int(lengths.max(initial=0)), len(n), np.stack([n, n, np.zeros_like(n), lengths], axis=1))


@lru_cache(maxsize=64)
def single_samples(count: int) -> Layout:
    """Return the layout of this many sequences of one sample; the same object for the same number."""
    return layout_of(np.ones(count, np.int64))


def rows_by_cell(rows: Any, layout: Layout) -> Any:
    """CSR (T*S, dim) out of CSR (samples, dim), sequence after sequence."""
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    step, slot, _ = layout.cells
    target = step * layout.S + slot
    order = np.argsort(target)
    counts = np.zeros(layout.T * layout.S + 1, np.int64)
    counts[target + 1] = np.diff(rows.indptr)
    ordered = rows[order]
    return scipy.sparse.csr_matrix(
        (ordered.data, ordered.indices, np.cumsum(counts)), shape=(layout.T * layout.S, rows.shape[1])
    )


def laid_out(batch: Batch, dtype: Any) -> tuple[Any, Layout]:
    """Return a batch as a stream of a minibatch, with data that nobody else changes.

    Args:
        batch: the sequences.
        dtype: of the result.

    Returns:
        Dense (T, S, dim) or CSR (T*S, dim), and the layout: every sequence in a slot of its own.
    """
    single = bool((batch.lengths == 1).all())
    layout = single_samples(len(batch.lengths)) if single else layout_of(batch.lengths)
    if batch.cells is None:
        rows = batch.rows.astype(dtype, copy=True)
        return (rows if layout.T == 1 else rows_by_cell(rows, layout)), layout
    cells = batch.cells[:, : layout.T].transpose(1, 0, 2)
    return np.array(cells, dtype, order="C"), layout
