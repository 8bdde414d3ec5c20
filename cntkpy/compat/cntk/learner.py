"""cntk.learner: the name that betas of CNTK 2.0 had for cntk.learners."""

from . import learners
from .learners import *  # noqa: F403
from .missing import no_attribute, warn_beta

warn_beta("cntk.learner", "cntk.learners")

__all__: list[str] = []
__all__ += learners.__all__

__getattr__ = no_attribute("cntk.learner", __all__)
