"""Schedules of learners with CNTK's arguments, the forms that CNTK calls deprecated among them."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import schedules
from cntkpy.trainers.fronts.cntk2.schedules import Schedule

from ..missing import no_attribute

IGNORE = 0
"""A size of minibatches that does not matter."""


class UnitType(Enum):
    """Unit of a value of an old schedule."""

    minibatch = "minibatch"
    sample = "sample"


def learning_parameter_schedule(
    schedule: Any, minibatch_size: int | None = None, epoch_size: int | None = None
) -> Schedule:
    """Return a learning rate for the mean gradient of minibatches (of `minibatch_size` samples)."""
    return schedules.learning_rate(schedule, minibatch_size, epoch_size)


def learning_parameter_schedule_per_sample(schedule: Any, epoch_size: int | None = None) -> Schedule:
    """Return a learning rate per sample."""
    return schedules.learning_rate_per_sample(schedule, epoch_size)


def learning_rate_schedule(lr: Any, unit: UnitType, epoch_size: int | None = None) -> Schedule:
    """Return a learning rate, in CNTK's older form.

    Warns:
        DeprecationWarning: always, as CNTK's documentation says since 2.2.
    """
    _deprecated("learning_rate_schedule", "learning_parameter_schedule, or learning_parameter_schedule_per_sample")
    return _of_unit(lr, unit, epoch_size)


def training_parameter_schedule(
    schedule: Any, unit: UnitType = UnitType.minibatch, epoch_size: int | None = None
) -> Schedule:
    """Return a number of a learner that changes, in CNTK's older form.

    Warns:
        DeprecationWarning: always, as CNTK's documentation says since 2.2.
    """
    _deprecated("training_parameter_schedule", "learning_parameter_schedule, or learning_parameter_schedule_per_sample")
    return _of_unit(schedule, unit, epoch_size)


def momentum_schedule(momentum: Any, epoch_size: int | None = None, minibatch_size: int | None = None) -> Schedule:
    """Return a momentum per minibatch (of `minibatch_size` samples)."""
    return schedules.momentum(momentum, minibatch_size, epoch_size)


def momentum_schedule_per_sample(momentum: Any, epoch_size: int | None = None) -> Schedule:
    """Return a momentum per sample."""
    return schedules.momentum_per_sample(momentum, epoch_size)


def momentum_as_time_constant_schedule(momentum: Any, epoch_size: int | None = None) -> Schedule:
    """Return a momentum as a time constant in samples.

    Warns:
        DeprecationWarning: always, as CNTK's documentation says since 2.2.
    """
    _deprecated("momentum_as_time_constant_schedule(t)", "momentum_schedule_per_sample(exp(-1 / t))")
    return schedules.momentum_as_time_constant(momentum, epoch_size)


def infer_learning_parameter_schedule(
    number_or_schedule: Any, minibatch_size: int | None = None, epoch_size: int | None = None
) -> Schedule:
    """Return a schedule of a number, a list or a schedule; libraries call it."""
    if isinstance(number_or_schedule, Schedule):
        return number_or_schedule
    return learning_parameter_schedule(number_or_schedule, minibatch_size, epoch_size)


def infer_learning_rate_schedule_and_ref_minibatch_size(
    use_mean_gradient: bool | None, minibatch_size: int | None, lr: Any, epoch_size: int | None
) -> tuple[Schedule, int | None]:
    """Return a learning rate and the size of minibatches that it is meant for; libraries call it."""
    minibatch_size = IGNORE if use_mean_gradient else minibatch_size
    return infer_learning_parameter_schedule(lr, minibatch_size, epoch_size), minibatch_size


def verify_momentum_type(schedule: Any) -> None:
    """Refuse anything but a schedule; libraries call it.

    Raises:
        ArgumentError: It is none.
    """
    if not isinstance(schedule, Schedule):
        raise ArgumentError(f"{schedule!r} is not a schedule", "momentum_schedule(0.9) makes one")


def _of_unit(values: Any, unit: Any, epoch_size: int | None) -> Schedule:
    if not isinstance(unit, UnitType):
        raise ArgumentError(f"a unit is UnitType.sample or UnitType.minibatch, not {unit!r}")
    return schedules.learning_rate(values, 1 if unit is UnitType.sample else IGNORE, epoch_size)


def _deprecated(name: str, instead: str) -> None:
    """Warn the caller of the function that calls this one."""
    warnings.warn(f"{name} is deprecated since CNTK 2.2: use {instead}", DeprecationWarning, stacklevel=3)


__all__ = [
    "IGNORE", "UnitType", "learning_parameter_schedule", "learning_parameter_schedule_per_sample",
    "learning_rate_schedule", "momentum_as_time_constant_schedule", "momentum_schedule",
    "momentum_schedule_per_sample", "training_parameter_schedule",
]  # fmt: skip

__getattr__ = no_attribute("cntk.learners", __all__)
