"""The orders of CNTK: C++'s shuffle with its two generators, and which sentences share a minibatch."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Int, Int64s

_LOW32 = np.int64(0xFFFFFFFF)
_MODULUS = np.int64(2147483647)
_WORDS, _NEXT, _MINSTD = 624, 624, 625


@kernel
def mersenne(seed: Int):
    """State of the 32-bit Mersenne twister, int64[626]: its words, the place of the next one, and 0."""
    state = np.empty(626, np.int64)
    state[0] = seed & _LOW32
    for i in range(1, _WORDS):
        previous = state[i - 1]
        state[i] = (1812433253 * (previous ^ (previous >> 30)) + i) & _LOW32
    state[_NEXT], state[_MINSTD] = _WORDS, 0
    return state


@kernel
def minimal_standard(seed: Int):
    """State of the generator x -> 16807 x mod 2**31 - 1, in the same form; its number is the last element, never 0."""
    state = np.zeros(626, np.int64)
    state[_MINSTD] = seed % _MODULUS
    if state[_MINSTD] == 0:
        state[_MINSTD] = 1
    return state


@part
def _twister(state: Int64s):
    """The next 32 bits; the place of the next word is set back at the end, other indices are taken modulo 624."""
    if state[_NEXT] == _WORDS:
        for i in range(_WORDS):
            y = (state[i] & 0x80000000) | (state[(i + 1) % _WORDS] & 0x7FFFFFFF)
            word = state[(i + 397) % _WORDS] ^ (y >> 1)
            state[i] = word ^ 0x9908B0DF if y & 1 else word
        state[_NEXT] = 0
    y = state[state[_NEXT]]
    state[_NEXT] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)


@part
def _below(state: Int64s, count: Int):
    """A number from 0 to count - 1, each equally likely."""
    if state[_MINSTD]:
        share = (_MODULUS - 2) // count
        while True:
            state[_MINSTD] = state[_MINSTD] * 16807 % _MODULUS
            number = (state[_MINSTD] - 1) // share
            if number < count:
                return number
    factor = np.uint64(count)
    low32 = np.uint64(0xFFFFFFFF)
    product = np.uint64(_twister(state)) * factor
    if (product & low32) < factor:
        least = ((low32 - factor) + np.uint64(1)) % factor
        while (product & low32) < least:
            product = np.uint64(_twister(state)) * factor
    return np.int64(product >> np.uint64(32))


@kernel
def shuffled(count: Int, state: Int64s):
    """A permutation of 0 .. count - 1, int64[count]; one draw moves two elements where the generator's range allows.

    In range: a draw below (i + 1) * (i + 2) gives j <= i and k <= i + 1; the elements before i are an odd number where
    count is odd, else an even one, so the last pair ends at count - 1.
    """
    order = np.arange(count)
    if count < 2:
        return order
    span = _MODULUS - 2 if state[_MINSTD] else _LOW32
    i = 1
    if span // count >= count:
        if count % 2 == 0:
            j = _below(state, np.int64(2))
            order[1], order[j] = order[j], order[1]
            i = 2
        while i < count:
            draw = _below(state, (i + 1) * (i + 2))
            j, k = draw // (i + 2), draw % (i + 2)
            order[i], order[j] = order[j], order[i]
            order[i + 1], order[k] = order[k], order[i + 1]
            i += 2
    else:
        while i < count:
            j = _below(state, i + 1)
            order[i], order[j] = order[j], order[i]
            i += 1
    return order


@kernel
def group_neighbours(lengths: Int64s, most: Int, equal: bool):
    """Which sentences share a minibatch: number of the group of each, int64[n].

    The next `most` sentences not yet taken are looked at; equal: of these only those as long as the first are taken.

    In range: `waiting` holds `most` numbers below n at most, and its first element is read only if there is one.
    """
    groups = np.empty(len(lengths), np.int64)
    waiting = np.empty(most, np.int64)
    held = ahead = group = 0
    while True:
        while held < most and ahead < len(lengths):
            waiting[held] = ahead
            held += 1
            ahead += 1
        if held == 0:
            return groups
        length, kept = lengths[waiting[0]], 0
        for i in range(held):
            sentence = waiting[i]
            if equal and lengths[sentence] != length:
                waiting[kept] = sentence
                kept += 1
            else:
                groups[sentence] = group
        held = kept
        group += 1
