"""Balances the workers' shares of a minibatch of single frames: each gets as many as the others.

Shares are dealt out by chunks of the data, so one worker has more frames of a minibatch than another, and all would
compute with room for the largest share: of 1,024 frames 576 slots, which take 1.15 to 1.2 times as long as 512. Who has
too many gives away the last ones, which fit into one message for all minibatches that are read ahead.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.minibatch import Minibatch, singles
from cntkpy.trainers.step.stack import Pieces

MIN_FRAMES_PER_MOVE = 8
"""A worker gives away at most one of this many frames of a minibatch: else the data are not dealt out by chance."""

Move = tuple[int, int, int]
"""From which worker, to which one, how many frames."""


def moves(counts: Sequence[int]) -> list[Move]:
    """Return the moves that make the shares of a minibatch equal; none where a share is far too large.

    Args:
        counts: By worker, its frames.
    """
    total, size = sum(counts), len(counts)
    over = [count - (total * (rank + 1) // size - total * rank // size) for rank, count in enumerate(counts)]
    if not all(counts) or any(
        MIN_FRAMES_PER_MOVE * surplus > count for surplus, count in zip(over, counts, strict=True)
    ):
        return []
    result: list[Move] = []
    takers = [rank for rank in range(size) if over[rank] < 0]
    for giver in range(size):
        while over[giver] > 0:
            taker = takers[0]
            number = min(over[giver], -over[taker])
            result.append((giver, taker, number))
            over[giver] -= number
            over[taker] += number
            if not over[taker]:
                takers.pop(0)
    return result


def balance(
    parts: list[Minibatch],
    planned: list[list[Move]],
    names: Sequence[str],
    rank: int,
    send: Callable[[bytes], list[bytes]],
) -> list[Minibatch]:
    """Return the minibatches of a worker after all moves.

    Args:
        parts: Its parts of consecutive minibatches, of single frames where there are moves.
        planned: Of each of them, see `moves`; the same in all workers.
        names: The streams that are needed, which alone are given away, and kept where frames come or go.
        rank: Number of this worker.
        send: See `ProcessGroup.send`.
    """
    moved: dict[str, list[Any]] = {}
    kept: list[Minibatch] = []
    for part, some in zip(parts, planned, strict=True):
        count = sum(number for giver, _, number in some if giver == rank)
        if count:
            remaining = part.layouts[names[0]].S - count
            for name in names:
                moved.setdefault(name, []).append(_rows(part.streams[name], remaining, remaining + count))
            part = _with(part, {name: (_rows(part.streams[name], 0, remaining),) for name in names}, remaining)
        kept.append(part)
    received = send(_packed({name: _joined(rows) for name, rows in moved.items()}) if moved else b"")
    takes = {giver for some in planned for giver, taker, _ in some if taker == rank}
    sent = {giver: _unpacked(received[giver]) for giver in takes}
    begin = dict.fromkeys(range(len(received)), 0)
    for k, some in enumerate(planned):
        for giver, taker, number in some:
            first, last = begin[giver], begin[giver] + number
            begin[giver] = last
            if taker == rank:
                count = kept[k].layouts[names[0]].S
                streams = {
                    name: (*_parts(kept[k].streams[name], count), _rows(sent[giver][name], first, last))
                    for name in names
                }
                kept[k] = _with(kept[k], streams, count + number)
    return kept


def _with(part: Minibatch, streams: dict[str, tuple[Any, ...]], count: int) -> Minibatch:
    """Return a part with other frames, so many of them; where they are now they stay."""

    def keys() -> list[int | str]:
        return [*part.keys[:count], *["of another worker"] * (count - len(part.keys))]

    values = {name: Pieces(parts) for name, parts in streams.items()}
    ends = part.end_of_sweep, part.end_of_epoch, part.truncated
    return Minibatch(values, dict.fromkeys(values, singles(count)), keys, *ends, part.columns_together)


class _Sparse(NamedTuple):
    """Parts of a sparse matrix; SciPy takes long to make a new one."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype


def _parts(values: object, count: int) -> tuple[Any, ...]:
    """So many frames of a stream, wherever they are."""
    return values.parts if isinstance(values, Pieces) else (_rows(values, 0, count),)


def _rows(values: Any, first: int, last: int) -> Any:
    """Some frames of a stream: an array (frames, dim), or rows of a sparse matrix."""
    if is_dense(values):
        return values[0, first:last] if values.ndim == 3 else values[first:last]
    begin, end = values.indptr[first], values.indptr[last]
    starts = values.indptr[first : last + 1] - begin
    return _Sparse(values.data[begin:end], values.indices[begin:end], starts, values.shape[1])


def _joined(rows: list[Any]) -> Any:
    """Frames one after the other."""
    if is_dense(rows[0]):
        return np.concatenate(rows)
    starts = np.cumsum([0, *(len(row.data) for row in rows)])
    ends: list[Any] = [row.indptr[1:] + start for row, start in zip(rows, starts[:-1], strict=True)]
    data, indices = (np.concatenate([row[k] for row in rows]) for k in range(2))
    return _Sparse(data, indices, np.concatenate([[0], *ends]).astype(rows[0].indptr.dtype), rows[0].width)


def _packed(streams: dict[str, Any]) -> bytes:
    """The inverse of `_unpacked`: the kinds of the arrays, one line, then what is in them."""
    arrays: list[NDArray[Any]] = []
    kinds: list[Any] = []
    for name, values in streams.items():
        parts, width = (values[:3], values.width) if isinstance(values, _Sparse) else ([values], None)
        kinds.append([name, width, [[part.dtype.str, part.shape] for part in parts]])
        arrays += parts
    return b"\n".join([json.dumps(kinds).encode(), b"".join(array.tobytes() for array in arrays)])


def _unpacked(message: bytes) -> dict[str, Any]:
    """Streams that another worker has sent."""
    place = message.index(b"\n") + 1
    streams: dict[str, Any] = {}
    for name, width, kinds in json.loads(message[:place]):
        parts: list[NDArray[Any]] = []
        for dtype, shape in kinds:
            count = math.prod(shape)
            parts.append(np.frombuffer(message, dtype, count, place).reshape(shape))
            place += parts[-1].nbytes
        streams[name] = parts[0] if width is None else _Sparse(parts[0], parts[1], parts[2], width)
    return streams
