"""Attention: at each step, a mean of all steps of another sequence, weighted by how well they go with a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import jax, jnp
from networks.graph.shapes import Shape, ShapeProblem, size
from networks.nodes import rules
from networks.nodes.call import Call, masked
from networks.nodes.declare import NodeKind, TimeRule, inputs

if TYPE_CHECKING:
    from networks.graph.node import Node

Array = Any

SOURCE = "D. Bahdanau et al., Neural machine translation by jointly learning to align and translate, ICLR 2015"


def _shape(node: Node) -> Shape | None:
    """The shape of the values; weights, keys and query have as many elements as each other."""
    weights, keys, values, query = node.connected
    rules.carrying_data(keys, values, query)
    rules.constants(weights)
    for one in (weights, keys):
        if one.shape is None or 0 in one.shape or query.shape is None or 0 in query.shape:
            continue
        if size(one.shape) != size(query.shape):
            raise ShapeProblem(f"'{one.name}' has {size(one.shape)} elements, the query {size(query.shape)}")
    return values.shape


def _shape_of_weights(node: Node) -> Shape | None:
    """One number for each step of the keys: how many steps there are is known with the data only."""
    weights, keys, query = node.connected
    rules.carrying_data(keys, query)
    rules.constants(weights)
    return (1, 1)


def _shares(call: Call, weights: Array, keys: Array, query: Array) -> Array:
    """The softmax of weights . tanh (keys + query) over the steps of the keys."""
    mask = call.context.whole(call.node.input(1).axis)
    sums = keys.reshape(*keys.shape[:2], -1)[None] + query.reshape(*query.shape[:2], -1)[:, None]
    scores = jnp.tensordot(jnp.tanh(sums), weights.reshape(-1), 1)
    return jax.nn.softmax(jnp.where(mask, scores, jnp.finfo(scores.dtype).min), axis=1)


def _forward_weights(call: Call, weights: Array, keys: Array, query: Array) -> Array:
    """The shares, (steps, sequences, steps of the keys, 1)."""
    return jnp.swapaxes(_shares(call, weights, keys, query), 1, 2)[..., None]


def _forward(call: Call, weights: Array, keys: Array, values: Array, query: Array) -> Array:
    """The mean of the values of all steps, by the softmax of weights . tanh (keys + query)."""
    mask = call.context.whole(call.node.input(1).axis)
    return jnp.einsum("uts,ts...->us...", _shares(call, weights, keys, query), masked(values, mask))


KINDS = [
    NodeKind(
        "AdditiveAttention",
        (inputs("weights", "keys", "values", "query"),),
        "At each step of the query, the mean of the values of all steps of the sequence of the same number, which may "
        "be on another time axis. Keys and values are two functions of that sequence.",
        "out(u) = sum_t p(u, t) values(t), p(u, t) = softmax over t of (weights . tanh (keys(t) + query(u)))",
        _shape,
        _forward,
        family="Sequences",
        source=SOURCE,
        time=TimeRule(across=True, axis_from=3, own_slots=True, whole=(1, 2)),
        example="a = AdditiveAttention(Parameter(1, 3), Times(W, x), x, z)",
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
        family="Sequences",
        source=SOURCE,
        time=TimeRule(across=True, axis_from=2, own_slots=True, whole=(1,)),
        example="a = AttentionWeights(Parameter(1, 3), Times(W, x), z)",
    ),
]
