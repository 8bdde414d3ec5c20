"""Pure-Python fallbacks of `shuffle_kernels`, with the same arguments and results."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

_LOW32, _MODULUS = 0xFFFFFFFF, 2147483647
_WORDS, _NEXT, _MINSTD = 624, 624, 625


def mersenne(seed: int) -> Array:
    """State of the 32-bit Mersenne twister."""
    words = [int(seed) & _LOW32]
    for i in range(1, _WORDS):
        words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + i) & _LOW32)
    return np.array([*words, _WORDS, 0], np.int64)


def minimal_standard(seed: int) -> Array:
    """State of the generator x -> 16807 x mod 2**31 - 1."""
    state = np.zeros(626, np.int64)
    state[_MINSTD] = int(seed) % _MODULUS or 1
    return state


class _Twister:
    """Draws by the Mersenne twister, and leaves its state where they end."""

    span = _LOW32

    def __init__(self, state: Array):
        self._words, self._next = state[:_WORDS].tolist(), int(state[_NEXT])

    def _number(self) -> int:
        words = self._words
        if self._next == _WORDS:
            for i in range(_WORDS):
                y = (words[i] & 0x80000000) | (words[(i + 1) % _WORDS] & 0x7FFFFFFF)
                words[i] = words[(i + 397) % _WORDS] ^ (y >> 1) ^ (0x9908B0DF if y & 1 else 0)
            self._next = 0
        y = words[self._next]
        self._next += 1
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        return y ^ (y >> 18)

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1."""
        product = self._number() * count
        if product & _LOW32 < count:
            least = (_LOW32 - count + 1) % count
            while product & _LOW32 < least:
                product = self._number() * count
        return product >> 32

    def store(self, state: Array) -> None:
        """Write the state."""
        state[:_WORDS], state[_NEXT] = self._words, self._next


class _MinimalStandard:
    """Draws by the minimal standard generator."""

    span = _MODULUS - 2

    def __init__(self, state: Array):
        self._number = int(state[_MINSTD])

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1."""
        share = (_MODULUS - 2) // count
        while True:
            self._number = self._number * 16807 % _MODULUS
            number = (self._number - 1) // share
            if number < count:
                return number

    def store(self, state: Array) -> None:
        """Write the state."""
        state[_MINSTD] = self._number


def shuffled(count: int, state: Array) -> Array:
    """Return a permutation of 0 .. count - 1."""
    order = list(range(count))
    if count < 2:
        return np.array(order, np.int64)
    draw = _MinimalStandard(state) if state[_MINSTD] else _Twister(state)
    i = 1
    if draw.span // count >= count:
        if count % 2 == 0:
            j = draw.below(2)
            order[1], order[j] = order[j], order[1]
            i = 2
        while i < count:
            j, k = divmod(draw.below((i + 1) * (i + 2)), i + 2)
            order[i], order[j] = order[j], order[i]
            order[i + 1], order[k] = order[k], order[i + 1]
            i += 2
    else:
        while i < count:
            j = draw.below(i + 1)
            order[i], order[j] = order[j], order[i]
            i += 1
    draw.store(state)
    return np.array(order, np.int64)


def group_neighbours(lengths: Array, most: int, equal: bool) -> Array:
    """Which sentences share a minibatch."""
    count = len(lengths)
    if not equal:
        return np.arange(count) // most
    groups, of, waiting, ahead, group = [0] * count, lengths.tolist(), list[int](), 0, 0
    while waiting or ahead < count:
        extra = min(most - len(waiting), count - ahead)
        waiting += range(ahead, ahead + extra)
        ahead += extra
        length, kept = of[waiting[0]], list[int]()
        for sentence in waiting:
            if of[sentence] == length:
                groups[sentence] = group
            else:
                kept.append(sentence)
        waiting, group = kept, group + 1
    return np.array(groups, np.int64)
