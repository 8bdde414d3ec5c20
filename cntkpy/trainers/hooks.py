"""Hooks of a training: the interface through which both fronts log, track, check, save, validate and stop.

A front calls its hooks after a stack of minibatches, an interval and an epoch. A hook ends a training by raising.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cntkpy.networks.graph.network import Node
from cntkpy.readers.common.planned import State
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.step.context import StepContext
from cntkpy.trainers.step.not_finite import NotFinite


@dataclass(frozen=True)
class Frequency:
    """Minibatches after which an interval is reported.

    Attributes:
        every: after every so many; 0: after 1, 2, 4, 8, ...; None: never.
        first: also after each of the first so many.
    """

    every: int | None = None
    first: int = 0

    def is_due(self, minibatches: int) -> bool:
        """Return whether a report is due after this many minibatches, at least 1."""
        if minibatches <= self.first:
            return True
        if self.every is None:
            return False
        return minibatches & (minibatches - 1) == 0 if self.every == 0 else minibatches % self.every == 0


class Stopwatch:
    """Seconds since a start."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start

    def lap(self) -> float:
        """Return the seconds so far, and count from now on."""
        now = time.perf_counter()
        seconds, self._start = now - self._start, now
        return seconds


@dataclass(frozen=True)
class Interval:
    """Consecutive minibatches that are reported together.

    Attributes:
        totals: Their sums.
        epoch: Sums since the epoch began.
        first: Number of the first minibatch in its epoch, from 1.
        last: Number of the last one.
        seconds: Time since the interval before.
        waited: Seconds of these in which data were waited for.
        not_finite: The first minibatch whose criterion is not a number, if there is one.
        context: Returns the last minibatch with the parameters of now.
    """

    totals: Totals
    epoch: Totals
    first: int
    last: int
    seconds: float
    waited: float = 0.0
    not_finite: NotFinite | None = None
    context: Callable[[], StepContext] | None = None


@dataclass
class Position:
    """The progress of an epoch.

    Attributes:
        totals: Sums of the nodes since the start of the epoch.
        interval: The same since the last progress line.
        done: Minibatches trained on.
        shown: Minibatches up to that line.
        not_finite: The first minibatch whose criterion is not a number, once there is one.
    """

    totals: Totals
    interval: Totals
    done: int = 0
    shown: int = 0
    not_finite: NotFinite | None = None

    @classmethod
    def start(cls, nodes: Sequence[Node]) -> Position:
        """Return the start of an epoch."""
        return cls(Totals.start(nodes), Totals.start(nodes))

    def to_json(self) -> State:
        """Return a JSON-able form."""
        return {
            "done": self.done,
            "shown": self.shown,
            "sums": self.totals.to_json(),
            "interval": self.interval.to_json(),
        }

    @classmethod
    def from_json(cls, nodes: Sequence[Node], saved: State) -> Position:
        """Return the position that `to_json` has described."""
        totals, interval = (Totals.from_json(nodes, saved[key]) for key in ("sums", "interval"))
        return cls(totals, interval, saved["done"], saved["shown"])


class Running(Protocol):
    """The loop over an epoch, as hooks see it."""

    position: Position
    frequency: Frequency

    def collected(self) -> Position:
        """Wait for all results and return the position."""
        ...

    def data_state(self) -> State | None:
        """Return the position of the data after the last stack; None: they were not read, or have none."""
        ...


class Hook:
    """Receives the events of a training; a method does nothing unless it is overridden."""

    def on_interval(self, interval: Interval) -> None:
        """Report the minibatches since the report before."""

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """Report an epoch.

        Args:
            totals: Sums over its minibatches.
            seconds: Its duration.
            with_metric: Whether there is anything besides the loss.
        """

    def on_start(self) -> None:
        """Begin an epoch."""

    def on_stack(self, run: Running) -> None:
        """Go on after a stack was given to the device, and reported if that was due."""

    def on_stopped(self, run: Running) -> None:
        """Save the state: reading or compiling was stopped after the last stack."""

    def on_end(self) -> None:
        """End an epoch."""
