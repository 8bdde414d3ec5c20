"""The kernels that look up words by their bytes, eight at a time, in the table of a `LabelMap`."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s
from cntkpy.readers.kernels.words import byte_at, leading_zeros, word_at

_FACTOR, _HALF, _ALL = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(0xFFFFFFFFFFFFFFFF)
_8, _64 = np.uint64(8), np.uint64(64)
_SHORT = 8


@inlined
def _mixed(h: Int, word: Int):
    h = (h ^ word) * _FACTOR
    return h ^ (h >> _HALF)


@inlined
def _hash_of_long(begin: Int, length: Int):
    """Return the hash of more than eight bytes at an address: eight after the other, then the last eight."""
    h = np.uint64(0)
    for i in range(0, length - 8, 8):
        h = _mixed(h, word_at(begin + i))
    return _mixed(h, word_at(begin + length - 8))


@inlined
def hash_at(begin: Int, length: Int):
    """As `hash_of`, of one byte or more at an address, from which eight bytes can be read."""
    if length <= _SHORT:
        return _mixed(np.uint64(0), word_at(begin) & (_ALL >> (_64 - _8 * np.uint64(length))))
    return _hash_of_long(begin, length)


@part
def _hash_within(begin: Int, length: Int):
    """As `hash_of`, by address; only the bytes of the word are looked at."""
    if length >= _SHORT:
        return hash_at(begin, length)
    word = np.uint64(0)
    for i in range(length):
        word |= np.uint64(byte_at(begin + i)) << np.uint64(8 * i)
    return _mixed(np.uint64(0), word)


@kernel
def hash_of(text: Bytes, begin: Int, end: Int):
    """A hash of text[begin:end], which the caller has found in text.

    The hashes of all words of the same number of bytes differ, if these are eight or less.
    """
    return _hash_within(text.ctypes.data + begin, end - begin)


@inlined
def _same(begin: Int, name: Int, length: Int):
    """Return whether the words of eight bytes or more at two addresses are the same.

    With `while ... and ...` in the place of the `for`, Numba 0.68.1 finds that equal words of eight bytes differ:
    findings/numba-loop-of-loads-by-address.sh.
    """
    for i in range(0, length - 8, 8):
        if word_at(begin + i) != word_at(name + i):
            return False
    return word_at(begin + length - 8) == word_at(name + length - 8)


@inlined
def number_of(begin: Int, length: Int, h: Int, names: Bytes, starts: Int64s, table: Int64s):
    """Number of the word at an address, -1 if it has none; h: its hash.

    In range: a place is the upper bits of a product, as many as the table has, half of whose lines are empty, so the
    search ends; numbers are made by the same map as names and starts; bytes are compared only with a name as long as
    they are. Words of eight bytes or less are known by their hash and their length.
    """
    place = np.int64((h * _FACTOR) >> np.uint64(leading_zeros(np.uint64(len(table) - 1))))
    size = min(length, _SHORT + 1)
    while True:
        entry = table[place, 1]
        if entry < 0:
            return np.int64(-1)
        if np.uint64(table[place, 0]) == h and entry & 15 == size:
            number = entry >> 4
            if size <= _SHORT:
                return number
            first = int(starts[number])
            if starts[number + 1] - first == length and _same(begin, names.ctypes.data + first, length):
                return number
        place = (place + 1) & (len(table) - 1)


@kernel
def find_label(text: Bytes, begin: Int, end: Int, names: Bytes, starts: Int64s, table: Int64s):
    """Number of the label text[begin:end], -1 if it has none; the arrays are those of a `LabelMap`.

    In range: see `number_of`; the caller has found the label in text.
    """
    h = hash_of(text, begin, end)
    return number_of(text.ctypes.data + begin, end - begin, h, names, starts, table)
