"""The kernel that finds the sequences of a text file: one pass over whole lines, eight bytes at a time."""

from __future__ import annotations

import numpy as np

from ..jit import kernel

# Elements of the state array, int64.
SEQUENCES, LINE, NUMBERED, LAST_KEY, POSITION = 0, 1, 2, 3, 4
DONE, FULL, NO_ID, OVERFLOW = 0, 1, 2, 3

_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_LF8, _0, _7, _8 = np.uint64(0x0A0A0A0A0A0A0A0A), np.uint64(0), np.uint64(7), np.uint64(8)
_LIMIT = np.uint64((2**64 - 1) // 10)


@kernel
def end_of_line(buffer, words, p, end):
    """Position of the first LF at or after p, or `end`. words: uint64 view of buffer[: 8 * len(words)]."""
    stop = min((p + 7) & ~7, end)
    while p < stop:
        if buffer[p] == 10:
            return p
        p += 1
    w = p >> 3
    last = min(end >> 3, len(words))
    while w < last:
        x = words[w] ^ _LF8
        if (x - _ONES) & ~x & _HIGH:
            break
        w += 1
    p = max(p, w << 3)
    while p < end:
        if buffer[p] == 10:
            return p
        p += 1
    return end


@kernel
def _has_stream(buffer, p, end, name):
    """Whether |name followed by a delimiter, `|` or the end stands in buffer[p:end]."""
    n = len(name)
    while p < end:
        if buffer[p] == 124 and p + n < end + 1:
            i = 0
            while i < n and p + 1 + i < end and buffer[p + 1 + i] == name[i]:
                i += 1
            if i == n:
                c = buffer[p + 1 + n] if p + 1 + n < end else np.uint8(10)
                if c <= 32 or c >= 127 or c == 124:
                    return True
        p += 1
    return False


@kernel
def find_sequences(buffer, words, begin, end, at, main, keys, samples, offsets, ends, state):
    """Add the lines buffer[begin:end] (whole lines; buffer[0] is byte `at` of the file) to the index.

    keys uint64[n], samples int32[n], offsets int64[n], ends int64[n] are filled from state[SEQUENCES] on.
    main uint8[k]: name of the stream whose lines count (empty: every line counts).
    Returns DONE, FULL (give longer arrays and call again from state[POSITION]) or an error.
    """
    p = begin
    count = state[SEQUENCES]
    capacity = len(keys)
    numbered = state[NUMBERED] == 1
    while p < end:
        state[POSITION] = p
        fresh = not numbered
        key = np.uint64(state[LINE])
        q = p
        if numbered:
            c = np.int64(buffer[p])
            if 48 <= c <= 57:
                key = np.uint64(0)
                while 48 <= c <= 57:
                    if key > _LIMIT:
                        return OVERFLOW
                    ten = key * np.uint64(10)
                    key = ten + np.uint64(c - 48)
                    if key < ten:
                        return OVERFLOW
                    q += 1
                    c = np.int64(buffer[q]) if q < end else np.int64(-1)
                fresh = c >= 0 and (count == 0 or key != keys[count - 1])
            if not fresh and count == 0:
                return NO_ID
        if fresh:
            if count == capacity:
                return FULL
            keys[count] = key
            samples[count] = 0
            offsets[count] = at + p
            count += 1
            state[SEQUENCES] = count
        q = end_of_line(buffer, words, q, end)
        if len(main) == 0 or _has_stream(buffer, p, q, main):
            samples[count - 1] += 1
        p = min(q + 1, end)
        ends[count - 1] = at + p
        state[LINE] += 1
    state[POSITION] = p
    return DONE


@kernel
def form_chunks(offsets, sizes, maximum, first):
    """First sequence of every chunk into first int64[n + 1]; returns the number of chunks."""
    chunks = 0
    start = np.int64(0)
    for i in range(len(offsets)):
        if chunks == 0 or offsets[i] + sizes[i] - start > maximum:
            first[chunks] = i
            start = offsets[i]
            chunks += 1
    first[chunks] = len(offsets)
    return chunks
