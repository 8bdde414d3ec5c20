"""Rules for normalisation with known statistics."""

from __future__ import annotations

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.images.onnx_writing import joined, parted
from cntkpy.networks.nodes.onnx_support.use import Rule, Use

SMALLEST_SCALE = 1e-30
"""An inverse deviation nearer to 0 is taken for this one."""


def _like_data(use: Use, index: int) -> str:
    """Return a statistic with the axes of the data."""
    statistic, rank = use.operands[index], len(use.dims)
    if not statistic.lead and shapes.size(statistic.dims) == shapes.size(use.dims):
        return use.weights(index, use.dims)
    return use.ranked(statistic, rank)


def normalise(use: Use) -> str:
    """(x - mean) * inverse deviation."""
    emit = use.emit
    return emit.op("Mul", emit.op("Sub", use.names[0], _like_data(use, 1)), _like_data(use, 2))


def denormalise(use: Use) -> str:
    """x / inverse deviation + mean."""
    emit, scale = use.emit, _like_data(use, 2)
    least = emit.op(
        "Where", emit.op("Less", scale, emit.real(0)), emit.real(-SMALLEST_SCALE), emit.real(SMALLEST_SCALE)
    )
    small = emit.op("Less", emit.op("Abs", scale), emit.real(SMALLEST_SCALE))
    quotient = emit.op("Div", use.names[0], emit.op("Where", small, least, scale))
    return emit.op("Add", quotient, _like_data(use, 1))


def batch_normalisation(use: Use) -> str:
    """Normalisation by running statistics, of channels, or of all elements as if they were channels."""
    options, emit = use.options, use.emit
    epsilon = float(options["epsilon"])
    epsilon = max(epsilon, 1e-5) if str(options["engine"]).lower() == "cudnn" else epsilon
    count = use.dims[0] if options["spatial"] else shapes.size(use.dims)
    dims = use.dims if options["spatial"] else (count,)
    x = joined(use, 0, dims)
    weights = [use.weights(index, (count,)) for index in range(1, 5)]
    rounded = epsilon - float(np.float32(epsilon))  # an attribute is single: the variance takes what that leaves over
    if emit.dtype == np.float64 and rounded:
        weights[3] = emit.op("Add", weights[3], emit.real(rounded))
    return parted(use, emit.op("BatchNormalization", x, *weights, epsilon=epsilon), dims, 0)


RULES: dict[str, Rule] = {
    "PerDimMeanVarNormalization": normalise,
    "PerDimMeanVarDeNormalization": denormalise,
    "BatchNormalization": batch_normalisation,
}
