"""Fallbacks of `lay_kernels` in NumPy, with the same arguments and results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .codes import FIRST, GAP, GROUP, MEMBERS, ROW, SLOTS, STEP_BEGIN, STEPS

Array = np.ndarray


def plan_pieces(
    bounds: Array,
    members: Array,
    starts: Array,
    group: int,
    step: int,
    unlabelled: int,
    most_steps: int,
    slots: int,
    most: int,
    cells: int,
) -> Array:
    """Return the next pieces."""
    ends = starts[group : group + most + 1].tolist()
    several = members[ends[0] : ends[-1]]
    lengths = (bounds[several + 1] - bounds[several] - unlabelled).tolist()
    table, first, row, position = list[list[int]](), 0, 0, group
    while len(table) < most and position < len(starts) - 1 and (not table or row <= cells):
        own_lengths = lengths[ends[position - group] - ends[0] : ends[position - group + 1] - ends[0]]
        longest = max(0, *own_lengths)
        steps = min(longest - step, most_steps)
        done = step + steps == longest
        if table and done and position == len(starts) - 2:
            break
        side, samples = slots or len(own_lengths), sum(min(max(item - step, 0), steps) for item in own_lengths)
        table.append([position, step, steps, longest, side, len(own_lengths), samples, first, row])
        first, row = first + len(own_lengths), row + steps * side
        position, step = (position + 1, 0) if done else (position, step + steps)
    return np.array([*table, [0] * FIRST + [first, row]], np.int64)


def _counted(sizes: Array) -> tuple[Array, Array]:
    """For sizes [2, 3]: the parts [0, 0, 1, 1, 1] and the places in them [0, 1, 0, 1, 2]."""
    part = np.repeat(np.arange(len(sizes)), sizes)
    return part, np.arange(len(part)) - (np.cumsum(sizes) - sizes)[part]


def sequences_of(table: Array, bounds: Array, members: Array, starts: Array, unlabelled: int) -> tuple[Array, Array]:
    """Number, slot, begin and end of the sentences of all pieces, and the sentences."""
    piece, i = _counted(table[:-1, MEMBERS])
    which, begin = members[starts[table[piece, GROUP]] + i], table[piece, STEP_BEGIN]
    return np.stack([i, i, -begin, bounds[which + 1] - bounds[which] - unlabelled - begin], axis=1), which


class _Cells(NamedTuple):
    """The rows of all pieces: the piece of each, its step, whether it has a word, and of those that do the sentence."""

    piece: Array
    step: Array
    present: Array
    which: Array


def _cells(table: Array, which: Array, lengths: Array | None) -> _Cells:
    """lengths: steps of the sentences `which`; None: all of a piece have as many."""
    piece, row = _counted(table[:-1, STEPS] * table[:-1, SLOTS])
    step, slot = np.divmod(row, table[piece, SLOTS])
    place = table[piece, FIRST] + slot
    present = slot < table[piece, MEMBERS]
    if lengths is not None:
        present[present] = step[present] < lengths[place[present]]
    return _Cells(piece, step, present, which[place[present]])


def _entries(table: Array, piece: Array, counts: Array) -> tuple[Array, Array]:
    """Row bounds of the pieces one after the other, each from 0 on, and the entries before each.

    counts: entries of each row.
    """
    several = len(table) - 1
    total = np.append(0, np.cumsum(counts))
    previous = total[table[:, ROW]]
    row_bounds = np.zeros(len(counts) + several, np.int32)
    row_bounds[np.arange(len(counts)) + piece + 1] = total[1:] - previous[piece]
    return row_bounds, previous


def lay_words(
    table: Array, which: Array, bounds: Array, inputs: Array, outputs: Array, labelled: bool
) -> tuple[Array, Array, Array, Array]:
    """Return one word a cell."""
    cells = _cells(table, which, None)
    token = bounds[cells.which] + (cells.step + table[cells.piece, STEP_BEGIN])[cells.present]
    labels = np.full(len(cells.piece), GAP, np.int32)
    if labelled:
        labels[cells.present] = outputs[token + 1]
    return inputs[token], *_entries(table, cells.piece, cells.present), labels


def lay_bags(
    table: Array,
    which: Array,
    bounds: Array,
    inputs: Array,
    outputs: Array,
    words: Array,
    offsets: Array,
    vocabulary: int,
) -> tuple[Array, Array, Array, Array]:
    """Return a bag of words a cell."""
    words = words if len(words) else np.arange(len(inputs) + 1)
    cells = _cells(table, which, bounds[which + 1] - bounds[which])
    begin, step = bounds[cells.which], cells.step[cells.present]
    last = bounds[cells.which + 1] - begin - 1
    labels = np.full(len(cells.piece), GAP, np.int32)
    labels[cells.present] = outputs[begin + step]
    tokens = begin[:, None] + np.clip(step[:, None] + offsets, 0, last[:, None])
    sizes = words[tokens + 1] - words[tokens]
    bag, place = _counted(sizes.reshape(-1))
    columns = inputs[words[tokens.reshape(-1)[bag]] + place] + bag % max(len(offsets), 1) * vocabulary
    counts = np.zeros(len(cells.piece), np.int64)
    counts[cells.present] = sizes.sum(axis=1)
    return columns.astype(np.int32), *_entries(table, cells.piece, counts), labels


def single_entries(table: Array, labels: Array) -> tuple[Array, Array, Array]:
    """Return the labels that are no gaps."""
    present = labels != GAP
    piece = np.repeat(np.arange(len(table) - 1), np.diff(table[:, ROW]))
    return labels[present], *_entries(table, piece, present)
