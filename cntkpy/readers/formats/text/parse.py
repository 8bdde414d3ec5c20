"""Bytes of sequences to a Chunk: calls the parse kernel, gives it longer arrays when it asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from .events import EMPTY_ROW, INFINITE, QUIET_LIMIT
from .stream_format import StreamFormat
from .tables import Output, Runs, Streams, Text

PADDING = 32  # LF at the end of every buffer: the kernels look at words of eight bytes
_NONE = np.empty(0, np.int64)
NO_RUNS = Runs(-1, _NONE, _NONE, _NONE)
"""Nothing is to be read."""


def streams_of(formats: Sequence[StreamFormat]) -> Streams:
    """Return the tables of some streams."""
    aliases = [stream.alias.encode() for stream in formats]
    defining = np.array([stream.defines_mb_size for stream in formats], np.bool_)
    return Streams(
        np.frombuffer(b"".join(aliases), np.uint8),
        starts_of([len(stream) for stream in aliases]),
        np.array([stream.dim for stream in formats], np.int64),
        np.array([stream.sparse for stream in formats], np.bool_),
        defining if defining.any() else ~defining,
    )


@dataclass(eq=False)
class Parsed:
    """Result of parsing a piece of text. code: DONE, BUDGET or UNREAD; events int64[n, 4]."""

    chunk: Chunk | None
    code: int
    events: np.ndarray


def parse(
    text: Text,
    formats: Sequence[StreamFormat],
    names: Streams,
    dtype: np.dtype,
    budget: int,
    named: bool = False,
    end_of_file: int = -1,
    runs: Runs = NO_RUNS,
) -> Parsed:
    """Parse sequences.

    Args:
        text: The sequences.
        formats: The streams.
        names: Their tables, see `streams_of`.
        dtype: Of the values.
        budget: Counted errors that are still allowed.
        named: Whether keys at the start of lines are not numbers.
        end_of_file: Where a file without a newline at its end stops, -1 if it is not in the buffer.
        runs: What has to be read into the buffer before.

    Raises:
        DataError: if a sequence does not lie in the buffer.
    """
    from . import parse_kernels as k
    from .read_kernels import read_and_parse

    n, s = len(text.begins), len(formats)
    size, lines = k.sizes_of(text.begins, text.ends, text.nominal, len(text.buffer) - PADDING)
    if size < 0:
        raise DataError(
            "A sequence offset is outside the file.", hint="the index may be stale: delete it, it is rebuilt"
        )
    any_sparse = bool(names.sparse.any())
    room = size // 2 + int(names.dims[~names.sparse].sum()) + 16
    values = np.empty(room, dtype)
    indices = np.empty(room if any_sparse else 1, np.int32)
    starts = np.empty((s, lines + 16), np.int64)
    counts = np.empty((s, lines + 16 if any_sparse else 1), np.int32)
    bounds = np.empty((s, n + 1), np.int64)
    bounds[:, 0] = 0
    events = np.empty((80, 4), np.int64)
    slows = np.empty((64, 3), np.int64)
    state = np.zeros(6, np.int64)
    while True:
        output = Output(values, indices, starts, counts, bounds, events, slows, state)
        code, runs = read_and_parse(runs, text, names, output, budget, named, end_of_file), NO_RUNS
        if code == k.VALUES_FULL:
            need = int(names.dims.max()) if not any_sparse else 0
            values = _longer(values, 2 * len(values) + need)
            indices = _longer(indices, len(values)) if any_sparse else indices
        elif code == k.SAMPLES_FULL:
            used = bounds[:, state[k.SEQUENCE]]
            starts = _wider(starts, used)
            counts = _wider(counts, used) if any_sparse else counts
        elif code == k.EVENTS_FULL:
            events = _longer(events, 4 * len(events))
        elif code == k.SLOW_FULL:
            slows = _longer(slows, 4 * len(slows))
        else:
            break
    seen = events[: state[k.EVENTS]]
    if code != k.DONE:
        return Parsed(None, code, seen)
    if infinite := _convert_slow(text, slows[: state[k.SLOWS]], values):
        seen = np.concatenate([seen, np.array(infinite, np.int64)])
    streams: dict[str, StreamData] = {}
    for i, f in enumerate(formats):
        m = int(bounds[i, n])
        bounds_of = next(
            (stream.sequences for stream in streams.values() if np.array_equal(stream.sequences, bounds[i])), bounds[i]
        )
        streams[f.name] = StreamData(
            f.dim, values, starts[i, :m], bounds_of, counts[i, :m] if f.sparse else None, indices if f.sparse else None
        )
    used = int(state[k.VALUES]) * (values.itemsize + 4 * any_sparse) + bounds.nbytes + starts.nbytes + counts.nbytes
    return Parsed(Chunk(streams, used, damaged=damaged_sequences(seen, n)), code, seen)


def damaged_sequences(events: np.ndarray, count: int) -> np.ndarray | None:
    """Sequences of which something malformed was left out, bool[count]; None if there are none."""
    lost = events[events[:, 0] <= EMPTY_ROW, 2]
    if not len(lost):
        return None
    damaged = np.zeros(count, bool)
    damaged[lost] = True
    return damaged


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    out = np.empty((length, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _wider(array: np.ndarray, used: np.ndarray) -> np.ndarray:
    out = np.empty((array.shape[0], 2 * array.shape[1]), array.dtype)
    for row, count in enumerate(used):
        out[row, :count] = array[row, :count]
    return out


def _convert_slow(text: Text, slows: np.ndarray, values: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Convert the numbers that the kernel left; return the events of those that became infinite, as many as count."""
    base, largest, infinite = text.buffer.ctypes.data, np.finfo(values.dtype).max, list[tuple[int, int, int, int]]()
    with np.errstate(over="ignore"):
        for begin, end, element in slows.tolist():
            values[element] = value = float(text.buffer[begin - base : end - base].tobytes())
            if abs(value) > largest and np.isinf(values[element]) and len(infinite) < QUIET_LIMIT:
                place = begin - base
                sequence = int(np.flatnonzero((text.begins <= place) & (place < text.ends))[0])
                infinite.append((INFINITE, place, sequence, -1))
    return infinite
