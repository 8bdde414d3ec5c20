"""Reductions along axes of a sample, and what is made of them: softmax, the largest elements, normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cntkpy.networks.nodes.elementwise.onnx_reading import aligned
from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Joined, Unusable, Value
from cntkpy.networks.nodes.shape.onnx_axes import enumerable


def _axes_of(use: Use, x: Data) -> list[int]:
    """Return the axes that are reduced: some of the sample, and those of the minibatch all or none."""
    listed = use.integers("axes", 1)
    if not listed and use.get("noop_with_empty_axes", 0):
        return []
    axes = sorted({use.axis(axis, len(x.axes)) for axis in listed}) if listed else list(range(len(x.axes)))
    if not _over_minibatch(x, axes):
        for axis in axes:
            x.sample_axis(axis)
    return axes


def _over_minibatch(x: Data, axes: Sequence[int]) -> bool:
    """Return whether a reduction goes over all axes of the minibatch."""
    words = {index for index, axis in enumerate(x.axes) if isinstance(axis, str)}
    return bool(words) and words.issubset(axes) and not any(isinstance(axis, Joined) for axis in x.axes)


def reduced(use: Use, x: Data, axes: Sequence[int], how: str) -> Data:
    """Return a reduction, whose axes stay with one element."""
    if _over_minibatch(x, axes):
        node = use.build.node("ReduceMinibatch", x.node, reductionOp=how)
        x = use.build.data(node, tuple(1 if isinstance(axis, str) else axis for axis in x.axes))
    node = x.node
    for axis in axes:
        if x.axes[axis] != 1 or how == "LogSum":
            node = use.build.node("ReduceElements", node, axis=x.sample_axis(axis), reductionOp=how)
    return Data(node, tuple(1 if index in axes else axis for index, axis in enumerate(x.axes)))


def _kept_or_gone(use: Use, reduced: Data, axes: Sequence[int]) -> list[Value]:
    if use.get("keepdims", 1):
        return [reduced]
    return [use.build.data(reduced.node, tuple(axis for index, axis in enumerate(reduced.axes) if index not in axes))]


def reduction(how: str, first: str = "", after: str = "") -> Rule:
    """Return a reduction; the kinds of nodes before and after it, if there are any."""

    def rule(use: Use) -> list[Value]:
        x = use.data()
        axes = _axes_of(use, x)
        if first == "square":
            x = Data(use.build.node("ElementTimes", x.node, x.node), x.axes)
        elif first:
            x = Data(use.build.node(first, x.node), x.axes)
        result = reduced(use, x, axes, how)
        if after:
            result = Data(use.build.node(after, result.node), result.axes)
        return _kept_or_gone(use, result, axes)

    return rule


def arg_max(use: Use) -> list[Value]:
    """Return the number of the first largest or smallest element."""
    use.refuse("select_last_index", 0)
    x, axis = use.data(), use.integer("axis", 0)
    source = x.node if use.operator.kind == "ArgMax" else use.build.node("Negate", x.node)
    node = use.build.node("TopK", source, k=1, axis=x.sample_axis(axis), numbers=True)
    place = use.axis(axis, len(x.axes))
    result = Data(node, (*x.axes[:place], 1, *x.axes[place + 1 :]))
    return _kept_or_gone(use, result, [place])


def normalised(logarithm: bool) -> Rule:
    """Softmax or its logarithm."""

    def rule(use: Use) -> list[Value]:
        x, build = use.data(), use.build
        axis = use.axis(use.integer("axis", -1 if use.opset >= 13 else 1), len(x.axes))
        last = axis if use.opset >= 13 else len(x.axes) - 1  # before version 13, of all axes from this one on
        axes = list(range(axis, last + 1))
        sizes = [x.axes[index] for index in axes]
        if any(isinstance(size, str) for size in sizes):
            raise Unusable("it would mix the samples of a minibatch")
        if math.prod(int(size) for size in sizes) == math.prod(x.dims):
            return use.same(build.node("LogSoftmax" if logarithm else "Softmax", x.node))
        total = reduced(use, x, axes, "LogSum")
        logarithms = build.node("Minus", x.node, total.node)
        return use.same(logarithms if logarithm else build.node("Exp", logarithms))

    return rule


def top(use: Use) -> list[Value]:
    """Return the largest elements along an axis, and their numbers."""
    x, axis = use.data(), use.integer("axis", -1)
    smallest = not use.get("largest", 1)
    source = use.build.node("Negate", x.node) if smallest else x.node
    count = int(use.get("k", 0)) if use.opset < 10 else (use.integers("k", 1) or [0])[0]
    place, number = use.axis(axis, len(x.axes)), x.sample_axis(axis)
    if not 1 <= count <= int(x.axes[place]):
        raise Unusable(f"k = {count} of an axis of {x.axes[place]} elements")
    axes = (*x.axes[:place], count, *x.axes[place + 1 :])
    results: list[Value] = []
    for numbers in (False, True)[: len(use.operator.outputs)]:
        node = use.build.node("TopK", source, k=count, axis=number, numbers=numbers)
        results.append(Data(use.build.node("Negate", node) if smallest and not numbers else node, axes))
    return results


def layer_normalised(use: Use) -> list[Value]:
    """Return each sample less its mean, divided by its deviation, over the last axes; then scaled and shifted."""
    x, build = use.data(), use.build
    axes = list(range(use.axis(use.integer("axis", -1), len(x.axes)), len(x.axes)))
    mean = reduced(use, x, axes, "Mean")
    less = build.node("Minus", x.node, mean.node)
    squares = Data(build.node("ElementTimes", less, less), x.axes)
    variance = build.node("Plus", reduced(use, squares, axes, "Mean").node, build.number(use.get("epsilon", 1e-5)))
    inverse = Data(build.node("Reciprocal", build.node("Sqrt", variance)), mean.axes)
    normalised = Data(build.node("ElementTimes", less, inverse.node), x.axes)
    for index, kind in ((1, "ElementTimes"), (2, "Plus")):
        if use.has(index):
            nodes, _ = aligned(use, [normalised, use.array(index)])
            normalised = Data(build.node(kind, *nodes), x.axes)
    return [normalised, mean, inverse]


def by_root_mean_square(use: Use) -> list[Value]:
    """RMSNormalization: each sample divided by the root of the mean of its squares over the last axes; then scaled."""
    x, build = use.data(), use.build
    axes = list(range(use.axis(use.integer("axis", -1), len(x.axes)), len(x.axes)))
    squares = Data(build.node("ElementTimes", x.node, x.node), x.axes)
    mean = build.node("Plus", reduced(use, squares, axes, "Mean").node, build.number(use.get("epsilon", 1e-5)))
    inverse = build.node("Reciprocal", build.node("Sqrt", mean))
    normalised = Data(build.node("ElementTimes", x.node, inverse), x.axes)
    nodes, _ = aligned(use, [normalised, use.array(1)])
    return [Data(build.node("ElementTimes", *nodes), x.axes)]


def hard_max(use: Use) -> list[Value]:
    """1 at the first largest element of an axis; before version 13, of all axes from this one on."""
    x, build = use.data(), use.build
    place = use.axis(use.integer("axis", -1 if use.opset >= 13 else 1), len(x.axes))
    size = math.prod(int(axis) for axis in x.axes[place:] if isinstance(axis, int)) if use.opset < 13 else x.axes[place]
    if x.dims == (size,) or (use.opset < 13 and place == len(x.words)):
        return use.same(build.node("Hardmax", x.node))
    if use.opset < 13 and place != len(x.axes) - 1:
        raise Unusable("only that of one axis, or of a whole sample, is supported")
    number = x.sample_axis(place)
    first = build.node("TopK", x.node, k=1, axis=number, numbers=True)
    enumerable(int(x.axes[place]))
    places = build.parameter(Array(np.arange(x.axes[place]).reshape(-1, *(1,) * (number - 1))))
    return use.same(build.node("Equal", first, places))


RULES: dict[str, Rule] = {
    "ReduceSum": reduction("Sum"),
    "ReduceMean": reduction("Mean"),
    "ReduceMax": reduction("Max"),
    "ReduceMin": reduction("Min"),
    "ReduceProd": reduction("Prod"),
    "ReduceLogSumExp": reduction("LogSum"),
    "ReduceL1": reduction("Sum", first="Abs"),
    "ReduceL2": reduction("Sum", first="square", after="Sqrt"),
    "ReduceSumSquare": reduction("Sum", first="square"),
    "ReduceLogSum": reduction("Sum", after="Log"),
    "ArgMax": arg_max,
    "ArgMin": arg_max,
    "Softmax": normalised(False),
    "LogSoftmax": normalised(True),
    "Hardmax": hard_max,
    "LayerNormalization": layer_normalised,
    "RMSNormalization": by_root_mean_square,
    "TopK": top,
}
