"""Kernels for utterances: the place of a frame, and the labels of frames out of ranges."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import kernel
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s, Ints


@kernel
def locate(starts: Int64s, near: Int64s, step: Int, frames: Int64s, which: Int64s, inside: Int64s):
    """The utterance of each of these frames of a whole data set, and its number in it.

    starts: frames before each utterance, int64[U+1]; near[j]: the utterance of frame j * step. Returns -1, or the first
    i whose frame does not exist.

    In range: frames[i] is checked against starts[U], so that near has its place and the search ends before U.
    """
    for i in range(len(frames)):
        if not 0 <= frames[i] < starts[-1]:
            return i
        u = near[frames[i] // step]
        while starts[u + 1] <= frames[i]:
            u += 1
        which[i], inside[i] = u, frames[i] - starts[u]
    return -1


@kernel
def spread(ends: Int32s, classes: Ints, first: Int64s, utterances: Int64s, place: Int64s, out: Ints, marks: Bytes):
    """The class of every frame of utterances, out[place[k]:place[k+1]]; marks (if any): 2 where a range begins, else 1.

    Ranges first[u]..first[u+1]-1 of utterance u end before the frames `ends`.

    In range: what data say are the ends alone. A range may end later than the last one of its utterance (whose labels
    are then of no use), so each is cut off at place[k+1], and those at the end of `out`. first and utterances are made
    by `labels.Labels` and the table of sequences; place int64[n+1] goes up.
    """
    for k in range(len(utterances)):
        u = utterances[k]
        position = place[k]
        room = min(place[k + 1], len(out)) - position
        t = 0
        for r in range(first[u], first[u + 1]):
            end = min(np.int64(ends[r]), room)
            if len(marks) and t < end:
                marks[position + t] = 2
            while t < end:
                out[position + t] = classes[r]
                t += 1
