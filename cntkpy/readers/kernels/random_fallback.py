"""Pure-Python fallbacks of `random_kernels`: the numbers of MT19937-64 and of C's `rand`."""

from __future__ import annotations

import numpy as np

U64 = np.uint64
_UPPER, _LOWER, _MATRIX = U64(0xFFFFFFFF80000000), U64(0x7FFFFFFF), U64(0xB5026F5AA96619E9)
_MULTIPLIER, _ALL = 6364136223846793005, 2**64 - 1
_LAST = 2**31 - 1


def mt_seed(seed: int | np.uint64) -> np.ndarray:
    """State of MT19937-64: uint64[313]; the last element is the read position."""
    words = [int(seed)]
    for i in range(1, 312):
        previous_word = words[-1]
        words.append((_MULTIPLIER * (previous_word ^ (previous_word >> 62)) + i) & _ALL)
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
    """Return the next `count` numbers of 64 random bits."""
    parts: list[np.ndarray] = []
    while count:
        if state[312] >= 312:
            _twist(state)
        index = int(state[312])
        parts.append(state[index : min(312, index + count)].copy())
        count -= len(parts[-1])
        state[312] = index + len(parts[-1])
    x = np.concatenate(parts) if parts else np.empty(0, U64)
    x ^= (x >> U64(29)) & U64(0x5555555555555555)
    x ^= (x << U64(17)) & U64(0x71D67FFFEDA60000)
    x ^= (x << U64(37)) & U64(0xFFF7EEE000000000)
    return x ^ (x >> U64(43))


def rand_seed(seed: int) -> np.ndarray:
    """State of C's `rand` after `srand(seed)`: 31 words and the place of the next, int64[32]. Seed 0 acts as 1."""
    words = [int(seed) & _LAST or 1]
    while len(words) < 31:
        words.append(16807 * words[-1] % _LAST)
    state = np.array([*words, 3], np.int64)
    rand(state, 310)
    return state


def rand(state: np.ndarray, count: int) -> list[int]:
    """Return the next `count` numbers of C's `rand`, from 0 to 2**31 - 1."""
    words, i = state[:31].tolist(), int(state[31])
    drawn: list[int] = []
    for _ in range(count):
        words[i] = (words[i] + words[i - 3]) & 0xFFFFFFFF
        drawn.append(words[i] >> 1)
        i = (i + 1) % 31
    state[:31], state[31] = words, i
    return drawn


def _of_two(high: int, low: int) -> int:
    """Return two numbers of `rand` as the digits of one, in wrapping 32-bit arithmetic, taken as unsigned."""
    value = (high * _LAST + low) & 0xFFFFFFFF
    return (value - 2**32 if value > _LAST else value) % 2**64


def draws(state: np.ndarray, ranges: np.ndarray) -> list[int]:
    """For each range (uint64, at least 1) a number from 0 to range - 1, as `random_kernels.draw` for this state."""
    if state.dtype == U64:
        return (mt_next(state, len(ranges)) % ranges).tolist()
    drawn = rand(state, 2 * len(ranges))
    pairs = zip(drawn[::2], drawn[1::2], ranges.tolist(), strict=True)
    return [_of_two(high, low) % size for high, low, size in pairs]


def window_order(count: int, window: int, seed: int) -> np.ndarray:
    """As `shuffle_kernels.window_order`."""
    state = rand_seed(seed)
    order, half = list(range(count)), window // 2
    numbers = iter(list[int]())
    for t in range(count if half else 0):
        low, high = max(t - half, 0), min(t + half, count)
        for _ in range(5):
            first = next(numbers, None)
            if first is None:
                numbers = iter(rand(state, 1024))
                first = next(numbers)
            u = low + _of_two(first, next(numbers)) % (high - low)
            if order[t] - half < u <= order[t] + half and order[u] - half < t <= order[u] + half:
                order[t], order[u] = order[u], order[t]
                break
    return np.array(order, np.int64)
