"""Loop: over the steps of sequences as delays, like Scan; or a fixed number of times, its body over and over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Rule, Scope, Use
from cntkpy.networks.nodes.onnx_support.model import Model
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Step, Unusable, Value
from cntkpy.networks.nodes.recurrence.onnx_delays import PAST, edge_of
from cntkpy.networks.nodes.recurrence.onnx_units import connected, reconcile, scanned_state
from cntkpy.networks.nodes.shape.onnx_axes import stacked

MOST_UNROLLED = 256
"""Times that the body of a loop with a fixed trip count is computed, at most."""

GIVEN = 2
"""Inputs of a Loop and of its body before the values that it hands on: trip count and condition."""


def loop(use: Use) -> list[Value]:
    """Return a loop."""
    body = use.get("body")
    if not isinstance(body, Model) or len(body.inputs) != len(use.operator.inputs) or len(body.inputs) < GIVEN:
        raise Unusable("its body has another number of inputs")
    if len(body.outputs) < len(body.inputs) - 1 or len(body.outputs) - 1 < len(use.operator.outputs):
        raise Unusable("its body has another number of outputs")
    if use.has(1) and not use.array(1).value.all():
        raise Unusable("its condition is false at the start")
    if use.inputs[0] is None:
        raise Unusable("it has no trip count")
    return _unrolled(use, body) if use.build.unrolled else _over_time(use, body)


def _run(use: Use, inner: Scope, body: Model) -> list[Value | None]:
    inner.add_initialisers(body)
    inner.run(body.operators)
    if inner.refused:
        use.scope.refused.extend(inner.refused)
        raise Unusable("operators of its body are not supported")
    return [inner.values.get(name) for name in body.outputs]


# ---- over the steps of sequences


def _over_time(use: Use, body: Model) -> list[Value]:
    build, count = use.build, use.array(0).value
    number = int(count.reshape(()))
    outer = [value for value in _captured(use, body) if isinstance(value, Data) and len(value.words) == 2]
    times = [word for value in outer for word in value.words if _is_count(use, number, word)]
    if not times:
        raise Unusable(f"its trip count is neither the number of steps of its data nor a number up to {MOST_UNROLLED}")
    time = times[0]
    like = next(value for value in outer if time in value.words)
    batch = next(word for word in like.words if word != time)
    if time not in build.times:
        build.times.append(time)
    inner = use.scope.body()
    reconcile(use, body, inner, like)
    same = _handed_on(body)
    states = [
        use.value(index) if body.inputs[index].name in same else _state(use, index, batch)
        for index in range(GIVEN, len(body.inputs))
    ]
    inner.values.update(
        zip((operand.name for operand in body.inputs), (Step(), Array(np.array(True)), *states), strict=True)
    )
    outer_loop, build.loop = build.loop, (time, number)
    try:
        outputs = _run(use, inner, body)
    finally:
        build.loop = outer_loop
    condition = outputs[0]
    always = isinstance(condition, Array) and bool(condition.value.all())
    if not always and not (isinstance(condition, Step) and condition.holds):
        raise Unusable("its condition is not the number of steps")
    results: list[Value] = []
    for index, (state, output) in enumerate(zip(states, outputs[1:], strict=False)):
        asked = index < len(use.operator.outputs) and bool(use.operator.outputs[index])
        results.append(_final(use, state, output, number, body.inputs[GIVEN + index].name in same, asked))
    for output in outputs[1 + len(states) :]:
        if not isinstance(output, Data):
            raise Unusable("an output of it does not depend on the data")
        results.append(Data(output.node, (time, *output.axes)))
    return results


def _captured(use: Use, body: Model) -> list[Value]:
    """Return the values from outside that a body takes."""
    names = dict.fromkeys(name for operator in body.operators for name in operator.inputs)
    return [use.scope.values[name] for name in names if name in use.scope.values]


def _is_count(use: Use, number: int, word: str) -> bool:
    """Return whether a number is, or stands for, the size of an axis of the minibatch."""
    return use.build.word_of(number) == word or use.build.fixed.get(word) == number


def _handed_on(body: Model) -> set[str]:
    """Return the inputs of a body that it hands on unchanged."""
    sources = {name: name for name in (operand.name for operand in body.inputs)}
    for operator in body.operators:
        if operator.kind == "Identity" and operator.inputs and operator.inputs[0] in sources and operator.outputs:
            sources[operator.outputs[0]] = sources[operator.inputs[0]]
    pairs = zip(body.inputs[GIVEN:], body.outputs[1:], strict=False)
    return {source.name for source, output in pairs if sources.get(output) == source.name}


def _state(use: Use, index: int, batch: str) -> Value:
    value = use.value(index)
    if isinstance(value, Array) and value.value.size == 1 and value.value.dtype.kind in "iu":
        return Step(int(value.value.reshape(())))
    return scanned_state(use, index, PAST, batch)


def _final(use: Use, state: Value, output: Value | None, number: int, same: bool, asked: bool) -> Value:
    """Return a value that a loop hands on as it is after the loop.

    Args:
        use: the loop.
        state: the value before a step.
        output: the value after it.
        number: the trip count.
        same: whether it does not change.
        asked: whether the loop has a name for it.
    """
    if same:
        return state
    if isinstance(state, Step):
        if not isinstance(output, Step) or output.holds or output.offset != state.offset + 1:
            raise Unusable("it counts something else than its steps")
        if state.offset and asked:
            raise Unusable("it counts its steps from another number than 0 on")
        return Array(np.array(number, np.int64))
    if not isinstance(state, Data) or not isinstance(output, Data):
        raise Unusable("a state of it does not depend on the data")
    node = use.build.data(output.node, state.axes).node
    connected(state.node, node)
    return Data(edge_of(use, node, last=True), output.axes) if asked else Data(node, output.axes)


# ---- values of steps


def _same(use: Use) -> list[Value]:
    return [use.value(0)]


def _moved(use: Use) -> list[Value]:
    """Add, Sub."""
    steps = [operand for operand in use.inputs if isinstance(operand, Step)]
    numbers = [operand for operand in use.inputs if isinstance(operand, Array)]
    first = isinstance(use.inputs[0], Step)
    if len(steps) != 1 or len(numbers) != 1 or steps[0].holds or not (first or use.operator.kind == "Add"):
        raise Unusable("the number of a step can be added to constants only")
    sign = 1 if use.operator.kind == "Add" else -1
    return [Step(steps[0].offset + sign * int(numbers[0].value.reshape(())))]


def _below(use: Use) -> list[Value]:
    """Less: whether there is a next step, which is so until the last one."""
    step, count = use.value(0), use.value(1)
    number = int(count.value.reshape(())) if isinstance(count, Array) else None
    if not isinstance(step, Step) or step.holds or step.offset not in (0, 1) or number is None:
        raise Unusable("the number of a step can be compared with the number of steps only")
    if use.build.loop is None or not (number == use.build.loop[1] or _is_count(use, number, use.build.loop[0])):
        raise Unusable("the number of a step can be compared with the number of steps only")
    return [Step(holds=True)]


def _both(use: Use) -> list[Value]:
    """And."""
    if not all(
        (isinstance(operand, Step) and operand.holds) or (isinstance(operand, Array) and operand.value.all())
        for operand in use.inputs
    ):
        raise Unusable("the condition of a loop may be the number of steps only")
    return [Step(holds=True)]


def _of_step(use: Use) -> list[Value]:
    """Gather: the step of a sequence."""
    x, step, axis = use.value(0), use.value(1), use.integer("axis", 0)
    if not isinstance(x, Data) or not isinstance(step, Step) or step.offset or step.holds or use.build.loop is None:
        raise Unusable("of the data of a loop only the step of that number can be taken")
    place = use.axis(axis, len(x.axes))
    if x.axes[place] != use.build.loop[0]:
        raise Unusable(f"it takes numbers of steps of the axis '{x.axes[place]}'")
    return [Data(x.node, (*x.axes[:place], *x.axes[place + 1 :]))]


def refuse(use: Use) -> list[Value]:
    """Any other operator.

    Raises:
        Unusable: always.
    """
    raise Unusable("it computes with the number of a step")


OF_STEPS: dict[str, Rule] = {
    "Add": _moved,
    "And": _both,
    "Cast": _same,
    "Gather": _of_step,
    "Identity": _same,
    "Less": _below,
    "Sub": _moved,
}
"""By operator: what is made of the number of a step in a loop over time."""


# ---- a fixed number of times


def _unrolled(use: Use, body: Model) -> list[Value]:
    count = int(use.array(0).value.reshape(()))
    if not 0 < count <= MOST_UNROLLED:
        raise Unusable(f"its trip count is no number from 1 to {MOST_UNROLLED}")
    states: list[Value] = [use.value(index) for index in range(GIVEN, len(body.inputs))]
    every: list[list[Value]] = []
    for step in range(count):
        inner = use.scope.body()
        values = (Array(np.array(step, np.int64)), Array(np.array(True)), *states)
        inner.values.update(zip((operand.name for operand in body.inputs), values, strict=True))
        outputs = _run(use, inner, body)
        condition = outputs[0]
        if any(output is None for output in outputs) or not isinstance(condition, Array):
            raise Unusable("its condition depends on the data")
        known = [output for output in outputs[1:] if output is not None]
        states = known[: len(states)]
        every.append(known[len(states) :])
        if not condition.value.all():
            break
    return [*states, *(_joined(use, list(parts)) for parts in zip(*every, strict=True))]


def _joined(use: Use, parts: Sequence[Value]) -> Value:
    """Return the values of all times that a body was computed, on a new first axis."""
    arrays = [part.value for part in parts if isinstance(part, Array)]
    if len(arrays) == len(parts):
        use.build.take(sum(array.size for array in arrays))
        return Array(np.stack(arrays))
    nodes: list[Node] = []
    like = next((part for part in parts if isinstance(part, Data)), None)
    for part in parts:
        if like is None or not isinstance(part, Data) or part.axes != like.axes:
            raise Unusable("its results have different axes")
        nodes.append(use.build.data(part.node, (*part.words, 1, *part.dims)).node)
    assert like is not None
    return Data(stacked(use, nodes, len(like.dims) + 1), (len(parts), *like.axes))


RULES: dict[str, Rule] = {"Loop": loop}
