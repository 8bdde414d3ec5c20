"""Steps of sequences: delays, the first and the last step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Longer, Unusable

PAST, FUTURE = "PastValue", "FutureValue"

MOST_STEPS = 1 << 16
"""Steps that are cut off, at most; a slice that ends behind them has no end."""


def delay(use: Use, kind: str, source: Node | None, start: Array | Data, dims: Sequence[int], steps: int = 1) -> Node:
    """Return a delay.

    Args:
        use: the operator.
        kind: PastValue or FutureValue.
        source: its operand; None: it is connected later.
        start: what it is outside of the sequence, broadcast to `dims`.
        dims: of its value, in the order of memory.
        steps: how many.
    """
    build, shape = use.build, tuple(reversed(dims)) or (1,)
    initial: Node | None = None
    value = 0.0
    if isinstance(start, Data):
        initial = start.node
    elif start.value.size and (start.value == start.value.flat[0]).all():
        value = float(start.value.flat[0])
    else:
        start_values = np.broadcast_to(start.value.reshape(start.value.shape[-len(dims) :]), tuple(dims))
        initial = build.parameter(Array(np.asarray(start_values), start.name), dims)
    node = build.node(
        kind,
        *([] if source is None else [source]),
        *([] if initial is None or source is None else [initial]),
        shape=shape,
        rows=shape[0],
        timeStep=steps,
        defaultHiddenActivity=value,
    )
    if source is None:
        node.inputs = [None] if initial is None else [None, initial]
        node.axis = "*"
    return node


def lengthened(use: Use, values: Sequence[Array | Data], place: int) -> Longer:
    """Return a sequence with constant steps before or behind it."""
    if len(values) != 2:
        raise Unusable("values are joined along an axis of the minibatch")
    first, second = values
    data, edge = (second, first) if isinstance(first, Array) else (first, second)
    if not isinstance(data, Data) or not isinstance(edge, Array) or edge.value.ndim != len(data.axes):
        raise Unusable("values are joined along an axis of the minibatch")
    sizes = [size for index, size in enumerate(edge.value.shape) if index != place]
    axes = [axis for index, axis in enumerate(data.axes) if index != place]
    if any(size not in (1, axis) for size, axis in zip(sizes, axes, strict=True)):
        raise Unusable("what is put before or behind a sequence has another shape")
    _time(use, data, place)
    return Longer(data, Array(np.moveaxis(edge.value, place, 0)), edge.value.shape[place], isinstance(first, Array))


def delayed(use: Use, x: Longer, axis: int, begin: int, end: int) -> Data:
    """Return the steps that a delay has."""
    data = x.data
    wanted = (0, -x.steps) if x.before else (x.steps, None)
    if (begin, None if end > len(data.axes) and not x.before else end) != wanted or not isinstance(
        data.axes[axis], str
    ):
        raise Unusable("values are joined along an axis of the minibatch")
    edge = x.edge.value
    if not (edge == edge[:1]).all():
        raise Unusable("the steps before or behind a sequence differ")
    node = delay(use, PAST if x.before else FUTURE, data.node, Array(edge[0]), data.dims, x.steps)
    return Data(node, data.axes)


def steps_between(use: Use, x: Data, place: int, begin: int, end: int | None) -> Data:
    """Return steps of sequences: a single one with an axis of one element, others as shorter sequences."""
    word, ones = str(x.axes[place]), (*x.axes[:place], 1, *x.axes[place + 1 :])
    _time(use, x, place)
    if (begin, end) == (0, 1) or (begin == -1 and (end is None or end > 1)):
        return use.build.data(edge_of(use, x.node, begin == -1), ones)
    end = None if end is not None and end > MOST_STEPS else end
    is_empty = end is not None and (begin < 0) == (end < 0) and begin >= end
    if is_empty or len(x.words) < 2 or begin > MOST_STEPS or min(begin, end or 0) < -MOST_STEPS:
        raise Unusable(f"of the axis '{word}' only the first or last step can be taken")
    flags = [_is_from(use, x.node, begin)] if begin else []
    if end is not None:
        flags.append(_is_before(use, x.node, end))
    flag = flags[0] if len(flags) == 1 else use.build.node("ElementTimes", *flags)
    if end is not None and end - begin == 1 and begin != -1:
        return use.build.data(_gathered(use, x.node, flag), ones)
    shorter = f"{word}[{begin}:{'' if end is None else end}]"
    use.build.times.append(shorter)
    return Data(_gathered(use, x.node, flag), (*x.axes[:place], shorter, *x.axes[place + 1 :]))


def _is_from(use: Use, x: Node, step: int) -> Node:
    """Return 1 from a step on, counted from the end if it is negative, else 0."""
    return _edge(use, x, step) if step < 0 else _opposite(use, _edge(use, x, step))


def _is_before(use: Use, x: Node, step: int) -> Node:
    """Return 1 before a step, counted from the end if it is negative, else 0."""
    return _opposite(use, _edge(use, x, step)) if step < 0 else _edge(use, x, step)


def _edge(use: Use, x: Node, steps: int) -> Node:
    """Return 1 at the first steps of a sequence, or at the last ones if the number is negative, else 0."""
    kind = FUTURE if steps < 0 else PAST
    return use.build.node(kind, _zero(use, x), rows=1, timeStep=abs(steps), defaultHiddenActivity=1.0)


def _opposite(use: Use, flag: Node) -> Node:
    return use.build.node("Minus", use.build.number(1), flag)


def _zero(use: Use, x: Node) -> Node:
    return use.build.node("ElementTimes", use.build.number(0), use.build.node("SumColumnElements", x))


def _gathered(use: Use, x: Node, flag: Node) -> Node:
    """Return the steps that a flag is not 0 at."""
    index = use.build.node("PackedIndex", x, use.build.node("Where", flag))
    return use.build.node("GatherPacked", index, x)


def edge_of(use: Use, x: Node, last: bool) -> Node:
    """Return the last or the first step of each sequence."""
    mark = use.build.node(FUTURE if last else PAST, _zero(use, x), rows=1, defaultHiddenActivity=1.0)
    return _gathered(use, x, mark)


def _time(use: Use, x: Data, place: int) -> None:
    word = x.axes[place]
    if isinstance(word, str) and word not in use.build.times:
        use.build.times.append(word)
