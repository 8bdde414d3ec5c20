"""Kernels that make many minibatches of sentences at once: which pieces they are of, and their words and labels.

Sentence k has the tokens bounds[k] .. bounds[k+1]-1; the sentences of group g are members[starts[g]:starts[g+1]]. A
piece is one minibatch: some steps of the sentences of a group, side by side. The arrays of pieces are concatenated;
cell (t, s) of a piece is its row t * slots + s. In range for all: bounds and words go up and end where the arrays do,
members are numbers of sentences, see `source.Groups`.
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import brief, kernel
from cntkpy.readers.kernels.kernel_types import Int, Int32s, Int64s
from cntkpy.readers.kernels.words import prefetch

from .codes import FIRST, GAP, GROUP, LONGEST, MEMBERS, ROW, SAMPLES, SLOTS, STEP_BEGIN, STEPS

_AHEAD, _LINE = 16, 16
"""Sentences that are fetched ahead; numbers in a line of the cache."""


@brief
def plan_pieces(
    bounds: Int64s,
    members: Int64s,
    starts: Int64s,
    group: Int,
    step: Int,
    unlabelled: Int,
    most_steps: Int,
    slots: Int,
    most: Int,
    cells: Int,
):
    """The next pieces, int64[M+1, 9]: from step `step` of a group on, `most_steps` steps at most, or the group's rest.

    unlabelled: tokens at the end of a sentence that are no step. slots: of each piece, 0: as many as it has sentences.
    No more than `most` pieces, and none after `cells` cells. The last piece of all groups is planned alone, never with
    others before it. The last line of the table has the sums only.

    In range: M is at most `most`; the caller has checked that there is this group, and this step of it.
    """
    table = np.zeros((most + 1, 9), np.int64)
    m = 0
    while m < most and group < len(starts) - 1 and (m == 0 or table[m, ROW] <= cells):
        first, end = starts[group], starts[group + 1]
        longest = np.int64(0)
        for i in range(first, end):
            longest = max(longest, bounds[members[i] + 1] - bounds[members[i]] - unlabelled)
        steps = int(min(longest - step, most_steps))
        done = step + steps == longest
        if m and done and group == len(starts) - 2:
            break
        side = slots if slots else end - first
        table[m, GROUP], table[m, STEP_BEGIN], table[m, STEPS], table[m, LONGEST] = group, step, steps, longest
        table[m, SLOTS], table[m, MEMBERS] = side, end - first
        for i in range(first, end):
            remainder = bounds[members[i] + 1] - bounds[members[i]] - unlabelled - step
            table[m, SAMPLES] += min(max(remainder, 0), steps)
        table[m + 1, FIRST] = table[m, FIRST] + end - first
        table[m + 1, ROW] = table[m, ROW] + steps * side
        m += 1
        step += steps
        if done:
            group, step = group + 1, np.int64(0)
    return table[: m + 1]


@brief
def sequences_of(table: Int64s, bounds: Int64s, members: Int64s, starts: Int64s, unlabelled: Int):
    """Number, slot, begin and end of the sentences of all pieces, int64[n, 4], and the sentences, int64[n]."""
    several = len(table) - 1
    out, which = np.empty((table[several, FIRST], 4), np.int64), np.empty(table[several, FIRST], np.int64)
    for m in range(several):
        first = starts[table[m, GROUP]]
        for i in range(table[m, MEMBERS]):
            k, position = members[first + i], table[m, FIRST] + i
            which[position] = k
            out[position, 0], out[position, 1], out[position, 2] = i, i, -table[m, STEP_BEGIN]
            out[position, 3] = bounds[k + 1] - bounds[k] - unlabelled - table[m, STEP_BEGIN]
    return out, which


@kernel
def lay_words(table: Int64s, which: Int64s, bounds: Int64s, inputs: Int32s, outputs: Int32s, labelled: bool):
    """One word a cell: words int32[n], row bounds int32[rows + M] of the pieces one after the other, each from 0 on.

    Also the words before each piece, int64[M+1], and labels int32[rows], those of the next tokens if `labelled`, GAP
    where there is none. All sentences of a piece have the same length, so each of its steps is one of all of them.
    """
    several = len(table) - 1
    rows = table[several, ROW]
    previous = np.zeros(several + 1, np.int64)
    for m in range(several):
        previous[m + 1] = previous[m] + table[m, STEPS] * table[m, MEMBERS]
    words, row_bounds = np.empty(previous[several], np.int32), np.empty(rows + several, np.int32)
    labels = np.empty(rows, np.int32)
    for m in range(several):
        steps, slots, side = table[m, STEPS], table[m, SLOTS], table[m, MEMBERS]
        position, row = previous[m], table[m, ROW]
        for s in range(side):  # one sentence after the other, so tokens are read in order
            token = bounds[which[table[m, FIRST] + s]] + table[m, STEP_BEGIN]
            for t in range(steps):
                words[position + t * side + s] = inputs[token + t]
                labels[row + t * slots + s] = outputs[token + t + 1] if labelled else GAP
        row_bounds[row + m] = 0
        for t in range(steps):
            for s in range(slots):
                row_bounds[row + m + t * slots + s + 1] = t * side + min(s + 1, side)
            for s in range(side, slots):
                labels[row + t * slots + s] = GAP
    return words, row_bounds, previous, labels


@kernel
def lay_bags(
    table: Int64s,
    which: Int64s,
    bounds: Int64s,
    inputs: Int32s,
    outputs: Int32s,
    words: Int64s,
    offsets: Int64s,
    vocabulary: Int,
):
    """A bag of words a cell: those of the tokens `offsets` away, outside of the sentence of its first or last token.

    Token i has the words inputs[words[i]:words[i+1]], or inputs[i] alone if `words` is empty; those of offset number k
    are numbered from k * vocabulary on.
    Returns, as `lay_words`, columns, row bounds and words before each piece, and labels int32[rows] with GAP where
    there is no token. Pieces have as many slots as sentences.

    In range: a token outside of its sentence is its first or last one; columns has room for one cell more.
    """
    several, several_offsets = len(table) - 1, len(offsets)
    rows, single = table[several, ROW], len(words) == 0
    previous, row_bounds = np.zeros(several + 1, np.int64), np.empty(rows + several, np.int32)
    labels = np.empty(rows, np.int32)
    firsts, lasts = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
    for m in range(several):
        previous[m + 1] = previous[m]
        for i in range(table[m, FIRST], table[m + 1, FIRST]):
            first, count = bounds[which[i]], bounds[which[i] + 1] - bounds[which[i]]
            firsts[i], lasts[i] = first, first + count - 1
            if single:
                previous[m + 1] += count * several_offsets
                continue
            for offset in offsets:
                front, behind = min(max(-offset, 0), count), min(max(offset, 0), count)
                previous[m + 1] += front * (words[first + 1] - words[first])
                previous[m + 1] += behind * (words[first + count] - words[first + count - 1])
                if front + behind < count:
                    previous[m + 1] += words[first + count - behind + offset] - words[first + front + offset]
    columns = np.empty(previous[several] + several_offsets, np.int32)
    for m in range(several):
        row, position = table[m, ROW], previous[m]
        row_bounds[row + m] = 0
        for i in range(table[m, FIRST], table[m + 1, FIRST]):  # sentences are shuffled: the next are not in the cache
            later = min(i + _AHEAD, len(which) - 1)
            for token in range(firsts[later], lasts[later] + _LINE, _LINE):
                prefetch(inputs, token)
                prefetch(outputs, token)
        for t in range(table[m, STEPS]):
            for i in range(table[m, FIRST], table[m + 1, FIRST]):
                first, last = firsts[i], lasts[i]
                present = first + t <= last
                label = outputs[min(first + t, last)]
                labels[row] = label if present else GAP
                if single:  # without a branch, of which the processor would guess every third wrong
                    for number in range(several_offsets):
                        token = min(max(first + t + offsets[number], first), last)
                        columns[position + number] = inputs[token] + number * vocabulary
                    position += several_offsets * present
                elif present:
                    for number in range(several_offsets):
                        token = min(max(first + t + offsets[number], first), last)
                        for word in range(words[token], words[token + 1]):
                            columns[position] = inputs[word] + number * vocabulary
                            position += 1
                row += 1
                row_bounds[row + m] = position - previous[m]
    return columns[: previous[several]], row_bounds, previous, labels


@brief
def single_entries(table: Int64s, labels: Int32s):
    """The labels that are no gaps, with the row bounds and the labels before each piece, as `lay_words` has words."""
    several = len(table) - 1
    previous, row_bounds = np.zeros(several + 1, np.int64), np.empty(len(labels) + several, np.int32)
    columns, position = np.empty(len(labels), np.int32), np.int64(0)
    for m in range(several):
        row_bounds[table[m, ROW] + m] = 0
        for row in range(table[m, ROW], table[m + 1, ROW]):
            columns[position] = labels[row]
            position += labels[row] != GAP
            row_bounds[row + m + 1] = position - previous[m]
        previous[m + 1] = position
    return columns[:position], row_bounds, previous
