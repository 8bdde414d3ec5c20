"""Numbers that the kernels and their fallbacks share: the state of a scan, and the columns of the table of pieces."""

from __future__ import annotations

# Return codes of a scan.
DONE, UNKNOWN_INPUT, UNKNOWN_OUTPUT = 0, 1, 2
# Elements of its state array, int64: offset of what is read next, number of its line, tokens and sentences and words
# found, and of the trouble: offset of the word and its end.
POSITION, LINE, TOKENS, SENTENCES, WORDS, BEGIN, END = 0, 1, 2, 3, 4, 5, 6
LEAST_TOKENS = 3
"""Of a sentence that is one line."""

GROUP, STEP_BEGIN, STEPS, LONGEST, SLOTS, MEMBERS, SAMPLES, FIRST, ROW = range(9)
"""Columns of the table of pieces: the group, the step of its sentences with which the piece begins, its steps, the
steps of the longest sentence, slots, sentences, cells with a word; the sentences and the rows of the pieces before."""
GAP = -1
"""The label of a cell without a word."""
PADDING = 64
"""Bytes after the text of a scan that can be read."""
