"""Kernels for objects in text: the numbers of a matrix, the classes of frames; and those of binary labels."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s, Reals
from cntkpy.readers.kernels.number_kernels import OK, any_real

from .object_kernels import DATA, END, INTEGERS, KIND, POSTERIORS, ROWS, int_at

PADDING = 32
"""Zeros after the text that `parse_reals` is given."""
# Return codes of `take_labels`.
DONE, NOT_INTEGER, TOO_LARGE, NOT_ONE_LABEL, NOT_CLOSED = 0, 1, 2, 3, 4
_OPEN, _CLOSE, _ROW_END, _MINUS, _BLANK = 91, 93, 59, 45, 32


@kernel
def parse_reals(text: Bytes, begin: Int, out: Reals, state: Int64s):
    """Numbers between blanks, from text[begin] to `]`, into out. state int64[2]: position, numbers so far.

    Returns whether all were read; if not, the one at the position is for the caller, who continues after it. text:
    uint8, ends with PADDING zeros, which are no digits, so that no number is read beyond it; the caller has checked
    that a `]` follows, and out has room for as many numbers as `read_object` counted: more are left to the caller.
    """
    address = text.ctypes.data
    p, count = state[0], state[1]
    while text[p] != _CLOSE:
        if text[p] <= _BLANK or text[p] == _ROW_END:
            p += 1
            continue
        after, value, status = any_real(address + p)
        q = after - address
        if status != OK or not (text[q] <= _BLANK or text[q] == _CLOSE or text[q] == _ROW_END) or count == len(out):
            state[0], state[1] = p, count
            return False
        out[count] = value
        count += 1
        p = q
    state[0], state[1] = p, count
    return True


@part
def _integer(data: Bytes, p: Int, end: Int):
    """The decimal number at a byte: position after it, value; -1 if there is none, -2 if it does not fit int32."""
    negative = p < end and data[p] == _MINUS
    p += np.int64(negative)
    begin, value = p, np.int64(0)
    while p < end and 48 <= data[p] <= 57:
        value = value * 10 + data[p] - 48
        if value > 2**31 - 1:
            return p, np.int64(-2)
        p += 1
    if p == begin or negative or (p < end and data[p] > _BLANK):
        return begin, np.int64(-1)
    return p, value


@part
def _is_one(data: Bytes, p: Int, end: Int):
    """Return whether a token is the number 1 as programs print it (1, 1.0, 1e+00): position after it, and that."""
    begin = p
    while p < end and data[p] > _BLANK:
        p += 1
    if begin == p or data[begin] != 49:
        return p, False
    q = begin + 1
    if q < p and data[q] == 46:
        q += 1
        while q < p and data[q] == 48:
            q += 1
    if q < p and (data[q] == 101 or data[q] == 69):
        q += 1
        if q < p and (data[q] == 43 or data[q] == _MINUS):
            q += 1
        while q < p and data[q] == 48:
            q += 1
    return p, q == p


@part
def _skip(data: Bytes, p: Int, end: Int):
    while p < end and data[p] <= _BLANK:
        p += 1
    return p


@part
def _line(data: Bytes, begin: Int, end: Int, out: Int32s, position: Int):
    """Classes of a text line: `3 4 4` or `[ 3 1 ] [ 4 1 ]`. Code, the offending byte, classes found."""
    p, count = _skip(data, begin, end), 0
    posteriors = p < end and data[p] == _OPEN
    while p < end:
        if posteriors:
            if data[p] != _OPEN:
                return NOT_CLOSED, p, count
            p = _skip(data, p + 1, end)
        at_class = p
        p, value = _integer(data, p, end)
        if value < 0:
            if posteriors and p < end and data[p] == _CLOSE:
                return NOT_ONE_LABEL, at_class, count
            return TOO_LARGE if value == -2 else NOT_INTEGER, p, count
        if posteriors:
            p, item = _is_one(data, _skip(data, p, end), end)
            p = _skip(data, p, end)
            if not item or p >= end or data[p] != _CLOSE:
                return NOT_ONE_LABEL, at_class, count
            p += 1
        out[position + count] = value
        count += 1
        p = _skip(data, p, end)
    return DONE, p, count


@kernel
def room_for_labels(entries: Int64s, which: Int64s):
    """Return the number of classes these entries have at most: a text line has a digit and a blank for each."""
    room = np.int64(0)
    for u in which:
        row = entries[u]
        room += row[ROWS] if row[ROWS] >= 0 else (row[END] - row[DATA]) // 2 + 1
    return room


@kernel
def take_labels(
    data: Bytes,
    places: Int64s,
    entries: Int64s,
    which: Int64s,
    out: Int32s,
    position: Int,
    lengths: Int64s,
    state: Int64s,
):
    """The classes of the frames of these entries into out from `position` on; lengths[i]: frames of which[i].

    Each frame has to have one label of weight 1. entries: int64[U, 8], as `read_object` filled them in; places: where
    bytes DATA..END - 1 of each begin in `data`, which has all of them: an entry of integers has 5 bytes for each frame,
    what is left of other entries is compared. out: int32, with `room_for_labels`. Returns a code; state int64[3] then
    holds i, the frame and the byte of the file, else the end of out in state[0].
    """
    for i in range(len(which)):
        row = entries[which[i]]
        p, count, previous = places[i], row[ROWS], row[DATA] - places[i]
        end = row[END] - previous
        if row[KIND] == INTEGERS:
            for t in range(count):
                out[position + t] = int_at(data, p + 5 * t + 1)
                if out[position + t] < 0:
                    state[0], state[1], state[2] = i, t, previous + p + 5 * t
                    return NOT_INTEGER
        elif row[KIND] == POSTERIORS:
            for t in range(count):
                item = p + 15 <= end and int_at(data, p + 1) == 1  # 1.0 is the bytes 0, 0, 128, 63
                if item:
                    item = data[p + 11] == 0 and data[p + 12] == 0 and data[p + 13] == 128 and data[p + 14] == 63
                if not item:
                    state[0], state[1], state[2] = i, t, previous + p
                    return NOT_ONE_LABEL
                out[position + t] = int_at(data, p + 6)
                if out[position + t] < 0:
                    state[0], state[1], state[2] = i, t, previous + p + 5
                    return NOT_INTEGER
                p += 15
        else:
            code, bad, count = _line(data, p, end, out, position)
            if code != DONE:
                state[0], state[1], state[2] = i, count, previous + bad
                return code
        lengths[i] = count
        position += count
    state[0] = position
    return DONE
