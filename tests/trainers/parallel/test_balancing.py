"""Workers give each other frames: none is lost, and all have equally many."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from batching_cases import case, dense_batcher
from hypothesis import given
from hypothesis import strategies as st
from meeting import of_each

from cntkpy.readers.minibatch import Minibatch, as_dense, singles
from cntkpy.trainers.parallel import batching
from cntkpy.trainers.parallel.balancing import MIN_FRAMES_PER_MOVE, balance, moves
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.stack import Pieces


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_shares_become_equal_or_stay(counts: list[int]) -> None:
    planned, after = moves(counts), list(counts)
    total, size = sum(counts), len(counts)
    wanted = [total * (rank + 1) // size - total * rank // size for rank in range(size)]
    for giver, taker, number in planned:
        assert number > 0 and counts[giver] > wanted[giver] and counts[taker] < wanted[taker]
        after[giver] -= number
        after[taker] += number
    few = all(counts) and all(
        MIN_FRAMES_PER_MOVE * (count - want) <= count for count, want in zip(counts, wanted, strict=True)
    )
    assert after == (wanted if few else counts)


def part(ids: range) -> Minibatch:
    """Frames with an id each, which is in two dense and a sparse stream; the sparse one has one index twice."""
    numbers, count = np.array(ids, np.float32), len(ids)
    sparse = scipy.sparse.csr_matrix(
        (np.repeat(numbers, 2), np.full(2 * count, 5), 2 * np.arange(count + 1)), shape=(count, 7)
    )
    streams = {"x": np.stack([numbers, -numbers], axis=1)[None], "s": sparse, "y": 2 * numbers[None, :, None]}
    layout = singles(count)
    return Minibatch({**streams, "unused": np.zeros((3, 1, 1))}, dict.fromkeys([*streams, "unused"], layout), list(ids))


def rows_of(values: Any) -> np.ndarray:
    """The frames of a stream, wherever they are."""
    parts = values.parts if isinstance(values, Pieces) else [values]
    rows = [as_dense(part).reshape(-1, part.shape[-1]) for part in parts]
    assert not isinstance(values, Pieces) or values.shape == (sum(map(len, rows)), rows[0].shape[1])
    return np.concatenate(rows)


def test_frames_of_all_streams_go_together() -> None:
    counts = [[20, 18, 22], [10, 10, 10], [16, 18, 17], [1, 40, 1]]
    begin = np.cumsum([0, *(n for row in counts for n in row)]).tolist()
    ids = [[range(begin[3 * k + r], begin[3 * k + r + 1]) for r in range(3)] for k in range(len(counts))]
    planned = [moves(row) for row in counts]
    assert [len(one) for one in planned] == [1, 0, 1, 0]

    def work(connection: Any) -> list[Minibatch]:
        group = ProcessGroup(connection, local=[SimpleNamespace(platform="gpu")])  # letters go through the communicator
        own = [part(one[connection.rank]) for one in ids]
        return balance(own, planned, ["s", "x", "y"], connection.rank, group.send)

    found = of_each(3, work)
    for k, row in enumerate(counts):
        assert [one[k].layout.S for one in found] == ([sum(row) // 3] * 3 if planned[k] else row)
        seen: list[float] = []
        for rank, one in enumerate(found):
            layout = one[k].layout
            x, y, s = (rows_of(one[k].streams[name]) for name in "xys")
            assert layout.is_single and x.shape == (layout.S, 2) and s.shape == (layout.S, 7)
            np.testing.assert_array_equal(x[:, 1], -x[:, 0])
            np.testing.assert_array_equal(2 * x[:, :1], y)
            np.testing.assert_array_equal(s, np.where(np.arange(7) == 5, x[:, :1], 0))
            assert ("unused" in one[k].streams) == (row[rank] == layout.S)
            assert len(one[k].keys) == layout.S and set(one[k].keys) - {"of another worker"} <= set(ids[k][rank])
            seen += x[:, 0].tolist()
        assert sorted(seen) == list(range(begin[3 * k], begin[3 * k + 3]))


@pytest.mark.parametrize("worth", [True, False])
def test_stacks_of_levelled_frames(worth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have as many slots as a worker has frames; where a network is small, frames stay."""
    monkeypatch.setattr(batching, "MIN_WORK", 0 if worth else 1 << 60)
    shares = (130, 126, 120, 128, 129), (126, 130, 131, 128, 126)
    whole = dense_batcher(256)

    def work(connection: Any) -> list[Any]:
        group = ProcessGroup(connection, devices=[None] * 2, local=[SimpleNamespace(platform="gpu")])
        own = SharedBatcher.like(replace(whole, buckets=Buckets()), group, levels=True)
        given = [case([1] * n, seed=n + connection.rank).minibatch for n in shares[connection.rank]]
        return list(own.stacks(iter(given), lambda number: False))

    one, other = of_each(2, work)
    assert [s.samples.tolist() for s in one] == [s.samples.tolist() for s in other]
    assert [n for s in one for n in s.samples.tolist()] == [256, 256, 251, 256, 255]
    counts = [[layout.S for s in stacks for layout in s.layouts] for stacks in (one, other)]
    assert counts == ([[128, 128, 125, 128, 127], [128, 128, 126, 128, 128]] if worth else [list(s) for s in shares])
    assert max(s.batch.mask.shape[2] for s in one) == (128 if worth else 144)
    expected = [case([1] * n, seed=n + rank).x for rank, some in enumerate(shares) for n in some]
    total = sum(sum(map(sum, (step for sequence in x for step in sequence))) for x in expected)
    found = [s.batch.inputs["x"][: len(s.minibatches)] for stacks in (one, other) for s in stacks]
    assert sum(float(x.sum()) for x in found) == total
