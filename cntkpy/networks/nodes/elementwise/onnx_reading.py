"""Operators of each element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.attention.onnx_sums import sums_of
from cntkpy.networks.nodes.onnx_support.building import Building, Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Axes, Data, Unusable, Value


def aligned(use: Use, values: list[Array | Data]) -> tuple[list[Node], Axes]:
    """Values as nodes of a broadcast operation, and the axes of the result.

    Raises:
        Unusable: they are broadcast along an axis of the minibatch.
    """
    rank = max(len(value.axes) if isinstance(value, Data) else value.value.ndim for value in values)
    axes: list[int | str] = [1] * rank
    for value in values:
        if isinstance(value, Data):
            _merge(axes, value.axes)
    values = [_without_batch(use, value, axes) if isinstance(value, Array) else value for value in values]
    for value in values:
        if isinstance(value, Array):
            _merge_array(axes, value.value.shape)
    nodes: list[Node] = []
    for value in values:
        if isinstance(value, Data):
            if value.words and value.words != tuple(word for word in axes if isinstance(word, str)):
                raise Unusable("its operands have different axes of the minibatch")
            nodes.append(value.node)
            continue
        shape = (1,) * (rank - value.value.ndim) + value.value.shape
        dims = [size for size, axis in zip(shape, axes, strict=True) if isinstance(axis, int)]
        while len(dims) > value.value.ndim or (len(dims) > 1 and dims[0] == 1):
            dims = dims[1:]
        nodes.append(use.build.parameter(value, dims or (1,)))
    return nodes, tuple(axes)


def _without_batch(use: Use, array: Array, axes: list[int | str]) -> Array:
    """Return a constant that has the size of the minibatch of an example, the same for all its samples, with one of
    them.
    """
    value, offset = array.value, len(axes) - array.value.ndim
    for index, size in enumerate(value.shape):
        axis = axes[index + offset]
        if isinstance(axis, str) and size > 1 and size == use.build.fixed.get(axis):
            first = value.take([0], index)
            if (value == first).all():
                value = first
    return array if value is array.value else Array(value)


def _merge(axes: list[int | str], operand_axes: Axes) -> None:
    offset = len(axes) - len(operand_axes)
    for index, size in enumerate(operand_axes, offset):
        if axes[index] == 1:
            axes[index] = size
        elif size not in (1, axes[index]):
            raise Unusable(f"its operands cannot be broadcast: an axis is {axes[index]} and {size}")
    for index, size in enumerate(operand_axes, offset):
        if isinstance(axes[index], str) and size == 1:
            raise Unusable(f"an operand has 1 element where the other has the axis '{axes[index]}' of the minibatch")


def _merge_array(axes: list[int | str], dims: tuple[int, ...]) -> None:
    for index, size in enumerate(dims, len(axes) - len(dims)):
        if axes[index] == 1:
            axes[index] = size
        elif size not in (1, axes[index]):
            raise Unusable(f"its operands cannot be broadcast: an axis is {axes[index]} and {size}")


def _whole(use: Use) -> list[Array | Data]:
    return [operand for index in range(len(use.inputs)) if isinstance(operand := use.value(index), (Array, Data))]


def one(kind: str) -> Rule:
    """Return one node of one operand."""
    return lambda use: use.same(use.build.node(kind, use.data().node))


def both(kind: str) -> Rule:
    """Return one node of two operands that are broadcast."""

    def rule(use: Use) -> list[Value]:
        if kind == "Plus" and (sums := sums_of(use.value(0), use.value(1))) is not None:
            return [sums]
        nodes, axes = aligned(use, _whole(use)[:2])
        return [use.build.data(use.build.node(kind, *nodes), axes)]

    return rule


def folded(kind: str) -> Rule:
    """Return a node of two operands for each operand after the first."""

    def rule(use: Use) -> list[Value]:
        nodes, axes = aligned(use, _whole(use))
        result = nodes[0]
        for node in nodes[1:]:
            result = use.build.node(kind, result, node)
        return [use.build.data(result, axes)]

    return rule


def made(function: Callable[[Use, Building, Node], Node]) -> Rule:
    """Several nodes of one operand."""
    return lambda use: use.same(function(use, use.build, use.data().node))


def same(use: Use) -> list[Value]:
    """Return the operand itself."""
    return [use.value(0)]


def divided(use: Use) -> list[Value]:
    """x times 1 / y."""
    x, y = _whole(use)[:2]
    if isinstance(y, Array):
        with np.errstate(divide="ignore"):
            y = Array(np.asarray(1 / y.value.astype(use.build.network.dtype)))
    nodes, axes = aligned(use, [x, y])
    if isinstance(y, Data):
        nodes[1] = use.build.node("Reciprocal", nodes[1])
    return [use.build.data(use.build.node("ElementTimes", *nodes), axes)]


def extreme(comparison: str) -> Rule:
    """Return the largest or smallest of several operands."""

    def rule(use: Use) -> list[Value]:
        nodes, axes = aligned(use, _whole(use))
        result = nodes[0]
        for node in nodes[1:]:
            result = use.build.node("If", use.build.node(comparison, result, node), result, node)
        return [use.build.data(result, axes)]

    return rule


def mean(use: Use) -> list[Value]:
    """Return the mean of several operands."""
    (total,) = folded("Plus")(use)
    assert isinstance(total, Data)
    share = use.build.number(1 / len(use.inputs))
    return [use.build.data(use.build.node("ElementTimes", total.node, share), total.axes)]


def chosen(use: Use) -> list[Value]:
    """Choice by condition."""
    nodes, axes = aligned(use, _whole(use))
    return [use.build.data(use.build.node("If", *nodes), axes)]


def clip(use: Use) -> list[Value]:
    """Values between two numbers."""
    least, most = use.real("min", 1), use.real("max", 2)
    least = most if least is not None and most is not None and least > most else least
    build, x = use.build, use.data().node
    low, high = (build.number(np.inf * sign if limit is None else limit) for limit, sign in ((least, -1), (most, 1)))
    return use.same(build.node("Clip", low, high, x))


def cast(use: Use) -> list[Value]:
    """Numbers of another type. Booleans are 0 and 1 here."""
    if use.get("to") not in (1, 10, 11, 16, 9) and not _is_whole(use.data().node):
        raise Unusable("numbers that depend on the data become integers")
    if use.get("to") == 9 and not _is_condition(use.data().node):
        return use.same(use.build.node("NotEqual", use.data().node, use.build.number(0)))
    return [use.data()]


CONDITIONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "Hardmax")


def _is_condition(node: Node) -> bool:
    """Return whether a node has the values 0 and 1 only."""
    return node.operation in CONDITIONS


def _is_whole(node: Node) -> bool:
    """Return whether a node has whole numbers only."""
    function = node.operation == "ElementFunction" and node.options["function"] == "round"
    numbers = node.operation == "TopK" and bool(node.options["numbers"])
    reshaped = node.operation == "NewReshape" and _is_whole(node.input(0))
    return function or numbers or reshaped or node.operation == "Floor" or _is_condition(node)


def cast_like(use: Use) -> list[Value]:
    """Numbers of the type of others: those that depend on the data stay real numbers."""
    like = use.value(1)
    if isinstance(like, Array) and like.value.dtype.kind in "iu" and not _is_whole(use.data().node):
        raise Unusable("numbers that depend on the data become integers")
    return [use.data()]


def dropout(use: Use) -> list[Value]:
    """Dropout, which does nothing outside of training."""
    if use.has(2) and use.array(2).value.any():
        raise Unusable("its training mode is not supported: export the model for inference")
    return use.same(use.build.node("Dropout", use.data().node))


def where_not(use: Use) -> list[Value]:
    """1 where the operand is 0."""
    return use.same(use.build.node("Equal", use.data().node, use.build.number(0)))


# ---- functions of several nodes


def ceiling(use: Use, build: Building, x: Node) -> Node:
    """-floor(-x)."""
    return build.node("Negate", build.node("Floor", build.node("Negate", x)))


def leaky(use: Use, build: Building, x: Node) -> Node:
    """x, and alpha x below 0."""
    below = build.node("ElementTimes", build.number(use.get("alpha", 0.01)), x)
    return build.node("If", build.node("Less", x, build.number(0)), below, x)


def _exponential(use: Use, build: Building, x: Node, alpha: float, gamma: float = 1.0) -> Node:
    below = build.node(
        "Minus", build.node("Negate", build.node("RectifiedLinear", build.node("Negate", x))), build.number(0)
    )
    powers = build.node("Minus", build.node("Exp", below), build.number(1))
    parts = build.node(
        "If", build.node("Less", x, build.number(0)), build.node("ElementTimes", build.number(alpha), powers), x
    )
    return parts if gamma == 1 else build.node("ElementTimes", build.number(gamma), parts)


def elu(use: Use, build: Building, x: Node) -> Node:
    """x, and alpha (e^x - 1) below 0."""
    return _exponential(use, build, x, use.get("alpha", 1.0))


def selu(use: Use, build: Building, x: Node) -> Node:
    """gamma times x, or alpha (e^x - 1) below 0."""
    return _exponential(use, build, x, use.get("alpha", 1.6732632), use.get("gamma", 1.0507010))


def hard_sigmoid(use: Use, build: Building, x: Node) -> Node:
    """alpha x + beta between 0 and 1."""
    return _hard(build, x, use.get("alpha", 0.2), use.get("beta", 0.5))


def _hard(build: Building, x: Node, alpha: float, beta: float) -> Node:
    line = build.node("Plus", build.node("ElementTimes", build.number(alpha), x), build.number(beta))
    return build.node("Clip", build.number(0), build.number(1), line)


def gelu(use: Use, build: Building, x: Node) -> Node:
    """x times the share of a normal distribution below x, or its approximation by tanh."""
    if use.get("approximate", "none") == "tanh":
        cube = build.node("ElementTimes", x, build.node("ElementTimes", x, x))
        inner = build.node("Plus", x, build.node("ElementTimes", build.number(0.044715), cube))
        share = build.node("Tanh", build.node("ElementTimes", build.number(np.sqrt(2 / np.pi)), inner))
    else:
        use.refuse("approximate", "none")
        scaled = build.node("ElementTimes", build.number(np.sqrt(0.5)), x)
        share = build.node("ElementFunction", scaled, function="erf")
    half = build.node("ElementTimes", build.number(0.5), x)
    return build.node("ElementTimes", half, build.node("Plus", share, build.number(1)))


def complement_of_error(use: Use, build: Building, x: Node) -> Node:
    """1 - erf(x): no operator of ONNX, but tf2onnx writes it for the Gelu of Keras."""
    return build.node("Minus", build.number(1), build.node("ElementFunction", x, function="erf"))


def swish(use: Use, build: Building, x: Node) -> Node:
    """x times sigmoid(alpha x)."""
    alpha = use.get("alpha", 1.0)
    scaled = x if alpha == 1 else build.node("ElementTimes", build.number(alpha), x)
    return build.node("ElementTimes", x, build.node("Sigmoid", scaled))


def mish(use: Use, build: Building, x: Node) -> Node:
    """x times tanh(softplus(x))."""
    return build.node("ElementTimes", x, build.node("Tanh", softplus(use, build, x)))


def celu(use: Use, build: Building, x: Node) -> Node:
    """x, and alpha (e^(x / alpha) - 1) below 0."""
    alpha = use.get("alpha", 1.0)
    scaled = build.node("ElementTimes", build.number(1 / alpha), x)
    return build.node("ElementTimes", build.number(alpha), _exponential(use, build, scaled, 1.0))


def shrunk(use: Use, build: Building, x: Node) -> Node:
    """x - bias above lambd, x + bias below -lambd, else 0."""
    limit, bias = build.number(use.get("lambd", 0.5)), build.number(use.get("bias", 0.0))
    above = build.node("If", build.node("Greater", x, limit), build.node("Minus", x, bias), build.number(0))
    below = build.node("Less", x, build.node("Negate", limit))
    return build.node("If", below, build.node("Plus", x, bias), above)


def hard_swish(use: Use, build: Building, x: Node) -> Node:
    """x times x / 6 + 0.5 between 0 and 1."""
    return build.node("ElementTimes", x, _hard(build, x, 1 / 6, 0.5))


def softplus(use: Use, build: Building, x: Node) -> Node:
    """max(x, 0) + ln(1 + e^-|x|)."""
    small = build.node("Exp", build.node("Negate", build.node("Abs", x)))
    return build.node(
        "Plus", build.node("RectifiedLinear", x), build.node("Log", build.node("Plus", small, build.number(1)))
    )


def softsign(use: Use, build: Building, x: Node) -> Node:
    """x / (1 + |x|)."""
    return build.node(
        "ElementTimes", x, build.node("Reciprocal", build.node("Plus", build.node("Abs", x), build.number(1)))
    )


def sign(use: Use, build: Building, x: Node) -> Node:
    """1, 0 or -1."""
    return build.node("Minus", build.node("Greater", x, build.number(0)), build.node("Less", x, build.number(0)))


def thresholded(use: Use, build: Building, x: Node) -> Node:
    """x above alpha, else 0."""
    return build.node("If", build.node("Greater", x, build.number(use.get("alpha", 1.0))), x, build.number(0))


def slope_below(use: Use) -> list[Value]:
    """x, and below 0 x times a slope that is learned."""
    build = use.build
    nodes, axes = aligned(use, _whole(use))
    below = build.node("ElementTimes", nodes[0], nodes[1])
    return [build.data(build.node("If", build.node("Less", nodes[0], build.number(0)), below, nodes[0]), axes)]


def function(name: str) -> Rule:
    """Return a function of ElementFunction."""
    return lambda use: use.same(use.build.node("ElementFunction", use.data().node, function=name))


FUNCTIONS = ("Round", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh", "Erf")


RULES: dict[str, Rule] = {
    **{name: function(name.lower()) for name in FUNCTIONS},
    "Abs": one("Abs"),
    "Neg": one("Negate"),
    "Exp": one("Exp"),
    "Log": one("Log"),
    "Sqrt": one("Sqrt"),
    "Sigmoid": one("Sigmoid"),
    "Tanh": one("Tanh"),
    "Relu": one("RectifiedLinear"),
    "Floor": one("Floor"),
    "Reciprocal": one("Reciprocal"),
    "Sin": one("Sin"),
    "Cos": one("Cosine"),
    "Identity": same,
    "Cast": cast,
    "CastLike": cast_like,
    "Erfc": made(complement_of_error),
    "Gelu": made(gelu),
    "Swish": made(swish),
    "Mish": made(mish),
    "Celu": made(celu),
    "Shrink": made(shrunk),
    "Dropout": dropout,
    "Add": both("Plus"),
    "Sub": both("Minus"),
    "Mul": both("ElementTimes"),
    "Div": divided,
    "Pow": both("ElementPower"),
    "Sum": folded("Plus"),
    "Mean": mean,
    "Max": extreme("Greater"),
    "Min": extreme("Less"),
    "Less": both("Less"),
    "LessOrEqual": both("LessEqual"),
    "Greater": both("Greater"),
    "GreaterOrEqual": both("GreaterEqual"),
    "Equal": both("Equal"),
    "And": both("ElementTimes"),
    "Or": extreme("Greater"),
    "Xor": both("NotEqual"),
    "Not": where_not,
    "Where": chosen,
    "Clip": clip,
    "Ceil": made(ceiling),
    "LeakyRelu": made(leaky),
    "Elu": made(elu),
    "Selu": made(selu),
    "HardSigmoid": made(hard_sigmoid),
    "HardSwish": made(hard_swish),
    "Softplus": made(softplus),
    "Softsign": made(softsign),
    "Sign": made(sign),
    "ThresholdedRelu": made(thresholded),
    "PRelu": slope_below,
}
