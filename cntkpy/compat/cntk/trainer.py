"""cntk.trainer: the name that betas of CNTK 2.0 had for cntk.train.trainer."""

from .missing import no_attribute, warn_beta
from .train import trainer
from .train.trainer import *  # noqa: F403

warn_beta("cntk.trainer", "cntk.train.trainer")

__all__: list[str] = []
__all__ += trainer.__all__

__getattr__ = no_attribute("cntk.trainer", __all__)
