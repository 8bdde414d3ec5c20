"""Rules for attention."""

from __future__ import annotations

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.onnx_support.lengths import within
from cntkpy.networks.nodes.onnx_support.use import Rule, Use


def _shares(use: Use, query: int) -> str:
    """Return the softmax over steps of weights . tanh (keys + query), `(query step, step, batch, 1)`.

    Args:
        use: the node; its first operands are weights and keys.
        query: which operand is the query.
    """
    emit, asked = use.emit, use.flat(query)
    size = shapes.size(use.operands[query].dims)
    asked = asked if use.operands[query].lead == 2 else emit.unsqueeze(asked, 0)
    sums = emit.op("Add", emit.unsqueeze(use.flat(1), 0), emit.unsqueeze(asked, 1))
    vector = use.weights(0, (size, 1)) if 0 in use.constants else emit.reshape(use.names[0], 0, (size, 1))
    scores = emit.op("MatMul", emit.op("Tanh", sums), vector)
    inside = within(emit, use.node.input(1), use.names[1], 1)
    if inside is not None:
        lowest = emit.real(float(np.finfo(emit.dtype).min))
        scores = emit.op("Where", emit.unsqueeze(inside, 0), scores, lowest)
    return emit.op("Softmax", scores, axis=1)


def attention(use: Use) -> str:
    """Return the mean of all steps of values, weighted by the softmax of weights . tanh (keys + query)."""
    emit, (_, _, values, query) = use.emit, use.operands
    scores = emit.reduce("Sum", emit.op("Mul", _shares(use, 3), emit.unsqueeze(use.flat(2), 0)), [1], keep=False)
    scores = scores if query.lead == 2 else emit.squeeze(scores, 0)
    return use.shaped(scores, (shapes.size(values.dims),))


def product_attention(use: Use) -> str:
    """Return the mean of all steps of values, weighted by the softmax of keys . query."""
    emit, (_, values, query) = use.emit, use.operands
    inner, outer = query.dims[-1], values.dims[-1]
    heads = shapes.size(query.dims) // inner
    asked = use.flat(2) if query.lead == 2 else emit.unsqueeze(use.flat(2), 0)

    def turned(name: str, rows: int, *perm: int) -> str:
        return emit.op("Transpose", emit.reshape(name, 2, (heads, rows)), perm=list(perm))

    scores = emit.op("MatMul", turned(asked, inner, 1, 2, 0, 3), turned(use.flat(0), inner, 1, 2, 3, 0))
    inside = within(emit, use.node.input(0), use.names[0], 1)
    if inside is not None:
        lowest = emit.real(float(np.finfo(emit.dtype).min))
        known = emit.unsqueeze(emit.op("Transpose", inside, perm=[1, 2, 0]), 1)
        scores = emit.op("Where", known, scores, lowest)
    attended = emit.op("MatMul", emit.op("Softmax", scores, axis=-1), turned(use.flat(1), outer, 1, 2, 0, 3))
    attended = emit.op("Transpose", attended, perm=[2, 0, 1, 3])
    attended = attended if query.lead == 2 else emit.squeeze(attended, 0)
    return use.shaped(attended, (heads, outer))


def attention_weights(use: Use) -> str:
    """Return the weights of all steps, `(query step, batch, step, 1)`."""
    return use.emit.op("Transpose", _shares(use, 2), perm=[0, 2, 1, 3])


RULES: dict[str, Rule] = {
    "AdditiveAttention": attention,
    "AttentionWeights": attention_weights,
    "DotProductAttention": product_attention,
}
