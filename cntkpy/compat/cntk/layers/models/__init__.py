"""cntk.layers.models: layers that are models of their own."""

from ...missing import no_attribute
from . import attention
from .attention import AttentionModel

__all__ = ["AttentionModel", "attention"]

__getattr__ = no_attribute("cntk.layers.models", __all__)
