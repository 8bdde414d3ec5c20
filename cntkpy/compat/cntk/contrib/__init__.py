"""cntk.contrib: of its parts, those that are here; an import of another one says what to use instead."""

from ..missing import no_attribute
from . import deeprl, netopt

__all__ = ["deeprl", "netopt"]

__getattr__ = no_attribute("cntk.contrib", __all__)
