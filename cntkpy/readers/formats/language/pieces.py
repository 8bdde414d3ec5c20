"""Several minibatches of sentences whose arrays were made together, cut into those of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cntkpy.readers.minibatch import Layout, one_sequence
from cntkpy.readers.pipeline.pack import split_csr
from cntkpy.readers.streams import StreamInformation

from . import codes as k
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
        """Return a column of the table."""
        return self.table[:, number].tolist()

    @property
    def rows(self) -> list[int]:
        """The rows before each of them, and of all."""
        return self.column(k.ROW)

    def columns(self) -> list[int]:
        """Return the cells of each in as many slots as it has sentences; sentences that are cut have slots beside
        them.
        """
        return (self.table[:-1, k.STEPS] * self.table[:-1, k.MEMBERS]).tolist()

    def layouts(self) -> Iterator[Layout]:
        """Their layouts."""
        table = self.table[:-1]
        whole = (
            (table[:, k.STEP_BEGIN] == 0) & (table[:, k.SAMPLES] == table[:, k.LONGEST]) & (table[:, k.MEMBERS] == 1)
        )
        whole &= table[:, k.STEPS] == table[:, k.LONGEST]
        columns = (self.column(number) for number in (k.STEPS, k.SLOTS, k.SAMPLES, k.FIRST))
        for alone, steps, slots, count, a, b in zip(whole.tolist(), *columns, self.column(k.FIRST)[1:], strict=False):
            if alone:
                yield one_sequence(steps, slots)
            else:
                layout = Layout(steps, slots, self.sequences[a:b])
                layout.num_samples = count  # many ask, and it takes as long as the rest
                yield layout

    def split_rows(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Return a matrix (rows, dim) as an array (T, S, dim) of each minibatch."""
        dim, slots = rows.shape[1], self.table[:-1, k.SLOTS]
        if (slots == slots[0]).all():  # a view that has the slots: to reshape each takes as long as to cut it
            steps = (self.table[:, k.ROW] // slots[0]).tolist()
            whole = rows.reshape(-1, int(slots[0]), dim)
            return (whole[a:b] for a, b in pairwise(steps))
        shapes = zip(self.column(k.STEPS), self.column(k.SLOTS), strict=True)
        return (rows[a:b].reshape(t, s, dim) for (t, s), (a, b) in zip(shapes, pairwise(self.rows), strict=False))

    def split_sparse(
        self, columns: np.ndarray, row_bounds: np.ndarray, preceding: np.ndarray, stream: StreamInformation
    ) -> Iterator[Any]:
        """CSR matrices of ones; columns, row bounds and entries before each minibatch: see `lay_kernels.lay_words`."""
        places = self.table[:, k.ROW] + np.arange(len(self.table))
        return split_csr(np.ones(len(columns), stream.dtype), columns, row_bounds, preceding, places, stream.dim)
