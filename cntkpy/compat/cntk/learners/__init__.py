"""cntk.learners: learners and schedules with CNTK's arguments."""

from __future__ import annotations

from typing import Any

from cntkpy.trainers.fronts.cntk2.learners import Learner
from cntkpy.trainers.fronts.cntk2.user.learners import UserLearner as PlainUserLearner
from cntkpy.trainers.fronts.cntk2.user.learners import universal

from ..core import NDArrayView
from ..missing import no_attribute
from .rules import (
    adadelta,
    adagrad,
    adam,
    default_unit_gain_value,
    default_use_mean_gradient_value,
    fsadagrad,
    momentum_sgd,
    nesterov,
    rmsprop,
    set_default_unit_gain_value,
    set_default_use_mean_gradient_value,
    sgd,
)
from .schedules import (
    IGNORE,
    UnitType,
    infer_learning_parameter_schedule,
    infer_learning_rate_schedule_and_ref_minibatch_size,
    learning_parameter_schedule,
    learning_parameter_schedule_per_sample,
    learning_rate_schedule,
    momentum_as_time_constant_schedule,
    momentum_schedule,
    momentum_schedule_per_sample,
    training_parameter_schedule,
    verify_momentum_type,
)

_infer_learning_parameter_schedule = infer_learning_parameter_schedule
_infer_learning_rate_schedule_and_ref_minibatch_size = infer_learning_rate_schedule_and_ref_minibatch_size
_verify_momentum_type = verify_momentum_type


class UserLearner(PlainUserLearner):
    """See `cntkpy.trainers.fronts.cntk2.user.learners.UserLearner`; without `as_numpy` gradients are `NDArrayView`s."""

    def given(self, gradient: Any) -> Any:
        """Return a gradient as `update` is given it."""
        return gradient if self._as_numpy else NDArrayView.from_dense(gradient)


__all__ = [
    "IGNORE", "Learner", "UnitType", "UserLearner", "adadelta", "adagrad", "adam", "default_unit_gain_value",
    "default_use_mean_gradient_value", "fsadagrad", "learning_parameter_schedule",
    "learning_parameter_schedule_per_sample", "learning_rate_schedule", "momentum_as_time_constant_schedule",
    "momentum_schedule", "momentum_schedule_per_sample", "momentum_sgd", "nesterov", "rmsprop",
    "set_default_unit_gain_value", "set_default_use_mean_gradient_value", "sgd", "training_parameter_schedule",
    "universal",
]  # fmt: skip

__getattr__ = no_attribute("cntk.learners", __all__)
