"""Sequences from all over the data: loaded in batches that grow, in the order in which they will be needed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numbers_data import Numbers, numbers_in

from cntkpy.readers.common.chunk import Part
from cntkpy.readers.pipeline import scattered
from cntkpy.readers.pipeline.loads import Loads
from cntkpy.readers.pipeline.scattered import BATCH_GROWTH_FACTOR, MEMORY_PER_BATCH, Scattered

ORDER = np.random.default_rng(3).permutation(4000)
MEMORY = 8000
"""Bytes; a batch is at most an eighth: 250 sequences of 4 bytes."""


class Reading:
    """Asks for the next sequences of an order, as minibatches do."""

    def __init__(self, data: Numbers, ahead: int = 1, order: np.ndarray = ORDER):
        self.data, self.order, self.at = data, order, 0
        self.scattered = Scattered(data, MEMORY, Loads(0), ahead)

    def next(self, count: int, following: bool = True) -> list[int]:
        sequences = self.order[self.at : self.at + count]
        self.at += count
        rest = self.order[self.at :]
        more: Callable[[int], np.ndarray] | None = (lambda wanted: rest[:wanted]) if following else None
        pieces = self.scattered.pieces(sequences, more)
        return numbers_in([Part(load.result(), which, where) for load, which, where in pieces], len(sequences))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "FIRST_BATCH_BYTES", 40)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_every_minibatch_has_its_sequences(ahead: int) -> None:
    reading = Reading(Numbers(100, 40), ahead)
    for at in range(0, 4000, 25):
        assert reading.next(25) == ORDER[at : at + 25].tolist()


def test_batches_grow_from_what_is_asked_for_to_a_share_of_the_memory() -> None:
    reading = Reading(Numbers(100, 40), ahead=1)
    for _ in range(160):
        reading.next(25)
    sizes = [len(batch) for batch in reading.data.loaded]
    assert sizes[0] == 25, "the first batch is what is asked for, so that the start is fast"
    most = MEMORY // MEMORY_PER_BATCH // 4
    assert sizes[1:5] == [10, 40, 160, most]
    assert set(sizes[4:-1]) == {most} and sizes[-1] <= most
    assert all(b <= BATCH_GROWTH_FACTOR * a for a, b in pairwise(sizes[1:]))
    assert sum(sizes) == 4000, "nothing is loaded twice"


def test_batches_grow_without_reading_ahead_too() -> None:
    reading = Reading(Numbers(100, 40), ahead=0)
    for at in range(0, 4000, 25):
        assert reading.next(25) == ORDER[at : at + 25].tolist()
    sizes = [len(batch) for batch in reading.data.loaded]
    most = MEMORY // MEMORY_PER_BATCH // 4
    assert sizes[:3] == [25, 25, 40]
    assert max(sizes) == most and len(sizes) < 30
    assert sum(sizes) == 4000, "nothing is loaded twice"


@pytest.mark.parametrize("minibatches", [2, 3])
def test_after_a_jump_batches_are_small_again(minibatches: int) -> None:
    reading = Reading(Numbers(100, 40), ahead=0)
    for _ in range(minibatches):
        reading.next(25)
    reading.at = 1000
    assert reading.next(25) == ORDER[1000:1025].tolist()
    assert len(reading.data.loaded[-1]) == 25


def test_what_follows_is_loaded_ahead() -> None:
    reading = Reading(Numbers(100, 40), ahead=2)
    for _ in range(20):
        reading.next(25)
    batches = [one for one in reading.scattered._batches if one.used < len(one.numbers)]
    begun = np.concatenate([one.numbers[one.used :] for one in batches])
    assert len(batches) == 3 and begun.tolist() == ORDER[500 : 500 + len(begun)].tolist()


def test_another_order_than_the_one_announced_lets_go_of_what_was_begun() -> None:
    reading = Reading(Numbers(100, 40), ahead=2)
    for _ in range(10):
        reading.next(25)
    begun = [one.load for one in reading.scattered._batches if not one.used]
    reading.at = 3000
    assert reading.next(25) == ORDER[3000:3025].tolist()
    assert all(load.done for load in begun), "cancelled, so that no thread makes them"


def test_without_what_follows_only_the_sequences_themselves_are_loaded() -> None:
    reading = Reading(Numbers(100, 40), ahead=2)
    for _ in range(4):
        reading.next(25, following=False)
    assert reading.data.loaded == [ORDER[at : at + 25].tolist() for at in (0, 25, 50, 75)]


def test_after_a_fault_batches_are_small_again_up_to_the_one_at_fault() -> None:
    broken = int(ORDER[430])
    reading = Reading(Numbers(100, 40, broken=[broken]), ahead=0)
    found: list[int] = []
    with pytest.raises(OSError, match=f"sequence {broken} "):
        while True:
            found += reading.next(25)
    assert found == ORDER[: len(found)].tolist() and len(found) <= 425
    reading.at = len(found)  # who asks again gets what comes before the fault
    with pytest.raises(OSError, match=f"sequence {broken} "):
        while True:
            found += reading.next(5)
    assert found == ORDER[:430].tolist()
