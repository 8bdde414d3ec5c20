"""cntk.learners: learners and schedules with CNTK's arguments."""

from __future__ import annotations

from typing import Any

from trainers.session.learners import Learner
from trainers.session.user_learners import UserLearner as PlainUserLearner
from trainers.session.user_learners import universal

from ..core import NDArrayView
from ..missing import no_attribute
from . import rules, schedules
from .rules import *  # noqa: F403
from .schedules import *  # noqa: F403


class UserLearner(PlainUserLearner):
    """See `trainers.session.user_learners.UserLearner`; without `as_numpy` gradients are `NDArrayView`s."""

    def given(self, gradient: Any) -> Any:
        """A gradient as `update` is given it."""
        return gradient if self._as_numpy else NDArrayView.from_dense(gradient)


__all__ = ["Learner", "UserLearner", "universal"]
__all__ += rules.__all__
__all__ += schedules.__all__

__getattr__ = no_attribute("cntk.learners", __all__)
