"""cntk.learner: the name that betas of CNTK 2.0 had for cntk.learners."""

from .learners import *  # noqa: F403
from .learners import __all__ as names
from .missing import no_attribute, warn_beta

warn_beta("cntk.learner", "cntk.learners")

__all__ = list(names)

__getattr__ = no_attribute("cntk.learner", __all__)
