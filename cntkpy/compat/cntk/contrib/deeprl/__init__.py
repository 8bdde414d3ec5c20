"""cntk.contrib.deeprl: losses and models of its agents; the agents themselves are not here."""

from ...missing import no_attribute
from . import agent

__all__ = ["agent"]

__getattr__ = no_attribute("cntk.contrib.deeprl", __all__)
