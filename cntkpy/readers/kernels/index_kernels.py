"""The kernel that finds the sequences of a text file: one pass over whole lines, ends of lines 64 bytes at once."""

from __future__ import annotations

import numpy as np

from cntkpy.readers.kernels.jit import inlined, kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s, Ints, UInt32s, UInt64s
from cntkpy.readers.kernels.text_codes import (
    DONE,
    FULL,
    HIGHER,
    LINES,
    LONG_NAME,
    MANY_SAMPLES,
    NAMES,
    NO_ID,
    NUMBERS,
    OTHER_KEYS,
    OVERFLOW,
)
from cntkpy.readers.kernels.words import byte_at, digits, matches, trailing_zeros, word_at

# Elements of the state array, int64[STATE].
SEQUENCES, LINE, MODE, POSITION, NAME, HASHED, CONTINUES, COUNTED, BASE, HERE, MOST, HIGH = range(STATE := 12)

_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_LF8 = np.uint64(0x0A0A0A0A0A0A0A0A)
_ONE = np.uint64(1)
_LIMIT = np.uint64((2**64 - 1) // 10)


@inlined
def end_of_line(p: Int, end: Int):
    """Address of the first LF at or after p, or `end`.

    Needs eight readable bytes from `end` on: words begin before it.
    """
    while p < end:
        x = word_at(p) ^ _LF8
        mask = (x - _ONES) & ~x & _HIGH
        if mask:
            return min(p + (trailing_zeros(mask) >> 3), end)
        p += 8
    return end


@part
def _has_stream(p: Int, end: Int, name: Bytes):
    """Return whether |name followed by a delimiter, `|` or the end is in the bytes from p to end.

    In range: p + n < end, so all bytes that are compared lie before `end`; 64 bytes after it are readable.
    """
    n = len(name)
    while p < end:
        result = matches(p, 124)
        while result:
            position = p + trailing_zeros(result)
            result &= result - _ONE
            if position + n >= end:
                return False
            i = 0
            while i < n and byte_at(position + 1 + i) == name[i]:
                i += 1
            if i == n:
                c = byte_at(position + 1 + n) if position + 1 + n < end else 10
                if c <= 32 or c >= 127 or c == 124:
                    return True
        p += 64
    return False


@part
def _read_name(p: Int, end: Int, last_name: Bytes, state: Int64s):
    """The key at byte_at(p), up to a blank or `|`: (length; -1: none or the last one again; -2: too long), its hash.

    In range: p stays below `end`, n below the length of last_name; a longer key is -2.
    """
    n, h = 0, np.uint64(5381)
    known = state[NAME]
    same = known > 0
    while p < end:
        c = byte_at(p)
        if c <= 32 or c == 124:
            break
        if n == len(last_name):
            return -2, h
        if n >= known or last_name[n] != c:
            same = False
        last_name[n] = c
        h = (h * np.uint64(33)) ^ np.uint64(c)
        n += 1
        p += 1
    if n == 0 or (same and n == known):
        return -1, h
    state[NAME] = n
    return n, h


@part
def _long_number(p: Int, end: Int):
    """The number at byte_at(p), and how many digits it has; -1 if it does not fit 64 bits. In range: p < end."""
    begin, key = p, np.uint64(0)
    c = byte_at(p)
    while 48 <= c <= 57:
        if key > _LIMIT:
            return -1, key
        ten = key * np.uint64(10)
        key = ten + np.uint64(c - 48)
        if key < ten:
            return -1, key
        p += 1
        c = byte_at(p) if p < end else -1
    return p - begin, key


@kernel
def find_sequences(
    buffer: Bytes,
    begin: Int,
    end: Int,
    place: Int,
    main: Bytes,
    keys: UInt64s,
    samples: Ints,
    offsets: UInt32s,
    last_name: Bytes,
    state: Int64s,
):
    """Add the lines buffer[begin:end] (whole lines; buffer[0] is byte `place` of the file) to the index.

    keys uint64[n], samples uint8[n] or int32[n], offsets uint32[n] are filled from state[SEQUENCES] on; keys not in
    mode LINES, and not with state[COUNTED]: then the key of sequence i is state[BASE] + i, and OTHER_KEYS is returned
    where one is not. The samples of the last sequence so far are state[HERE]; MANY_SAMPLES is returned for more than
    state[MOST]. Offsets lack their multiple of 2^32, state[HIGH], and HIGHER is returned where that is another one.
    main uint8[k]: name of the stream whose lines count (empty: every line counts). In mode NAMES keys are the lengths
    of the names, or their hashes if state[HASHED], and last_name uint8[LONGEST_NAME] holds the name at hand. With
    state[CONTINUES] sequence 0, whose key is not known, takes the lines before the first key.
    Returns DONE, FULL (give longer arrays), one of the three above (call again from state[POSITION]), or an error.

    In range: single bytes are looked at before `end` only; words and vectors begin before it, which leaves 64 bytes of
    the buffer (`_scan` keeps them free); a sequence is added if `count` is below the length of the arrays, and the last
    one is looked at if there is one, else NO_ID.
    """
    base = buffer.ctypes.data
    line, stop = base + begin, base + end
    count = state[SEQUENCES]
    capacity = len(offsets)
    mode = state[MODE]
    everything = len(main) == 0
    counted, base_key = state[COUNTED] != 0, np.uint64(state[BASE])
    lines, here, most, high = np.int64(0), state[HERE], state[MOST], state[HIGH]
    previous, unknown = np.uint64(0), count == state[CONTINUES]
    if count:
        if counted:
            previous = base_key + np.uint64(count - 1)
        elif mode == NUMBERS:
            previous = keys[count - 1]
    code = DONE
    block = line
    while block < stop and code == DONE:
        ends = matches(block, 10)
        last = stop - block <= 64
        if last and stop - block < 64:
            ends &= (_ONE << np.uint64(stop - block)) - _ONE
        while True:
            if ends:
                after = block + trailing_zeros(ends)
                ends &= ends - _ONE
            elif last and line < stop:
                after = stop  # a last line without an end
            else:
                break
            fresh = mode == LINES
            key = np.uint64(0)
            if mode == NUMBERS:
                length, key = digits(word_at(line))
                if length == 8:
                    length, key = _long_number(line, after)
                    if length < 0:
                        code = OVERFLOW
                        break
                fresh = length > 0 and line + length < stop and (key != previous or unknown)
            elif mode == NAMES:
                if count == capacity:
                    code = FULL
                    break
                length, h = _read_name(line, after, last_name, state)
                if length == -2:
                    code = LONG_NAME
                    break
                fresh = length > 0
                key = h if state[HASHED] else np.uint64(length)
            if fresh:
                if count == capacity:
                    code = FULL
                    break
                if counted and unknown:
                    base_key = key - np.uint64(count)
                    state[BASE] = np.int64(base_key)
                if counted and key != base_key + np.uint64(count):
                    code = OTHER_KEYS
                    break
                offset = place + line - base
                if here > most or offset >> 32 != high:
                    code = MANY_SAMPLES if here > most else HIGHER
                    state[NAME] = 0  # the name is read once more
                    break
                if count:
                    samples[count - 1] = here
                if mode == NAMES or (mode == NUMBERS and not counted):
                    keys[count] = key
                offsets[count] = np.uint32(offset)
                here, previous, unknown = np.int64(0), key, False
                count += 1
            elif count == 0:
                code = NO_ID
                break
            if everything or _has_stream(line, after, main):
                here += 1
            line = after + 1
            lines += 1
        block += 64
    state[SEQUENCES], state[HERE] = count, here
    state[LINE] += lines
    state[POSITION] = min(line, stop) - base
    return code


@kernel
def form_chunks(begins: Int64s, ends: Int64s, maximum: Int, first: Int64s):
    """First sequence of every chunk into first int64[n + 1]; returns the number of chunks: n at most, so all fit.

    In range: begins and ends have n places each.
    """
    chunks = 0
    start = np.int64(0)
    for i in range(len(begins)):
        if chunks == 0 or ends[i] - start > maximum:
            first[chunks] = i
            start = begins[i]
            chunks += 1
    first[chunks] = len(begins)
    return chunks
