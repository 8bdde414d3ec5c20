"""Attention: at each step, a mean of all steps of another sequence, weighted by how well they go with a query.

D. Bahdanau et al., Neural machine translation by jointly learning to align and translate, ICLR 2015.

A. Vaswani et al., Attention is all you need, NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, gradient_by_operands, jax, jnp
from cntkpy.networks.arrays.products import by_slot, product
from cntkpy.networks.arrays.step_blocks import in_blocks, steps_of_block
from cntkpy.networks.arrays.weighted_means import weighted_means
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem, size
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.call import Call, masked
from cntkpy.networks.nodes.declare import NodeKind, TimeRule, inputs

if TYPE_CHECKING:
    from cntkpy.networks.graph.node import Node


def _shape(node: Node) -> Shape | None:
    """Return the shape of the values; weights, keys and query have as many elements as each other."""
    weights, keys, values, query = node.connected
    rules.carrying_data(keys, values, query)
    rules.constants(weights)
    for operand in (weights, keys):
        if operand.shape is None or 0 in operand.shape or query.shape is None or 0 in query.shape:
            continue
        if size(operand.shape) != size(query.shape):
            raise ShapeProblem(f"'{operand.name}' has {size(operand.shape)} elements, the query {size(query.shape)}")
    return values.shape


def _shape_of_weights(node: Node) -> Shape | None:
    """Return one number for each step of the keys: how many steps there are is known with the data only."""
    weights, keys, query = node.connected
    rules.carrying_data(keys, query)
    rules.constants(weights)
    return (1, 1)


def _scores(query: Array, keys: Array, weights: Array, mask: Array) -> Array:
    """weights . tanh (keys + query): (steps, steps of the keys, sequences)."""
    sums = keys.reshape(*keys.shape[:2], -1)[None] + query.reshape(*query.shape[:2], -1)[:, None]
    scores = jnp.tensordot(jnp.tanh(sums), weights.reshape(-1), 1)
    return jnp.where(mask, scores, jnp.finfo(scores.dtype).min)


def _forward_weights(call: Call, weights: Array, keys: Array, query: Array) -> Array:
    """Return the shares, (steps, sequences, steps of the keys, 1)."""
    mask = call.context.whole(call.node.input(1).axis)
    return jnp.swapaxes(jax.nn.softmax(_scores(query, keys, weights, mask), axis=1), 1, 2)[..., None]


KEPT = 1 << 24
"""Elements that the steps of a loop keep of an attention for their gradients; more are computed again."""


def _in_blocks(
    attend: Callable[..., Array], query: Array, remaining: tuple[Array, ...], elements: int, steps: int
) -> Array:
    """Compute a function for the steps of the query, block by block.

    Args:
        attend: of some steps of the query, and the others.
        query: (steps, ...).
        remaining: the other arrays.
        elements: that it makes of one step.
        steps: about how many there are, if this is one of a loop.
    """
    size = steps_of_block(len(query), elements)
    if size < len(query):
        return in_blocks(lambda block, _: attend(block, *remaining), query, size)
    if len(query) == 1 and elements * steps > KEPT:
        attend = _once_more(attend)
    return attend(query, *remaining)


def _once_more(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of which nothing but the operands is kept for the gradient, whatever a loop around it keeps."""

    def backward(operands: Residuals, g: Array) -> Gradients:
        return jax.vjp(function, *operands)[1](g)

    return gradient_by_operands(function, backward)


def _forward(call: Call, weights: Array, keys: Array, values: Array, query: Array) -> Array:
    """Return the mean of the values of all steps, by the softmax of weights . tanh (keys + query)."""
    mask = call.context.whole(call.node.input(1).axis)
    values = masked(values, mask)

    def attend(block: Array, keys: Array, values: Array, weights: Array, mask: Array) -> Array:
        scores = jnp.moveaxis(_scores(block, keys, weights, mask), 2, 0)
        rows = by_slot(values.reshape(*values.shape[:2], -1))
        return by_slot(weighted_means(scores, rows)).reshape(*block.shape[:2], *values.shape[2:])

    return _in_blocks(attend, query, (keys, values, weights, mask), keys.size, len(keys))


def _product_shape(node: Node) -> Shape | None:
    """That of the values; keys and query have equal shapes, the values their axes after the first."""
    keys, values, query = node.connected
    rules.carrying_data(keys, values, query)
    if keys.shape is None or values.shape is None or query.shape is None or 0 in (*keys.shape, *query.shape):
        return None
    if shapes.trimmed(keys.shape) != shapes.trimmed(query.shape):
        raise ShapeProblem(
            f"'{keys.name}' has the shape {shapes.text(keys.shape)}, the query {shapes.text(query.shape)}"
        )
    if shapes.trimmed((1, *values.shape[1:])) != shapes.trimmed((1, *query.shape[1:])):
        raise ShapeProblem(
            f"'{values.name}' has the shape {shapes.text(values.shape)}, the query {shapes.text(query.shape)}: "
            "their axes after the first, of separate attentions, must be the same"
        )
    return values.shape


def _product_forward(call: Call, keys: Array, values: Array, query: Array) -> Array:
    """Return the mean of the values of all steps, by the softmax of keys . query, for each position of the further
    axes.
    """
    mask = call.context.whole(call.node.input(0).axis)

    def turned(array: Array) -> Array:
        """(steps, slots, ..., n) as (slots, separate attentions, steps, n)."""
        return jnp.moveaxis(array.reshape(*array.shape[:2], -1, array.shape[-1]), 0, 2)

    rows, columns = turned(masked(values, mask)), jnp.swapaxes(turned(keys), -1, -2)
    known = jnp.swapaxes(mask, 0, 1)[:, None, None]

    def attend(block: Array, columns: Array, rows: Array, known: Array) -> Array:
        scores = product(turned(block), columns)
        means = jnp.moveaxis(weighted_means(jnp.where(known, scores, jnp.finfo(scores.dtype).min), rows), 2, 0)
        return means.reshape(*block.shape[:2], *values.shape[2:])

    elements = len(keys) * query.size // (len(query) * query.shape[-1])
    return _in_blocks(attend, query, (columns, rows, known), elements, len(keys))


KINDS = [
    NodeKind(
        "AdditiveAttention",
        (inputs("weights", "keys", "values", "query"),),
        "At each step of the query, the mean of the values of all steps of the sequence of the same number, which may "
        "be on another time axis. Keys and values are two functions of that sequence.",
        "out(u) = sum_t p(u, t) values(t), p(u, t) = softmax over t of (weights . tanh (keys(t) + query(u)))",
        _shape,
        _forward,
        time=TimeRule(across=True, axis_from=3, own_slots=True, whole=(1, 2)),
        example="a = AdditiveAttention(Parameter(1, 3), Times(W, x), x, z)",
    ),
    NodeKind(
        "DotProductAttention",
        (inputs("keys", "values", "query"),),
        "At each step of the query, the mean of the values of all steps of the sequence of the same number, which may "
        "be on another time axis, weighted by the products of the keys with the query. Axes after the first are of "
        "separate attentions (heads). Divide the query by the square root of its elements to scale the products.",
        "out(u) = sum_t p(u, t) values(t), p(u, t) = softmax over t of keys(t) . query(u)",
        _product_shape,
        _product_forward,
        time=TimeRule(across=True, axis_from=2, own_slots=True, whole=(0, 1)),
        example="a = DotProductAttention(x, y, Plus(x, y))",
    ),
    NodeKind(
        "AttentionWeights",
        (inputs("weights", "keys", "query"),),
        "At each step of the query, the weights with which AdditiveAttention takes the steps of the sequence of the "
        "same number. There are as many as the longest sequence of the minibatch has steps; one with fewer steps "
        "has zeros there. No node may have them as an input.",
        "out(u) = (p(u, 1), p(u, 2), ...), see AdditiveAttention",
        _shape_of_weights,
        _forward_weights,
        time=TimeRule(across=True, axis_from=2, own_slots=True, whole=(1,)),
        example="a = AttentionWeights(Parameter(1, 3), Times(W, x), z)",
    ),
]
