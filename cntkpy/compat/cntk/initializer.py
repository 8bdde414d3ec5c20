"""cntk.initializer: how random parameters start."""

from networks.builders.python.layers import (
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    normal,
    uniform,
    xavier,
)

from .missing import no_attribute

__all__ = ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "normal", "uniform", "xavier"]

__getattr__ = no_attribute("cntk.initializer", __all__)
