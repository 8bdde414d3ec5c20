"""`random_kernels` without Numba: the numbers of MT19937-64 and of C's `rand`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

U64 = np.uint64
_UPPER, _LOWER, _MATRIX = U64(0xFFFFFFFF80000000), U64(0x7FFFFFFF), U64(0xB5026F5AA96619E9)
_MULTIPLIER, _ALL = 6364136223846793005, 2**64 - 1
_LAST = 2**31 - 1


def mt_seed(seed: int | np.uint64) -> np.ndarray:
    """State of MT19937-64: uint64[313]; the last element is the read position."""
    words = [int(seed)]
    for i in range(1, 312):
        before = words[-1]
        words.append((_MULTIPLIER * (before ^ (before >> 62)) + i) & _ALL)
    return np.array([*words, 312], U64)


def _mixed(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    x = (upper & _UPPER) | (lower & _LOWER)
    return (x >> U64(1)) ^ np.where(x & U64(1), _MATRIX, U64(0))


def _twist(state: np.ndarray) -> None:
    """New numbers: each is made of two neighbours and of the one half a state away, which may be new itself."""
    old = state[:312].copy()
    state[:156] = old[156:] ^ _mixed(old[:156], old[1:157])
    state[156:311] = state[:155] ^ _mixed(old[156:311], old[157:])
    state[311:312] = state[155:156] ^ _mixed(old[311:], state[:1])
    state[312] = 0


def mt_next(state: np.ndarray, count: int) -> np.ndarray:
    """The next `count` numbers of 64 random bits."""
    parts: list[np.ndarray] = []
    while count:
        if state[312] >= 312:
            _twist(state)
        at = int(state[312])
        parts.append(state[at : min(312, at + count)].copy())
        count -= len(parts[-1])
        state[312] = at + len(parts[-1])
    x = np.concatenate(parts) if parts else np.empty(0, U64)
    x ^= (x >> U64(29)) & U64(0x5555555555555555)
    x ^= (x << U64(17)) & U64(0x71D67FFFEDA60000)
    x ^= (x << U64(37)) & U64(0xFFF7EEE000000000)
    return x ^ (x >> U64(43))


def rand(seed: int) -> Iterator[int]:
    """The numbers of C's `rand` after `srand(seed)`, from 0 to 2**31 - 1. Seed 0 is the same as 1."""
    word = seed & _LAST or 1
    state: list[int] = []
    for _ in range(31):
        state.append(word)
        word = 16807 * word % _LAST
    i, drawn = 3, 0
    while True:
        value = state[i] = (state[i] + state[i - 3]) & 0xFFFFFFFF
        i = (i + 1) % 31
        drawn += 1
        if drawn > 310:
            yield value >> 1


def window_order(count: int, window: int, seed: int) -> np.ndarray:
    """As `shuffle_kernels.window_order`."""
    numbers = rand(seed)
    order, half = list(range(count)), window // 2
    for t in range(count if half else 0):
        low, high = max(t - half, 0), min(t + half, count)
        for _ in range(5):
            drawn = (next(numbers) * _LAST + next(numbers)) & 0xFFFFFFFF
            u = low + (drawn - 2**32 if drawn > _LAST else drawn) % 2**64 % (high - low)
            if order[t] - half < u <= order[t] + half and order[u] - half < t <= order[u] + half:
                order[t], order[u] = order[u], order[t]
                break
    return np.array(order, np.int64)
