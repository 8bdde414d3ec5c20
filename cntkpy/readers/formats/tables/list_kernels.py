"""Kernels for levels and codes of Parquet: runs of one value, and values of a few bits each, in turns.

https://parquet.apache.org/docs/file-format/data-pages/encodings/#a-name-rle-a-run-length-encoding--bit-packing-hybrid-rle-3
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s

MOST_BITS = 31
"""Of a value."""


@part
def _header(data: Bytes, position: Int):
    """The number at the start of a run, and the byte after it; -1 where the data end or it is too large.

    In range: at is not negative.
    """
    number, shift = np.int64(0), 0
    while position < len(data) and shift < 35:
        byte = np.int64(data[position])
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position
    return np.int64(-1), position


@part
def _whole(data: Bytes, position: Int, width: Int):
    """The value of a run of one value: as many bytes as `width` bits need.

    In range: the caller has checked that data have the bytes from at on.
    """
    result = np.int64(0)
    for i in range((width + 7) // 8):
        result |= np.int64(data[position + i]) << (8 * i)
    return result


@kernel
def pattern(data: Bytes, width: Int, count: Int, first: Int, every: Int, start: Int, alternative: Int):
    """Return whether `count` values of `width` bits are a pattern: `start` where i is a multiple of `every`, else
    `other`.

    i is counted from `first`, which is not negative.

    In range: a run is read after its bytes are found to be within data.
    """
    position, i, end, mask = 0, first, first + count, (np.int64(1) << width) - 1
    while i < end:
        number, position = _header(data, position)
        if number < 0:
            return False
        if number & 1:
            values = min((number >> 1) * 8, end - i)
            if position + (number >> 1) * width > len(data):
                return False
            byte, bits, have, within = position, np.int64(0), 0, i % every
            for _ in range(values):
                while have < width:
                    bits |= np.int64(data[byte]) << have
                    byte, have = byte + 1, have + 8
                if bits & mask != (start if within == 0 else alternative):
                    return False
                bits, have = bits >> width, have - width
                within = within + 1 if within + 1 < every else 0
            position += (number >> 1) * width
        else:
            values = min(number >> 1, end - i)
            if position + (width + 7) // 8 > len(data):
                return False
            value = _whole(data, position, width)
            starts = (i + values - 1) // every - (i - 1) // every
            if (starts and value != start) or (starts < values and value != alternative):
                return False
            position += (width + 7) // 8
        i += values
    return True


@kernel
def unpack(data: Bytes, width: Int, out: Int32s):
    """Fill `out` with values of `width` bits; returns how many there were in data, at most as many as out has room for.

    In range: as in `pattern`; a run is cut to the room that is left.
    """
    position, i, mask = 0, 0, (np.int64(1) << width) - 1
    while i < len(out):
        number, position = _header(data, position)
        if number < 0:
            return i
        if number & 1:
            values = min((number >> 1) * 8, len(out) - i)
            if position + (number >> 1) * width > len(data):
                return i
            byte, bits, have = position, np.int64(0), 0
            for v in range(values):
                while have < width:
                    bits |= np.int64(data[byte]) << have
                    byte, have = byte + 1, have + 8
                out[i + v] = bits & mask
                bits, have = bits >> width, have - width
            position += (number >> 1) * width
        else:
            values = min(number >> 1, len(out) - i)
            if position + (width + 7) // 8 > len(data):
                return i
            out[i : i + values] = _whole(data, position, width)
            position += (width + 7) // 8
        i += values
    return i
