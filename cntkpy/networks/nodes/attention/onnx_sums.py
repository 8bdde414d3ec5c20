"""Additive attention: sums of each query and all keys, tanh, a product with weights, a softmax, the mean of values."""

from __future__ import annotations

from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Sums, Unusable, Value


def sums_of(x: Value, y: Value) -> Sums | None:
    """Return the sums of values of two axes of time, which no node has; None: it is none.

    Args:
        x: keys (1, steps, batch, elements).
        y: queries (steps, 1, batch, elements), or one query (1, 1, batch, elements); or the other way round.
    """
    if not isinstance(x, Data) or not isinstance(y, Data) or len(x.axes) != 4 or len(y.axes) != 4:
        return None
    keys, query = (x, y) if isinstance(x.axes[1], str) else (y, x)
    of_steps = isinstance(keys.axes[1], str) and (isinstance(query.axes[0], str) or query.axes[0] == 1)
    is_pair = of_steps and (keys.axes[0], query.axes[1]) == (1, 1) and keys.axes[2:] == query.axes[2:]
    return Sums(query, keys) if is_pair and isinstance(keys.axes[2], str) and isinstance(keys.axes[3], int) else None


def _stage(use: Use, stage: str) -> Sums:
    """Return the first operand, after the operator before this one.

    Raises:
        Unusable: the operators have another order.
    """
    sums = use.value(0)
    if not isinstance(sums, Sums) or sums.stage != stage:
        refuse(use)
    assert isinstance(sums, Sums)
    return sums


def _tanh(use: Use) -> list[Value]:
    return [_stage(use, "sums")._replace(stage="tanh")]


def _scores(use: Use) -> list[Value]:
    """MatMul: a score for each pair of steps."""
    sums, weights = _stage(use, "tanh"), use.value(1)
    if not isinstance(weights, Array) or weights.value.shape != (sums.keys.axes[3], 1):
        refuse(use)
    return [sums._replace(stage="scores", weights=weights)]


def _softmax(use: Use) -> list[Value]:
    sums = _stage(use, "scores")
    if use.integer("axis", -1) not in (1, -3):
        refuse(use)
    return [sums._replace(stage="shares")]


def _weighted(use: Use) -> list[Value]:
    sums, values = _stage(use, "shares"), use.value(1)
    if not isinstance(values, Data) or values.axes[:3] != sums.keys.axes[:3] or len(values.axes) != 4:
        refuse(use)
    return [sums._replace(stage="weighted", values=values)]


def _total(use: Use) -> list[Value]:
    """ReduceSum: the mean of the values."""
    sums = _stage(use, "weighted")
    if use.integers("axes", 1) not in ([1], [-3]) or use.get("keepdims", 1) or sums.weights is None:
        refuse(use)
    assert sums.values is not None and sums.weights is not None
    build, steps, batch = use.build, sums.query.axes[0], sums.query.axes[2]
    build.times += [word for word in (steps, sums.keys.axes[1]) if isinstance(word, str) and word not in build.times]
    keys, values = (build.data(data.node, data.axes[1:]).node for data in (sums.keys, sums.values))
    query = build.data(sums.query.node, (steps, batch, sums.query.axes[3])).node
    node = build.node("AdditiveAttention", build.parameter(sums.weights), keys, values, query)
    return [build.data(node, (steps, batch, sums.values.axes[3]))]


def refuse(use: Use) -> list[Value]:
    """Any other operator.

    Raises:
        Unusable: always.
    """
    raise Unusable(
        "of sums of two values along time only their tanh, its product with a vector, the softmax over the steps of "
        "one of them and the sum over these steps of the values are supported, in that order"
    )


RULES: dict[str, Rule] = {"MatMul": _scores, "Mul": _weighted, "ReduceSum": _total, "Softmax": _softmax, "Tanh": _tanh}
"""By operator: what is made of sums of two values along time."""
