"""Attention as tensor code."""

from __future__ import annotations

import math

from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import ATOM, Dims, Value


def _additive(use: Use) -> Value:
    weights = use.reshaped(use.values[0], (math.prod(use.values[0].dims),))
    size = weights.dims
    keys, query = use.reshaped(use.values[1], size), _steps(use.reshaped(use.values[3], size))
    values = use.flat(2)
    mask = use.mask(1)
    text = f"{use.helper('additive_attention')}({weights.text}, {keys.text}, {values.text}, {query.text}, {mask})"
    return use.finished(_results(use, text, values.dims))


def _weights(use: Use) -> Value:
    weights = use.reshaped(use.values[0], (math.prod(use.values[0].dims),))
    keys, query = (use.reshaped(use.values[index], weights.dims) for index in (1, 2))
    text = f"{use.helper('attention_weights')}({weights.text}, {keys.text}, {_steps(query).text}, {use.mask(1)})"
    return _results(use, text, (1,))


def _steps(query: Value) -> Value:
    """Return a query (batch, steps, ...); one that has no time axis, or is that of one step of a loop, is one step."""
    return query if query.lead == 2 else query._replace(text=f"{query.atom}[:, None]", lead=2, level=ATOM)


def _results(use: Use, text: str, dims: Dims) -> Value:
    """Return the result of attention (batch, steps, ...) with as many leading axes as the node has."""
    return use.value(text if use.lead == 2 else f"{text}[:, 0]", dims)


def _dot_product(use: Use) -> Value:
    """Axes after the first of CNTK are of separate attentions."""
    keys, values, query = (_heads(use, index) for index in range(3))
    mask = use.mask(0)
    name = use.helper("dot_product_attention")
    text = f"{name}({_steps(query).text}, {keys.text}, {values.text}, {mask})"
    return use.finished(_results(use, text, values.dims))


def _heads(use: Use, index: int) -> Value:
    """Return an operand (..., heads, elements)."""
    value = use.values[index]
    size = (use.node.input(index).shape or (1,))[0]
    return use.reshaped(value, (math.prod(value.dims) // size, size))


RULES: dict[str, Rule] = {
    "AdditiveAttention": _additive,
    "AttentionWeights": _weights,
    "DotProductAttention": _dot_product,
}
