"""The order of HTKMLFReader without useMersenneTwisterRand: the same shuffles as elsewhere, drawn from C's `rand`."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..uci.shuffle_kernels import rand, seed_rand

_LAST, _LOW32 = np.int64(2147483647), np.int64(0xFFFFFFFF)


@kernel
def _draw(state, low, high):
    """A number from low to high - 1: two draws as the digits of one, in wrapping 32-bit arithmetic, as unsigned."""
    first = rand(state)
    value = (first * _LAST + rand(state)) & _LOW32
    if value > _LAST:
        value -= _LOW32 + 1
    return low + np.int64(np.uint64(value) % np.uint64(high - low))


@kernel
def shuffle_all(seed, count):
    """0..count-1 shuffled, every draw over the whole range. int64[count]."""
    state = seed_rand(seed)
    order = np.arange(count)
    for i in range(count):
        j = _draw(state, 0, count)
        order[i], order[j] = order[j], order[i]
    return order


@kernel
def shuffle_sequences(seed, first, window, home, rank):
    """Shuffle within windows, in place; the arguments are those of the kernel of the same name in `readers`."""
    state = seed_rand(seed)
    for c in range(len(first) - 1):
        low, high = first[window[c, 0]], first[window[c, 1]]
        for t in range(first[c], first[c + 1]):
            while True:
                j = _draw(state, low, high)
                d = np.searchsorted(first, j, side="right") - 1
                if window[c, 0] <= home[j] < window[c, 1] and window[d, 0] <= home[t] < window[d, 1]:
                    break
            home[t], home[j] = home[j], home[t]
            rank[t], rank[j] = rank[j], rank[t]
