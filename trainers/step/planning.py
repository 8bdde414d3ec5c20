"""The few shapes that fit known minibatches best: shapes are joined, two at a time, where that adds least work."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainers.step.shape import ENTRIES, STEP, Shape, bucket

START = 256
"""Shapes to start joining from, at most; where there are more, similar ones are joined before."""

WORTH, WORTH_COMPILING = 0.05, 0.3
"""Part of all work by which one program less may add to it; the second where compiling is most of what there is to do:
with several time axes, whose programs take long to compile, and with few data."""

TWICE = 2.0
"""The work of all minibatches, as a multiple of that without padding, up to which a program less may add more than
`WORTH_COMPILING`."""

Rows = NDArray[np.float64]
"""A shape per row: steps, slots, steps on other axes, distinct elements and then entries of the sparse inputs."""


def plan(shapes: Sequence[Shape], count: int, slots_stay: bool = False, worth: float = WORTH) -> list[Shape]:
    """The shapes to pad minibatches to.

    Args:
        shapes: those of the minibatches, at least one.
        count: as many as there may be.
        slots_stay: no slots may be added; then there is at least one shape for each number of slots.
        worth: the part of all work by which one program less may add to it.

    Returns:
        Each minibatch fits into one of them. They are rounded up a little.
    """
    others, sparse = len(shapes[0].others), len(shapes[0].sparse)
    rows, weights = _start(np.array([_row(shape) for shape in shapes], np.float64), slots_stay)
    alive = np.ones(len(rows), bool)
    cost, worth = weights * _work(rows, others, sparse), max(worth, WORTH_COMPILING) if others else worth
    unpadded = cost.sum()

    def added(i: int) -> Rows:
        """The work that joining shape `i` with each other one adds."""
        more = (weights[i] + weights) * _work(np.maximum(rows[i], rows), others, sparse) - cost[i] - cost
        apart = ~alive | (rows[:, 1] != rows[i, 1]) if slots_stay else ~alive
        more[apart] = np.inf
        more[i] = np.inf
        return more

    table = np.stack([added(i) for i in range(len(rows))])
    while alive.sum() > 1:
        i, j = np.unravel_index(np.argmin(table), table.shape)
        least, work = table[i, j], cost[alive].sum()
        most = worth if work + least <= TWICE * unpadded else min(worth, WORTH_COMPILING)
        if np.isinf(least) or (alive.sum() <= count and least > most * work):
            break
        rows[i], weights[i], alive[j] = np.maximum(rows[i], rows[j]), weights[i] + weights[j], False
        cost[i] = weights[i] * _work(rows[i], others, sparse)
        table[j] = table[:, j] = np.inf
        table[i] = table[:, i] = added(int(i))
    found = {_shape(row, others, sparse, slots_stay) for row in rows[alive].astype(int).tolist()}
    best = [min((one for one in found if one.holds(shape, np.inf)), key=_order) for shape in shapes]
    return sorted(set(best), key=_order)


def _order(shape: Shape) -> tuple[float, int]:
    return shape.work, shape.steps


def _row(shape: Shape) -> list[int]:
    return [shape.steps, shape.slots, *shape.others, *(u for u, _ in shape.sparse), *(k for _, k in shape.sparse)]


def _shape(row: list[int], others: int, sparse: int, slots_stay: bool) -> Shape:
    lengths = tuple(bucket(steps, 8) for steps in row[2 : 2 + others])
    distinct, entries = row[2 + others : 2 + others + sparse], row[2 + others + sparse :]
    sizes = tuple((bucket(u), bucket(k)) for u, k in zip(distinct, entries, strict=True))
    slots = bucket(row[1], 2 if others else 4)
    return Shape(bucket(row[0], 8), row[1] if slots_stay else slots, sizes, lengths)


def _work(rows: Rows, others: int, sparse: int) -> Rows:
    """`Shape.work` of every row."""
    steps = rows[..., 0] + rows[..., 2 : 2 + others].sum(-1)
    distinct, entries = rows[..., 2 + others : 2 + others + sparse], rows[..., 2 + others + sparse :]
    return steps * (rows[..., 1] + STEP) * (1 + entries.sum(-1) / ENTRIES) + distinct.sum(-1)


def _start(rows: Rows, slots_stay: bool) -> tuple[Rows, Rows]:
    """Different shapes and how often each is met; similar ones are joined where there are too many."""
    found, which = np.unique(rows, axis=0, return_inverse=True)
    for parts in (16, 8, 4, 2, 1):
        if len(found) <= START:
            break
        kinds = np.array([[bucket(int(size), parts) for size in row] for row in rows.tolist()], np.float64)
        if slots_stay:
            kinds[:, 1] = rows[:, 1]
        found, which = np.unique(kinds, axis=0, return_inverse=True)
    which = which.ravel()
    return np.stack([rows[which == k].max(0) for k in range(len(found))]), np.bincount(which).astype(np.float64)
