"""Kernels that walk through Kaldi archives: where each entry's key and values lie, and whether they lie in the file.

They see a window of the file: `data`, of which `end` bytes count, and after it `left` more bytes of the file.

Layout of binary entries: key, one blank, the bytes 0 and 'B', then by type
FM, DM: token, 4, rows (int32), 4, columns, values row by row. FV, DV: token, 4, size, values.
CM, CM2, CM3: token, smallest value and range (float32), rows, columns (int32), values in 1 or 2 bytes.
Vectors of integers: 4, size, then 4 and an int32 for each. Posteriors: 4, frames; for each 4, pairs; for each pair
4, int32, 4, float32. Text entries are numbers between blanks; those of matrices and vectors are between [ and ].
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s
from cntkpy.readers.kernels.words import read_at

# Kinds of objects.
FM, DM, CM, CM2, CM3, FV, DV, INTEGERS, POSTERIORS, TEXT, LINE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
# What the caller looks for: matrices, or labels in one of two forms. UNDECIDED: neither form has been seen.
MATRICES, UNDECIDED, AS_INTEGERS, AS_POSTERIORS = 0, 1, 2, 3
# Return codes: all done, or the array of entries is full, or what is wrong at state[BYTE]; MORE: the window is small.
DONE, FULL, CUT, NO_KEY, NO_TYPE, NEGATIVE, RAGGED, NO_BRACKET, NO_NUMBER, AFTER, AMBIGUOUS, MORE = range(12)
# Columns of an entry, int64: the key's begin and end, where the object begins, its kind, its rows and columns, where
# its values begin, the end of the object: bytes of the file. Rows of INTEGERS and POSTERIORS are their frames; of a
# LINE unknown, -1.
KEY, KEY_END, OBJECT, KIND, ROWS, COLS, DATA, END = range(8)
# Elements of the state, int64: where to resume, entries found, the offending byte; of `scan` also bytes of the file
# that it has, and the end of the names.
POSITION, COUNT, BYTE, BASE, HAVE, NAMES = range(6)

_LF, _CR, _TAB, _BLANK, _OPEN, _CLOSE, _ROW_END = 10, 13, 9, 32, 91, 93, 59
_MARK = 66  # B, after a zero
_C, _D, _F, _M, _V, _2, _3 = 67, 68, 70, 77, 86, 50, 51
_HEAD = 512  # bytes that are read of an entry after values that were left out
_KEY_ROOM = 4096  # `is_boundary` looks at the next key, if it is no longer than this
_START = np.int64(0)  # not a plain literal, for which Numba would compile `read_object` once more


@part
def int_at(data: Bytes, position: Int):
    """The little-endian int32 at a byte, which the caller has checked to have three more after it."""
    value = (
        np.int64(data[position])
        | np.int64(data[position + 1]) << 8
        | np.int64(data[position + 2]) << 16
        | np.int64(data[position + 3]) << 24
    )
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@part
def _matrix(data: Bytes, position: Int, end: Int, left: Int, row: Int64s):
    """Parse the header of an FM, DM, CM, CM2 or CM3 whose first letter is at `position`, at least 3 bytes before end.

    Every index is below `end`: 15 or 21 bytes are demanded before they are read; the values may are after it, as far
    as the file goes. Code, offending byte.
    """
    first, third = data[position], data[position + 2]
    if first == _C:
        wide = third in (_2, _3)
        p = position + (4 if wide else 3)
        if p + 16 > end:
            return CUT, end
        if data[p - 1] != _BLANK:
            return NO_TYPE, position
        kind = CM if not wide else CM2 if third == _2 else CM3
        rows, cols = int_at(data, p + 8), int_at(data, p + 12)
        p += 16
        each = 2 if kind == CM2 else 1
    else:
        p = position + 3
        if p + 10 > end:
            return CUT, end
        if third != _BLANK or data[p] != 4 or data[p + 5] != 4:
            return NO_TYPE, position
        kind = FM if first == _F else DM
        rows, cols = int_at(data, p + 1), int_at(data, p + 6)
        p += 10
        each = 4 if kind == FM else 8
    if rows < 0 or cols < 0:
        return NEGATIVE, position
    size = np.int64(0)
    if rows > 0 and cols > 0:
        if rows > (end + left - p) // (cols * each):  # no product that overflows: cols * each < 2**34
            return CUT, end + left
        size = rows * cols * each
        if kind == CM:
            size += 8 * cols
            if p + size > end + left:
                return CUT, end + left
    elif kind == CM and p + 4 > end and left > 0:
        return MORE, p
    elif kind == CM and p + 4 <= end and not data[p] and not data[p + 1] and not data[p + 2] and not data[p + 3]:
        p += 4  # Kaldi writes four bytes more for an empty matrix; no key begins with a zero
    row[KIND], row[ROWS], row[COLS], row[DATA], row[END] = kind, rows, cols, p, p + size
    return DONE, position


@part
def _vector(data: Bytes, position: Int, end: Int, left: Int, row: Int64s):
    """The header of an FV or DV: a matrix of one row. Every index is below `end`: 8 bytes are demanded first."""
    if position + 8 > end:
        return CUT, end
    if data[position + 2] != _BLANK or data[position + 3] != 4:
        return NO_TYPE, position
    size, each = int_at(data, position + 4), 4 if data[position] == _F else 8
    if size < 0:
        return NEGATIVE, position
    if size > (end + left - position - 8) // each:
        return CUT, end + left
    row[KIND], row[ROWS], row[COLS] = FV if each == 4 else DV, 1 if size else 0, size
    row[DATA], row[END] = position + 8, position + 8 + size * each
    return DONE, position


@part
def end_of_integers(data: Bytes, position: Int, end: Int):
    """Return the end of a vector of integers whose size, after a 4, is at `position`; -1 if there is none.

    The file has room for all of them before the first is looked at.
    """
    if position + 5 > end or data[position] != 4:
        return np.int64(-1)
    count = int_at(data, position + 1)
    if count < 0 or count > (end - position - 5) // 5:
        return np.int64(-1)
    p = position + 5
    for _ in range(count):
        if data[p] != 4:
            return np.int64(-1)
        p += 5
    return p


@part
def end_of_posteriors(data: Bytes, position: Int, end: Int):
    """Return the end of posteriors whose number of frames, after a 4, is at `position`; -1 if there are none.

    Every number is demanded to lie before `end` before it is read.
    """
    if position + 5 > end or data[position] != 4:
        return np.int64(-1)
    frames = int_at(data, position + 1)
    if frames < 0 or frames > (end - position - 5) // 5:
        return np.int64(-1)
    p = position + 5
    for _ in range(frames):
        if p + 5 > end or data[p] != 4:
            return np.int64(-1)
        pairs = int_at(data, p + 1)
        p += 5
        if pairs < 0 or pairs > (end - p) // 10:
            return np.int64(-1)
        for _ in range(pairs):
            if data[p] != 4 or data[p + 5] != 4:
                return np.int64(-1)
            p += 10
    return p


@part
def is_boundary(data: Bytes, position: Int, end: Int):
    """Return whether an archive may have a new entry here: its end, or key, blank and mark of binary objects."""
    p = position
    while p < end and data[p] > _BLANK:
        p += 1
    return position == end or (
        p > position and p + 2 < end and data[p] == _BLANK and data[p + 1] == 0 and data[p + 2] == _MARK
    )


@part
def form_of_labels(data: Bytes, position: Int, end: Int):
    """AS_INTEGERS, AS_POSTERIORS or UNDECIDED (no frames) for the object whose size is at `position`; -1: neither.

    A vector of zeros has the same bytes as posteriors of frames without labels; it is taken for the vector.
    """
    integers, posteriors = end_of_integers(data, position, end), end_of_posteriors(data, position, end)
    if integers >= 0 and integers == position + 5:
        return UNDECIDED
    if integers >= 0 and is_boundary(data, integers, end):
        return AS_INTEGERS
    if posteriors >= 0 and is_boundary(data, posteriors, end):
        return AS_POSTERIORS
    return AS_INTEGERS if integers >= 0 else AS_POSTERIORS if posteriors >= 0 else -1


@part
def _labels(data: Bytes, position: Int, end: Int, expect: Int, row: Int64s):
    """An object of labels whose first 4 is at `position`."""
    form = form_of_labels(data, position, end) if expect == UNDECIDED else expect
    p = end_of_posteriors(data, position, end) if form == AS_POSTERIORS else end_of_integers(data, position, end)
    if p < 0:
        return (CUT, end) if position + 5 > end else (AMBIGUOUS, position)
    row[KIND] = POSTERIORS if form == AS_POSTERIORS else INTEGERS
    row[ROWS], row[COLS], row[DATA], row[END] = int_at(data, position + 1), 1, position + 5, p
    return DONE, position


@part
def _bracketed(data: Bytes, position: Int, end: Int, row: Int64s):
    """A matrix in text: `[`, rows that end with LF or `;`, `]`. Every loop stops at `end` before it reads."""
    p, cols, rows, count = position + 1, np.int64(-1), np.int64(0), np.int64(0)
    while True:
        while p < end and (data[p] == _BLANK or data[p] == _TAB or data[p] == _CR):
            p += 1
        if p == end:
            return CUT, end
        c = data[p]
        if c in (_LF, _ROW_END, _CLOSE):
            if count:
                if cols >= 0 and count != cols:
                    return RAGGED, p
                cols, count = count, np.int64(0)
                rows += 1
            p += 1
            if c == _CLOSE:
                break
            continue
        if c == _OPEN or c < _BLANK:
            return NO_NUMBER, p
        count += 1
        while p < end and data[p] > _BLANK and data[p] != _CLOSE and data[p] != _ROW_END:
            p += 1
    row[KIND], row[ROWS], row[COLS], row[DATA] = TEXT, rows, max(cols, 0), position + 1
    while p < end and (data[p] == _BLANK or data[p] == _TAB or data[p] == _CR):
        p += 1
    if p < end and data[p] != _LF:
        return AFTER, p
    row[END] = p
    return DONE, position


@part
def _object(data: Bytes, position: Int, end: Int, left: Int, expect: Int, row: Int64s):
    """Read the object at a byte of the window, as `read_object` does; row[OBJECT], row[DATA], row[END] are bytes of
    it."""
    row[OBJECT] = position
    if position < 0 or position >= end:
        return CUT, end
    if data[position] == 0:
        if position + 5 > end:
            return CUT, end
        if data[position + 1] != _MARK:
            return NO_TYPE, position
        p = position + 2
        a, b = data[p], data[p + 1]
        if a == 4:
            return (NO_TYPE, position) if expect == MATRICES else _labels(data, p, end, expect, row)
        if expect != MATRICES:
            return NO_TYPE, position
        if b == _M and (a in (_F, _D, _C)):
            return _matrix(data, p, end, left, row)
        if b == _V and (a in (_F, _D)):
            return _vector(data, p, end, left, row)
        return NO_TYPE, position
    p = position
    if expect != MATRICES:
        while p < end and data[p] != _LF:
            p += 1
        row[KIND], row[ROWS], row[COLS], row[DATA], row[END] = LINE, -1, 1, position, p
        return DONE, position
    while p < end and (data[p] == _BLANK or data[p] == _TAB):
        p += 1
    if p == end:
        return CUT, end
    return _bracketed(data, p, end, row) if data[p] == _OPEN else (NO_BRACKET, p)


@kernel
def read_object(data: Bytes, position: Int, end: Int, left: Int, base: Int, expect: Int, row: Int64s):
    """Read the object at a byte of a file: fill row[OBJECT..END], return a code and the offending byte.

    data: uint8[n]; end <= n; base: where the window begins in the file; at: a byte of the window; row: int64[8]. Every
    index is compared with `end` before it is used; whatever sizes the file tells are compared with what is left of it.
    MORE: the window has to continue; with `left` 0 it never is.
    """
    code, bad = _object(data, position, end, left, expect, row)
    if left > 0:
        if code == AMBIGUOUS or (code == CUT and bad <= end):
            code = MORE
        elif (
            code == DONE
            and row[KIND] > DV
            and (row[END] >= end or (expect == UNDECIDED and row[END] + _KEY_ROOM > end))
        ):  # a text may continue, and form_of_labels may not have seen what comes next
            code = MORE
    row[OBJECT] += base
    row[DATA] += base
    row[END] += base
    return code, bad + base


@kernel
def scan(descriptor: Int, total: Int, data: Bytes, expect: Int, entries: Int64s, names: Bytes, state: Int64s) -> int:
    """Walk from entry to entry of a file of `total` bytes, from byte state[POSITION] on.

    data: uint8[n], holds bytes state[BASE] .. + state[HAVE] - 1 of the file, n at most; what is missing is read from
    the descriptor, unless that is -1. FULL: `entries` (int64[m, 8]) is full, or `names` (uint8), where the keys stand
    one after the other, which end at state[NAMES]. MORE: the caller has to fill `data` from state[POSITION] on; where
    it is full of bytes from there on, it is too small. Every index is compared with the bytes that are there, and
    these with the length of `data`, before it is used. Where an error is found, entries[state[COUNT]] has the key, if
    there is one.
    """
    base, end = state[BASE], state[HAVE]
    if end > len(data) or base > state[POSITION]:
        return MORE
    while True:
        p = state[POSITION] - base
        while p < end and (data[p] == _LF or data[p] == _CR or data[p] == _BLANK or data[p] == _TAB):
            p += 1
        state[POSITION] = base + p
        if base + p >= total:
            return DONE
        if state[COUNT] == len(entries):
            return FULL
        row, code, bad, begin = entries[state[COUNT]], MORE, base + p, p
        while p < end and data[p] > _BLANK:
            p += 1
        row[KEY], row[KEY_END] = base + begin, base + p
        if p < end or base + end >= total:
            if p == begin or (p < end and data[p] < _TAB):
                code, bad = NO_KEY, base + p
            elif p == end:
                code, bad = CUT, base + p
            elif p - begin > len(names) - state[NAMES] and state[NAMES] > 0:
                return FULL
            elif data[p] == _LF and expect != MATRICES:  # a key alone on its line: nothing
                row[OBJECT] = row[DATA] = row[END] = base + p
                row[KIND], row[ROWS], row[COLS] = LINE, -1, 1
                code = DONE
            else:
                code, bad = read_object(data, p + 1, end, total - base - end, base, expect, row)
        if code == DONE:
            if expect == UNDECIDED and row[ROWS] > 0:
                expect = AS_POSTERIORS if row[KIND] == POSTERIORS else AS_INTEGERS
            for i in range(min(p - begin, len(names) - state[NAMES])):
                names[state[NAMES] + i] = data[begin + i]
            state[NAMES] += p - begin
            state[POSITION] = row[END]
            state[COUNT] += 1
        elif code != MORE:
            state[BYTE] = bad
            return code
        elif begin == 0 and end == len(data):
            return MORE
        if code == MORE or state[POSITION] >= base + end:
            size = min(total - state[POSITION], len(data) if code == MORE or state[POSITION] == base + end else _HEAD)
            size = min(size, len(data))
            if size > 0:
                if descriptor < 0 or read_at(descriptor, data.ctypes.data, size, state[POSITION]) != size:
                    state[HAVE] = 0
                    return MORE
                base, end = state[POSITION], size
                state[BASE], state[HAVE] = base, end


@kernel
def read_objects(
    data: Bytes,
    places: Int64s,
    sizes: Int64s,
    offsets: Int64s,
    total: Int,
    expect: Int,
    which: Int64s,
    entries: Int64s,
    state: Int64s,
):
    """read_object at bytes offsets[i] of a file of `total` bytes into entries[which[i]], for each i from state[COUNT].

    places, sizes: the window of each, int64: within `data`. which: rows of `entries`, which the caller took from it.
    Returns the code of the first error, or MORE, at i = state[COUNT].
    """
    for i in range(state[COUNT], len(which)):
        window, left = data[places[i] : places[i] + sizes[i]], total - offsets[i] - sizes[i]
        code, bad = read_object(window, _START, len(window), left, offsets[i], expect, entries[which[i]])
        if code != DONE:
            state[COUNT], state[BYTE] = i, bad
            return code
    state[COUNT] = len(which)
    return DONE
