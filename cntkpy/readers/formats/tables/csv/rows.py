"""Find the ends of rows of CSV text. Only at the start of a cell a quote begins a text; a newline in it ends no row."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

QUOTE, NEWLINE, RETURN = 34, 10, 13
DELIMITERS = ",;\t"
_QUOTED = {
    sign: re.compile(rb'(?:\A|(?<=[%b\r\n]))"(?:[^"]++|"")*+("|\Z)' % sign.encode(), re.DOTALL) for sign in DELIMITERS
}
_AFTER = {sign: re.compile(rb'(?<=")[ \t]*+(?:[%b\r\n]|\Z)' % sign.encode()) for sign in DELIMITERS}
"""Behind the last quote of a cell: blanks, then the end of the cell."""


class Rows(NamedTuple):
    """Rows of some text.

    Attributes:
        ends: int64[n], behind their newlines.
        unclosed: the text ends within quotes.
        torn: the first quoted cell that goes on behind its last quote, or -1.
    """

    ends: np.ndarray
    unclosed: bool
    torn: int = -1


def rows_in(content: bytes, delimiter: str) -> Rows:
    """Return the rows of some text that begins at the start of a row.

    A row ends with LF, CR LF or CR. A CR at the end of the text does not count: an LF may follow.

    Args:
        content: the text, UTF-8.
        delimiter: one of `DELIMITERS`.
    """
    codes = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(codes == NEWLINE)
    if b"\r" in content:
        returns = np.flatnonzero(codes[:-1] == RETURN)
        ends = np.sort(np.concatenate([ends, returns[codes[returns + 1] != NEWLINE]]))
    if b'"' not in content:
        return Rows(ends + 1, False)
    torn = -1
    if (quoted := _regular(codes, ord(delimiter))) is None:
        quoted = _any(content, delimiter)
        after = _AFTER[delimiter]
        closed = zip(quoted[0].tolist(), quoted[1].tolist(), strict=False)  # the last text may have no end
        torn = next((start for start, stop in closed if not after.match(content, stop + 1)), -1)
    starts, stops, unclosed = quoted
    outside = np.searchsorted(starts, ends) == np.searchsorted(stops, ends)
    return Rows(ends[outside] + 1, unclosed, torn)


def lines_in(content: bytes) -> int:
    """Return the number of lines that end in some text, by LF, CR LF or CR."""
    return content.count(b"\n") + (content.count(b"\r") - content.count(b"\r\n"))


def _regular(codes: np.ndarray, delimiter: int) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Return the starts and stops of texts, int64[n] each; None if there is a quote within a cell, or after the end of
    a text.

    Where none is, quotes begin and end texts in turn: one that is doubled ends a text and begins it again.
    """
    quotes = np.flatnonzero(codes == QUOTE)
    starts, stops = quotes[::2], quotes[1::2]
    around = np.array([delimiter, NEWLINE, RETURN, QUOTE], np.uint8)
    previous_start = starts[starts > 0]
    after = stops[stops < len(codes) - 1]
    if not np.isin(codes[previous_start - 1], around).all() or not np.isin(codes[after + 1], around).all():
        return None
    return starts, stops, len(starts) > len(stops)


def _any(content: bytes, delimiter: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the same for any text."""
    matches = list(_QUOTED[delimiter].finditer(content))
    unclosed = bool(matches) and not matches[-1][1]
    starts, stops = [array.start() for array in matches], [array.end() - 1 for array in matches]
    return np.array(starts, np.int64), np.array(stops[: len(stops) - unclosed], np.int64), unclosed
