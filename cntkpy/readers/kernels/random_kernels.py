"""The two generators of the shuffles: MT19937-64, and `rand` of C as glibc has it.

`draw` takes the state of either: which generator it belongs to is known by its type (uint64 or int64).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Int, Int64s, UInt64s
from cntkpy.readers.kernels.numba_modules import extending

U64 = np.uint64
State = Int64s | UInt64s
_UPPER, _LOWER, _MATRIX = U64(0xFFFFFFFF80000000), U64(0x7FFFFFFF), U64(0xB5026F5AA96619E9)
_MULTIPLIER = U64(6364136223846793005)
_M1, _M2, _M3 = U64(0x5555555555555555), U64(0x71D67FFFEDA60000), U64(0xFFF7EEE000000000)
_S29, _S17, _S37, _S43, _S62, _ONE = U64(29), U64(17), U64(37), U64(43), U64(62), U64(1)
_LOW32, _LAST = np.int64(0xFFFFFFFF), np.int64(2147483647)


@kernel
def mt_seed(seed: Int):
    """State of MT19937-64: uint64[313]; the last element is the read position."""
    state = np.empty(313, np.uint64)
    state[0] = seed
    for i in range(1, 312):
        previous = state[i - 1]
        state[i] = _MULTIPLIER * (previous ^ (previous >> _S62)) + np.uint64(i)
    state[312] = 312
    return state


@part
def _twist(state: UInt64s):
    """New numbers; indices are constants or taken modulo 312."""
    for i in range(312):
        x = (state[i] & _UPPER) | (state[(i + 1) % 312] & _LOWER)
        y = x >> _ONE
        if x & _ONE:
            y ^= _MATRIX
        state[i] = state[(i + 156) % 312] ^ y
    state[312] = 0


@kernel
def mt_next(state: UInt64s):
    """Next 64 random bits. In range: the position is set back when it is 312; states come from `mt_seed` alone."""
    if state[312] >= 312:
        _twist(state)
    x = state[np.int64(state[312])]
    state[312] += _ONE
    x ^= (x >> _S29) & _M1
    x ^= (x << _S17) & _M2
    x ^= (x << _S37) & _M3
    return x ^ (x >> _S43)


@kernel
def rand_seed(seed: Int):
    """State of C's `rand` after `srand(seed)`: 31 words and the place of the next, int64[32]. Seed 0 is the same as 1.

    It is an additive feedback generator, seeded by a multiplicative one.
    """
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
def rand(state: Int64s):
    """The next number of C's `rand`, from 0 to 2**31 - 1. In range: places go round from 0 to 30."""
    i = state[31]
    previous = i - 3
    if previous < 0:
        previous += 31
    value = (state[i] + state[previous]) & _LOW32
    state[i] = value
    i += 1
    state[31] = 0 if i == 31 else i
    return value >> 1


@part
def _draw_mt(state: UInt64s, low: Int, high: Int):
    """A remainder, so low <= number < high; the caller gives low < high."""
    return low + np.int64(mt_next(state) % np.uint64(high - low))


@part
def _draw_rand(state: Int64s, low: Int, high: Int):
    """Two draws as the digits of one, in wrapping 32-bit arithmetic, taken as unsigned. In range: as `_draw_mt`."""
    first = rand(state)
    value = (first * _LAST + rand(state)) & _LOW32
    if value > _LAST:
        value -= _LOW32 + 1
    return low + np.int64(np.uint64(value) % np.uint64(high - low))


def draw(state: State, low: Int, high: Int) -> int:
    """Return a number from low to high - 1. Only for kernels."""
    raise NotImplementedError


# Numba wants the parameters of these three to be the same, annotations included.
def _rand(state: Any, low: Any, high: Any) -> Any:
    return _draw_rand(state, low, high)


def _mt(state: Any, low: Any, high: Any) -> Any:
    return _draw_mt(state, low, high)


@extending.overload(draw)
def _draw(state: Any, low: Any, high: Any) -> Callable[..., Any]:
    return _rand if state.dtype.signed else _mt
