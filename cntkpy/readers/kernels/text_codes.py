"""How a search for sequences or records of text can end, and what these are: codes of kernels and fallbacks.

No Numba is imported here.
"""

DONE, FULL, NO_ID, OVERFLOW, LONG_NAME, TEXT_IN_FEATURES, STRAY_TEXT, UNKNOWN_LABEL, MISSING, MORE = range(10)
OTHER_KEYS, MANY_SAMPLES, HIGHER = range(10, 13)
"""Return codes."""

LINES, NUMBERS, NAMES = 0, 1, 2
"""What a sequence is: every line, or what begins with a number or with a name."""

NONE, CATEGORY, REGRESSION = 0, 1, 2
"""What the labels of a record are."""

LONGEST_NAME = 4096
"""Bytes of the longest key that is not a number."""
