"""cntk.initializer: how random parameters start."""

from cntkpy.networks.builders.python import initializers
from cntkpy.networks.builders.python.initializers import *  # noqa: F403

from .missing import no_attribute

__all__: list[str] = []
__all__ += initializers.__all__

__getattr__ = no_attribute("cntk.initializer", __all__)
