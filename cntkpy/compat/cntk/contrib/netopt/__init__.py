"""cntk.contrib.netopt: smaller networks made of trained ones."""

from ...missing import no_attribute
from . import factorization

__all__ = ["factorization"]

__getattr__ = no_attribute("cntk.contrib.netopt", __all__)
