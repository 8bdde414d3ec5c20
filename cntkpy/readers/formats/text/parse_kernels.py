"""The kernel that turns the bytes of sequences into flat arrays, counting what is malformed on the way.

One call parses whole sequences. When an array is full it undoes the sequence at hand and returns, the caller gives
longer arrays and calls again. Every buffer ends in LF, so that no look at the next byte needs a bound.
"""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import brief, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int32s, Int64s, Reals
from cntkpy.readers.kernels.number_kernels import BAD, OK, SLOW, any_real, real
from cntkpy.readers.kernels.words import after_digits, borrowed, byte_at, digits, word_at

from .events import (
    BUDGET,
    COMMENT,
    DONE,
    EMPTY_ROW,
    EVENTS_FULL,
    INDEX,
    JUNK,
    LESS,
    MORE,
    NOTHING,
    PREFIX,
    QUIET_LIMIT,
    RANGE,
    REPEATED,
    SAMPLES_FULL,
    SHORT,
    SLOW_FULL,
    TOO_MANY,
    UNKNOWN,
    VALUE,
    VALUES_FULL,
)
from .tables import Output, Streams, Text

# Elements of the state array, int64.
SEQUENCE, VALUES, EVENTS, ERRORS, SLOWS, QUIET = 0, 1, 2, 3, 4, 5
# Not plain literals, for which Numba would compile what they are given to once more.
_FIRST, _NO_STREAM = np.int64(0), np.int64(-1)
NO_ROOM = 100
# "0 0 0 0 " as a little-endian word; where its blanks are; what tells its digits.
_DIGITS_AND_BLANKS, _BLANKS = np.uint64(0x2030203020302030), np.uint64(0xFF00FF00FF00FF00)
_SIX, _HIGH = np.uint64(0x0076007600760076), np.uint64(0x0080008000800080)
_BYTE, _16 = np.uint64(0xFF), np.uint64(16)


@part
def _skip(p: Int):
    """Position of the next `|` or LF. In range: there is an LF after all text."""
    c = byte_at(p)
    while c != 124 and c != 10:
        p += 1
        c = byte_at(p)
    return p


@part
def _find_stream(p: Int, length: Int, names: Bytes, name_starts: Int64s, guess: Int):
    """Number of the stream called the bytes at p, trying `guess` first; -1 if there is none.

    In range: 0 <= guess < streams; bytes are compared only with a name as long as they are.
    """
    streams = len(name_starts) - 1
    for k in range(streams):
        s = guess + k
        if s >= streams:
            s -= streams
        first = name_starts[s]
        if name_starts[s + 1] - first == length:
            i = 0
            while i < length and names[first + i] == byte_at(p + i):
                i += 1
            if i == length:
                return s
    return -1


@part
def _note_slow(slows: Int64s, state: Int64s, begin: Int, end: Int, element: Int):
    """Remember a number that the caller has to convert. In range: noted if there is room, counted in any case."""
    k = state[SLOWS]
    if k < len(slows):
        slows[k, 0], slows[k, 1], slows[k, 2] = begin, end, element
    state[SLOWS] = k + 1


@part
def _dense(p: Int, dim: Int, values: Reals, filled: Int, slows: Int64s, state: Int64s):
    """Values of a dense sample into values[at:]; (position, number of values or -1 - kind of error).

    In range: the caller has seen that there is room for `dim` values, and n stays at or below dim; text: see `words`.
    """
    n = 0
    c = byte_at(p)
    while True:
        while c == 32 or c == 9:
            p += 1
            c = byte_at(p)
        if c == 124 or c < 32 or c >= 128:
            return p, n
        word = word_at(p) ^ _DIGITS_AND_BLANKS
        if word & _BLANKS == 0 and ((word + _SIX) | word) & _HIGH == 0 and n + 4 <= dim:  # four numbers of a digit each
            for i in range(4):
                values[filled + n + i] = np.int64(word & _BYTE)
                word >>= _16
            p += 8
            n += 4
            c = byte_at(p)
            continue
        begin = p
        p, value, status = real(p)
        if status != OK:
            p, value, status = any_real(begin)
            if status == BAD:
                return p, -1 - VALUE
            if status == SLOW:
                _note_slow(slows, state, begin, p, filled + n)
        if n == dim:
            return begin, -1 - TOO_MANY
        c = byte_at(p)
        if c != 32 and c > 31 and c < 128 and c != 124 and c != 45 and c != 43:
            return p, -1 - VALUE
        values[filled + n] = value
        n += 1


@part
def _sparse(p: Int, dim: Int, values: Reals, indices: Int32s, filled: Int, slows: Int64s, state: Int64s):
    """Entries of a sparse sample; as _dense, or -1 - NO_ROOM if values is full.

    In range: n is compared with the room in values, as long as indices, before every entry; an index that is given out
    is below `dim`.
    """
    n = 0
    room = len(values) - filled
    while True:
        c = byte_at(p)
        if c == 32 or c == 9:
            p += 1
        elif 48 <= c <= 57:
            begin = p
            count, number = digits(word_at(p))
            index = np.int64(number)
            p += count
            c = byte_at(p)
            while 48 <= c <= 57:
                if index < 1000000000000:
                    index = index * 10 + c - 48
                p += 1
                c = byte_at(p)
            if c != 58:
                return p, -1 - INDEX
            if index >= dim:
                return begin, -1 - RANGE
            begin = p + 1
            p, value, status = real(begin)
            if status != OK:
                p, value, status = any_real(begin)
                if status == BAD:
                    return p, -1 - VALUE
            c = byte_at(p)
            if c > 32 and c < 128 and c != 124:
                return p, -1 - VALUE
            if n >= room:
                return p, -1 - NO_ROOM
            if status == SLOW:
                _note_slow(slows, state, begin, p, filled + n)
            values[filled + n] = value
            indices[filled + n] = index
            n += 1
        elif c == 124 or c < 32 or c >= 128:
            return p, n
        else:
            return p, -1 - INDEX


@part
def _note(events: Int64s, state: Int64s, kind: Int, p: Int, sequence: Int, stream: Int):
    """Record an event; counted kinds add to the errors. In range: noted if there is room, counted in any case."""
    if kind == COMMENT:
        return
    if kind >= UNKNOWN:
        if state[QUIET] >= QUIET_LIMIT:
            return
        state[QUIET] += 1
    else:
        state[ERRORS] += 1
    e = state[EVENTS]
    if e < len(events):
        events[e, 0], events[e, 1], events[e, 2], events[e, 3] = kind, p, sequence, stream
    state[EVENTS] = e + 1


@part
def parse_sequences(text: Text, streams: Streams, output: Output, budget: Int, named: bool, end_of_file: Int):
    """Parse the sequences of a text from output.state[SEQUENCE] on.

    Args:
        text: The sequences.
        streams: The streams that count.
        output: Is filled.
        budget: Counted errors that are allowed.
        named: Whether keys are not numbers, and skipped.
        end_of_file: Where the buffer is at the end of a file without a last LF, else -1.

    In range: begins and ends lie in the buffer without its padding, as `parse` has checked, and a line ends at the
    padding at the latest (end_of_file is only compared with). Values, samples, events and slow numbers are compared
    with the room there is; begins, ends and nominal (or [1]) have n places, bounds n + 1.
    """
    begins, ends, nominal = text.begins, text.ends, text.nominal
    dims, sparse, defining = streams.dims, streams.sparse, streams.defining
    starts, counts, bounds = output.starts, output.counts, output.bounds
    several = len(dims)
    state = borrowed(output.state)
    saved = np.empty(len(state), np.int64)
    used = np.empty(several, np.int64)
    same = len(nominal) == 1
    capacity = starts.shape[1]
    base = text.buffer.ctypes.data
    cut = base + end_of_file if end_of_file >= 0 else np.int64(0)
    names, name_starts = borrowed(streams.names), borrowed(streams.starts)
    values, indices = borrowed(output.values), borrowed(output.indices)
    events, slows = borrowed(output.events), borrowed(output.slows)
    for k in range(state[SEQUENCE], len(begins)):
        for i in range(len(state)):
            saved[i] = state[i]
        for s in range(several):
            used[s] = bounds[s, k]
        full = DONE
        filled = state[VALUES]
        p, end = base + begins[k], base + ends[k]
        guess = _FIRST
        while p < end and full == DONE:
            row = p
            accepted = 0
            if named:
                if byte_at(p) > 32:
                    p = _skip(p)
            else:
                p = after_digits(p)
            while True:
                c = byte_at(p)
                if c == 10:
                    break
                if c != 124 and (c <= 32 or c >= 128):
                    p += 1
                    continue
                event, place, name, s = NOTHING, p, p, -1
                if c != 124:
                    event = JUNK
                else:
                    p += 1
                    name = p
                    c = byte_at(p)
                    while c > 32 and c < 127 and c != 124:
                        p += 1
                        c = byte_at(p)
                    if p == name or (p == cut and byte_at(name) != 35):
                        event, place = PREFIX, name - 1
                    elif byte_at(name) == 35:
                        event = COMMENT
                    else:
                        s = _find_stream(name, p - name, names, name_starts, guess)
                        if s < 0:
                            event, place = UNKNOWN, name
                if s >= 0:
                    guess = s + 1 if s + 1 < several else 0
                    if used[s] >= capacity:
                        full = SAMPLES_FULL
                        break
                    slow = state[SLOWS]
                    if sparse[s]:
                        p, n = _sparse(p, dims[s], values, indices, filled, slows, state)
                    elif filled + dims[s] > len(values):
                        n = -1 - NO_ROOM
                    else:
                        p, n = _dense(p, dims[s], values, filled, slows, state)
                    if n == -1 - NO_ROOM:
                        full = VALUES_FULL
                        break
                    if n == 0 and p == cut:
                        n = -1 - VALUE
                    if n < 0:
                        state[SLOWS] = slow
                        event, place = -1 - n, p
                    else:
                        starts[s, used[s]] = filled
                        if sparse[s]:
                            counts[s, used[s]] = n
                            filled += n
                        else:
                            if n < dims[s]:
                                event, place = SHORT, name - 1
                                for i in range(filled + n, filled + dims[s]):
                                    values[i] = 0
                            filled += dims[s]
                        used[s] += 1
                        accepted += 1
                if event != NOTHING:
                    _note(events, state, event, place - base, k, s)
                    if event != SHORT:
                        p = _skip(p)
            if full == DONE:
                p += 1
                if accepted == 0 or accepted > several:
                    _note(events, state, EMPTY_ROW if accepted == 0 else REPEATED, row - base, k, _NO_STREAM)
                if state[ERRORS] > budget:
                    full = BUDGET
        if full == DONE:
            want = np.int64(nominal[0] if same else nominal[k])
            most = np.int64(0)
            for s in range(several):
                if defining[s]:
                    most = max(most, used[s] - bounds[s, k])
            if most != want:
                _note(events, state, MORE if most > want else LESS, begins[k], k, _NO_STREAM)
                if state[ERRORS] > budget:
                    full = BUDGET
        if state[EVENTS] > len(events):
            full = EVENTS_FULL
        elif state[SLOWS] > len(slows):
            full = SLOW_FULL
        if full != DONE:
            if full < BUDGET:
                for i in range(len(state)):
                    state[i] = saved[i]
            return full
        for s in range(several):
            bounds[s, k + 1] = used[s]
        state[VALUES] = filled
        state[SEQUENCE] = k + 1
    return DONE


@brief
def sizes_of(begins: Int64s, ends: Int64s, nominal: Int32s, stop: Int):
    """Bytes of all sequences, and their samples; nominal int32[n] or [1]. Bytes are -1 if one does not end by `stop`.

    In range: nominal has one place or as many as begins and ends, which are parts of one table.
    """
    size, samples = np.int64(0), np.int64(0)
    for i in range(len(begins)):
        if not 0 <= begins[i] <= ends[i] <= stop:
            return np.int64(-1), samples
        size += ends[i] - begins[i]
        samples += nominal[0] if len(nominal) == 1 else nominal[i]
    return size, samples
