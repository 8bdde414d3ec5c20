"""The stages of a feed: states, what is read ahead, and programs, of which nothing is."""

from typing import Any

import pytest
from batching_cases import batcher, case

from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.step.feed import Placed, PlacedStack, Pushed, Stage, State


class Numbered(Stage[Minibatch]):
    """A source whose position is the number of minibatches that it has given."""

    def __init__(self, lengths: list[list[int]]) -> None:
        self.minibatches = [case(each, seed=n).minibatch for n, each in enumerate(lengths)]
        self.position = 0

    def __next__(self) -> Minibatch:
        if self.position == len(self.minibatches):
            raise StopIteration
        self.position += 1
        return self.minibatches[self.position - 1]

    def get_state(self) -> State:
        return {"position": self.position}

    def set_state(self, state: State) -> None:
        self.position = state["position"]


def feed_of(source: Stage[Minibatch], every: int, **options: Any) -> Placed:
    stacks = batcher(**options).stacks(source, lambda number: number % every == 0)
    return Placed(stacks, lambda stack: PlacedStack(stack, stack.batch))


LENGTHS = [[3], [2], [3], [30], [31], [3], [2]]
"""Two lengths, so that a minibatch of the other one begins the next stack."""


@pytest.mark.parametrize("chosen", [0, 3])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_state_is_that_after_the_last_stack(chosen: int, ahead: bool) -> None:
    feed, source = feed_of(Numbered(LENGTHS), 4, chosen=chosen, capacity=3), Numbered(LENGTHS)
    assert feed.get_state() is None
    done = 0
    for placed in feed:
        if ahead:
            feed.read_ahead()
        done += len(placed.stack.minibatches)
        assert feed.get_state() == {"position": done}
        resumed = feed_of(source, 4, chosen=chosen, capacity=3)
        resumed.set_state({"position": done})
        left = [minibatch.num_samples for rest in resumed for minibatch in rest.stack.minibatches]
        assert left == [sum(each) for each in LENGTHS[done:]]
    assert done == len(LENGTHS)


def test_a_state_drops_what_was_read_ahead() -> None:
    feed = feed_of(Numbered(LENGTHS), 4, chosen=3, capacity=3)
    first = next(feed).stack.minibatches
    feed.read_ahead()
    feed.set_state({"position": 0})
    assert [minibatch.num_samples for minibatch in next(feed).stack.minibatches] == [m.num_samples for m in first]


def test_a_program_fills_the_source_and_nothing_is_read_ahead() -> None:
    source = Pushed()
    feed = feed_of(source, 100, chosen=0)
    assert list(feed) == []
    for lengths in ([[3]], [[2], [3]], [[30], [3], [3]]):
        source.waiting.extend(case(each).minibatch for each in lengths)
        counts = [len(placed.stack.minibatches) for placed in feed]
        assert sum(counts) == len(lengths) and not source.waiting
    assert feed.get_state() is None
