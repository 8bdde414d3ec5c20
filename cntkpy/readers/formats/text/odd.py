"""Reading an odd line of text without Numba, byte by byte: what the parse kernel gives and what it finds wrong.

Each function begins at a byte of a line that ends in LF and stops at that LF at the latest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from .events import COMMENT, INDEX, JUNK, PREFIX, RANGE, SHORT, TOO_MANY, UNKNOWN, VALUE
from .stream_values import StreamValues

_BLANKS = re.compile(rb"[ \t]*")
_DIGITS = re.compile(rb"[0-9]*")
_NAME = re.compile(rb"[!-{}~]*")
_KEY = {False: _DIGITS, True: re.compile(rb"(?:[!-{}-\xff][^|\n]*)?")}
_BETWEEN = re.compile(rb"[\0-\t\v- \x80-\xff]*")
_REST = re.compile(rb"[^|\n]*")
_MANTISSA = re.compile(rb"[+-]?(?:([0-9]+)(\.?)([0-9]*))?")
_EXPONENT = re.compile(rb"[eE][+-]?([0-9]*)")
_AFTER_VALUE = re.compile(rb"[\0- |\x80-\xff]")
_AFTER_NUMBER = re.compile(rb"[\0- |+\x80-\xff-]")
_END = re.compile(rb"[\0-\x1f|\x80-\xff]")
_DIGITS_OF_INDEX = 12
"""More than any dimension has."""

Note = Callable[[int, int, int], None]
"""Takes the kind of an event, its place in the line and the number of the stream (or -1)."""


def read_line(
    line: bytes, streams: Mapping[bytes, tuple[int, StreamValues]], named: bool, is_last: bool, note: Note
) -> int:
    """Read the samples of a line to the streams of these names; how many there are.

    line: with the LF at its end; named: a key is in front that is not a number; is_last: the file ends at that LF,
    which is none of its bytes; note: gets what is odd.
    """
    p = _after(_KEY[named], line, 0)
    accepted, end = 0, len(line) - 1
    while (p := _after(_BETWEEN, line, p)) < end:
        if line[p] != ord("|"):
            note(JUNK, p, -1)
            p = _after(_REST, line, p)
            continue
        begin, p = p + 1, _after(_NAME, line, p + 1)
        name = line[begin:p]
        kind, place, number = -1, begin - 1, -1
        if not name or (is_last and p == end and not name.startswith(b"#")):
            kind = PREFIX
        elif name.startswith(b"#"):
            kind = COMMENT
        elif name not in streams:
            kind, place = UNKNOWN, begin
        else:
            number, stream = streams[name]
            sparse = stream.form.sparse
            p, wrong, count = _sparse(line, p, stream) if sparse else _dense(line, p, stream)
            if wrong is None and not count and is_last and p == end:
                wrong = VALUE
            if wrong is not None:
                kind, place = wrong, p
                stream.undo(count)
            else:
                accepted += 1
                if not sparse and count < stream.form.dim:
                    kind = SHORT
                    stream.values.extend([0.0] * (stream.form.dim - count))
                stream.counts.append(count if sparse else stream.form.dim)
        if kind not in (-1, COMMENT):
            note(kind, place, number)
        if kind not in (-1, SHORT):
            p = _after(_REST, line, p)
    return accepted


def _after(pattern: re.Pattern[bytes], line: bytes, p: int) -> int:
    """Return the place after what a pattern, which matches anywhere, matches at p."""
    match = pattern.match(line, p)
    return p if match is None else match.end()


def _number(line: bytes, p: int) -> tuple[int, float | None]:
    """Return the number at p: (place after it, value). None: there is none, the place is that of the odd byte."""
    match = _MANTISSA.match(line, p)
    assert match is not None
    end = match.end()
    if not match[1]:
        return end, None
    if line[end] in b"eE":
        if match[2] and not match[3]:
            return end, None
        exponent = _EXPONENT.match(line, end)
        assert exponent is not None
        end = exponent.end()
        if not exponent[1]:
            return end, None
    return end, float(line[p:end])


def _dense(line: bytes, p: int, stream: StreamValues) -> tuple[int, int | None, int]:
    """Read the values at p: (place, kind of error or None, number of values)."""
    count = 0
    while True:
        p = _after(_BLANKS, line, p)
        if _END.match(line, p):
            return p, None, count
        begin = p
        p, value = _number(line, p)
        if value is None:
            return p, VALUE, count
        if count == stream.form.dim:
            return begin, TOO_MANY, count
        if not _AFTER_NUMBER.match(line, p):
            return p, VALUE, count
        stream.values.append(value)
        count += 1


def _sparse(line: bytes, p: int, stream: StreamValues) -> tuple[int, int | None, int]:
    """Read the entries at p: as `_dense`."""
    count = 0
    while True:
        p = _after(_BLANKS, line, p)
        if _END.match(line, p):
            return p, None, count
        begin, p = p, _after(_DIGITS, line, p)
        if p == begin or line[p] != ord(":"):
            return p, INDEX, count
        digits = line[begin:p].lstrip(b"0")
        index = int(digits or b"0") if len(digits) <= _DIGITS_OF_INDEX else stream.form.dim
        if index >= stream.form.dim:
            return begin, RANGE, count
        p, value = _number(line, p + 1)
        if value is None or not _AFTER_VALUE.match(line, p):
            return p, VALUE, count
        stream.indices.append(index)
        stream.values.append(value)
        count += 1
