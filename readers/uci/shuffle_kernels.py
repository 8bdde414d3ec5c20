"""The order in which UCIFastReader (and the rolling window of HTKMLFReader) visits a block of records.

The draws are those of C's `rand` in glibc: an additive feedback generator of 31 words, seeded by a multiplicative one.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel

_TRIES = 5
_LOW32 = np.int64(0xFFFFFFFF)
_LAST = np.int64(2147483647)


@kernel
def seed_rand(seed):
    """State of the generator: 31 words and the place of the next one, int64[32]. Seed 0 is the same as 1."""
    state = np.empty(32, np.int64)
    word = seed & _LAST
    if word == 0:
        word = np.int64(1)
    for i in range(31):
        state[i] = word
        word = 16807 * word % _LAST
    state[31] = 3
    for _ in range(310):
        rand(state)
    return state


@kernel
def rand(state):
    """The next number from 0 to 2**31 - 1."""
    i = state[31]
    before = i - 3
    if before < 0:
        before += 31
    value = (state[i] + state[before]) & _LOW32
    state[i] = value
    i += 1
    state[31] = 0 if i == 31 else i
    return value >> 1


@kernel
def _draw(state, low, high):
    """A number from low to high - 1: two draws as the digits of one, in wrapping 32-bit arithmetic, as unsigned."""
    first = rand(state)
    value = (first * _LAST + rand(state)) & _LOW32
    if value > _LAST:
        value -= _LOW32 + 1
    return low + np.int64(np.uint64(value) % np.uint64(high - low))


@kernel
def window_order(count, window, seed):
    """A permutation of 0 .. count - 1, int64[count], in which nothing moves by more than half the window."""
    state = seed_rand(seed)
    order = np.arange(count)
    half = window // 2
    if half == 0:
        return order
    for t in range(count):
        for _ in range(_TRIES):
            u = _draw(state, max(t - half, 0), min(t + half, count))
            if order[t] - half < u <= order[t] + half and order[u] - half < t <= order[u] + half:
                order[t], order[u] = order[u], order[t]
                break
    return order
