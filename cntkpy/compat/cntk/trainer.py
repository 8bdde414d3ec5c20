"""cntk.trainer: the name that betas of CNTK 2.0 had for cntk.train.trainer."""

from .missing import no_attribute, warn_beta
from .train.trainer import *  # noqa: F403
from .train.trainer import __all__ as names

warn_beta("cntk.trainer", "cntk.train.trainer")

__all__ = list(names)

__getattr__ = no_attribute("cntk.trainer", __all__)
