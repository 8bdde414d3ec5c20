"""cntk.train.distributed."""

from .. import distributed
from ..distributed import *  # noqa: F403
from ..missing import no_attribute

__all__: list[str] = []
__all__ += distributed.__all__

__getattr__ = no_attribute("cntk.train.distributed", __all__)
