"""cntk.ops.sequence: operators on sequences, those of cntk.sequence."""

from ..sequence import *  # noqa: F403
from ..sequence import __all__ as __all__
