"""Learning rates and momenta that change during training."""

from __future__ import annotations

import math
from typing import Any

from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.schedules.schedule import Schedule, Values, of_time_constants, per_epoch

__all__ = [
    "Schedule", "as_schedule", "learning_rate", "learning_rate_per_sample", "minibatch_size", "momentum",
    "momentum_as_time_constant", "momentum_per_sample", "time_constant_of",
]  # fmt: skip

FULL_DATA_SWEEP = 0
"""An `epoch_size` of one pass over the data."""


def learning_rate(values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> Schedule:
    """Return a learning rate, for the mean gradient of a minibatch of `minibatch_size` samples; None: of any size."""
    return Schedule(values, minibatch_size, epoch_size)


def learning_rate_per_sample(values: Values, epoch_size: int | None = None) -> Schedule:
    """Return a learning rate for each sample: the gradient is summed over the minibatch."""
    return Schedule(values, 1, epoch_size)


def momentum(values: Values, minibatch_size: int | None = None, epoch_size: int | None = None) -> Schedule:
    """Return a momentum: how much is kept from one minibatch (of that size) to the next."""
    return Schedule(values, minibatch_size, epoch_size)


def momentum_per_sample(values: Values, epoch_size: int | None = None) -> Schedule:
    """Return a momentum: how much is kept from one sample to the next."""
    return Schedule(values, 1, epoch_size)


def momentum_as_time_constant(values: Values, epoch_size: int | None = None) -> Schedule:
    """Return a momentum as the number of samples after which 1/e of a gradient is left; 0 is no momentum."""
    constants = per_epoch(values)
    if any(value < 0 for value in constants.distinct()):
        raise ArgumentError(f"a time constant is a number of samples from 0 on, not {values!r}")
    return of_time_constants(constants, epoch_size)


def time_constant_of(schedule: Schedule) -> float:
    """Return the time constant of a constant momentum, in samples."""
    value, size = schedule.at(0), schedule.size
    if not schedule.constant or size is None or not 0 < value < 1:
        raise ArgumentError(f"{schedule!r} is no constant momentum per sample", "momentum_as_time_constant(n)")
    return -size / math.log(value)


def minibatch_size(values: Values, epoch_size: int | None = None) -> Schedule:
    """Return the samples of a minibatch."""
    return Schedule(values, None, epoch_size)


def as_schedule(value: Any) -> Schedule:
    """Return a schedule as it is; a number as a constant one, for minibatches of any size."""
    return value if isinstance(value, Schedule) else Schedule(value)
