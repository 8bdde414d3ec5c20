"""cntk.random: numbers drawn at random inside of a network."""

from cntkpy.networks.builders.python.operations import random
from cntkpy.networks.builders.python.operations.random import *  # noqa: F403

from .missing import no_attribute

__all__: list[str] = []
__all__ += random.__all__

__getattr__ = no_attribute("cntk.random", __all__)
