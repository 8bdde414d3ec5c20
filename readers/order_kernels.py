"""Kernels for the order of the data: MT19937-64, the two shuffles, the windows, taking sequences up to a limit."""

from __future__ import annotations

import numpy as np

from .jit import kernel

U64 = np.uint64
_UPPER, _LOWER, _MATRIX = U64(0xFFFFFFFF80000000), U64(0x7FFFFFFF), U64(0xB5026F5AA96619E9)
_MULTIPLIER = U64(6364136223846793005)
_M1, _M2, _M3 = U64(0x5555555555555555), U64(0x71D67FFFEDA60000), U64(0xFFF7EEE000000000)
_S29, _S17, _S37, _S43, _S62, _ONE = U64(29), U64(17), U64(37), U64(43), U64(62), U64(1)


@kernel
def mt_seed(seed):
    """State of MT19937-64: uint64[313]; the last element is the read position."""
    state = np.empty(313, np.uint64)
    state[0] = seed
    for i in range(1, 312):
        before = state[i - 1]
        state[i] = _MULTIPLIER * (before ^ (before >> _S62)) + np.uint64(i)
    state[312] = 312
    return state


@kernel
def _twist(state):
    for i in range(312):
        x = (state[i] & _UPPER) | (state[(i + 1) % 312] & _LOWER)
        y = x >> _ONE
        if x & _ONE:
            y ^= _MATRIX
        state[i] = state[(i + 156) % 312] ^ y
    state[312] = 0


@kernel
def mt_next(state):
    """Next 64 random bits."""
    if state[312] >= 312:
        _twist(state)
    x = state[np.int64(state[312])]
    state[312] += _ONE
    x ^= (x >> _S29) & _M1
    x ^= (x << _S17) & _M2
    x ^= (x << _S37) & _M3
    return x ^ (x >> _S43)


@kernel
def _draw(state, low, high):
    return low + np.int64(mt_next(state) % np.uint64(high - low))


@kernel
def shuffle_all(seed, count):
    """0..count-1 shuffled, every draw over the whole range (the original's chunk order). int64[count]."""
    state = mt_seed(seed)
    order = np.arange(count)
    for i in range(count):
        j = _draw(state, 0, count)
        order[i], order[j] = order[j], order[i]
    return order


@kernel
def shuffle_range(seed, values, begin, end):
    """Fisher-Yates on values[begin:end], in place."""
    state = mt_seed(seed)
    for i in range(begin, end):
        j = _draw(state, i, end)
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
def shuffle_sequences(seed, first, window, home, rank):
    """The rolling-window shuffle, in place.

    Placed chunk c owns positions first[c]..first[c+1]; window int64[C, 2]. home[t] (placed chunk) and rank[t]
    (sequence inside it) say what stands at position t.
    """
    state = mt_seed(seed)
    chunks = len(first) - 1
    row = np.empty(first[chunks], np.int32)
    for c in range(chunks):
        row[first[c] : first[c + 1]] = c
    done = 0
    for reached in range(chunks):
        end = max(window[reached, 1], done)
        while end < chunks and window[end, 0] <= reached:
            end += 1
        for t in range(first[done], first[end]):
            c = row[t]
            low, high = first[window[c, 0]], first[window[c, 1]]
            while True:
                j = _draw(state, low, high)
                d = row[j]
                if window[c, 0] <= home[j] < window[c, 1] and window[d, 0] <= home[t] < window[d, 1]:
                    break
            home[t], home[j] = home[j], home[t]
            rank[t], rank[j] = rank[j], rank[t]
        done = end


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
