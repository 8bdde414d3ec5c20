"""Criteria of rankings: cells that follow each other with the same query are the documents of that query.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, gradient_by_operands, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import Forward, NodeKind, TimeRule, inputs

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


def _shape(node: Node) -> Shape | None:
    """`[1]`; all operands are numbers, gain and query are inputs."""
    rules.carrying_data(*node.connected)
    for operand in node.connected:
        if operand.shape is not None and shapes.size(operand.shape) != 1:
            raise ShapeProblem(f"'{operand.name}' must be one number for each document")
    for index in (0, 2):
        if node.input(index).inputs:
            raise ShapeProblem(f"'{node.input(index).name}' must be an input")
    return (1,)


def _queries(query: Array) -> tuple[Array, Array, Array]:
    """For each document the number of its query, its place in the query, and the number of queries."""
    count = query.shape[0]
    new = jnp.concatenate([jnp.ones(1, bool), query[1:] != query[:-1]])
    number = jnp.cumsum(new) - 1
    place = jnp.arange(count)
    first = jax.ops.segment_min(place, number, num_segments=count)
    return number, place - first[number], number[-1] + 1


def _ranks(gain: Array, score: Array, number: Array, place: Array) -> Array:
    """Return the place of each document when its query is sorted by falling scores; of equal ones the smaller gain
    first.
    """
    order = jnp.lexsort((gain, -score, number))
    count = gain.shape[0]
    sorted_place = jnp.zeros(count, order.dtype).at[order].set(jnp.arange(count))
    return sorted_place - (jnp.arange(count) - place)


def _discount(rank: Array, like: Array) -> Array:
    return jnp.log(2 + rank.astype(like.dtype))


def _sums(values: Array, number: Array) -> Array:
    """Sums over queries; for each document that of its query."""
    return jax.ops.segment_sum(values, number, num_segments=values.shape[0])


def _lambda_rank(gain: Array, score: Array, query: Array) -> Array:
    number, place, queries = _queries(query)
    rank = _ranks(gain, score, number, place)
    ideal = _sums(gain / _discount(place, gain), number)
    actual = _sums(gain / _discount(rank, gain), number)
    ratio = jnp.sum(jnp.where(ideal == 0, 0, actual / jnp.where(ideal == 0, 1, ideal)))
    return ((1 - ratio / queries.astype(gain.dtype)) * 100 * gain.shape[0]).reshape(1)


def _lambda_backward(residuals: Residuals, g: Array) -> Gradients:
    """For each pair of documents of a query: how much they should move apart. The incoming gradient has no part."""
    gain, score, query = residuals
    number, place, _ = _queries(query)
    discount = _discount(_ranks(gain, score, number, place), gain)
    ideal = _sums(gain / _discount(place, gain), number)[number]
    smallest = jax.ops.segment_min(gain, number, num_segments=gain.shape[0])[number]
    pairs = (number[:, None] == number[None]) & (place[:, None] < place[None]) & (gain[:, None] != gain[None])
    pairs = pairs & (gain > smallest)[:, None] & (ideal != 0)[:, None]
    weight = (gain[:, None] - gain[None]) * (discount[:, None] - discount[None])
    weight = jnp.abs(weight / (discount[:, None] * discount[None]) / jnp.where(ideal == 0, 1, ideal)[:, None])
    slope = jnp.where(pairs, -jax.nn.sigmoid(score[None] - score[:, None]) * weight, 0)
    return None, jnp.sum(slope, axis=1) - jnp.sum(slope, axis=0), None


_lambda_cost = gradient_by_operands(_lambda_rank, _lambda_backward)


def _first_gain(gain: Array, score: Array, query: Array) -> Array:
    number, place, queries = _queries(query)
    rank = _ranks(gain, score, number, place)
    best = _sums(jnp.where(place == 0, gain, 0), number)
    chosen = _sums(jnp.where(rank == 0, gain, 0), number)
    ratio = jnp.sum(jnp.where(best == 0, 0, chosen / jnp.where(best == 0, 1, best)))
    return (ratio / queries.astype(gain.dtype) * 100 * gain.shape[0]).reshape(1)


def _documents(function: Callable[[Array, Array, Array], Array]) -> Forward:
    def forward(call: Call, gain: Array, score: Array, query: Array) -> Array:
        stop = jax.lax.stop_gradient
        return function(stop(gain).reshape(-1), score.reshape(-1), stop(query).reshape(-1))

    return forward


def _kind(
    name: str, meaning: str, formula: str, function: Callable[[Array, Array, Array], Array], **fields: Any
) -> NodeKind:
    return NodeKind(
        name,
        (inputs("gain", "score", "queryId"),),
        meaning,
        formula,
        _shape,
        _documents(function),
        layout="none",
        time=TimeRule(reduces_time=True),
        columns=True,
        **fields,
    )


KINDS = [
    _kind(
        "LambdaRank",
        "Loss of a ranking: how far the discounted gain of each query is below the best possible one. The documents of "
        "a query follow each other, the largest gain first.",
        "100 N (1 - mean of actual / ideal), sums of gain / ln(2 + rank); the gradient is that of pairs of documents",
        _lambda_cost,
        example="loss = LambdaRank(Input(1), Times(Parameter(1, 4), x), Input(1), tag=criterion)",
    ),
    _kind(
        "NDCG1Eval",
        "Gain of the document with the highest score, relative to the best one of its query.",
        "100 N mean of gain of the first / largest gain",
        _first_gain,
        differentiable=False,
        example="ndcg = NDCG1Eval(Input(1), Times(Parameter(1, 4), x), Input(1), tag=eval)",
    ),
]
