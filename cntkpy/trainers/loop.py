"""The loop: the compiled step runs on stacks of minibatches, results are read late, hooks get what happens."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.hooks import Frequency, Hook, Interval, Position, Stopwatch
from cntkpy.trainers.log import text
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.step.context import Callback, StepContext
from cntkpy.trainers.step.feed import CAPACITY, Placed, PlacedStack, State
from cntkpy.trainers.step.not_finite import NotFinite
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")


@dataclass(frozen=True)
class TrainedStack:
    """A stack that was trained on, whose results may not be ready.

    Attributes:
        stack: the minibatches.
        results: (capacity, columns), on the device; see `CompiledStep.run`.
        done: minibatches before it.
    """

    stack: Stack
    results: Any
    done: int

    def values(self) -> NDArray[np.float64]:
        """Return the results (minibatches, columns) when they are ready."""
        return np.asarray(self.results, np.float64)[: len(self.stack.minibatches)]

    def not_finite(self, values: NDArray[np.float64]) -> NotFinite | None:
        """Return the first minibatch whose criterion is not finite, if there is one among these results."""
        bad = np.flatnonzero(~np.isfinite(values[:, 0]))
        return NotFinite(self.done + int(bad[0]) + 1, self.stack, int(bad[0])) if len(bad) else None


class StepRunner:
    """Runs the step.

    Args:
        read: gets every stack in order when its results are wanted.
        done: minibatches trained on before.

    Attributes:
        done: minibatches given to the step so far.
    """

    def __init__(self, read: Callable[[TrainedStack], None], done: int = 0) -> None:
        self._read, self.done = read, done
        self._unread: deque[TrainedStack] = deque()

    def run(
        self, step: CompiledStep, placed: PlacedStack, settings: EpochSettings, callbacks: Sequence[Callback] = ()
    ) -> TrainedStack:
        """Train on a stack; its results are not waited for."""
        trained = TrainedStack(placed.stack, step.run(placed, settings, self.done, callbacks), self.done)
        self._unread.append(trained)
        self.done += len(trained.stack.minibatches)
        return trained

    def collect(self, but: int = 0) -> None:
        """Wait for the results of all stacks but the last ones."""
        while len(self._unread) > but:
            self._read(self._unread.popleft())

    def drop(self) -> None:
        """Drop the results that are not read."""
        self._unread.clear()


@dataclass
class EpochView:
    """Reports of an epoch while it runs.

    Attributes:
        frequency: Minibatches after which an interval is reported; results are waited for there.
        hooks: Are called in this order.
        perf: Log where the time of every minibatch goes.
        callbacks: Get every minibatch before it is trained on.
    """

    frequency: Frequency = field(default_factory=Frequency)
    hooks: Sequence[Hook] = ()
    perf: bool = False
    callbacks: Sequence[Callback] = ()

    @property
    def one_by_one(self) -> bool:
        """Return whether a stack has one minibatch."""
        return self.perf or bool(self.callbacks)


def _capacity(every: int | None) -> int:
    """Return the minibatches of a stack, of which all room is copied: those between two lines in equal parts."""
    return -(-every // -(-every // CAPACITY)) if every else CAPACITY


class Loop:
    """Trains on the minibatches of an epoch.

    Results are fetched one stack late, so that reading and computing overlap, except where a line is due. Where a
    stack is copied to the device, the next is read and on its way before any results are waited for that the device
    still computes, see `cntkpy.trainers.step.feed`.

    Args:
        step: The compiled step.
        settings: The scalars of the epoch.
        view: What is reported.
        position: The progress of an epoch that is resumed; None: the epoch begins.
        state: The position of its data; None: their beginning.

    Attributes:
        position: The progress.
        frequency: Minibatches after which an interval is reported.
    """

    def __init__(
        self,
        step: CompiledStep,
        settings: EpochSettings,
        view: EpochView,
        position: Position | None = None,
        state: State | None = None,
    ) -> None:
        if position is None:
            step.forget()
        self._step, self._settings, self._view = step, settings, view
        self.frequency = view.frequency
        self.position = position or Position.start(step.nodes)
        self._runner = StepRunner(self._read, self.position.done)
        self._clock = Stopwatch()
        self._state, self._feed = state, None

    def train(self, data: Iterator[Minibatch], minibatch_size: int) -> Position:
        """Train on all minibatches of `data`; those of a resumed epoch begin after its position.

        Raises:
            UserError: The data are wrong, or a hook refuses the criterion.
        """
        view, position, first = self._view, self.position, self.position.done
        copies = self._step.copies and not view.one_by_one
        capacity = _capacity(view.frequency.every if copies else None)
        batcher = self._step.batcher(minibatch_size, 1 if view.one_by_one else capacity)
        for hook in view.hooks:
            hook.on_start()
        self._clock.restart()
        waiting = time.perf_counter()
        stacks = batcher.stacks(data, lambda number: view.frequency.is_due(first + number))
        feed = self._feed = Placed(stacks, self._step.place)
        if self._state is not None:
            feed.set_state(self._state)
        for trained, begun in self._trained(feed):
            stack, position.done = trained.stack, self._runner.done
            is_due = view.frequency.is_due(position.done)
            if view.perf:
                trained.values()
                now = time.perf_counter()
                sizes = stack.layouts[0].num_samples, int(stack.samples[0])
                log.info("%s", text.perf_trace(*sizes, begun - waiting, now - begun))
                waiting = now
            if (copies and not feed.is_slow) or (is_due and batcher.is_quick and not view.one_by_one):
                feed.read_ahead(partial(self._runner.collect, 1))
            self._runner.collect(but=0 if is_due else 1)
            if is_due:
                self._report(stack, feed.waited)
                feed.waited = 0.0
            for hook in view.hooks:
                hook.on_stack(self)
        for hook in view.hooks:
            hook.on_end()
        return self.collected()

    def collected(self) -> Position:
        """Wait for all results and return the position."""
        self._runner.collect()
        return self.position

    def data_state(self) -> State | None:
        """Return the position of the data after the last stack; None: they were not read, or have none."""
        return None if self._feed is None else self._feed.get_state()

    def _trained(self, feed: Placed) -> Iterator[tuple[TrainedStack, float]]:
        """Train on stacks; yield each with the time at which that began."""
        try:
            for placed in feed:
                begun = time.perf_counter()
                trained = self._runner.run(self._step, placed, self._settings, self._view.callbacks)
                del placed  # its memory is free when it was computed
                yield trained, begun
        except Stopped:
            for hook in self._view.hooks:
                hook.on_stopped(self)
            raise

    def _read(self, trained: TrainedStack) -> None:
        """Add the results of a stack."""
        values, stack, position, nodes = trained.values(), trained.stack, self.position, self._step.nodes
        position.not_finite = position.not_finite or trained.not_finite(values)
        added = values, int(stack.samples.sum()), stack.counts
        position.totals, position.interval = position.totals.add(nodes, *added), position.interval.add(nodes, *added)

    def _report(self, stack: Stack, waited: float) -> None:
        """Report the minibatches since the last report, the last of them that of a stack, and begin an interval."""
        position = self.position

        def context() -> StepContext:
            return self._step.at(stack, len(stack.minibatches) - 1, position.done)

        first, seconds = position.shown + 1, self._clock.seconds
        sums = position.interval, position.totals
        interval = Interval(*sums, first, position.done, seconds, waited, position.not_finite, context)
        for hook in self._view.hooks:
            hook.on_interval(interval)
        position.shown, position.interval = position.done, Totals.start(self._step.nodes)
        self._clock.restart()


def not_a_number(criterion: str, where: str, bound: str, intact: str, notes: list[str]) -> UserError:
    """Return the error of a criterion that is not finite.

    Args:
        criterion: its name.
        where: epoch and minibatch.
        bound: the parameter that bounds gradients.
        intact: what is not changed.
        notes: further lines.
    """
    return UserError(
        "NotANumber",
        f"the training criterion '{criterion}' is not a number ({where})",
        hint=f"lower the learning rate, bound gradients with {bound}, or look for values in the data that are far too "
        f"large; {intact}",
        notes=notes,
    )
