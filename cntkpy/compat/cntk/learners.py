"""cntk.learners: learners and schedules with CNTK's arguments. Rates and momenta are those of schedules only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Unpack

from cntk_config import UserError
from trainers.session import learners as own
from trainers.session import schedules
from trainers.session.learners import Learner, LearnerOptions, Parameters, Rate
from trainers.session.schedules import Schedule
from trainers.session.user_learners import UserLearner as PlainUserLearner
from trainers.session.user_learners import universal

from .core import NDArrayView
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
    return schedules.learning_rate(lr, 1 if _unit(unit) is UnitType.sample else IGNORE, epoch_size)


def training_parameter_schedule(schedule: Any, unit: UnitType, epoch_size: int | None = None) -> Schedule:
    """A number of a learner that changes, in CNTK's older form."""
    return learning_rate_schedule(schedule, unit, epoch_size)


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


class CntkOptions(LearnerOptions, total=False):
    """What every learner of CNTK takes besides."""

    minibatch_size: int | None
    """The samples that rates and momenta are for, where their schedules do not say; 0: a minibatch of any size."""
    epoch_size: int | None
    """Samples of an epoch of such schedules."""
    use_mean_gradient: bool | None
    """Whether the gradient is the mean over the minibatch."""


def sgd(parameters: Parameters, lr: Rate, **options: Unpack[CntkOptions]) -> Learner:
    """See `cntkpy.training.learners.sgd`."""
    return _learner(partial(own.sgd, parameters), lr, options)


def momentum_sgd(
    parameters: Parameters, lr: Rate, momentum: Rate, unit_gain: bool | None = None, **options: Unpack[CntkOptions]
) -> Learner:
    """See `cntkpy.training.learners.momentum_sgd`; with unit gain, as CNTK has it."""
    make = partial(own.momentum_sgd, parameters, unit_gain=_gain(unit_gain))
    return _learner(make, lr, options, momentum)


def nesterov(
    parameters: Parameters, lr: Rate, momentum: Rate, unit_gain: bool | None = None, **options: Unpack[CntkOptions]
) -> Learner:
    """See `cntkpy.training.learners.nesterov`; with unit gain, as CNTK has it."""
    return _learner(partial(own.nesterov, parameters, unit_gain=_gain(unit_gain)), lr, options, momentum)


def adagrad(
    parameters: Parameters, lr: Rate, need_ave_multiplier: bool = True, **options: Unpack[CntkOptions]
) -> Learner:
    """See `cntkpy.training.learners.adagrad`."""
    return _learner(partial(own.adagrad, parameters, need_ave_multiplier=need_ave_multiplier), lr, options)


def rmsprop(
    parameters: Parameters,
    lr: Rate,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    **options: Unpack[CntkOptions],
) -> Learner:
    """CNTK's RMSProp, with a step factor for each element."""
    rule = {"gamma": gamma, "inc": inc, "dec": dec, "max": max, "min": min, "need_ave_multiplier": need_ave_multiplier}
    return _learner(partial(own.rmsprop_with_steps, parameters, **rule), lr, options)


def fsadagrad(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    variance_momentum: Rate | None = None,
    **options: Unpack[CntkOptions],
) -> Learner:
    """See `cntkpy.training.learners.fsadagrad`."""
    constant = 720000.0
    if variance_momentum is not None:
        schedule = schedules.as_schedule(variance_momentum)
        if schedule.minibatch_size is None:
            schedule = Schedule(schedule.steps, options.get("minibatch_size") or 1, schedule.epoch_size)
        constant = schedules.time_constant_of(schedule)
    more = {"variance_time_constant": constant, "unit_gain": _gain(unit_gain)}
    return _learner(partial(own.fsadagrad, parameters, **more), lr, options, momentum)


def adam(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    variance_momentum: Rate | None = None,
    epsilon: float = 1e-8,
    adamax: bool = False,
    **options: Unpack[CntkOptions],
) -> Learner:
    """See `cntkpy.training.learners.adam` and `adamax`."""
    variance = schedules.momentum_as_time_constant(720000) if variance_momentum is None else variance_momentum
    variance = _for_size(variance, _size_of(options))
    more = {"variance_momentum": variance, "epsilon": epsilon, "unit_gain": _gain(unit_gain)}
    return _learner(partial(own.adamax if adamax else own.adam, parameters, **more), lr, options, momentum)


def adadelta(
    parameters: Parameters, lr: Rate = 1.0, rho: float = 0.95, epsilon: float = 1e-8, **options: Unpack[CntkOptions]
) -> Learner:
    """See `cntkpy.training.learners.adadelta`."""
    return _learner(partial(own.adadelta, parameters, rho=rho, epsilon=epsilon), lr, options)


def _learner(make: Callable[..., Learner], lr: Rate, given: CntkOptions, *momentum: Rate) -> Learner:
    """A learner whose rate and momentum are for minibatches of `minibatch_size` samples, where they do not say.

    Args:
        make: takes rate, momentum (of a rule that has it) and the other options.
        lr: the rate: a schedule, a number or numbers.
        given: CNTK's options.
        momentum: of a rule that has it, as the rate.
    """
    options: dict[str, Any] = {**given}
    size, epoch = _size_of(options), options.pop("epoch_size", None)
    mean = _is_mean(options)
    for name in ("minibatch_size", "use_mean_gradient"):
        options.pop(name, None)
    rate = _for_size(lr, size, epoch)
    if mean and rate.minibatch_size == 1:  # the mean gradient takes a rate as it is
        rate = rate.for_minibatches_of(IGNORE)
    learner = make(rate, *(_for_size(one, size, epoch) for one in momentum), **options)
    learner.size = size or rate.minibatch_size
    return learner


def _is_mean(options: Mapping[str, Any]) -> bool:
    given = options.get("use_mean_gradient")
    return _defaults["use_mean_gradient"] if given is None else bool(given)


def _size_of(options: Mapping[str, Any]) -> int | None:
    """The samples that the numbers of a learner are for; None: it does not say."""
    size = options.get("minibatch_size")
    return IGNORE if size is None and _is_mean(options) else size


def _for_size(given: Any, size: int | None, epoch: int | None = None) -> Schedule:
    """A schedule, for minibatches of `size` samples where it does not say."""
    if not isinstance(given, Schedule):
        return Schedule(given, size, epoch)
    return given if size is None or not given.open else given.for_minibatches_of(size)


_defaults = {"unit_gain": True, "use_mean_gradient": False}


class UserLearner(PlainUserLearner):
    """See `trainers.session.user_learners.UserLearner`; without `as_numpy` gradients are `NDArrayView`s."""

    def given(self, gradient: Any) -> Any:
        """A gradient as `update` is given it."""
        return gradient if self._as_numpy else NDArrayView.from_dense(gradient)


def default_unit_gain_value() -> bool:
    """Whether momentum has unit gain where a learner does not say."""
    return _defaults["unit_gain"]


def set_default_unit_gain_value(value: bool) -> None:
    """Let momentum have unit gain, or not, where a learner does not say."""
    _defaults["unit_gain"] = bool(value)


def default_use_mean_gradient_value() -> bool:
    """Whether rates are for the mean gradient where a learner does not say."""
    return _defaults["use_mean_gradient"]


def set_default_use_mean_gradient_value(value: bool) -> None:
    """Let rates be for the mean gradient, or not, where a learner does not say."""
    _defaults["use_mean_gradient"] = bool(value)


def _gain(given: bool | None) -> bool:
    return _defaults["unit_gain"] if given is None else given


__all__ = [
    "IGNORE", "Learner", "UnitType", "UserLearner", "adadelta", "adagrad", "adam", "default_unit_gain_value",
    "default_use_mean_gradient_value", "fsadagrad", "learning_parameter_schedule",
    "learning_parameter_schedule_per_sample", "learning_rate_schedule", "momentum_as_time_constant_schedule",
    "momentum_schedule", "momentum_schedule_per_sample", "momentum_sgd", "nesterov", "rmsprop",
    "set_default_unit_gain_value", "set_default_use_mean_gradient_value", "sgd",
    "training_parameter_schedule", "universal",
]  # fmt: skip

__getattr__ = no_attribute("cntk.learners", __all__)
