"""Workers give each other single frames, so that each has as many of a minibatch as the others.

Shares are dealt out by chunks of the data, so one worker has more frames of a minibatch than another, and all would
compute with room for the largest share: of 1,024 frames 576 slots, which take 1.15 to 1.2 times as long as 512. Who has
too many gives away the last ones, which fit into one message for all minibatches that are read ahead.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from readers.common.sparse import is_dense
from readers.minibatch import Minibatch, singles

MOST = 8
"""A worker gives away at most one of so many frames of a minibatch: else the data are not dealt out by chance."""

Move = tuple[int, int, int]
"""From which worker, to which one, how many frames."""


def moves(counts: Sequence[int]) -> list[Move]:
    """What makes the shares of a minibatch equal (the last ones one larger); nothing where a share is far too large.

    Args:
        counts: By worker, its frames.
    """
    total, size = sum(counts), len(counts)
    over = [count - (total * (rank + 1) // size - total * rank // size) for rank, count in enumerate(counts)]
    if not all(counts) or any(MOST * more > count for more, count in zip(over, counts, strict=True)):
        return []
    found: list[Move] = []
    takers = [rank for rank in range(size) if over[rank] < 0]
    for giver in range(size):
        while over[giver] > 0:
            taker = takers[0]
            number = min(over[giver], -over[taker])
            found.append((giver, taker, number))
            over[giver] -= number
            over[taker] += number
            if not over[taker]:
                takers.pop(0)
    return found


def level(
    own: list[Minibatch],
    planned: list[list[Move]],
    names: Sequence[str],
    rank: int,
    tell: Callable[[bytes], list[bytes]],
) -> list[Minibatch]:
    """The minibatches of a worker after all moves.

    Args:
        own: Its parts of consecutive minibatches, of single frames where there are moves.
        planned: Of each of them, see `moves`; the same in all workers.
        names: The streams that are needed, which alone are given away, and kept where frames come or go.
        rank: Number of this worker.
        tell: See `ProcessGroup.tell`.
    """
    given: dict[str, list[Any]] = {}
    kept: list[Minibatch] = []
    for part, some in zip(own, planned, strict=True):
        count = sum(number for giver, _, number in some if giver == rank)
        if count:
            rest = part.layouts[names[0]].S - count
            for name in names:
                given.setdefault(name, []).append(_rows(part.streams[name], rest, rest + count))
            part = _with(part, {name: _rows(part.streams[name], 0, rest) for name in names}, rest)
        kept.append(part)
    told = tell(_packed({name: _joined(rows) for name, rows in given.items()}) if given else b"")
    takes = {giver for some in planned for giver, taker, _ in some if taker == rank}
    sent = {giver: _unpacked(told[giver]) for giver in takes}
    begin = dict.fromkeys(range(len(told)), 0)
    for k, some in enumerate(planned):
        for giver, taker, number in some:
            first, last = begin[giver], begin[giver] + number
            begin[giver] = last
            if taker == rank:
                before, more = kept[k].streams, {name: _rows(sent[giver][name], first, last) for name in names}
                count = kept[k].layouts[names[0]].S
                streams = {name: _joined([_rows(before[name], 0, count), more[name]]) for name in names}
                kept[k] = _with(kept[k], streams, count + number)
    return kept


def _with(part: Minibatch, streams: dict[str, Any], count: int) -> Minibatch:
    """A part with other frames, so many of them."""

    def keys() -> list[int | str]:
        return [*part.keys[:count], *["of another worker"] * (count - len(part.keys))]

    streams = {name: values[None] if isinstance(values, np.ndarray) else values for name, values in streams.items()}
    ends = part.end_of_sweep, part.end_of_epoch, part.truncated
    return Minibatch(streams, dict.fromkeys(streams, singles(count)), keys, *ends, part.columns_together)


def _rows(values: Any, first: int, last: int) -> Any:
    """Some frames of a stream: an array (frames, dim), or rows of a sparse matrix."""
    return values[0, first:last] if is_dense(values) and values.ndim == 3 else values[first:last]


def _joined(rows: list[Any]) -> Any:
    """Frames one after the other."""
    if is_dense(rows[0]):
        return np.concatenate(rows)
    import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

    starts = np.cumsum([0, *(one.nnz for one in rows)])
    ends: list[Any] = [one.indptr[1:] + start for one, start in zip(rows, starts[:-1], strict=True)]
    parts = [np.concatenate([getattr(one, name) for one in rows]) for name in ("data", "indices")]
    shape = (sum(one.shape[0] for one in rows), rows[0].shape[1])
    return scipy.sparse.csr_matrix((*parts, np.concatenate([[0], *ends])), shape=shape)


def _packed(streams: dict[str, Any]) -> bytes:
    """The inverse of `_unpacked`."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, values in enumerate(streams.values()):
        if isinstance(values, np.ndarray):
            arrays[f"{number}"] = values
        else:
            parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
            arrays |= {f"{number}/{name}": part for name, part in parts.items()}
            arrays[f"{number}/shape"] = np.array(values.shape)
    file = io.BytesIO()
    np.savez(file, names=np.array(list(streams), dtype=str), **cast(Any, arrays))
    return file.getvalue()


def _unpacked(letter: bytes) -> dict[str, Any]:
    """Streams that another worker has sent."""
    streams: dict[str, Any] = {}
    with np.load(io.BytesIO(letter), allow_pickle=False) as arrays:
        for number, name in enumerate(arrays["names"].tolist()):
            if f"{number}" in arrays:
                streams[name] = arrays[f"{number}"]
                continue
            import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

            parts = [arrays[f"{number}/{part}"] for part in ("data", "indices", "indptr", "shape")]
            streams[name] = scipy.sparse.csr_matrix(tuple(parts[:3]), shape=tuple(parts[3].tolist()))
    return streams
