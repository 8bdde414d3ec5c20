"""cntk.layers.higher_order_layers: layers made of layers."""

from cntkpy.networks.builders.python.layers import For, ResNetBlock, Sequential, SequentialClique

from ..missing import no_attribute

__all__ = ["For", "ResNetBlock", "Sequential", "SequentialClique"]

__getattr__ = no_attribute("cntk.layers.higher_order_layers", __all__)
