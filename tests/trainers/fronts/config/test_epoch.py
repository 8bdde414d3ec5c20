"""One pass over the data: sums, positions, what is due; without a network, a trainer or a reader."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.fronts.config.epoch import FiniteCriterion, up_to
from cntkpy.trainers.hooks import Frequency, Hook, Position, Running
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.loop import EpochView, Loop
from cntkpy.trainers.step.feed import PlacedStack, Unsaved

NODES: Any = [
    SimpleNamespace(name="ce", axis=None, kind=SimpleNamespace(last_counts=False)),
    SimpleNamespace(name="err", axis=None, kind=SimpleNamespace(last_counts=False)),
]


class Stacks:
    """A batcher and trainer in one: stacks of up to `capacity` minibatches whose sums are (key, 1)."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.nodes = capacity, NODES
        self.copies = self.is_quick = False
        self.firsts: list[int] = []
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1

    def batcher(self, size: int, capacity: int) -> "Stacks":
        return self

    def stacks(self, data: Any, is_due: Any) -> Unsaved[Any]:
        return Unsaved(self._stacks(data, is_due))

    def _stacks(self, data: Any, is_due: Any) -> Any:
        pending: list[Minibatch] = []
        for number, minibatch in enumerate(data, 1):
            pending.append(minibatch)
            if len(pending) == self.capacity or is_due(number):
                yield stack_of(pending)
                pending = []
        if pending:
            yield stack_of(pending)

    def place(self, stack: Any) -> PlacedStack:
        return PlacedStack(stack, stack)

    def run(self, placed: PlacedStack, settings: Any, first: int, callbacks: Any = ()) -> np.ndarray:
        self.firsts.append(first)
        values = np.zeros((self.capacity, 2))
        for k, minibatch in enumerate(placed.stack.minibatches):
            values[k] = minibatch.keys[0], 1
        return values


def stack_of(minibatches: list[Minibatch]) -> Any:
    samples = np.array([minibatch.num_samples for minibatch in minibatches])
    return SimpleNamespace(minibatches=minibatches, samples=samples, counts=None)


def minibatches(values: list[float], samples: int = 2) -> Any:
    layout = Layout(1, samples, np.array([[k, k, 0, 1] for k in range(samples)]))
    for value in values:
        yield Minibatch({"x": np.zeros((1, samples, 1))}, {"x": layout}, [value])  # type: ignore[list-item]


def train(
    capacity: int, values: list[float], hooks: Any = (), position: Position | None = None
) -> tuple[Stacks, list[Any]]:
    stacks: Any = Stacks(capacity)
    settings: Any = None
    loop = Loop(stacks, settings, EpochView(hooks=hooks), position)
    return stacks, loop.train(minibatches(values), 2).totals.rows(NODES)


@pytest.mark.parametrize("capacity", [1, 2, 3, 64])
def test_totals_do_not_depend_on_how_minibatches_are_stacked(capacity: int) -> None:
    stacks, totals = train(capacity, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert [(total.name, total.value, total.count) for total in totals] == [("ce", 31.0, 10), ("err", 5.0, 10)]
    assert stacks.firsts == list(range(0, 5, capacity))
    assert stacks.forgotten == 1


def test_a_resumed_epoch_adds_to_what_was_done_and_forgets_nothing() -> None:
    at = Position.start(NODES)
    at.totals = at.totals.add(NODES, np.array([[3.0, 2.0]]), 4)
    at.done = 2
    position = Position.from_json(NODES, at.to_json())
    stacks, totals = train(2, [4.0, 8.0, 16.0], position=position)
    assert [(total.value, total.count) for total in totals] == [(31.0, 10), (5.0, 10)]
    assert stacks.firsts == [2, 4] and stacks.forgotten == 0


def test_the_position_is_whole_after_every_stack() -> None:
    """Results are fetched one stack late; whoever asks for the position gets all of them."""
    seen: list[tuple[int, float, int]] = []

    class Seen(Hook):
        def on_stack(self, run: Running) -> None:
            done, position = run.position.done, run.collected()
            assert position.done == done
            seen.append((position.done, position.totals.values[0], position.totals.samples))

    train(2, [1.0, 2.0, 4.0, 8.0, 16.0], [Seen()])
    assert seen == [(2, 3.0, 4), (4, 15.0, 8), (5, 31.0, 10)]


def test_lines_are_due_at_the_first_minibatches_and_then_every_few() -> None:
    frequency = Frequency(4, 2)
    assert [number for number in range(1, 13) if frequency.is_due(number)] == [1, 2, 4, 8, 12]
    assert [number for number in range(1, 13) if Frequency(0).is_due(number)] == [1, 2, 4, 8]
    assert not any(Frequency().is_due(number) for number in range(1, 13))


def test_an_interval_has_what_came_since_the_one_before() -> None:
    seen: list[tuple[int, int, float, float]] = []

    class Seen(Hook):
        def on_interval(self, interval: Any) -> None:
            seen.append((interval.first, interval.last, interval.totals.values[0], interval.epoch.values[0]))

    stacks, settings, view = Stacks(64), None, EpochView(Frequency(2, 1), [Seen()])
    Loop(stacks, settings, view).train(minibatches([1.0, 2.0, 4.0, 8.0, 16.0]), 2)  # type: ignore[arg-type]
    assert seen == [(1, 1, 1.0, 1.0), (2, 2, 2.0, 3.0), (3, 4, 12.0, 15.0)]


def test_the_first_minibatch_that_is_not_finite_is_found_inside_of_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntkpy.trainers.step.not_finite.first_not_finite", lambda *_: None)
    stacks: Any = Stacks(3)
    position = Position.start(NODES)
    stacks.network, stacks.at = None, lambda *_: None
    with pytest.raises(UserError, match=r"'ce' is not a number \(epoch 1, minibatch 3\)"):
        loop = Loop(stacks, None, EpochView(hooks=[FiniteCriterion(stacks, 0)]), position)  # type: ignore[arg-type]
        loop.train(minibatches([1.0, 2.0, np.inf, 4.0]), 2)
    bad = position.not_finite
    assert bad is not None and (bad.number, bad.index) == (3, 2)


def test_up_to_stops_after_more_samples_and_reads_one_minibatch_more() -> None:
    data = minibatches([1.0, 2.0, 3.0, 4.0, 5.0])
    assert [minibatch.keys[0] for minibatch in up_to(data, 4)] == [1.0, 2.0, 3.0]
    assert [minibatch.keys[0] for minibatch in data] == [5.0]


def test_totals_are_kept_in_double_precision() -> None:
    totals = Totals.start(NODES)
    for _ in range(10):
        totals = totals.add(NODES, np.array([[np.float32(0.1), 1e9]]), 1)
    first, second = totals.rows(NODES)
    assert first.value == pytest.approx(10 * float(np.float32(0.1)), rel=1e-15)
    assert second.value == 1e10
