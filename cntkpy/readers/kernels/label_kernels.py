"""The kernels that look up words by their bytes, eight at a time, in the table of a `LabelMap`."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s
from cntkpy.readers.kernels.words import byte_at, leading_zeros, trailing_zeros, word_at

_FACTOR, _HALF, _TOP = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(56)
_CONTROLS, _HIGH, _1, _8, _64 = (np.uint64(x) for x in (0x2121212121212121, 0x8080808080808080, 1, 8, 64))


@inlined
def separates(c: Int):
    """Return whether a byte is between words of a line, or ends it."""
    return c == 32 or c == 10 or c == 9 or c == 13


@inlined
def _mixed(h: Int, word: Int):
    h = (h ^ word) * _FACTOR
    return h ^ (h >> _HALF)


@inlined
def end_of_word(begin: Int):
    """Address of the first separator from `begin` on, and the hash of the bytes before it, see `hash_of`.

    In range: there is an LF, with seven more readable bytes after it.
    """
    h, p = np.uint64(0), begin
    while True:
        word = word_at(p)
        candidates = (word - _CONTROLS) & ~word & _HIGH  # bytes up to 32, and perhaps some after the first of them
        while candidates != 0:
            bits = trailing_zeros(candidates) & 56
            if separates(np.int64((word >> np.uint64(bits)) & np.uint64(255))):
                length = bits >> 3
                last = word & ((_1 << np.uint64(bits)) - _1)
                return p + length, _mixed(h, last | np.uint64(length) << _TOP)
            candidates &= candidates - _1
        h = _mixed(h, word)
        p += 8


@part
def _hash_at(begin: Int, length: Int):
    """As `hash_of`, by address; only the bytes of the word are looked at."""
    h, last = np.uint64(0), np.uint64(0)
    for i in range(0, length - 7, 8):
        h = _mixed(h, word_at(begin + i))
    for i in range(length & 7):
        last |= np.uint64(byte_at(begin + (length & ~7) + i)) << np.uint64(8 * i)
    return _mixed(h, last | np.uint64(length & 7) << _TOP)


@kernel
def hash_of(text: Bytes, begin: Int, end: Int):
    """A hash of text[begin:end], which the caller has found in text: eight bytes after the other are mixed in.

    The bytes left, seven at most, come last, with their number. So the hashes of all words without more differ.
    """
    return _hash_at(text.ctypes.data + begin, end - begin)


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

    In range: a place is the upper bits of a hash, as many as the table has, half of whose lines are empty, so the
    search ends; numbers are made by the same map as names and starts; bytes are compared only with a name as long as
    they are. Words of less than eight bytes are known by their hash and by being short.
    """
    place = np.int64(h >> np.uint64(leading_zeros(np.uint64(len(table) - 1))))
    short = np.int64(length < 8)
    while True:
        entry = table[place, 1]
        if entry < 0:
            return np.int64(-1)
        if np.uint64(table[place, 0]) == h and entry & 1 == short:
            number = entry >> 1
            if short:
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
