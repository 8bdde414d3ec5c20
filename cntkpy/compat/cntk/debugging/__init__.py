"""cntk.debugging."""

from ..missing import no_attribute
from . import debug, profiler
from .debug import *  # noqa: F403
from .profiler import *  # noqa: F403

__all__ = ["debug", "profiler"]
__all__ += debug.__all__
__all__ += profiler.__all__

__getattr__ = no_attribute("cntk.debugging", __all__)
