"""cntk.contrib.deeprl.agent."""

from ....missing import no_attribute
from . import shared

__all__ = ["shared"]

__getattr__ = no_attribute("cntk.contrib.deeprl.agent", __all__)
