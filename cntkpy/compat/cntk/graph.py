"""cntk.graph: the name that betas of CNTK 2.0 had for cntk.logging.graph."""

from .logging import graph
from .logging.graph import *  # noqa: F403
from .missing import no_attribute, warn_beta

warn_beta("cntk.graph", "cntk.logging.graph")

__all__: list[str] = []
__all__ += graph.__all__

__getattr__ = no_attribute("cntk.graph", __all__)
