"""cntk.layers."""

from cntkpy.networks.builders.python.functions.defaults import default_options, default_options_for

from .. import initializer
from ..initializer import *  # noqa: F403
from ..missing import no_attribute
from ..variables import Constant as Constant
from ..variables import Parameter as Parameter
from . import blocks, higher_order_layers, layers, models, sequence, typing
from .blocks import *  # noqa: F403
from .higher_order_layers import *  # noqa: F403
from .layers import *  # noqa: F403
from .models import AttentionModel
from .sequence import *  # noqa: F403
from .typing import *  # noqa: F403

__all__: list[str] = [
    "AttentionModel", "blocks", "default_options", "default_options_for", "higher_order_layers", "layers", "models",
    "sequence", "typing",
]  # fmt: skip
__all__ += initializer.__all__
__all__ += blocks.__all__
__all__ += higher_order_layers.__all__
__all__ += layers.__all__
__all__ += sequence.__all__
__all__ += typing.__all__

__getattr__ = no_attribute("cntk.layers", __all__)
