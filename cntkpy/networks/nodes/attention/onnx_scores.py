"""Attention over the steps of sequences: a product of queries and keys, its softmax, a product with values."""

from __future__ import annotations

from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Scores, Unusable, Value


def scores_of(x: Data, y: Data) -> Scores | None:
    """Return the product of values of two axes of time, which no node has; None: it is none.

    Args:
        x: queries (..., steps, elements); what stands for ... is the batch and the sizes of separate attentions.
        y: keys (..., elements, steps).
    """
    if len(x.axes) < 3 or len(y.axes) < 3 or x.axes[:-2] != y.axes[:-2]:
        return None
    if not all(isinstance(axis, str) for axis in (x.axes[-2], y.axes[-1])) or x.axes[-1] != y.axes[-2]:
        return None
    if not isinstance(x.axes[-1], int) or sum(isinstance(axis, str) for axis in x.axes[:-2]) != 1:
        return None
    return Scores(x, y)


def _scaled(use: Use) -> list[Value]:
    """Mul and Div."""
    scores, factor = use.inputs[0], use.inputs[-1]
    if not isinstance(scores, Scores):
        scores, factor = factor, scores
    divided = use.operator.kind == "Div"
    wrong = not isinstance(factor, Array) or factor.value.size != 1 or (divided and scores is not use.inputs[0])
    if wrong or not isinstance(scores, Scores) or scores.shares:
        raise Unusable("products of two values along time can be multiplied by a number only, before the softmax")
    assert isinstance(factor, Array)
    number = float(factor.value.reshape(()))
    return [scores._replace(scale=scores.scale / number if divided else scores.scale * number)]


def _softmax(use: Use) -> list[Value]:
    scores = use.value(0)
    assert isinstance(scores, Scores)
    if use.integer("axis", -1) not in (-1, len(scores.axes) - 1) or scores.shares:
        raise Unusable(
            "the softmax of products of two values along time must be over the steps of the keys, its last axis"
        )
    return [scores._replace(shares=True)]


def _weighted(use: Use) -> list[Value]:
    """MatMul: the values of all steps, weighted."""
    shares, values = use.value(0), use.value(1)
    if not isinstance(shares, Scores) or not isinstance(values, Data) or not shares.shares:
        raise Unusable("products of two values along time can be multiplied with values only, after their softmax")
    if values.axes[:-1] != (*shares.query.axes[:-2], shares.keys.axes[-1]) or not isinstance(values.axes[-1], int):
        raise Unusable(f"the axes {list(shares.axes)} of weights do not fit those of the values, {list(values.axes)}")
    build, query = use.build, shares.query
    build.times += [str(word) for word in (query.axes[-2], shares.keys.axes[-1]) if word not in build.times]
    asked = query.node
    if shares.scale != 1:
        asked = build.node("ElementTimes", build.number(shares.scale), asked)
    attended = build.node("DotProductAttention", shares.keys.node, values.node, asked)
    return [build.data(attended, (*query.axes[:-1], values.axes[-1]))]


def _same(use: Use) -> list[Value]:
    return [use.value(0)]


def refuse(use: Use) -> list[Value]:
    """Any other operator.

    Raises:
        Unusable: always.
    """
    raise Unusable(
        "of products of two values along time only the multiple by a number, the softmax and its product with values "
        "are supported; sequences of different lengths need no mask here"
    )


RULES: dict[str, Rule] = {
    "Cast": _same,
    "Div": _scaled,
    "Dropout": _same,
    "Identity": _same,
    "MatMul": _weighted,
    "Mul": _scaled,
    "Softmax": _softmax,
}
"""By operator: what is made of products of two values along time."""
