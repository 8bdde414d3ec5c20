"""Learners with CNTK's arguments. Rates and momenta are those of schedules only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cntkpy.trainers.fronts.cntk2 import learners as own
from cntkpy.trainers.fronts.cntk2 import schedules
from cntkpy.trainers.fronts.cntk2.learners import Learner, Parameters, Rate
from cntkpy.trainers.fronts.cntk2.schedules import Schedule

from ..missing import no_attribute
from .schedules import IGNORE

ONE_PER_SAMPLE = schedules.learning_rate_per_sample(1.0)

_defaults = {"unit_gain": True, "use_mean_gradient": False}


def sgd(
    parameters: Parameters,
    lr: Rate,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.sgd`; `_Meaning` says what sizes and `use_mean_gradient` do."""
    return _learner(own.sgd, locals())


def momentum_sgd(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.momentum_sgd`; with unit gain, as CNTK has it."""
    return _learner(own.momentum_sgd, locals())


def nesterov(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.nesterov`; with unit gain, as CNTK has it."""
    return _learner(own.nesterov, locals())


def adagrad(
    parameters: Parameters,
    lr: Rate,
    need_ave_multiplier: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.adagrad`."""
    return _learner(own.adagrad, locals())


def rmsprop(
    parameters: Parameters,
    lr: Rate,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """CNTK's RMSProp, with a step factor for each element."""
    return _learner(own.rmsprop_with_steps, locals())


def fsadagrad(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    variance_momentum: Rate | None = None,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.fsadagrad`."""
    arguments = locals()
    del arguments["variance_momentum"]
    if variance_momentum is not None:
        schedule = schedules.as_schedule(variance_momentum)
        if schedule.size is None:
            schedule = schedule.for_minibatches_of(minibatch_size or 1)
        arguments["variance_time_constant"] = schedules.time_constant_of(schedule)
    return _learner(own.fsadagrad, arguments)


def adam(
    parameters: Parameters,
    lr: Rate,
    momentum: Rate,
    unit_gain: bool | None = None,
    variance_momentum: Rate | None = None,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    epsilon: float = 1e-8,
    adamax: bool = False,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.adam` and `adamax`."""
    arguments = locals()
    rule = own.adamax if arguments.pop("adamax") else own.adam
    if variance_momentum is None:
        variance_momentum = schedules.momentum_as_time_constant(VARIANCE_SAMPLES)
    meaning = _Meaning(use_mean_gradient, minibatch_size, epoch_size)
    return _learner(rule, {**arguments, "variance_momentum": meaning.applied(variance_momentum)})


def adadelta(
    parameters: Parameters,
    lr: Rate = ONE_PER_SAMPLE,
    rho: float = 0.95,
    epsilon: float = 1e-8,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: float = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """See `cntkpy.training.learners.adadelta`."""
    return _learner(own.adadelta, locals())


VARIANCE_SAMPLES = 720000.0
"""The time constant of the mean square of gradients, where a learner does not say."""


@dataclass(frozen=True)
class _Meaning:
    """The meaning of a learner's numbers where a schedule does not define it.

    Attributes:
        mean: whether rates are for the mean gradient; None: the default.
        minibatch_size: the samples that they are for; None: they do not say, 0: any number.
        epoch_size: the samples of an epoch of plain numbers.
    """

    mean: bool | None
    minibatch_size: int | None
    epoch_size: int | None

    @property
    def is_mean(self) -> bool:
        """Return whether rates are for the mean gradient."""
        return _defaults["use_mean_gradient"] if self.mean is None else bool(self.mean)

    @property
    def size(self) -> int | None:
        """The samples that the numbers are for; None: nothing says."""
        return IGNORE if self.minibatch_size is None and self.is_mean else self.minibatch_size

    def applied(self, value: Any, epoch: int | None = None) -> Schedule:
        """Return a schedule, for minibatches of `size` samples where it does not say."""
        if not isinstance(value, Schedule):
            return Schedule(value, self.size, epoch)
        return value if self.size is None or not value.open else value.for_minibatches_of(self.size)


def _learner(rule: Callable[..., Learner], arguments: dict[str, Any]) -> Learner:
    """Return a learner.

    Args:
        rule: a function of `cntkpy.training.learners`.
        arguments: those of the function of CNTK's name; the rule takes all but the three of `_Meaning`.
    """
    options = dict(arguments)
    meaning = _Meaning(*(options.pop(name) for name in ("use_mean_gradient", "minibatch_size", "epoch_size")))
    rate = meaning.applied(options["lr"], meaning.epoch_size)
    if meaning.is_mean and rate.size == 1:  # the mean gradient takes a rate as it is
        rate = rate.for_minibatches_of(IGNORE)
    options["lr"] = rate
    if "momentum" in options:
        options["momentum"] = meaning.applied(options["momentum"], meaning.epoch_size)
    if "unit_gain" in options and options["unit_gain"] is None:
        options["unit_gain"] = _defaults["unit_gain"]
    learner = rule(**options)
    learner.size = meaning.size or rate.size
    learner.reported = ("Learning rate", "Momentum") if "momentum" in options else ("Learning rate",)
    learner.of_sums = meaning.size != IGNORE
    return learner


def default_unit_gain_value() -> bool:
    """Return whether momentum has unit gain where a learner does not say."""
    return _defaults["unit_gain"]


def set_default_unit_gain_value(value: bool) -> None:
    """Let momentum have unit gain, or not, where a learner does not say."""
    _defaults["unit_gain"] = bool(value)


def default_use_mean_gradient_value() -> bool:
    """Return whether rates are for the mean gradient where a learner does not say."""
    return _defaults["use_mean_gradient"]


def set_default_use_mean_gradient_value(value: bool) -> None:
    """Let rates be for the mean gradient, or not, where a learner does not say."""
    _defaults["use_mean_gradient"] = bool(value)


__all__ = [
    "adadelta", "adagrad", "adam", "default_unit_gain_value", "default_use_mean_gradient_value", "fsadagrad",
    "momentum_sgd", "nesterov", "rmsprop", "set_default_unit_gain_value", "set_default_use_mean_gradient_value", "sgd",
]  # fmt: skip

__getattr__ = no_attribute("cntk.learners", __all__)
