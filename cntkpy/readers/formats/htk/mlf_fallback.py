"""Pure-Python fallback of `mlf_kernels`, with the same arguments and results."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cntkpy.readers.common.labels import ids_in

from .mlf_codes import (
    BACKWARDS,
    BAD_CLASS,
    BAD_NUMBER,
    BEGIN,
    COLUMNS,
    DONE,
    END,
    ENTRIES,
    FULL,
    INSIDE,
    LARGEST,
    LAST_CLASS,
    LINE,
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

Array = np.ndarray

_field = re.compile(rb"[^ \t]+")
_number_of = re.compile(rb"([0-9]+)((?:\.[0-9]*)?)")
_LONG = len(str(LARGEST))


def _number(text: bytes) -> int:
    """Return a number without sign; its fraction is dropped. -1 if it is none, -2 if it is too large."""
    match = _number_of.match(text)
    if not match:
        return -1
    digits = match[1].lstrip(b"0")
    if len(digits) > _LONG or int(digits or b"0") > LARGEST:
        return -2
    return int(digits or b"0") if match.end() == len(text) else -1


_NONE = (0, 0, 0)


def _range(content: bytes, states: dict[bytes, int] | None) -> tuple[int, tuple[int, int, int], tuple[int, int]]:
    """Return the error code of a range, the range, and the begin and end of the wrong text."""
    fields = _field.findall(content)
    everything = 0, len(content)
    if len(fields) < 3 or (states is None and len(fields) != 4):
        return COLUMNS, _NONE, everything
    begin, end = _number(fields[0]), _number(fields[1])
    for index, number in enumerate((begin, end)):
        if number < 0:
            return BAD_NUMBER if number == -1 else TOO_LATE, _NONE, _place(content, index)
    if end < begin:
        return BACKWARDS, _NONE, everything
    if states is not None:
        state = states.get(fields[2], -1)
        return (
            UNKNOWN_STATE if state < 0 else DONE,
            (begin, end, state),
            _place(content, 2) if state < 0 else everything,
        )
    state = _number(fields[3])
    if state != -1 and b"." in fields[3]:
        return NOT_WHOLE, _NONE, _place(content, 3)
    if 0 <= state <= LAST_CLASS:
        return DONE, (begin, end, state), everything
    return BAD_NUMBER if state == -1 else BAD_CLASS, _NONE, _place(content, 3)


def _place(content: bytes, field: int) -> tuple[int, int]:
    """Return the begin and end of a field."""
    return list(_field.finditer(content))[field].span()


def parse_lines(
    text: Array,
    stop: int,
    mapped: bool,
    names: Array,
    starts: Array,
    table: Array,
    ranges: Array,
    entries: Array,
    state: Array,
) -> int:
    """Parse whole lines text[state[POSITION]:stop] into ranges int64[n, 3] and entries int64[m, 5]."""
    states = ids_in(names, starts, table) if mapped else None
    position, line, where = int(state[POSITION]), int(state[LINE]), int(state[WHERE])
    room = len(ranges) - int(state[RANGES]), len(entries) - int(state[ENTRIES])
    result, new = list[tuple[int, int, int]](), list[tuple[int, int, int, int, bool]]()
    code = DONE
    for whole in text[position:stop].tobytes().splitlines(keepends=True):
        if len(result) == room[0] or len(new) == room[1]:
            code = FULL
            break
        content = whole.rstrip(b"\r\n").rstrip(b" \t")
        end, content = position + len(content), content.lstrip(b" \t")
        begin, line = end - len(content), line + 1
        wrong = begin, end
        if where == OUTSIDE and content == b"#!MLF!#":
            state[STARTED] = 1
        elif where == OUTSIDE and content and not state[STARTED]:
            code = NO_HEADER
        elif where == OUTSIDE and content:
            good = len(content) >= 3 and content.startswith(b'"') and content.endswith(b'"')
            new.append((begin, end, line, int(state[RANGES]) + len(result), good))
            where = INSIDE if good else SKIPPING
        elif content == b".":
            where = OUTSIDE
        elif where == INSIDE and content:
            code, label_range, (a, b) = _range(content, states)
            wrong = begin + a, begin + b
            result += [label_range] if code == DONE else []
        position += len(whole) if code != NO_HEADER else 0
        if code != DONE:
            state[BEGIN], state[END] = wrong
            break
    _put(result, ranges, state, RANGES)
    _put(new, entries, state, ENTRIES)
    state[[POSITION, LINE, WHERE]] = position, line, where
    return code


def _put(rows: Sequence[tuple[int, ...]], into: Array, state: Array, counter: int) -> None:
    """Add rows to those that there are."""
    if rows:
        into[state[counter] : state[counter] + len(rows)] = rows
        state[counter] += len(rows)
