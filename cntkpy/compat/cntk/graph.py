"""cntk.graph: the name that betas of CNTK 2.0 had for cntk.logging.graph."""

from .logging.graph import *  # noqa: F403
from .logging.graph import __all__ as names
from .missing import no_attribute, warn_beta

warn_beta("cntk.graph", "cntk.logging.graph")

__all__ = list(names)

__getattr__ = no_attribute("cntk.graph", __all__)
