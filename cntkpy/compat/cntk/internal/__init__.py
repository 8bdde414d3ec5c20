"""cntk.internal: the Python part of it that programs and libraries on top of CNTK 2 import."""

from ..missing import no_attribute
from . import sanitize, swig_helper, utils
from .sanitize import *  # noqa: F403
from .swig_helper import map_if_possible, typemap
from .utils import *  # noqa: F403

__all__ = ["map_if_possible", "sanitize", "swig_helper", "typemap", "utils"]
__all__ += utils.__all__
__all__ += [name for name in sanitize.__all__ if name not in __all__]
__all__.remove("eval")

__getattr__ = no_attribute("cntk.internal", __all__)
