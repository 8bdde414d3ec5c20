"""Rules for normalisation with known statistics."""

from __future__ import annotations

import numpy as np

from networks.graph import shapes
from networks.onnx.elementwise import Rule
from networks.onnx.graph import NotExpressible
from networks.onnx.use import Use

SMALLEST_SCALE = 1e-30
"""An inverse deviation nearer to 0 is taken for this one."""


def _like_data(use: Use, index: int) -> str:
    """A statistic with the axes of the data."""
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
    """x times a factor plus a term, both made of scale, bias and running statistics."""
    options, emit = use.options, use.emit
    epsilon = float(options["epsilon"])
    epsilon = max(epsilon, 1e-5) if str(options["engine"]).lower() == "cudnn" else epsilon
    dims = (use.dims[0], *(1,) * (len(use.dims) - 1)) if options["spatial"] else use.dims
    given = [use.constants.get(index) for index in range(1, 5)]
    if any(value is None for value in given):
        raise NotExpressible("its scale, bias or statistics depend on the data")
    scale, bias, mean, variance = (np.asarray(value, np.float64).reshape(dims) for value in given)
    factor = scale / np.sqrt(variance + epsilon)
    term = bias - mean * factor
    own = use.node.name
    factor, term = (value.astype(emit.dtype) for value in (factor, term))
    product = emit.op("Mul", use.names[0], emit.constant(factor, f"{own}/factor"))
    return emit.op("Add", product, emit.constant(term, f"{own}/term"))


RULES: dict[str, Rule] = {
    "PerDimMeanVarNormalization": normalise,
    "PerDimMeanVarDeNormalization": denormalise,
    "BatchNormalization": batch_normalisation,
}
