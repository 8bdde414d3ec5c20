"""cntk.ops.sequence: operators on sequences, those of cntk.sequence."""

from ..missing import no_attribute
from ..sequence import *  # noqa: F403
from ..sequence import __all__ as __all__

__getattr__ = no_attribute("cntk.sequence", __all__)
