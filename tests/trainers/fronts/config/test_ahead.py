"""How reading, copying to a device and computing overlap: an epoch on a device whose clock is simulated.

The device has one queue of copies and one of computations, as a GPU has two streams. The clock of the host moves only
where it reads and where it waits for the device, so the numbers are exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.evaluation.evaluate import EvaluationData, evaluate
from cntkpy.trainers.hooks import Frequency, Hook, Running
from cntkpy.trainers.loop import EpochView, Loop, _capacity  # pyright: ignore[reportPrivateUsage]
from cntkpy.trainers.step import feed
from cntkpy.trainers.step.feed import CAPACITY, Placed, PlacedStack, Stage, Unsaved

NODE: Any = SimpleNamespace(name="ce", operation="", axis=None, kind=SimpleNamespace(last_counts=False))
SAMPLES = 2


@dataclass
class Results:
    """What the device computes until a time; it is waited for where it is made an array."""

    device: "SimulatedDevice"
    number: int
    ready: float

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.device.wait(self)
        return np.full((1, 1), float(self.number), dtype)


@dataclass
class SimulatedDevice:
    """A trainer or evaluator and its batcher in one: stacks of one minibatch, and how long each takes.

    Attributes:
        read, copy, compute: milliseconds of a stack.
        now: the clock of the host.
        copied, computed: when the queues of copies and of computations are empty.
        waits, drained: how often the host waited, and how often nothing was left to compute then.
        lives: per stack, when it was placed and when it was computed.
    """

    read: float
    copy: float
    compute: float
    copies: bool = True
    is_quick: bool = False
    now: float = 0.0
    copied: float = 0.0
    computed: float = 0.0
    begun: int = 0
    waits: int = 0
    drained: int = 0
    lives: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def __post_init__(self) -> None:
        self.nodes, self.callbacks = [NODE], ()

    def forget(self) -> None:
        """There is nothing to forget."""

    def load(self, network: Any = None) -> None:
        """There is nothing to load."""

    def batcher(self, size: int, capacity: int) -> "SimulatedDevice":
        return self

    def stacks(self, data: Iterator[Minibatch], is_due: Any) -> Stage[Any]:
        return Unsaved(self._stacks(data))

    def _stacks(self, data: Iterator[Minibatch]) -> Iterator[Any]:
        for minibatch in data:
            self.now += self.read
            yield SimpleNamespace(minibatches=[minibatch], samples=np.array([SAMPLES]), counts=None)

    def place(self, stack: Any) -> PlacedStack:
        self.copied = max(self.now, self.copied) + self.copy
        return PlacedStack(stack, (self.now, self.copied))

    def run(self, placed: PlacedStack, settings: Any = None, first: int = 0, callbacks: Any = ()) -> Results:
        was_placed, ready = placed.batch
        self.computed = max(ready, self.computed) + self.compute
        self.lives.append((was_placed, self.computed))
        self.begun += 1
        return Results(self, self.begun, self.computed)

    def wait(self, results: Results) -> None:
        self.now = max(self.now, results.ready)
        self.waits += 1
        self.drained += results.number == self.begun

    @property
    def most_stacks(self) -> int:
        """Stacks in the memory of the device at the same time."""
        return max(sum(begin <= at < end for begin, end in self.lives) for at, _ in self.lives)


def minibatches(count: int) -> Iterator[Minibatch]:
    layout = Layout(1, SAMPLES, np.array([[k, k, 0, 1] for k in range(SAMPLES)]))
    for _ in range(count):
        yield Minibatch({"x": np.zeros((1, SAMPLES, 1))}, {"x": layout})


class Seen(Hook):
    """Notes after which minibatches it was called."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def on_stack(self, run: Running) -> None:
        self.done.append(run.collected().done)

    on_stopped = on_stack


def train(device: Any, count: int, every: int | None = None, data: Any = None, hooks: Any = ()) -> Any:
    settings: Any = None
    loop = Loop(device, settings, EpochView(Frequency(every), hooks))
    return loop.train(minibatches(count) if data is None else data, SAMPLES).totals.rows([NODE])


COSTS = [(2, 2, 2), (1, 3, 2), (3, 1, 2), (2, 1, 3), (0, 2, 2), (2, 0, 2), (1, 1, 5)]
"""Milliseconds of reading, copying and computing a stack."""


@pytest.mark.parametrize(("read", "copy", "compute"), COSTS)
def test_a_stack_takes_as_long_as_the_slowest_of_reading_copying_and_computing(
    read: float, copy: float, compute: float
) -> None:
    count, device = 50, SimulatedDevice(read, copy, compute)
    train(device, count)
    first = read + copy + compute  # nothing can overlap with the first
    assert device.now == first + (count - 1) * max(read, copy, compute)
    assert device.most_stacks <= 2
    assert device.drained == 1, "only the end of the epoch is waited for with nothing left to compute"
    assert device.waits == count


@pytest.mark.parametrize(("read", "copy", "compute"), COSTS)
def test_the_next_stack_is_on_its_way_when_a_line_is_due(read: float, copy: float, compute: float) -> None:
    """A line after every stack, the worst case: reading and copying the next overlap with computing."""
    count, device = 50, SimulatedDevice(read, copy, compute)
    train(device, count, every=1)
    alone = read + copy + compute
    assert device.now <= alone + (count - 1) * max(read, copy, compute, alone / 2)
    assert device.drained == count and device.most_stacks <= 2
    serial = SimulatedDevice(read, copy, compute, copies=False)
    train(serial, count, every=1)
    assert serial.now == count * alone


def test_lines_are_what_the_host_waits_for() -> None:
    device = SimulatedDevice(1, 1, 4)
    train(device, 100, every=10)
    assert device.drained == 10  # the last line is at the end of the epoch
    assert device.now == 6 + 99 * 4, "the device computes all the time"


def test_a_device_without_memory_of_its_own_has_nothing_read_early() -> None:
    device = SimulatedDevice(3, 0, 3, copies=False)
    train(device, 20)
    assert device.now == 6 + 19 * 3 and device.most_stacks <= 2


@pytest.mark.parametrize(("read", "copy", "compute"), COSTS)
@pytest.mark.parametrize("copies", [True, False])
def test_an_evaluation_reads_and_copies_the_next_stack_while_it_computes(
    read: float, copy: float, compute: float, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, device = 50, SimulatedDevice(read, copy, compute, copies)
    monkeypatch.setattr("cntkpy.trainers.evaluation.evaluate.minibatches", lambda *_: minibatches(count))
    (total,) = evaluate(device, EvaluationData(None, SAMPLES))  # type: ignore[arg-type]
    alone = read + copy + compute
    if copies:
        assert device.now <= alone + (count - 1) * max(read, copy, compute, alone / 2)
    else:
        assert device.now == count * alone
    assert device.most_stacks <= 2 and total.value == count * (count + 1) / 2


def test_totals_are_those_without_reading_early() -> None:
    found = [[(t.value, t.count) for t in train(SimulatedDevice(1, 1, 1, copies=c), 7)] for c in (True, False)]
    assert found[0] == found[1] == [(28.0, 14)]


@pytest.mark.parametrize("error", [ValueError("bad line"), Stopped()])
def test_what_the_reader_raises_comes_after_the_stacks_before(error: BaseException) -> None:
    def data() -> Iterator[Minibatch]:
        yield from minibatches(3)
        raise error

    seen = Seen()
    with pytest.raises(type(error)):
        train(SimulatedDevice(1, 1, 1), 0, data=data(), hooks=[seen])
    assert seen.done == [1, 2, 3] + [3] * isinstance(error, Stopped)  # what is stopped is saved once more


def test_what_placing_raises_comes_after_the_stacks_before() -> None:
    class Refuses(SimulatedDevice):
        def place(self, stack: Any) -> PlacedStack:
            if len(self.lives) == 2:
                raise ValueError("no class")
            return super().place(stack)

    seen = Seen()
    with pytest.raises(ValueError, match="no class"):
        train(Refuses(1, 1, 1), 5, hooks=[seen])
    assert seen.done == [1, 2]


def test_slow_data_are_not_waited_for_before_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(feed, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    given: list[int] = []

    def slow() -> Iterator[Any]:
        for number, seconds in enumerate([0.1, 5.0, 5.0, 0.1, 0.1]):
            clock[0] += seconds
            given.append(number)
            yield number

    placed, early = Placed(Unsaved(slow()), partial(PlacedStack, batch=None)), []
    for _ in placed:
        before = len(given)
        if not placed.is_slow:
            placed.read_ahead()
        early.append(len(given) > before)
    assert early == [True, False, False, True, False]  # the first slow one cannot be known; the last is the end


def test_the_room_of_stacks_fits_the_lines() -> None:
    """All room of a stack is copied to the device, also what is empty."""
    assert [_capacity(every) for every in (0, 1, 10, 64, 65, 100, 128, 1000)] == [CAPACITY, 1, 10, 64, 33, 50, 64, 63]
