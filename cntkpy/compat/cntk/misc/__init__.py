"""cntk.misc: functions made of functions."""

from ..missing import no_attribute
from . import converter, optimized_rnnstack_converter

__all__ = ["converter", "optimized_rnnstack_converter"]

__getattr__ = no_attribute("cntk.misc", __all__)
