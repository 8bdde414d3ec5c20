"""The order of data of unknown size: windows of chunks, shares of workers, positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cntkpy.readers import DataError
from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.planned import NO_LIMIT, Limits, Planned
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.local_timeline import LocalTimeline
from cntkpy.readers.pipeline.window_store import SHIFT, WindowStore

SIZES = (3, 0, 4, 2)
EVERY = [(c << SHIFT) + i for c, n in enumerate(SIZES) for i in range(n)]


class Data:
    """Chunks of sequences of one sample."""

    thread_safe = False

    streams = ()
    table = SequenceTable(np.array([0, 1]), np.ones(1, np.int32))

    def __init__(self, sizes: tuple[int, ...] = SIZES):
        self.sizes, self.chunks = sizes, len(sizes)

    def load_window_chunk(self, chunk: int) -> tuple[Chunk, np.ndarray]:
        return Chunk({}), np.ones(self.sizes[chunk], np.int64)


def order(sizes: tuple[int, ...] = SIZES, **options: Any) -> LocalTimeline:
    return LocalTimeline(WindowStore(Data(sizes)), **{"randomize": False, **options})


def next_of(timeline: LocalTimeline, size: int = 2) -> Planned | None:
    timeline.limits = Limits(NO_LIMIT, size)
    return next(timeline, None)


def start(timeline: LocalTimeline, epoch: int = 0, samples: int | None = None, workers: int = 1, rank: int = 0) -> None:
    timeline.set_state(EpochRequest(2, epoch, samples, rank, workers))


def rest(timeline: LocalTimeline, size: int = 2) -> list[list[int]]:
    return [one.sequences.tolist() for one in iter(lambda: next_of(timeline, size), None)]


def flat(minibatches: list[list[int]]) -> list[int]:
    return [number for one in minibatches for number in one]


def test_file_order_crosses_chunks_and_passes_over_empty_ones() -> None:
    timeline = order()
    start(timeline)
    found = rest(timeline)
    assert flat(found) == EVERY
    assert [len(one) for one in found if one] == [2, 2, 2, 2, 1]
    assert timeline.ended


@pytest.mark.parametrize(
    "options", [{"randomize": True, "window": 2}, {"randomize": True, "window": 5, "in_samples": True}]
)
def test_a_sweep_has_every_sequence_once_and_another_order_each_time(options: dict[str, Any]) -> None:
    timeline = order(**options)
    sweeps = []
    for epoch in range(3):
        start(timeline, epoch)
        sweeps.append(flat(rest(timeline)))
    assert [sorted(one) for one in sweeps] == [EVERY] * 3
    assert len({tuple(one) for one in sweeps}) == 3


@pytest.mark.parametrize("randomize", [False, True])
def test_workers_share_a_sweep(randomize: bool) -> None:
    shares = []
    for rank in range(2):
        timeline = order(randomize=randomize, window=2)
        start(timeline, workers=2, rank=rank)
        shares += flat(rest(timeline))
    assert sorted(shares) == EVERY


@pytest.mark.parametrize("stop", range(5))
def test_a_position_goes_on_where_it_was_taken(stop: int) -> None:
    one, other = order(randomize=True, window=2), order(randomize=True, window=2)
    start(one, 0, 15)
    for _ in range(stop):
        next_of(one)
    other.set_state(one.get_state())
    assert rest(other) == rest(one)


def test_data_without_sequences_are_an_error() -> None:
    timeline = order((0, 0))
    start(timeline)
    with pytest.raises(DataError, match="no sequences"):
        next_of(timeline)
