"""Numbers of kinds of malformed text, and of the ways in which parsing a piece can end: shared by kernels and messages.

No Numba is imported here.
"""

DONE, VALUES_FULL, SAMPLES_FULL, EVENTS_FULL, SLOW_FULL, BUDGET, UNREAD = range(7)
"""Return codes."""

JUNK, PREFIX, VALUE, TOO_MANY, INDEX, RANGE, EMPTY_ROW, MORE, LESS = range(9)
UNKNOWN, SHORT, REPEATED, INFINITE, COMMENT, NOTHING = range(9, 15)
"""Kinds of events (first column of the events array; then position, sequence, stream); those before UNKNOWN count as
errors."""

QUIET_LIMIT = 64
"""Most events that are no errors, in a piece."""
