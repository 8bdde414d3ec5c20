"""cntk.learners: learners and schedules with CNTK's arguments."""

from __future__ import annotations

from typing import Any

from cntkpy.trainers.fronts.cntk2.learners import Learner
from cntkpy.trainers.fronts.cntk2.user.learners import UserLearner as PlainUserLearner
from cntkpy.trainers.fronts.cntk2.user.learners import universal

from ..core import NDArrayView
from ..missing import no_attribute
from . import rules, schedules
from .rules import *  # noqa: F403
from .schedules import *  # noqa: F403
from .schedules import (
    infer_learning_parameter_schedule,
    infer_learning_rate_schedule_and_ref_minibatch_size,
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


__all__: list[str] = ["Learner", "UserLearner", "universal"]
__all__ += rules.__all__
__all__ += schedules.__all__

__getattr__ = no_attribute("cntk.learners", __all__)
