"""cntk.losses."""

from cntkpy.networks.builders.python.operations.losses import fmeasure, hierarchical_softmax_layer, nce_loss
from cntkpy.networks.builders.python.operations.operators import (
    binary_cross_entropy,
    cosine_distance,
    cosine_distance_with_negative_samples,
    cross_entropy_with_softmax,
    lambda_rank,
    squared_error,
    weighted_binary_cross_entropy,
)

from .missing import no_attribute

__all__ = [
    "binary_cross_entropy", "cosine_distance", "cosine_distance_with_negative_samples", "cross_entropy_with_softmax",
    "fmeasure", "hierarchical_softmax_layer", "lambda_rank", "nce_loss", "squared_error",
    "weighted_binary_cross_entropy",
]  # fmt: skip

__getattr__ = no_attribute("cntk.losses", __all__)
