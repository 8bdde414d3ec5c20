"""Normalisation by statistics as tensor code. Batch normalisation is a layer."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.source.values import PRODUCT, SUM, NotExpressible, Rule, Use, Value


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
    raise NotExpressible("its parameters are shared with other nodes, or computed")


RULES: dict[str, Rule] = {
    "PerDimMeanVarNormalization": _normalise,
    "PerDimMeanVarDeNormalization": _denormalise,
    "BatchNormalization": _batch_normalise,
}
