"""Kernels for the order of the data: the shuffles, the windows, taking sequences up to a limit.

The shuffles draw from the generator whose state they are given, see `random_kernels`.
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import brief, kernel
from cntkpy.readers.kernels.kernel_types import Int, Int32s, Int64s, Ints
from cntkpy.readers.kernels.random_kernels import State, draw


@kernel
def shuffle_all(state: State, values: Ints):
    """Shuffle in place, every draw over the whole range (as CNTK does, and not Fisher-Yates). Draws are in range."""
    count = len(values)
    for i in range(count):
        j = draw(state, 0, count)
        values[i], values[j] = values[j], values[i]


@kernel
def shuffle_range(state: State, values: Int64s, begin: Int, end: Int):
    """Fisher-Yates on values[begin:end], in place. The only caller gives the whole range; draws are in range."""
    for i in range(begin, end):
        j = draw(state, i, end)
        values[i], values[j] = values[j], values[i]


@kernel
def windows_in_samples(starts: Int64s, window: Int):
    """Window [begin, end) of placed chunks around each placed chunk, `starts` int64[C+1] in samples.

    In range: begin stays at or below c and end at or below C, whatever the window and the lengths.
    """
    count = len(starts) - 1
    half = window // 2
    result = np.empty((count, 2), np.int64)
    begin, end = 0, 1
    for c in range(count):
        while begin < c and starts[c] - starts[begin] > half:
            begin += 1
        begin = min(begin, c)
        end = max(end, c + 1)
        while end < count and starts[end + 1] - starts[c] < half:
            end += 1
        result[c, 0], result[c, 1] = begin, end
    return result


@kernel
def shuffle_sequences(state: State, first: Int64s, window: Int64s, home: Int32s, rank: Ints):
    """The rolling-window shuffle, in place.

    Placed chunk c owns positions first[c]..first[c+1]; window int64[C, 2]. home[t] (placed chunk) and rank[t]
    (sequence inside it) say what is at position t.

    In range: windows are 0 <= begin <= c < end <= C (see `windows_in_samples`), so draws are positions; home and rank
    are as long as first[C] and hold numbers of placed chunks only.
    """
    chunks = len(first) - 1
    row = np.empty(first[chunks], np.int32)
    for c in range(chunks):
        row[first[c] : first[c + 1]] = c
    for t in range(first[chunks]):
        c = row[t]
        low, high = int(first[window[c, 0]]), int(first[window[c, 1]])
        while True:
            j = draw(state, low, high)
            d = row[j]
            if window[c, 0] <= home[j] < window[c, 1] and window[d, 0] <= home[t] < window[d, 1]:
                break
        home[t], home[j] = home[j], home[t]
        rank[t], rank[j] = rank[j], rank[t]


@kernel
def number_places(first: Int64s, places: Int64s, values: Int32s):
    """The sequences of placed chunks, one after the other, into `values`. first: sequences before each chunk.

    In range: `places` is a permutation of the chunks and `values` as long as first[C].
    """
    t = 0
    for c in places:
        for number in range(first[c], first[c + 1]):
            values[t] = number
            t += 1


@kernel
def number_ranks(first: Int64s, places: Int64s, home: Int32s, rank: Ints):
    """From (placed chunk, sequence inside it) to the number of the sequence, in place of `rank`.

    In range: home holds numbers of placed chunks, `places` those of the chunks of `first`.
    """
    for t in range(len(rank)):
        rank[t] += first[places[home[t]]]


@kernel
def take(
    lengths: Ints,
    begin: Int,
    count: Int,
    owner: Int32s,
    workers: Int,
    rank: Int,
    minibatch_size: Int,
    worker_size: Int,
    epoch_left: Int,
    at_least_one: bool,
    together: bool,
):
    """Sequences begin..end-1 of `count` that go into one minibatch. Returns end, samples taken, samples of this worker.

    lengths int32[count] or uint8[count], or [1] when all have the same length; sequence t belongs to this worker iff
    owner[t] % workers == rank (owner empty: t itself). at_least_one: the first sequence is taken whatever its length;
    together: the first of all workers, else the first of this one.

    In range: t runs from `begin`, which is found in the same table, up to `count`, the length of lengths and owner.
    """
    same = len(lengths) == 1
    taken, local_taken = 0, 0
    t = begin
    while t < count:
        length = lengths[0] if same else lengths[t]
        local = workers == 1 or (owner[t] if len(owner) else t) % workers == rank
        if not at_least_one:
            if taken + length > minibatch_size:
                break
            if local and local_taken + length > worker_size:
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


@brief
def take_several(
    lengths: Ints,
    begin: Int,
    count: Int,
    minibatch_size: Int,
    epoch_left: Int,
    cuts_at_epoch_end: bool,
    fills_up: bool,
    cross_sweeps: bool,
    most: Int,
    samples: Int,
):
    """The sequences begin.. of `count` in minibatches of at most `minibatch_size` samples, at least one sequence each.

    lengths as for `take`. Stops after `most` minibatches, at the end of the epoch (after epoch_left samples) or of the
    sweep (cross_sweeps: before the minibatch that reaches it), and before one that more than `samples` samples precede.
    cuts_at_epoch_end: no sequence is taken that begins at or after the end of the epoch; fills_up: nor one that ends
    after it, but for the first of a minibatch. Returns int64[M+1] with the sequences before each minibatch, int64[M]
    with the samples up to the end of each.

    In range: t is below `count`, the length of lengths; m is below `most`, for which there is room.
    """
    same = len(lengths) == 1
    cuts, taken = np.zeros(most + 1, np.int64), np.empty(most, np.int64)
    t, total, m = begin, 0, 0
    while m < most and t < count and total < epoch_left and total <= samples:
        first, got, left = t, 0, epoch_left - total
        room = min(minibatch_size, left) if fills_up else minibatch_size
        while t < count and not (cuts_at_epoch_end and got >= left):
            length = lengths[0] if same else lengths[t]
            if t > first and got + length > room:
                break
            got += length
            t += 1
        if cross_sweeps and t == count:
            break
        total += got
        taken[m] = total
        m += 1
        cuts[m] = t - begin
    return cuts[: m + 1], taken[:m]


@brief
def count_up(begin: Int, end: Int):
    """begin .. end-1, int64. NumPy's arange gives the interpreter lock up."""
    out = np.empty(end - begin, np.int64)
    for i in range(end - begin):
        out[i] = begin + i
    return out


@brief
def by_chunk(first: Int64s, sequences: Int64s):
    """Sort sequences by their chunks, int64[C+1] sequences before each.

    Returns the K chunks in ascending order; int64[K+1], where those of each begin in the other two: the numbers within
    the chunk, and the places in `sequences`, both int64[n]. No chunk (K = 0): there is a sequence that no chunk has.

    In range: a sequence outside of the chunk at hand is checked against all of them before it is looked up, so c is
    always a chunk; the rest counts what was found.
    """
    n, c = len(sequences), 0
    chunk = np.empty(n, np.int64)
    low, high = len(first), 0
    for i in range(n):
        if not first[c] <= sequences[i] < first[c + 1]:
            if not 0 <= sequences[i] < first[-1]:
                return chunk[:0], chunk[:0], chunk[:0], chunk[:0]
            c, end = 0, len(first) - 1  # by hand: NumPy's search takes half a second to compile
            while end - c > 1:
                middle = (c + end) >> 1
                if first[middle] <= sequences[i]:
                    c = middle
                else:
                    end = middle
        chunk[i] = c
        low, high = min(low, c), max(high, c)
    begin = np.zeros(high - low + 2, np.int64)
    for i in range(n):
        begin[chunk[i] - low + 1] += 1
    used, bounds, some = np.empty(high - low + 1, np.int64), np.zeros(high - low + 2, np.int64), 0
    for c in range(high - low + 1):
        if begin[c + 1]:
            used[some], bounds[some + 1] = c + low, bounds[some] + begin[c + 1]
            some += 1
        begin[c + 1] += begin[c]
    within, where = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        position = begin[chunk[i] - low]
        within[position], where[position] = sequences[i] - first[chunk[i]], i
        begin[chunk[i] - low] += 1
    return used[:some], bounds[: some + 1], within, where
