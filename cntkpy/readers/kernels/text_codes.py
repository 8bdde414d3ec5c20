"""Status and kind codes of text searches, shared by kernels and fallbacks.

No Numba is imported here.
"""

DONE, FULL, NO_ID, OVERFLOW, LONG_NAME, TEXT_IN_FEATURES, STRAY_TEXT, UNKNOWN_LABEL, MISSING, MORE = range(10)
OTHER_KEYS, MANY_SAMPLES, HIGHER = range(10, 13)
"""Return codes."""

LINES, NUMBERS, NAMES = 0, 1, 2
"""Kinds of sequences: every line, or lines from a number or a name on."""

NONE, CATEGORY, REGRESSION = 0, 1, 2
"""Kinds of record labels."""

LONGEST_NAME = 4096
"""Bytes of the longest key that is not a number."""
