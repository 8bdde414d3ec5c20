"""cntk.contrib: exchange of values with other toolkits."""

from ..missing import no_attribute
from . import crosstalk

__all__ = ["crosstalk"]

__getattr__ = no_attribute("cntk.contrib", __all__)
