"""Numbers that the kernel of label files and its fallback share."""

from __future__ import annotations

# Where a line stands.
OUTSIDE, INSIDE, SKIPPING = 0, 1, 2
# Return codes: all done, or arrays full, or what is wrong with a line.
DONE, FULL, BAD_NUMBER, BACKWARDS, UNKNOWN_STATE, COLUMNS, BAD_CLASS, NO_HEADER, TOO_LATE = 0, 1, 2, 3, 4, 5, 6, 7, 8
NOT_WHOLE = 9
# Elements of the state, int64: where, position in the buffer, lines passed, ranges, entries, whether the header was
# seen; the offending field's begin and end.
WHERE, POSITION, LINE, RANGES, ENTRIES, STARTED, BEGIN, END = 0, 1, 2, 3, 4, 5, 6, 7
# Columns of the entries, int64: name's begin and end, line, first range, whether it is to be used.
NAME, NAME_END, NAME_LINE, FIRST, GOOD = 0, 1, 2, 3, 4
LARGEST = 10**17
"""The largest time."""
LAST_CLASS = 65534
