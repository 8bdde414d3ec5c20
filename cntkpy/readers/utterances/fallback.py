"""Fallbacks of `kernels` in NumPy, with the same arguments and results."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def locate(starts: Array, near: Array, step: int, frames: Array, which: Array, inside: Array) -> int:
    """Return the utterance of each of these frames of a whole data set, and its number in it."""
    bad = np.flatnonzero((frames < 0) | (frames >= starts[-1]))
    if len(bad):
        return int(bad[0])
    which[:] = np.searchsorted(starts, frames, side="right") - 1
    inside[:] = frames - starts[which]
    return -1


def spread(
    ends: Array, classes: Array, first: Array, utterances: Array, place: Array, out: Array, marks: Array
) -> None:
    """The class of every frame of utterances; marks (if any): 2 where a range begins, else 1."""
    places, which = place.tolist(), utterances.tolist()
    for u, position, after in zip(which, places, places[1:], strict=False):
        some = slice(int(first[u]), int(first[u + 1]))
        reached = np.maximum.accumulate(np.append(0, np.minimum(ends[some], min(after, len(out)) - position)))
        sizes = np.diff(reached)
        out[position : position + int(reached[-1])] = np.repeat(classes[some], sizes)
        if len(marks):
            marks[position + reached[:-1][sizes > 0]] = 2
