"""The learning rate and the minibatch size of each epoch: listed, searched before it, or adjusted after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cntkpy.trainers.fronts.search import adapt_size, adapts_size, search_rate
from cntkpy.trainers.log import text
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.schedules.schedules import Schedules

if TYPE_CHECKING:
    from cntkpy.trainers.fronts.config.state import TrainingState

log = logging.getLogger("cntkpy.trainers")

EpochTrial = Callable[[int, float, int, int, str], float]
"""Trains an epoch's first samples: epoch, then the arguments of `cntkpy.trainers.fronts.search.Trial`."""


@dataclass(frozen=True)
class ParallelSequences:
    """The reader's number of parallel sequences, which converts rates that are given per minibatch.

    Args:
        per_epoch: One for each epoch; the last one repeats.
        varying: That number holds before the first minibatch only, then it is that of the last one read.
    """

    per_epoch: Sequence[int] = (1,)
    varying: bool = False


class RatePolicy:
    """Decides rate and minibatch size of every epoch.

    Args:
        parameters: The `SGD` section.
        schedules: Its listed values.
        state: The state of the training.
        sequences: The number of parallel sequences as an epoch begins.
    """

    def __init__(
        self, parameters: SGDParameters, schedules: Schedules, state: TrainingState, sequences: Callable[[int], int]
    ):
        self.parameters, self.schedules, self.state, self.sequences = parameters, schedules, state, sequences

    def rate(self, epoch: int, trial: EpochTrial) -> float:
        """Return the learning rate per sample of an epoch.

        Raises:
            UserError: No rate is known.
        """
        state = self.state
        if not self.schedules.automatic or epoch < self.schedules.listed_rates:
            return self.schedules.rate_per_sample(epoch, self.sequences(epoch))
        if self.schedules.searches_before_epoch:
            reference = state.control.reference
            rate = search_rate(self.parameters, epoch, state.found_rates, reference, partial(trial, epoch))
            state.search_ratio = rate / state.rate if state.rate else 1.0
            return rate
        if state.rate is None:
            raise self.parameters.error(
                "learningRatesPerMB",
                f"no learning rate is known for epoch {epoch + 1}",
                hint="autoAdjustLR = adjustAfterEpoch needs the rate of the first epoch: learningRatesPerMB = 0.1",
            )
        return state.rate

    def minibatch_size(self, epoch: int, rate: float, trial: EpochTrial) -> int:
        """Return the samples of a minibatch in an epoch."""
        p, state = self.parameters, self.state
        if not adapts_size(p, epoch):
            return p.minibatch_size[epoch]
        ratio = self.schedules.listed_ratio(epoch, self.sequences(epoch)) * state.search_ratio
        state.adapted_size = adapt_size(p, epoch, rate, state.adapted_size, ratio, partial(trial, epoch))
        return state.adapted_size

    def is_due(self, epoch: int) -> bool:
        """Return whether the rate is adjusted after an epoch."""
        return self.schedules.adjusts_after_epoch and self.state.control.due(epoch)

    def value(self, trained: list[text.Total], validated: list[text.Total] | None) -> float:
        """Return the value per sample that decides how good an epoch was."""
        auto = self.parameters.auto_adjust
        totals = validated if validated is not None and auto.use_validation else trained
        return totals[1 if auto.use_evaluation and len(totals) > 1 else 0].average

    def rolls_back_to(self, epoch: int) -> int | None:
        """Return the number of epochs after which training resumes, if a due decision finds that it got worse."""
        control = self.state.control
        if control.degraded and self.parameters.auto_adjust.load_best:
            return epoch + 1 - control.options.interval
        return None

    def adjust(self) -> bool:
        """Set the rate of the next epoch; whether training ends instead."""
        state = self.state
        assert state.rate is not None
        earlier = state.rate
        state.rate, ends = state.control.decide(earlier)
        if not ends and state.rate != earlier:
            log.info("learnRatePerSample %s to %.8g", "reduced" if state.rate < earlier else "increased", state.rate)
        return ends
