"""The kernel for label files: the lines of an MLF."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s
from cntkpy.readers.kernels.label_kernels import find_label

from .mlf_codes import (
    BACKWARDS,
    BAD_CLASS,
    BAD_NUMBER,
    BEGIN,
    COLUMNS,
    DONE,
    END,
    ENTRIES,
    FIRST,
    FULL,
    GOOD,
    INSIDE,
    LARGEST,
    LAST_CLASS,
    LINE,
    NAME,
    NAME_END,
    NAME_LINE,
    NO_HEADER,
    NOT_WHOLE,
    OUTSIDE,
    POSITION,
    RANGES,
    SKIPPING,
    STARTED,
    TOO_LATE,
    UNKNOWN_STATE,
    WHERE,
)

_HEADER = np.array([35, 33, 77, 76, 70, 33, 35], np.uint8)


@part
def _number(text: Bytes, begin: Int, end: Int):
    """A number without sign; its fraction is dropped. -1 if it is none, -2 if it is too large.

    In range: i stays below `end`, which is at most len(text).
    """
    value = np.int64(0)
    i = begin
    while i < end and 48 <= text[i] <= 57:
        value = value * 10 + (text[i] - 48)
        if value > LARGEST:
            return np.int64(-2)
        i += 1
    if i == begin:
        return np.int64(-1)
    if i < end and text[i] == 46:
        i += 1
        while i < end and 48 <= text[i] <= 57:
            i += 1
    return value if i == end else np.int64(-1)


@part
def _is_header(text: Bytes, begin: Int, end: Int):
    """Return whether text[begin:end] is the header; as long as it, so no index is beyond `end`."""
    if end - begin != len(_HEADER):
        return False
    for i in range(len(_HEADER)):  # noqa: SIM110  no generators in kernels
        if text[begin + i] != _HEADER[i]:
            return False
    return True


@part
def _range(
    text: Bytes,
    begin: Int,
    end: Int,
    mapped: bool,
    names: Bytes,
    starts: Int64s,
    table: Int64s,
    fields: Int64s,
    out: Int64s,
):
    """Parse a range into out int64[3]: start, end, class. Fields: scratch int64[5, 2] with the bounds of fields.

    In range: i stays below `end`; only the first five fields of a line are noted.
    """
    count = 0
    i = begin
    while i < end:
        while i < end and (text[i] == 32 or text[i] == 9):
            i += 1
        if i == end:
            break
        if count < 5:
            fields[count, 0] = i
        while i < end and text[i] != 32 and text[i] != 9:
            i += 1
        if count < 5:
            fields[count, 1] = i
        count += 1
    fields[4, 0], fields[4, 1] = begin, end
    if count < 3 or (not mapped and count != 4):
        return COLUMNS
    for k in range(2):
        out[k] = _number(text, fields[k, 0], fields[k, 1])
        if out[k] < 0:
            fields[4, 0], fields[4, 1] = fields[k, 0], fields[k, 1]
            return BAD_NUMBER if out[k] == -1 else TOO_LATE
    if out[1] < out[0]:
        return BACKWARDS
    if mapped:
        fields[4, 0], fields[4, 1] = fields[2, 0], fields[2, 1]
        out[2] = find_label(text, fields[2, 0], fields[2, 1], names, starts, table)
        return UNKNOWN_STATE if out[2] < 0 else DONE
    fields[4, 0], fields[4, 1] = fields[3, 0], fields[3, 1]
    out[2] = _number(text, fields[3, 0], fields[3, 1])
    if out[2] == -1:
        return BAD_NUMBER
    for index in range(fields[3, 0], fields[3, 1]):
        if text[index] == 46:
            return NOT_WHOLE
    return BAD_CLASS if out[2] < 0 or out[2] > LAST_CLASS else DONE


@kernel
def parse_lines(
    text: Bytes,
    stop: Int,
    mapped: bool,
    names: Bytes,
    starts: Int64s,
    table: Int64s,
    ranges: Int64s,
    entries: Int64s,
    state: Int64s,
):
    """Parse whole lines text[state[POSITION]:stop] into ranges int64[n, 3] and entries int64[m, 5].

    In range: the caller gives stop <= len(text), and every look at text is after a comparison with `stop` or the end
    of a line; a line adds a range or an entry at most, and there is room for one of each, else FULL. After a range
    that is none, state[POSITION] is the next line.
    """
    fields = np.empty((5, 2), np.int64)
    out = np.empty(3, np.int64)
    p = state[POSITION]
    while p < stop:
        if state[RANGES] == len(ranges) or state[ENTRIES] == len(entries):
            state[POSITION] = p
            return FULL
        q = p
        while q < stop and text[q] != 10 and text[q] != 13:
            q += 1
        begin, end = p, q
        if q + 1 < stop and text[q] == 13 and text[q + 1] == 10:
            q += 1
        p = q + 1
        state[LINE] += 1
        while begin < end and (text[begin] == 32 or text[begin] == 9):
            begin += 1
        while begin < end and (text[end - 1] == 32 or text[end - 1] == 9):
            end -= 1
        if begin == end:
            continue
        dot = end - begin == 1 and text[begin] == 46
        if state[WHERE] == OUTSIDE:
            if _is_header(text, begin, end):
                state[STARTED] = 1
                continue
            if not state[STARTED]:
                state[BEGIN], state[END] = begin, end
                return NO_HEADER
            good = end - begin >= 3 and text[begin] == 34 and text[end - 1] == 34
            n = state[ENTRIES]
            entries[n, NAME], entries[n, NAME_END], entries[n, NAME_LINE] = begin, end, state[LINE]
            entries[n, FIRST], entries[n, GOOD] = state[RANGES], good
            state[ENTRIES] += 1
            state[WHERE] = INSIDE if good else SKIPPING
        elif dot:
            state[WHERE] = OUTSIDE
        elif state[WHERE] == INSIDE:
            code = _range(text, begin, end, mapped, names, starts, table, fields, out)
            if code != DONE:
                state[BEGIN], state[END], state[POSITION] = fields[4, 0], fields[4, 1], p
                return code
            for k in range(3):
                ranges[state[RANGES], k] = out[k]
            state[RANGES] += 1
    state[POSITION] = stop
    return DONE
