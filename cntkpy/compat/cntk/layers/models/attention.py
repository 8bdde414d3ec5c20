"""cntk.layers.models.attention: a layer that looks at a whole sequence."""

from cntkpy.networks.builders.python.decoders import AttentionModel

from ...missing import no_attribute

__all__ = ["AttentionModel"]

__getattr__ = no_attribute("cntk.layers.models.attention", __all__)
