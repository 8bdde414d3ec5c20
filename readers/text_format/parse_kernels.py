"""The kernel that turns the bytes of sequences into flat arrays, counting what is malformed on the way.

One call parses whole sequences. When an array is full it undoes the sequence at hand and returns, the caller gives
longer arrays and calls again. Every buffer ends in LF, so that no look at the next byte needs a bound.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from .number_kernels import BAD, OK, SLOW, any_real, real

# Return codes.
DONE, VALUES_FULL, SAMPLES_FULL, EVENTS_FULL, SLOW_FULL, BUDGET, MISSING = 0, 1, 2, 3, 4, 5, 6
# Elements of the state array, int64.
SEQUENCE, VALUES, EVENTS, ERRORS, SLOWS, QUIET = 0, 1, 2, 3, 4, 5
# Kinds of events (first column of the events array; then position, sequence, stream).
JUNK, PREFIX, LONG_NAME, VALUE, TOO_MANY, INDEX, RANGE, EMPTY_ROW, MORE, LESS, NO_SAMPLE = range(11)
UNKNOWN, SHORT, REPEATED = range(11, 14)
_QUIET_LIMIT = 64


@kernel
def _skip(buffer, p):
    """Position of the next `|` or LF."""
    c = buffer[p]
    while c != 124 and c != 10:
        p += 1
        c = buffer[p]
    return p


@kernel
def _find_stream(buffer, p, length, names, name_starts, guess):
    """Number of the stream called buffer[p : p+length], trying `guess` first; -1 if there is none."""
    streams = len(name_starts) - 1
    for k in range(streams):
        s = guess + k
        if s >= streams:
            s -= streams
        first = name_starts[s]
        if name_starts[s + 1] - first == length:
            i = 0
            while i < length and names[first + i] == buffer[p + i]:
                i += 1
            if i == length:
                return s
    return -1


@kernel
def _note_slow(slows, state, begin, end, element):
    """Remember a number that the caller has to convert."""
    k = state[SLOWS]
    if k < len(slows):
        slows[k, 0], slows[k, 1], slows[k, 2] = begin, end, element
    state[SLOWS] = k + 1


@kernel
def _dense(buffer, p, dim, values, at, slows, state):
    """Values of a dense sample into values[at:]; (position, number of values or -1 - kind of error)."""
    n = 0
    c = buffer[p]
    while True:
        while c == 32 or c == 9:
            p += 1
            c = buffer[p]
        if c == 124 or c < 32 or c >= 128:
            return p, n
        begin = p
        p, value, status = real(buffer, p)
        if status != OK:
            p, value, status = any_real(buffer, begin)
            if status == BAD:
                return p, -1 - VALUE
            if status == SLOW:
                _note_slow(slows, state, begin, p, at + n)
        if n == dim:
            return begin, -1 - TOO_MANY
        c = buffer[p]
        if c != 32 and c > 31 and c < 128 and c != 124 and c != 45 and c != 43:
            return p, -1 - VALUE
        values[at + n] = value
        n += 1


@kernel
def _sparse(buffer, p, dim, values, indices, at, slows, state):
    """Entries of a sparse sample; as _dense, or number -1 - 100 if values is full."""
    n = 0
    room = len(values) - at
    while True:
        c = np.int64(buffer[p])
        if c == 32 or c == 9:
            p += 1
        elif 48 <= c <= 57:
            begin = p
            index = np.int64(0)
            while 48 <= c <= 57:
                if index < 1000000000000:
                    index = index * 10 + c - 48
                p += 1
                c = np.int64(buffer[p])
            if c != 58:
                return p, -1 - INDEX
            if index >= dim:
                return begin, -1 - RANGE
            begin = p + 1
            p, value, status = real(buffer, begin)
            if status != OK:
                p, value, status = any_real(buffer, begin)
                if status == BAD:
                    return p, -1 - VALUE
            c = np.int64(buffer[p])
            if c > 32 and c < 128 and c != 124:
                return p, -1 - VALUE
            if n >= room:
                return p, -1 - 100
            if status == SLOW:
                _note_slow(slows, state, begin, p, at + n)
            values[at + n] = value
            indices[at + n] = index
            n += 1
        elif c == 124 or c < 32 or c >= 128:
            return p, n
        else:
            return p, -1 - INDEX


@kernel
def _note(events, state, kind, p, sequence, stream):
    """Record an event; counted kinds add to the errors."""
    if kind >= UNKNOWN:
        if state[QUIET] >= _QUIET_LIMIT:
            return
        state[QUIET] += 1
    else:
        state[ERRORS] += 1
    e = state[EVENTS]
    if e < len(events):
        events[e, 0], events[e, 1], events[e, 2], events[e, 3] = kind, p, sequence, stream
    state[EVENTS] = e + 1


@kernel
def parse_sequences(
    buffer, begins, ends, nominal, names, name_starts, dims, sparse, defining, budget,
    values, indices, starts, counts, bounds, events, slows, state,
):  # fmt: skip
    """Parse sequences state[SEQUENCE].. of buffer[begins[k]:ends[k]].

    buffer uint8, begins and ends int64[n], nominal int32[n] or [1]; names uint8 of all streams, name_starts int64[s+1],
    dims int64[s], sparse and defining bool[s]; budget: counted errors allowed.
    Filled: values float, indices int32 (as long as values if any stream is sparse), starts int64[s, m] and
    counts int32[s, m] per sample, bounds int64[s, n+1] samples before each sequence, events int64[e, 4],
    slows int64[k, 3] (begin, end, element) of numbers that the caller has to convert.
    """
    streams = len(dims)
    saved = np.empty(6, np.int64)
    used = np.empty(streams, np.int64)
    longest = 0
    for s in range(streams):
        longest = max(longest, name_starts[s + 1] - name_starts[s])
    same = len(nominal) == 1
    capacity = starts.shape[1]
    while state[SEQUENCE] < len(begins):
        k = state[SEQUENCE]
        saved[:] = state
        for s in range(streams):
            used[s] = bounds[s, k]
        full = DONE
        at = state[VALUES]
        p, end = begins[k], ends[k]
        guess = 0
        while p < end and full == DONE:
            row = p
            accepted = 0
            while 48 <= buffer[p] <= 57:
                p += 1
            while True:
                c = np.int64(buffer[p])
                if c == 124:
                    p += 1
                    name = p
                    c = np.int64(buffer[p])
                    if c == 35:
                        p = _skip(buffer, p)
                        continue
                    while c > 32 and c < 127 and c != 124:
                        p += 1
                        c = np.int64(buffer[p])
                    if p == name:
                        _note(events, state, PREFIX, name - 1, k, -1)
                        p = _skip(buffer, p)
                        continue
                    s = _find_stream(buffer, name, p - name, names, name_starts, guess)
                    if s < 0:
                        _note(events, state, UNKNOWN if p - name <= longest else LONG_NAME, name, k, -1)
                        p = _skip(buffer, p)
                        continue
                    guess = s + 1 if s + 1 < streams else 0
                    if used[s] >= capacity:
                        full = SAMPLES_FULL
                        break
                    slow = state[SLOWS]
                    if sparse[s]:
                        p, n = _sparse(buffer, p, dims[s], values, indices, at, slows, state)
                    elif at + dims[s] > len(values):
                        full = VALUES_FULL
                        break
                    else:
                        p, n = _dense(buffer, p, dims[s], values, at, slows, state)
                    if n < 0:
                        if n == -101:
                            full = VALUES_FULL
                            break
                        state[SLOWS] = slow
                        _note(events, state, -1 - n, p, k, s)
                        p = _skip(buffer, p)
                        continue
                    starts[s, used[s]] = at
                    if sparse[s]:
                        counts[s, used[s]] = n
                    elif n < dims[s]:
                        values[at + n : at + dims[s]] = 0
                        n = dims[s]
                        _note(events, state, SHORT, name - 1, k, s)
                    at += n
                    used[s] += 1
                    accepted += 1
                elif c == 10:
                    p += 1
                    break
                elif c <= 32 or c >= 127:
                    p += 1
                else:
                    _note(events, state, JUNK, p, k, -1)
                    p = _skip(buffer, p)
            if full == DONE:
                if accepted == 0:
                    _note(events, state, EMPTY_ROW, row, k, -1)
                elif accepted > streams:
                    _note(events, state, REPEATED, row, k, -1)
                if state[ERRORS] > budget:
                    full = BUDGET
        if full == DONE:
            want = nominal[0] if same else nominal[k]
            most = 0
            for s in range(streams):
                have = used[s] - bounds[s, k]
                if have == 0:
                    _note(events, state, NO_SAMPLE, begins[k], k, s)
                    full = MISSING
                    break
                if defining[s]:
                    most = max(most, have)
            if full == DONE and most != want:
                _note(events, state, MORE if most > want else LESS, begins[k], k, -1)
                if state[ERRORS] > budget:
                    full = BUDGET
        if state[EVENTS] > len(events):
            full = EVENTS_FULL
        elif state[SLOWS] > len(slows):
            full = SLOW_FULL
        if full != DONE:
            if full < BUDGET:
                state[:] = saved
            return full
        for s in range(streams):
            bounds[s, k + 1] = used[s]
        state[VALUES] = at
        state[SEQUENCE] = k + 1
    return DONE
