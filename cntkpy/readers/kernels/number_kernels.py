"""Decimal text to float64, correctly rounded: the same value as Python's float().

Short numbers are one exact product or quotient; up to 19 digits use the Eisel-Lemire product with 128-bit powers of
five; what remains (more digits, subnormals, exact ties far from a power) is left to the caller, who asks float().
"""

from __future__ import annotations

import math

import numpy as np

from cntkpy.readers.kernels.jit import inlined, part
from cntkpy.readers.kernels.kernel_types import Int
from cntkpy.readers.kernels.words import byte_at, digits, leading_zeros, word_at

OK, BAD, SLOW, OTHER = 0, 1, 2, 3

_LOWEST, _HIGHEST = -342, 308


def _powers_of_five() -> tuple[np.ndarray, np.ndarray]:
    """Return the 128 leading bits of 5**q for q = -342..308 (high and low halves), rounded as the algorithm wants."""
    high: list[int] = []
    low: list[int] = []
    for q in range(_LOWEST, _HIGHEST + 1):
        if q >= 0:
            power = 5**q
            bits = power.bit_length()
            value = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            power = 5**-q
            z = power.bit_length()
            value = (1 << (z + 127 if q >= -27 else 2 * z + 128)) // power + 1
            while value >= 1 << 128:
                value >>= 1
        high.append(value >> 64)
        low.append(value & (2**64 - 1))
    return np.array(high, np.uint64), np.array(low, np.uint64)


_HIGH, _LOW = _powers_of_five()
_EXACT = np.array([10.0**i for i in range(23)])
_TENS = np.array([10**i for i in range(9)], np.uint64)
_32, _LOW32 = np.uint64(32), np.uint64(0xFFFFFFFF)
_1, _3, _9, _63 = np.uint64(1), np.uint64(3), np.uint64(9), np.uint64(63)
_LARGEST = float(np.finfo(np.float32).max)
_MASK, _ALL, _TOP = np.uint64(0x1FF), np.uint64(2**64 - 1), np.uint64(2**53)


@part
def _product(a: Int, b: Int):
    """Upper and lower halves of the 128-bit product."""
    a0, a1, b0, b1 = a & _LOW32, a >> _32, b & _LOW32, b >> _32
    p00, p01, p10 = a0 * b0, a0 * b1, a1 * b0
    middle = (p00 >> _32) + (p01 & _LOW32) + (p10 & _LOW32)
    return a1 * b1 + (p01 >> _32) + (p10 >> _32) + (middle >> _32), a * b


@part
def scale(mantissa: Int, exponent: Int):
    """mantissa (uint64, not 0) * 10**exponent as (float64, OK or SLOW).

    In range: exponents that the table lacks are sorted out first.
    """
    if exponent < -342:
        return 0.0, OK
    if exponent > 308:
        return np.inf, OK
    shift = leading_zeros(mantissa)
    m = mantissa << np.uint64(shift)
    upper, lower = _product(m, _HIGH[exponent + 342])
    if upper & _MASK == _MASK:
        extra, _ = _product(m, _LOW[exponent + 342])
        lower += extra
        if extra > lower:
            upper += _1
    if lower == _ALL and (exponent < -27 or exponent > 55):
        return 0.0, SLOW
    top = upper >> _63
    digits = upper >> (top + _9)
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - shift
    if power + 1023 <= 0:
        return 0.0, SLOW
    if lower <= _1 and -4 <= exponent <= 23 and digits & _3 == _1 and (digits << (top + _9)) == upper:
        digits &= ~_1
    digits += digits & _1
    digits >>= _1
    if digits >= _TOP:
        digits >>= _1
        power += 1
    if power > 1023:
        return np.inf, OK
    return math.ldexp(np.float64(digits), power - 52), OK


@inlined
def real(p: Int):
    """The number at byte_at(p): (position after it, value, OK | OTHER). OTHER: ask `any_real`.

    Numbers of at most 7 digits before the point and 15 after it, without exponent, are read eight digits at a time,
    with no branch on how many there are.

    In range: it looks at words that begin at a byte after digits only, hence not after an LF (but for the one after a
    sign or a point), see `words`; _TENS has 9 places and _EXACT 23, and there are 8 + 7 digits at most.
    """
    c = byte_at(p)
    negative = c == 45
    p += np.int64(negative) + np.int64(c == 43)
    count, m = digits(word_at(p))
    p += count
    c = byte_at(p)
    value = np.float64(m)
    if c == 46:
        after, fraction = digits(word_at(p + 1))
        if after < 8:
            m = m * _TENS[after] + fraction
            value = np.float64(m) / _EXACT[after]
            p += 1 + after
        else:
            extra, remainder = digits(word_at(p + 9))
            if extra == 8 or count + extra > 11:
                return p, 0.0, OTHER
            m = (m * _TENS[8] + fraction) * _TENS[extra] + remainder
            if m > _TOP:
                return p, 0.0, OTHER
            value = np.float64(m) / _EXACT[8 + extra]
            p += 9 + extra
        c = byte_at(p)
    if c == 101 or c == 69 or count == 0 or count == 8:
        return p, 0.0, OTHER
    return p, -value if negative else value, OK


@part
def any_real(p: Int):
    """The number at byte_at(p), digit by digit: (position after it, value, OK | BAD | SLOW).

    BAD: the position of the odd byte; SLOW: it has more digits than can be rounded here, or float32 does not hold it:
    ask float().

    In range: it continues after digits, signs, points and the letter e only, and stops at an LF; the exponent is
    compared with what the tables have before it is an index, here and in `scale`.
    """
    negative = False
    c = byte_at(p)
    if c == 45 or c == 43:
        negative = c == 45
        p += 1
        c = byte_at(p)
    d = c - 48
    if d < 0 or d > 9:
        return p, 0.0, BAD
    begin = p
    m = np.uint64(d)
    p += 1
    c = byte_at(p)
    while 48 <= c <= 57:
        m = m * np.uint64(10) + np.uint64(c - 48)
        p += 1
        c = byte_at(p)
    digits = p - begin
    exponent = 0
    dot = False
    if c == 46:
        dot = True
        p += 1
        fraction = p
        c = byte_at(p)
        while 48 <= c <= 57:
            m = m * np.uint64(10) + np.uint64(c - 48)
            p += 1
            c = byte_at(p)
        exponent = fraction - p
        digits += p - fraction
    if c == 101 or c == 69:
        if dot and exponent == 0:
            return p, 0.0, BAD
        p += 1
        c = byte_at(p)
        minus = c == 45
        if c == 45 or c == 43:
            p += 1
            c = byte_at(p)
        if c < 48 or c > 57:
            return p, 0.0, BAD
        e = 0
        while 48 <= c <= 57:
            if e < 100000:
                e = e * 10 + c - 48
            p += 1
            c = byte_at(p)
        exponent += -e if minus else e
    status = OK
    if digits > 19:
        m, dropped, exact = _long_mantissa(begin)
        exponent += dropped
        if not exact:
            return p, 0.0, SLOW
    value = np.float64(m)
    if exponent != 0 and m != np.uint64(0):
        if m <= _TOP and -22 <= exponent <= 22:
            value = value / _EXACT[-exponent] if exponent < 0 else value * _EXACT[exponent]
        else:
            value, status = scale(m, exponent)
    if value > _LARGEST:
        status = SLOW
    return p, -value if negative else value, status


@part
def _long_mantissa(p: Int):
    """First 19 significant digits from p on: (mantissa, digits dropped, whether all dropped ones are zero).

    In range: it continues after digits and points only.
    """
    m = np.uint64(0)
    significant, dropped = 0, 0
    exact = True
    while True:
        c = byte_at(p)
        if 48 <= c <= 57:
            if significant < 19:
                m = m * np.uint64(10) + np.uint64(c - 48)
                if m != np.uint64(0):
                    significant += 1
            else:
                dropped += 1
                if c != 48:
                    exact = False
        elif c != 46:
            return m, dropped, exact
        p += 1
