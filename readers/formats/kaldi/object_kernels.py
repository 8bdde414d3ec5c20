"""Kernels that walk through Kaldi archives: where each entry's key and values lie, and whether they lie in the file.

Layout of binary entries: key, one blank, the bytes 0 and 'B', then by type
FM, DM: token, 4, rows (int32), 4, columns, values row by row. FV, DV: token, 4, size, values.
CM, CM2, CM3: token, smallest value and range (float32), rows, columns (int32), values in 1 or 2 bytes.
Vectors of integers: 4, size, then 4 and an int32 for each. Posteriors: 4, frames; for each 4, pairs; for each pair
4, int32, 4, float32. Text entries are numbers between blanks; those of matrices and vectors stand between [ and ].
"""

from __future__ import annotations

import numpy as np

from readers.common.jit import kernel

# Kinds of objects.
FM, DM, CM, CM2, CM3, FV, DV, INTEGERS, POSTERIORS, TEXT, LINE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
# What the caller looks for: matrices, or labels in one of two forms. UNDECIDED: neither form has been seen.
MATRICES, UNDECIDED, AS_INTEGERS, AS_POSTERIORS = 0, 1, 2, 3
# Return codes: all done, or the array of entries is full, or what is wrong at state[BYTE].
DONE, FULL, CUT, NO_KEY, NO_TYPE, NEGATIVE, RAGGED, NO_BRACKET, NO_NUMBER, AFTER, AMBIGUOUS = range(11)
# Columns of an entry, int64: the key's begin and end, where the object begins, its kind, its rows and columns, where
# its values begin, the end of the object. Rows of INTEGERS and POSTERIORS are their frames; of a LINE unknown, -1.
KEY, KEY_END, OBJECT, KIND, ROWS, COLS, DATA, END = range(8)
# Elements of the state, int64: where to go on, entries found, the offending byte.
POSITION, COUNT, BYTE = range(3)

_LF, _CR, _TAB, _BLANK, _OPEN, _CLOSE, _ROW_END = 10, 13, 9, 32, 91, 93, 59
_MARK = 66  # B, after a zero
_C, _D, _F, _M, _V, _2, _3 = 67, 68, 70, 77, 86, 50, 51


@kernel
def int_at(data, at):
    """The little-endian int32 at a byte, which the caller has checked to have three more behind it."""
    value = (
        np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24
    )
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@kernel
def _matrix(data, at, end, row):
    """The header of an FM, DM, CM, CM2 or CM3 that begins with its first letter at `at`, at least 3 bytes before end.

    Every index is below `end`: 15 or 21 bytes are demanded before they are read. Code, offending byte.
    """
    first, third = data[at], data[at + 2]
    if first == _C:
        wide = third in (_2, _3)
        p = at + (4 if wide else 3)
        if p + 16 > end:
            return CUT, end
        if data[p - 1] != _BLANK:
            return NO_TYPE, at
        kind = CM if not wide else CM2 if third == _2 else CM3
        rows, cols = int_at(data, p + 8), int_at(data, p + 12)
        p += 16
        each = 2 if kind == CM2 else 1
    else:
        p = at + 3
        if p + 10 > end:
            return CUT, end
        if third != _BLANK or data[p] != 4 or data[p + 5] != 4:
            return NO_TYPE, at
        kind = FM if first == _F else DM
        rows, cols = int_at(data, p + 1), int_at(data, p + 6)
        p += 10
        each = 4 if kind == FM else 8
    if rows < 0 or cols < 0:
        return NEGATIVE, at
    size = np.int64(0)
    if rows > 0 and cols > 0:
        if rows > (end - p) // (cols * each):  # no product that overflows: cols * each < 2**34
            return CUT, end
        size = rows * cols * each
        if kind == CM:
            size += 8 * cols
            if p + size > end:
                return CUT, end
    elif kind == CM and p + 4 <= end and not data[p] and not data[p + 1] and not data[p + 2] and not data[p + 3]:
        p += 4  # Kaldi writes four bytes more for an empty matrix; no key begins with a zero
    row[KIND], row[ROWS], row[COLS], row[DATA], row[END] = kind, rows, cols, p, p + size
    return DONE, at


@kernel
def _vector(data, at, end, row):
    """The header of an FV or DV: a matrix of one row. Every index is below `end`: 8 bytes are demanded first."""
    if at + 8 > end:
        return CUT, end
    if data[at + 2] != _BLANK or data[at + 3] != 4:
        return NO_TYPE, at
    size, each = int_at(data, at + 4), 4 if data[at] == _F else 8
    if size < 0:
        return NEGATIVE, at
    if size > (end - at - 8) // each:
        return CUT, end
    row[KIND], row[ROWS], row[COLS] = FV if each == 4 else DV, 1 if size else 0, size
    row[DATA], row[END] = at + 8, at + 8 + size * each
    return DONE, at


@kernel
def end_of_integers(data, at, end):
    """Where a vector of integers ends whose size, behind a 4, stands at `at`; -1 if there is none.

    The file has room for all of them before the first is looked at.
    """
    if at + 5 > end or data[at] != 4:
        return np.int64(-1)
    count = int_at(data, at + 1)
    if count < 0 or count > (end - at - 5) // 5:
        return np.int64(-1)
    p = at + 5
    for _ in range(count):
        if data[p] != 4:
            return np.int64(-1)
        p += 5
    return p


@kernel
def end_of_posteriors(data, at, end):
    """Where posteriors end whose number of frames, behind a 4, stands at `at`; -1 if there are none.

    Every number is demanded to lie before `end` before it is read.
    """
    if at + 5 > end or data[at] != 4:
        return np.int64(-1)
    frames = int_at(data, at + 1)
    if frames < 0 or frames > (end - at - 5) // 5:
        return np.int64(-1)
    p = at + 5
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


@kernel
def is_boundary(data, at, end):
    """Whether an archive may have a new entry here: its end, or a key, a blank and the mark of binary objects."""
    p = at
    while p < end and data[p] > _BLANK:
        p += 1
    return at == end or (p > at and p + 2 < end and data[p] == _BLANK and data[p + 1] == 0 and data[p + 2] == _MARK)


@kernel
def form_of_labels(data, at, end):
    """AS_INTEGERS, AS_POSTERIORS or UNDECIDED (it has no frames) for the object whose size stands at `at`; -1: neither.

    A vector of zeros has the same bytes as posteriors of frames without labels; it is taken for the vector.
    """
    integers, posteriors = end_of_integers(data, at, end), end_of_posteriors(data, at, end)
    if integers >= 0 and integers == at + 5:
        return UNDECIDED
    if integers >= 0 and is_boundary(data, integers, end):
        return AS_INTEGERS
    if posteriors >= 0 and is_boundary(data, posteriors, end):
        return AS_POSTERIORS
    return AS_INTEGERS if integers >= 0 else AS_POSTERIORS if posteriors >= 0 else -1


@kernel
def _labels(data, at, end, expect, row):
    """An object of labels whose first 4 stands at `at`."""
    form = form_of_labels(data, at, end) if expect == UNDECIDED else expect
    p = end_of_posteriors(data, at, end) if form == AS_POSTERIORS else end_of_integers(data, at, end)
    if p < 0:
        return (CUT, end) if at + 5 > end else (AMBIGUOUS, at)
    row[KIND] = POSTERIORS if form == AS_POSTERIORS else INTEGERS
    row[ROWS], row[COLS], row[DATA], row[END] = int_at(data, at + 1), 1, at + 5, p
    return DONE, at


@kernel
def _bracketed(data, at, end, row):
    """A matrix in text: `[`, rows that end with LF or `;`, `]`. Every loop stops at `end` before it reads."""
    p, cols, rows, count = at + 1, np.int64(-1), np.int64(0), np.int64(0)
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
    row[KIND], row[ROWS], row[COLS], row[DATA] = TEXT, rows, max(cols, 0), at + 1
    while p < end and (data[p] == _BLANK or data[p] == _TAB or data[p] == _CR):
        p += 1
    if p < end and data[p] != _LF:
        return AFTER, p
    row[END] = p
    return DONE, at


@kernel
def read_object(data, at, end, expect, row):
    """What stands at a byte of a file: fill row[OBJECT..END], return a code and the offending byte.

    data: uint8[n]; end <= n; row: int64[8]. Every index is compared with `end` before it is used; whatever sizes the
    file tells are compared with what is left of it.
    """
    row[OBJECT] = at
    if at < 0 or at >= end:
        return CUT, end
    if data[at] == 0:
        if at + 5 > end:
            return CUT, end
        if data[at + 1] != _MARK:
            return NO_TYPE, at
        p = at + 2
        a, b = data[p], data[p + 1]
        if a == 4:
            return (NO_TYPE, at) if expect == MATRICES else _labels(data, p, end, expect, row)
        if expect != MATRICES:
            return NO_TYPE, at
        if b == _M and (a in (_F, _D, _C)):
            return _matrix(data, p, end, row)
        if b == _V and (a in (_F, _D)):
            return _vector(data, p, end, row)
        return NO_TYPE, at
    p = at
    if expect != MATRICES:
        while p < end and data[p] != _LF:
            p += 1
        row[KIND], row[ROWS], row[COLS], row[DATA], row[END] = LINE, -1, 1, at, p
        return DONE, at
    while p < end and (data[p] == _BLANK or data[p] == _TAB):
        p += 1
    if p == end:
        return CUT, end
    return _bracketed(data, p, end, row) if data[p] == _OPEN else (NO_BRACKET, p)


@kernel
def scan(data, end, expect, entries, state):
    """Walk from entry to entry, from state[POSITION] on, until the end or until `entries` (int64[n, 8]) is full.

    Every index is compared with `end`, which is at most the length of `data`, before it is used. Where an error is
    found, entries[state[COUNT]] has the key, if there is one.
    """
    p = state[POSITION]
    while True:
        while p < end and (data[p] == _LF or data[p] == _CR or data[p] == _BLANK or data[p] == _TAB):
            p += 1
        state[POSITION] = p
        if p == end:
            return DONE
        if state[COUNT] == len(entries):
            return FULL
        row = entries[state[COUNT]]
        row[KEY] = row[KEY_END] = p
        while p < end and data[p] > _BLANK:
            p += 1
        if p == row[KEY] or (p < end and data[p] < _TAB):
            state[BYTE] = p
            return NO_KEY
        row[KEY_END] = p
        if p == end:
            state[BYTE] = p
            return CUT
        if data[p] == _LF and expect != MATRICES:  # a key alone on its line: nothing
            row[OBJECT], row[KIND], row[ROWS], row[COLS], row[DATA], row[END] = p, LINE, -1, 1, p, p
        else:
            code, bad = read_object(data, p + 1, end, expect, row)
            if code != DONE:
                state[BYTE] = bad
                return code
            if expect == UNDECIDED and row[ROWS] > 0:
                expect = AS_POSTERIORS if row[KIND] == POSTERIORS else AS_INTEGERS
        p = row[END]
        state[COUNT] += 1


@kernel
def read_objects(data, end, expect, offsets, which, entries, state):
    """read_object at offsets[i] into entries[which[i]] for each i; the code of the first error, at i = state[COUNT].

    which: rows of `entries`, which the caller took from it.
    """
    for i in range(state[COUNT], len(which)):
        code, bad = read_object(data, offsets[i], end, expect, entries[which[i]])
        if code != DONE:
            state[COUNT], state[BYTE] = i, bad
            return code
    return DONE
