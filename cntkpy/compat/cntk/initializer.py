"""cntk.initializer: how random parameters start."""

from cntkpy.networks.builders.python.initializers import (
    bilinear,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    initializer_with_rank,
    normal,
    truncated_normal,
    uniform,
    xavier,
)

from .missing import no_attribute

__all__ = [
    "bilinear", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "initializer_with_rank", "normal",
    "truncated_normal", "uniform", "xavier",
]  # fmt: skip

__getattr__ = no_attribute("cntk.initializer", __all__)
