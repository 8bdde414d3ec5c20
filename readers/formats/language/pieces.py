"""Several minibatches of sentences whose arrays were made together, cut into those of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from readers.minibatch import Layout
from readers.pipeline.pack import make_csr
from readers.streams import StreamInformation

from .corpus import Block


@dataclass(eq=False)
class Pieces:
    """M minibatches that are made at once: the block that they are of, their table (see `lay_kernels`), and sentences.

    sequences int64[n, 4]: lines of the layouts; which int64[n]: numbers of the sentences in the block. epoch: the one
    they belong to; calls: minibatches asked for before them.
    """

    block: Block
    table: np.ndarray
    sequences: np.ndarray
    which: np.ndarray
    epoch: int
    calls: int

    def column(self, number: int) -> list[int]:
        """A column of the table."""
        return self.table[:, number].tolist()

    @property
    def rows(self) -> list[int]:
        """The rows before each of them, and of all."""
        from . import lay_kernels as k

        return self.column(k.ROW)

    def layouts(self) -> Iterator[Layout]:
        """Their layouts."""
        from . import lay_kernels as k

        firsts, samples = self.column(k.FIRST), self.column(k.SAMPLES)
        several = zip(self.column(k.STEPS), self.column(k.SLOTS), samples, pairwise(firsts), strict=False)
        for steps, slots, count, (a, b) in several:
            layout = Layout(steps, slots, self.sequences[a:b])
            layout.num_samples = count  # many ask, and it takes as long as the rest
            yield layout

    def split_rows(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """A matrix (rows, dim) as an array (T, S, dim) of each minibatch."""
        from . import lay_kernels as k

        shapes, dim = zip(self.column(k.STEPS), self.column(k.SLOTS), strict=True), rows.shape[1]
        return (rows[a:b].reshape(t, s, dim) for (t, s), (a, b) in zip(shapes, pairwise(self.rows), strict=False))

    def split_sparse(
        self, columns: np.ndarray, row_bounds: np.ndarray, before: np.ndarray, stream: StreamInformation
    ) -> Iterator[Any]:
        """CSR matrices of ones; columns, row bounds and entries before each minibatch: see `lay_kernels.lay_words`."""
        ones, dim = np.ones(len(columns), stream.dtype), stream.dim
        several = enumerate(zip(pairwise(before.tolist()), pairwise(self.rows), strict=True))
        return (
            make_csr(ones[first:end], columns[first:end], row_bounds[a + m : b + m + 1], dim)
            for m, ((first, end), (a, b)) in several
        )
