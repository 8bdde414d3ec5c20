"""cntk.axis: axes."""

from cntkpy.networks.builders.python.functions.axes import Axis

from .missing import no_attribute

__all__ = ["Axis"]

__getattr__ = no_attribute("cntk.axis", __all__)
