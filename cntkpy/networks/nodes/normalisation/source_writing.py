"""Normalisation by statistics as tensor code. Batch normalisation is a layer."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.images.source_writing import per_sample
from cntkpy.networks.nodes.source_support.dialect import Spellings
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
    statistics = [use.reshaped(value, (count,)).text for value in use.values[1:]]
    x = use.reshaped(use.values[0], dims if spatial else (count,))
    epsilon = float(use.options["epsilon"])

    def code(text: str) -> str:
        return use.say("batch_norm", text, *statistics, epsilon)

    return use.finished(per_sample(use, x, x.dims, code))


SPELLINGS: Spellings = {
    "batch_norm": (
        "F.batch_norm({0}, {3}, {4}, {1}, {2}, training=self.training, eps={5})",
        "normalised({0}, {1}, {2}, {3}, {4}, {5})",
    )
}

RULES: dict[str, Rule] = {
    "PerDimMeanVarNormalization": _normalise,
    "PerDimMeanVarDeNormalization": _denormalise,
    "BatchNormalization": _batch_normalise,
}
