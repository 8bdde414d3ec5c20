"""Normalisation by statistics as tensor code. Batch normalisation is a layer."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.images.source_writing import per_sample
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, SUM, Value


def _statistic(use: Use, index: int) -> Value:
    """Mean or deviation with the axes of the data, or those that broadcast to them."""
    value = use.values[index]
    if shapes.size(value.dims) == shapes.size(use.values[0].dims) and not value.lead:
        return use.reshaped(value, use.values[0].dims)
    return value


def _normalise(use: Use) -> Value:
    x, mean, scale = use.values[0], _statistic(use, 1), _statistic(use, 2)
    text = f"({x.at(SUM)} - {mean.at(PRODUCT)}) * {scale.at(PRODUCT)}"
    return use.value(text, x.dims, PRODUCT)


def _denormalise(use: Use) -> Value:
    x, mean, scale = use.values[0], _statistic(use, 1), _statistic(use, 2)
    text = f"{x.at(PRODUCT)} / {scale.at(PRODUCT + 1)} + {mean.at(SUM)}"
    return use.value(text, x.dims, SUM)


def _batch_normalise(use: Use) -> Value:
    """With parameters that other nodes have, too; with its own it is a layer."""
    dims, spatial = tuple(reversed(use.node.shape or ())), bool(use.options["spatial"])
    count = dims[0] if spatial else shapes.size(dims)
    scale, bias, mean, variance = (use.reshaped(value, (count,)).text for value in use.values[1:])
    x = use.reshaped(use.values[0], dims if spatial else (count,))
    epsilon = float(use.options["epsilon"])

    def code(text: str) -> str:
        training = "training=self.training"
        return f"F.batch_norm({text}, {mean}, {variance}, {scale}, {bias}, {training}, eps={epsilon})"

    return use.finished(per_sample(use, x, x.dims, code))


RULES: dict[str, Rule] = {
    "PerDimMeanVarNormalization": _normalise,
    "PerDimMeanVarDeNormalization": _denormalise,
    "BatchNormalization": _batch_normalise,
}
