"""Quantised operators: whole numbers as real numbers of the network, rounded where the operators round.

Weights are constants: a rounded function has no gradient. The scale of `DynamicQuantizeLinear` is that of all samples
of a minibatch, as ONNX defines it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value

MICROSOFT = "com.microsoft."
"""Prefix of the names of onnxruntime's own operators."""


def _real(use: Use, value: Value) -> Value:
    """Whole numbers as real ones."""
    if isinstance(value, Array):
        use.build.take(value.value.size)
        return Array(value.value.astype(use.build.network.dtype))
    return value


def _number(value: float) -> Array:
    return Array(np.array(value, np.float64))


def _along(use: Use, value: Value, rank: int, axis: int) -> Value:
    """Return a scale or zero point of one axis, to be broadcast with a value of `rank` axes; a number as it is."""
    if not isinstance(value, Array) or value.value.size == 1:
        return Array(value.value.reshape(())) if isinstance(value, Array) else value
    if value.value.ndim != 1:
        raise Unusable("scales of blocks are not supported there")
    return Array(value.value.reshape(-1, *(1,) * (rank - 1 - use.axis(axis, rank))))


def _rank(value: Value) -> int:
    if isinstance(value, Array):
        return value.value.ndim
    if isinstance(value, Data):
        return len(value.axes)
    raise Unusable("its operand is no array")


def _optional(use: Use, index: int) -> Value | None:
    return use.value(index) if use.has(index) else None


def less_zero(use: Use, x: Value, zero: Value | None, axis: int = 0) -> Value:
    """Whole numbers less their zero point."""
    x = _real(use, x)
    if zero is None or (isinstance(zero, Array) and not zero.value.any()):
        return x
    return use.part("Sub", x, _along(use, _real(use, zero), _rank(x), axis))


def from_whole(use: Use, x: Value, scale: Value, zero: Value | None, axis: int = 1) -> Value:
    """(x - zero) * scale."""
    return use.part("Mul", less_zero(use, x, zero, axis), _along(use, _real(use, scale), _rank(x), axis))


RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
TYPES = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16"}


def to_whole(use: Use, x: Value, zero: Value | None, axis: int = 1) -> Value:
    """Numbers, divided by their scale already, rounded, moved by the zero point and limited to the type of that."""
    kind = TYPES.get(use.integer("output_dtype", 0), "uint8")
    if isinstance(zero, Array):
        kind = zero.value.dtype.name
    if kind not in RANGES:
        raise Unusable(f"whole numbers of type {kind} are not supported")
    rounded = use.part("Round", x)
    if zero is not None and not (isinstance(zero, Array) and not zero.value.any()):
        rounded = use.part("Add", rounded, _along(use, _real(use, zero), _rank(x), axis))
    low, high = RANGES[kind]
    return use.part("Clip", rounded, _number(low), _number(high))


def quantise(use: Use, x: Value, scale: Value, zero: Value | None, axis: int = 1) -> Value:
    """Real numbers as whole ones."""
    return to_whole(use, use.part("Div", x, _along(use, _real(use, scale), _rank(x), axis)), zero, axis)


def quantised(use: Use) -> list[Value]:
    """QuantizeLinear."""
    use.refuse("block_size", 0)
    return [quantise(use, use.value(0), use.value(1), _optional(use, 2), use.integer("axis", 1))]


def dequantised(use: Use) -> list[Value]:
    """DequantizeLinear."""
    use.refuse("block_size", 0)
    return [from_whole(use, use.value(0), use.value(1), _optional(use, 2), use.integer("axis", 1))]


def dynamically(use: Use) -> list[Value]:
    """DynamicQuantizeLinear: numbers from 0 to 255, their scale and zero point, of all samples of the minibatch."""
    x, build = use.data(), use.build
    largest = _over_all(use, x, "Max")
    smallest = _over_all(use, x, "Min")
    high = build.node("RectifiedLinear", largest)
    low = build.node("Negate", build.node("RectifiedLinear", build.node("Negate", smallest)))
    scale = Data(build.node("ElementTimes", build.node("Minus", high, low), build.number(1 / 255)), ())
    zero = to_whole(use, use.part("Div", Data(build.node("Negate", low), ()), scale), None)
    return [quantise(use, x, scale, zero), scale, zero]


def _over_all(use: Use, x: Data, how: str) -> Node:
    inner = use.build.node("ReduceElements", x.node, axis=0, reductionOp=how)
    return use.build.node("ReduceMinibatch", inner, reductionOp=how)


def product(use: Use) -> list[Value]:
    """MatMulInteger."""
    zero = _optional(use, 2)
    if isinstance(zero, Array) and zero.value.size > 1:
        raise Unusable("a zero point for each row is not supported")
    right = less_zero(use, use.value(1), _optional(use, 3), -1)
    return [use.part("MatMul", less_zero(use, use.value(0), zero), right)]


def convolution(use: Use) -> list[Value]:
    """ConvInteger."""
    weights = less_zero(use, use.value(1), _optional(use, 3), 0)
    return [use.part("Conv", less_zero(use, use.value(0), _optional(use, 2)), weights, **use.operator.attributes)]


def _factors(use: Use, first: int, second: int, result: int) -> np.ndarray:
    """Return the product of the scales of two operands, divided by that of the result."""
    arrays = [use.array(index).value.astype(np.float64) for index in (first, second, result)]
    if arrays[0].size != 1 or arrays[2].size != 1:
        raise Unusable("a scale for each row is not supported")
    return arrays[0].reshape(()) * arrays[1] / arrays[2].reshape(())


def whole_product(use: Use) -> list[Value]:
    """QLinearMatMul."""
    right = less_zero(use, use.value(3), _optional(use, 5), -1)
    product = use.part("MatMul", less_zero(use, use.value(0), _optional(use, 2)), right)
    scaled = use.part("Mul", product, Array(_factors(use, 1, 4, 6)))
    return [to_whole(use, scaled, _optional(use, 7))]


def whole_convolution(use: Use) -> list[Value]:
    """QLinearConv."""
    weights = less_zero(use, use.value(3), _optional(use, 5), 0)
    bias = [_real(use, use.value(8))] if use.has(8) else []
    image = less_zero(use, use.value(0), _optional(use, 2))
    product = use.part("Conv", image, weights, *bias, **use.operator.attributes)
    factors = _along(use, Array(_factors(use, 1, 4, 6)), _rank(product), 1)
    return [to_whole(use, use.part("Mul", product, factors), _optional(use, 7))]


def both(kind: str) -> Rule:
    """QLinearAdd, QLinearMul: an operation of two quantised operands."""

    def rule(use: Use) -> list[Value]:
        first = from_whole(use, use.value(0), use.value(1), _optional(use, 2))
        second = from_whole(use, use.value(3), use.value(4), _optional(use, 5))
        return [quantise(use, use.part(kind, first, second), use.value(6), _optional(use, 7))]

    return rule


def one(kind: str, *names: str) -> Rule:
    """Return an operation of one quantised operand, with these attributes."""

    def rule(use: Use) -> list[Value]:
        use.refuse("channels_last", 0)
        attributes = {name: use.get(name) for name in names if use.get(name) is not None}
        result = use.part(kind, from_whole(use, use.value(0), use.value(1), _optional(use, 2)), **attributes)
        return [quantise(use, result, use.value(3), _optional(use, 4))]

    return rule


def joined(use: Use) -> list[Value]:
    """QLinearConcat."""
    if len(use.inputs) < 5 or (len(use.inputs) - 2) % 3:
        raise Unusable("each operand needs a scale and a zero point")
    places = range(2, len(use.inputs), 3)
    parts = [from_whole(use, use.value(place), use.value(place + 1), use.value(place + 2)) for place in places]
    return [quantise(use, use.part("Concat", *parts, axis=use.integer("axis", 1)), use.value(0), use.value(1))]


def general(use: Use) -> list[Value]:
    """QGemm."""
    left, right = less_zero(use, use.value(0), _optional(use, 2)), use.value(3)
    names = ("alpha", "transA", "transB")
    attributes = {name: use.get(name) for name in names if use.get(name) is not None}
    weights = less_zero(use, right, _optional(use, 5), 0 if use.get("transB", 0) else 1)
    bias = [_real(use, use.value(6))] if use.has(6) else []
    if bias and use.get("alpha", 1.0) != 1:
        raise Unusable("alpha with a third operand is not supported")
    product = use.part("Gemm", left, weights, *bias, **attributes)
    if not use.has(7):
        scales = use.array(1).value.astype(np.float64).reshape(()) * use.array(4).value
        return [use.part("Mul", product, Array(scales))]
    return [to_whole(use, use.part("Mul", product, Array(_factors(use, 1, 4, 7))), _optional(use, 8))]


def to_real(use: Use) -> list[Value]:
    """MatMulIntegerToFloat: A, B, their scales, their zero points, what is added."""
    right = less_zero(use, use.value(1), _optional(use, 5), -1)
    product = use.part("MatMul", less_zero(use, use.value(0), _optional(use, 4)), right)
    product = use.part("Mul", use.part("Mul", product, _real(use, use.value(3))), _real(use, use.value(2)))
    return [use.part("Add", product, use.value(6)) if use.has(6) else product]


def dynamic_product(use: Use) -> list[Value]:
    """DynamicQuantizeMatMul: A, B, the scale and zero point of B, what is added."""
    whole, scale, zero = dynamically(use)
    right = less_zero(use, use.value(1), _optional(use, 3), -1)
    product = use.part("MatMul", less_zero(use, whole, zero), right)
    product = use.part("Mul", use.part("Mul", product, _real(use, use.value(2))), scale)
    return [use.part("Add", product, use.value(4)) if use.has(4) else product]


POOLED = ("kernel_shape", "strides", "pads", "auto_pad", "ceil_mode", "count_include_pad")

OF_MICROSOFT: dict[str, Callable[[Use], list[Value]]] = {
    "QuantizeLinear": quantised,
    "DequantizeLinear": dequantised,
    "QLinearAdd": both("Add"),
    "QLinearMul": both("Mul"),
    "QLinearSigmoid": one("Sigmoid"),
    "QLinearLeakyRelu": one("LeakyRelu", "alpha"),
    "QLinearAveragePool": one("AveragePool", *POOLED),
    "QLinearGlobalAveragePool": one("GlobalAveragePool"),
    "QLinearSoftmax": one("Softmax", "axis"),
    "QLinearConcat": joined,
    "QGemm": general,
    "MatMulIntegerToFloat": to_real,
    "DynamicQuantizeMatMul": dynamic_product,
}
"""Operators that onnxruntime's quantisation writes."""

RULES: dict[str, Rule] = {
    "QuantizeLinear": quantised,
    "DequantizeLinear": dequantised,
    "DynamicQuantizeLinear": dynamically,
    "MatMulInteger": product,
    "ConvInteger": convolution,
    "QLinearMatMul": whole_product,
    "QLinearConv": whole_convolution,
    **{MICROSOFT + name: rule for name, rule in OF_MICROSOFT.items()},
}
