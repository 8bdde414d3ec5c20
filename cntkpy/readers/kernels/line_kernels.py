"""The kernels that find the records of a UCI text file and turn their bytes into numbers and label ids.

A record is a line that is not blank. Every buffer ends in LF, so that no look at the next byte needs a bound.
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.index_kernels import end_of_line
from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s, Reals
from cntkpy.readers.kernels.label_kernels import find_label
from cntkpy.readers.kernels.number_kernels import OK, SLOW, any_real, real
from cntkpy.readers.kernels.text_codes import (
    CATEGORY,
    DONE,
    FULL,
    MISSING,
    MORE,
    NONE,
    REGRESSION,
    STRAY_TEXT,
    TEXT_IN_FEATURES,
    UNKNOWN_LABEL,
)
from cntkpy.readers.kernels.words import byte_at, digits, word_at

# Elements of the state array, int64: offset of the next line, next record, slow numbers; and of the trouble: the offset
# of the field, its end, its column.
POSITION, RECORD, SLOWS, BEGIN, END, COLUMN = 0, 1, 2, 3, 4, 5
TEXT = 9

_EXACT = np.array([10.0**i for i in range(16)])
_TENS = np.array([10**i for i in range(9)], np.uint64)
_BLANKS = np.int64(1 << 32 | 1 << 13 | 1 << 10 | 1 << 9)


@inlined
def _separates(c: Int):
    """Return whether a byte is between fields of a line, or ends it."""
    return c <= 32 and (_BLANKS >> c) & 1 == 1


@kernel
def find_records(buffer: Bytes, begin: Int, end: Int, place: Int, offsets: Int64s, lines: Int64s, state: Int64s):
    """Find the records in buffer[begin:end], which begins at byte `place` of the file: offsets, lines (int64 each).

    state int64: POSITION in the buffer, RECORD, and in element 2 the number of the line. FULL: give longer arrays.

    In range: bytes are looked at before `end` only, which leaves the padding of the buffer; RECORD is compared with the
    length of the arrays.
    """
    base = buffer.ctypes.data
    p, stop = base + begin, base + end
    while p < stop:
        q = p
        while q < stop and byte_at(q) != 10 and _separates(byte_at(q)):
            q += 1
        if q < stop and byte_at(q) != 10:
            if state[RECORD] == len(offsets):
                state[POSITION] = p - base
                return FULL
            offsets[state[RECORD]] = place + p - base
            lines[state[RECORD]] = state[2]
            state[RECORD] += 1
            q = end_of_line(q, stop)
        state[2] += 1
        p = q + 1
    state[POSITION] = end
    return DONE


@inlined
def _fraction(p: Int):
    """A number that begins with its decimal point: as `real`, also in what it looks at; _EXACT has 8 + 7 + 1 places."""
    negative = byte_at(p) == 45
    if negative or byte_at(p) == 43:
        p += 1
    after, m = digits(word_at(p + 1))
    if byte_at(p) != 46 or after == 0:
        return p, 0.0, TEXT
    if after < 8:
        value = np.float64(m) / _EXACT[after]
        p += 1 + after
    else:
        extra, remainder = digits(word_at(p + 9))
        if extra == 8:
            return p, 0.0, SLOW
        value = np.float64(m * _TENS[extra] + remainder) / _EXACT[8 + extra]
        p += 9 + extra
    return p, -value if negative else value, OK


@part
def _number(begin: Int):
    """The field that `real` cannot read: (end, value, OK | SLOW | TEXT). SLOW: it looks like a number, ask float().

    In range: it continues to the end of the field, an LF at the latest.
    """
    p, value, status = _fraction(begin)
    if status == TEXT:
        p, value, status = any_real(begin)
    if status != OK or not _separates(byte_at(p)):
        c = byte_at(begin)
        status = SLOW if 48 <= c <= 57 or c == 43 or c == 45 or c == 46 else TEXT
        while not _separates(byte_at(p)):
            p += 1
    return p, value, status


@part
def _trouble(state: Int64s, begin: Int, end: Int, column: Int):
    """Note the position of an unusable field."""
    state[BEGIN], state[END], state[COLUMN] = begin, end, column


@kernel
def parse_records(
    numbers: Bytes, text: Bytes, size: Int, first_feature: Int, dim: Int, kind: Int, first_label: Int, label_dim: Int,
    names: Bytes, starts: Int64s, table: Int64s, features: Reals, ids: Int32s, targets: Reals, slows: Int64s,
    state: Int64s,
):  # fmt: skip
    """Parse the records in numbers[:size] from state[POSITION] on, as record state[RECORD] and following.

    numbers uint8 with blanks as separators and `.` as decimal point; text uint8 the same bytes as they are in the file.
    features float[n * dim]; ids int32[n] or targets float[n * label_dim], as `kind` says; names uint8, starts int64 and
    table int64: the labels known. slows int64[k, 5], for every number that the caller has to convert: offset, end,
    column, what it is (0 feature, 1 target, 2 neither), element. FULL: convert what is there, then call again.

    In range: numbers and text are as long as each other and end in padding, so a line ends in an LF; translation leaves
    LF as it is. A record beyond the last one there is room for is MORE: the file is not what it was when its records
    were found. Columns that count are first_feature.. and first_label.., as many as there are places for each record.
    """
    base = numbers.ctypes.data
    p, stop = base + state[POSITION], base + size
    features_end, labels_end = first_feature + dim, first_label + label_dim
    needed = max(features_end, labels_end if kind != NONE else 0)
    room = len(features) // dim
    if kind != NONE:
        room = min(room, len(ids) if kind == CATEGORY else len(targets) // label_dim)
    while p < stop:
        line = p
        slow = state[SLOWS]
        record = state[RECORD]
        column = 0
        while True:
            c = byte_at(p)
            while c == 32 or c == 9 or c == 13:
                p += 1
                c = byte_at(p)
            if c == 10:
                break
            if record >= room:
                state[POSITION] = line - base
                return MORE
            begin = p
            if kind == CATEGORY and first_label <= column < labels_end:
                while not _separates(byte_at(p)):
                    p += 1
                label = find_label(text, begin - base, p - base, names, starts, table)
                if label < 0:
                    _trouble(state, begin - base, p - base, column)
                    state[POSITION], state[SLOWS] = line - base, slow
                    return UNKNOWN_LABEL
                ids[record] = label
            else:
                p, value, status = real(p)
                if status != OK or not _separates(byte_at(p)):
                    p, value, status = _number(begin)
                reason, element = 2, 0
                if first_feature <= column < features_end:
                    reason, element = 0, record * dim + column - first_feature
                    features[element] = value
                elif kind == REGRESSION and first_label <= column < labels_end:
                    reason, element = 1, record * label_dim + column - first_label
                    targets[element] = value
                if status != OK and not (reason == 2 and kind == NONE):
                    if status == TEXT:
                        _trouble(state, begin - base, p - base, column)
                        state[POSITION], state[SLOWS] = line - base, slow
                        return TEXT_IN_FEATURES if reason == 0 else STRAY_TEXT
                    if slow == len(slows):
                        state[POSITION] = line - base
                        return FULL
                    slows[slow, 0], slows[slow, 1], slows[slow, 2] = begin - base, p - base, column
                    slows[slow, 3], slows[slow, 4] = reason, element
                    slow += 1
            column += 1
        if column > 0:
            if column < needed:
                _trouble(state, line - base, p - base, column)
                state[POSITION], state[SLOWS] = line - base, slow
                return MISSING
            state[RECORD] += 1
            state[SLOWS] = slow
        p += 1
    state[POSITION] = size
    return DONE
