"""Run the compiled step on stacks of minibatches, and read the results late, so that the device does not wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.network import Node
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.monitors.not_finite import first_not_finite
from cntkpy.trainers.step.ahead import PlacedStack
from cntkpy.trainers.step.context import Callback
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep


@dataclass(frozen=True)
class NotFinite:
    """A minibatch whose criterion is infinite or not a number.

    Attributes:
        number: of the minibatch, from 1.
        stack: the stack that it is part of.
        index: its place there.
    """

    number: int
    stack: Stack
    index: int

    @property
    def minibatch(self) -> Minibatch:
        """The data."""
        return self.stack.minibatches[self.index]

    def node(self, step: CompiledStep) -> Node | None:
        """Return the first node that is not finite with the parameters of now."""
        return first_not_finite(step.network, step.nodes[0], step.at(self.stack, self.index, self.number))


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
        self,
        step: CompiledStep,
        stack: Stack | PlacedStack,
        settings: EpochSettings,
        callbacks: Sequence[Callback] = (),
    ) -> TrainedStack:
        """Train on a stack; its results are not waited for."""
        results = step.run(stack, settings, self.done, callbacks)
        trained = TrainedStack(stack.stack if isinstance(stack, PlacedStack) else stack, results, self.done)
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
