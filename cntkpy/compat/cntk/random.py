"""cntk.random: numbers drawn at random inside of a network."""

from networks.builders.python.random import *  # noqa: F403
from networks.builders.python.random import __all__ as _names

from .missing import no_attribute

__all__ = list(_names)

__getattr__ = no_attribute("cntk.random", __all__)
