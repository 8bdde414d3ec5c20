"""`syncPerfStats`: log lines about the share and the speed of a worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cntkpy.trainers.hooks import Stopwatch
from cntkpy.trainers.step.averaging import Averaging

if TYPE_CHECKING:
    from cntkpy.trainers.rules.updates import Rule
    from cntkpy.trainers.step.stack import Stack
    from cntkpy.trainers.step.state import TrainState

log = logging.getLogger("cntkpy.trainers")


class Statistics:
    """Logs the share and the speed of this worker.

    Args:
        every: synchronisations between two lines; 0: there are none.
    """

    def __init__(self, every: int) -> None:
        self._every, self._done = every, 0
        self._worker_samples = self._samples = 0
        self._clock = Stopwatch()

    def add(self, stack: Stack, synchronisations: int) -> None:
        """Count the samples of a stack, and how often the workers synchronised in it."""
        if not self._every:
            return
        earlier, self._done = self._done, self._done + synchronisations
        self._worker_samples += sum(layout.num_samples for layout in stack.layouts)
        self._samples += int(stack.samples.sum())
        if earlier // self._every == self._done // self._every:
            return
        seconds = self._clock.lap()
        line = "Parallel training statistics: %d of %d samples by this process; time = %.4fs; samplesPerSecond = %.1f"
        log.info(line, self._worker_samples, self._samples, seconds, self._samples / seconds)
        self._worker_samples = self._samples = 0


class SynchronousUpdates(Averaging):
    """All workers have the same weights; they synchronise in every minibatch, of which there are statistics.

    Args:
        statistics: see `Statistics`.
    """

    def __init__(self, statistics: int = 0) -> None:
        self._statistics = Statistics(statistics)

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """Return the same state, and log statistics if they are due."""
        self._statistics.add(stack, len(stack.minibatches))
        return state
