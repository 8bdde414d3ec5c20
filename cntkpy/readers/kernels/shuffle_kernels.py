"""The order in which UCIFastReader (and the rolling window of HTKMLFReader) visits a block of records."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel
from cntkpy.readers.kernels.kernel_types import Int
from cntkpy.readers.kernels.random_kernels import draw, rand_seed

_TRIES = 5


@kernel
def window_order(count: Int, window: Int, seed: Int):
    """A permutation of 0 .. count - 1, int64[count], in which nothing moves by more than half the window.

    In range: a draw lies between max(t - half, 0) and min(t + half, count), both places of the permutation.
    """
    state = rand_seed(seed)
    order = np.arange(count)
    half = window // 2
    if half == 0:
        return order
    for t in range(count):
        for _ in range(_TRIES):
            u = draw(state, max(t - half, 0), min(t + half, count))
            if order[t] - half < u <= order[t] + half and order[u] - half < t <= order[u] + half:
                order[t], order[u] = order[u], order[t]
                break
    return order
