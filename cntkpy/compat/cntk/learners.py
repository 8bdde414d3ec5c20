"""cntk.learners: learners and schedules with CNTK's arguments. Rates and momenta are those of schedules only."""

from __future__ import annotations

from enum import Enum
from typing import Any

from cntk_config import UserError
from trainers.session import learners as own
from trainers.session import schedules
from trainers.session.learners import Learner
from trainers.session.schedules import Schedule

from .missing import no_attribute

IGNORE = 0


class UnitType(Enum):
    """What a value of an old schedule is for."""

    minibatch = "minibatch"
    sample = "sample"


def learning_parameter_schedule(
    schedule: Any, minibatch_size: int | None = None, epoch_size: int | None = None
) -> Schedule:
    """A learning rate for the mean gradient of minibatches (of `minibatch_size` samples)."""
    return schedules.learning_rate(schedule, minibatch_size, epoch_size)


def learning_parameter_schedule_per_sample(schedule: Any, epoch_size: int | None = None) -> Schedule:
    """A learning rate per sample."""
    return schedules.learning_rate_per_sample(schedule, epoch_size)


def learning_rate_schedule(lr: Any, unit: UnitType, epoch_size: int | None = None) -> Schedule:
    """A learning rate, in CNTK's older form."""
    return schedules.learning_rate(lr, 1 if _unit(unit) is UnitType.sample else None, epoch_size)


training_parameter_schedule = learning_rate_schedule


def momentum_schedule(momentum: Any, epoch_size: int | None = None, minibatch_size: int | None = None) -> Schedule:
    """A momentum per minibatch (of `minibatch_size` samples)."""
    return schedules.momentum(momentum, minibatch_size, epoch_size)


def momentum_schedule_per_sample(momentum: Any, epoch_size: int | None = None) -> Schedule:
    """A momentum per sample."""
    return schedules.momentum_per_sample(momentum, epoch_size)


def momentum_as_time_constant_schedule(momentum: Any, epoch_size: int | None = None) -> Schedule:
    """A momentum as a time constant in samples."""
    return schedules.momentum_as_time_constant(momentum, epoch_size)


def _unit(unit: Any) -> UnitType:
    if not isinstance(unit, UnitType):
        raise UserError("BadChoice", f"a unit is UnitType.sample or UnitType.minibatch, not {unit!r}")
    return unit


def sgd(parameters: Any, lr: Any, **options: Any) -> Learner:
    """See `cntkpy.training.learners.sgd`."""
    return own.sgd(parameters, lr, **_known(options))


def momentum_sgd(parameters: Any, lr: Any, momentum: Any, unit_gain: bool = True, **options: Any) -> Learner:
    """See `cntkpy.training.learners.momentum_sgd`; with unit gain, as CNTK has it."""
    return own.momentum_sgd(parameters, lr, momentum, unit_gain, **_known(options))


def nesterov(parameters: Any, lr: Any, momentum: Any, unit_gain: bool = True, **options: Any) -> Learner:
    """See `cntkpy.training.learners.nesterov`; with unit gain, as CNTK has it."""
    return own.nesterov(parameters, lr, momentum, unit_gain, **_known(options))


def adagrad(parameters: Any, lr: Any, need_ave_multiplier: bool = True, **options: Any) -> Learner:
    """See `cntkpy.training.learners.adagrad`."""
    return own.adagrad(parameters, lr, need_ave_multiplier, **_known(options))


def rmsprop(
    parameters: Any, lr: Any, gamma: float, inc: float, dec: float, max: float, min: float,
    need_ave_multiplier: bool = True, **options: Any,
) -> Learner:  # fmt: skip
    """CNTK's RMSProp, with a step factor for each element."""
    return own.rmsprop_with_steps(parameters, lr, gamma, inc, dec, max, min, need_ave_multiplier, **_known(options))


def fsadagrad(
    parameters: Any, lr: Any, momentum: Any, unit_gain: bool = True, variance_momentum: Any = None, **options: Any
) -> Learner:
    """CNTK's FSAdaGrad."""
    if not unit_gain:
        raise UserError("NotSupported", "fsadagrad has unit gain", hint="leave unit_gain out")
    constant = 720000.0
    if variance_momentum is not None:
        schedule = schedules.as_schedule(variance_momentum)
        constant = schedules.time_constant_of(schedule)
    return own.fsadagrad(parameters, lr, momentum, constant, **_known(options))


def adam(
    parameters: Any, lr: Any, momentum: Any, unit_gain: bool = True, variance_momentum: Any = None,
    epsilon: float = 1e-8, adamax: bool = False, **options: Any,
) -> Learner:  # fmt: skip
    """See `cntkpy.training.learners.adam` and `adamax`."""
    make = own.adamax if adamax else own.adam
    variance = schedules.momentum_as_time_constant(720000) if variance_momentum is None else variance_momentum
    return make(parameters, lr, momentum, variance, epsilon, unit_gain, **_known(options))


def adadelta(parameters: Any, lr: Any = 1.0, rho: float = 0.95, epsilon: float = 1e-8, **options: Any) -> Learner:
    """See `cntkpy.training.learners.adadelta`."""
    return own.adadelta(parameters, lr, rho, epsilon, **_known(options))


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Without what changes nothing here: minibatch_size and epoch_size belong to schedules."""
    for name in ("use_mean_gradient", "minibatch_size", "epoch_size"):
        if options.pop(name, None) not in (None, False, IGNORE):
            hint = "learning_parameter_schedule(lr, minibatch_size=..., epoch_size=...) of the rate says it"
            raise UserError("NotSupported", f"a learner has no argument '{name}'", hint=hint)
    return options


__all__ = [
    "IGNORE", "Learner", "UnitType", "adadelta", "adagrad", "adam", "fsadagrad", "learning_parameter_schedule",
    "learning_parameter_schedule_per_sample", "learning_rate_schedule", "momentum_as_time_constant_schedule",
    "momentum_schedule", "momentum_schedule_per_sample", "momentum_sgd", "nesterov", "rmsprop", "sgd",
    "training_parameter_schedule",
]  # fmt: skip

__getattr__ = no_attribute("cntk.learners", __all__)
