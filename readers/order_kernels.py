"""Kernels for the order of the data: the shuffles, the windows, taking sequences up to a limit.

The shuffles draw from the generator whose state they are given, see `random_kernels`.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .random_kernels import draw


@kernel
def shuffle_all(state, values):
    """Shuffle in place, every draw over the whole range (as the original does, and not Fisher-Yates)."""
    count = len(values)
    for i in range(count):
        j = draw(state, 0, count)
        values[i], values[j] = values[j], values[i]


@kernel
def shuffle_range(state, values, begin, end):
    """Fisher-Yates on values[begin:end], in place."""
    for i in range(begin, end):
        j = draw(state, i, end)
        values[i], values[j] = values[j], values[i]


@kernel
def windows_in_samples(starts, window):
    """Window [begin, end) of placed chunks around each placed chunk, `starts` int64[C+1] in samples."""
    count = len(starts) - 1
    half = window // 2
    result = np.empty((count, 2), np.int64)
    begin, end = 0, 1
    for c in range(count):
        while starts[c] - starts[begin] > half:
            begin += 1
        begin = min(begin, c)
        end = max(end, c + 1)
        while end < count and starts[end + 1] - starts[c] < half:
            end += 1
        result[c, 0], result[c, 1] = begin, end
    return result


@kernel
def shuffle_sequences(state, first, window, home, rank):
    """The rolling-window shuffle, in place.

    Placed chunk c owns positions first[c]..first[c+1]; window int64[C, 2]. home[t] (placed chunk) and rank[t]
    (sequence inside it) say what stands at position t.
    """
    chunks = len(first) - 1
    row = np.empty(first[chunks], np.int32)
    for c in range(chunks):
        row[first[c] : first[c + 1]] = c
    for t in range(first[chunks]):
        c = row[t]
        low, high = first[window[c, 0]], first[window[c, 1]]
        while True:
            j = draw(state, low, high)
            d = row[j]
            if window[c, 0] <= home[j] < window[c, 1] and window[d, 0] <= home[t] < window[d, 1]:
                break
        home[t], home[j] = home[j], home[t]
        rank[t], rank[j] = rank[j], rank[t]


@kernel
def number_places(first, places, values):
    """The sequences of placed chunks, one behind the other, into `values`. first: sequences before each chunk."""
    t = 0
    for c in places:
        for number in range(first[c], first[c + 1]):
            values[t] = number
            t += 1


@kernel
def number_ranks(first, places, home, rank):
    """From (placed chunk, sequence inside it) to the number of the sequence, in place of `rank`."""
    for t in range(len(rank)):
        rank[t] += first[places[home[t]]]


@kernel
def take(
    lengths, begin, count, owner, workers, rank, global_limit, local_limit, epoch_left, at_least_one, together
):  # fmt: skip
    """Sequences begin..end-1 of `count` that go into one minibatch. Returns end, samples taken, samples of this worker.

    lengths int32[count], or [1] when all have the same length; sequence t belongs to this worker iff
    owner[t] % workers == rank (owner empty: t itself). at_least_one: the first sequence is taken whatever its length;
    together: the first of all workers, else the first of this one.
    """
    same = len(lengths) == 1
    taken, local_taken = 0, 0
    t = begin
    while t < count:
        length = lengths[0] if same else lengths[t]
        local = workers == 1 or (owner[t] if len(owner) else t) % workers == rank
        if not at_least_one:
            if taken + length > global_limit:
                break
            if local and local_taken + length > local_limit:
                break
        if taken >= epoch_left:
            break
        taken += length
        if local:
            local_taken += length
        if local or together:
            at_least_one = False
        t += 1
    return t, taken, local_taken
