"""Recurrent operators: LSTM, GRU and RNN as nodes of one step, Scan as the nodes of its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Rule, Scope, Use
from cntkpy.networks.nodes.onnx_support.model import Model
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value
from cntkpy.networks.nodes.recurrence.onnx_delays import FUTURE, PAST, delay, edge_of

ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "RectifiedLinear"}


class Direction(NamedTuple):
    """One direction of a recurrent operator.

    Attributes:
        use: the operator.
        x: a step of its input.
        weights, recurrence: of all gates, (gates * hidden, ...).
        bias: of input and state, (2, gates * hidden).
        kind: of its delays.
        functions: of gates.
        starts: what its states are before the first step.
        name: what names of its parameters begin with.
        peepholes: how much of the memory is added to the gates input, output and forget, (3, hidden); None: nothing.
    """

    use: Use
    x: Node
    weights: np.ndarray
    recurrence: np.ndarray
    bias: np.ndarray
    kind: str
    functions: list[str]
    starts: list[Array]
    name: str
    peepholes: np.ndarray | None = None

    @property
    def hidden(self) -> int:
        """Elements of the state."""
        return self.recurrence.shape[1]

    def parameter(self, word: str, value: np.ndarray) -> Node:
        """Return a parameter that training changes, if it changes the initialiser of the weights."""
        weights = self.use.array(1).name
        return self.use.build.parameter(Array(np.asarray(value), f"{self.name}.{word}"), of=weights)

    def state(self, index: int) -> Node:
        """Return a state, to be connected."""
        return delay(self.use, self.kind, None, self.starts[index], (self.hidden,))

    def gate(self, total: Node, index: int) -> Node:
        """Return the part of a sum of all gates that is one of them."""
        begin = index * self.hidden
        return self.use.build.node("RowSlice", total, start=begin, count=self.hidden)

    def looking(self, gate: Node, index: int, memory: Node) -> Node:
        """Return a gate that sees the memory."""
        if self.peepholes is None:
            return gate
        weights = self.parameter(f"P{'iof'[index]}", self.peepholes[index])
        return self.node("Plus", gate, self.node("ElementTimes", weights, memory))

    def apply(self, index: int, x: Node) -> Node:
        """Return the activation of that number."""
        return self.use.build.node(self.functions[index], x)

    def node(self, kind: str, *operands: Node) -> Node:
        """Return a node."""
        return self.use.build.node(kind, *operands)


def connected(state: Node, source: Node) -> None:
    """Connect a delay with what it delays."""
    state.inputs[0] = source


def _sum(cell: Direction, h: Node) -> Node:
    """W x + R h + b of all gates."""
    known = cell.node(
        "Plus", cell.node("Times", cell.parameter("W", cell.weights.T), cell.x), cell.parameter("b", cell.bias.sum(0))
    )
    return cell.node("Plus", known, cell.node("Times", cell.parameter("R", cell.recurrence.T), h))


def _lstm(cell: Direction) -> list[Node]:
    """Gates input, output, forget, candidate."""
    h, c = cell.state(0), cell.state(1)
    total = _sum(cell, h)
    take, keep = (cell.apply(0, cell.looking(cell.gate(total, index), index, c)) for index in (0, 2))
    candidate = cell.apply(1, cell.gate(total, 3))
    memory = cell.node("Plus", cell.node("ElementTimes", keep, c), cell.node("ElementTimes", take, candidate))
    show = cell.apply(0, cell.looking(cell.gate(total, 1), 1, memory))
    result = cell.node("ElementTimes", show, cell.apply(2, memory))
    connected(h, result)
    connected(c, memory)
    return [result, memory]


def _rnn(cell: Direction) -> list[Node]:
    h = cell.state(0)
    result = cell.apply(0, _sum(cell, h))
    connected(h, result)
    return [result]


def _gru(cell: Direction) -> list[Node]:
    """Gates update, reset, candidate."""
    h, size = cell.state(0), cell.hidden
    after = bool(cell.use.get("linear_before_reset", 0))
    both = slice(0, 2 * size)
    x_bias = cell.bias.sum(0)
    x_bias[2 * size :] = cell.bias[0, 2 * size :] if after else x_bias[2 * size :]
    known = cell.node(
        "Plus", cell.node("Times", cell.parameter("W", cell.weights.T), cell.x), cell.parameter("b", x_bias)
    )
    product = cell.node("Times", cell.parameter("R", cell.recurrence[both].T), h)
    update, reset = (
        cell.apply(0, cell.node("Plus", cell.gate(known, index), cell.gate(product, index))) for index in range(2)
    )
    matrix = cell.parameter("Rh", cell.recurrence[2 * size :].T)
    if after:
        inner = cell.node("Plus", cell.node("Times", matrix, h), cell.parameter("bh", cell.bias[1, 2 * size :]))
        passed = cell.node("ElementTimes", reset, inner)
    else:
        passed = cell.node("Times", matrix, cell.node("ElementTimes", reset, h))
    candidate = cell.apply(1, cell.node("Plus", cell.gate(known, 2), passed))
    complement = cell.node("Minus", cell.use.build.number(1), update)
    result = cell.node("Plus", cell.node("ElementTimes", complement, candidate), cell.node("ElementTimes", update, h))
    connected(h, result)
    return [result]


class Unit(NamedTuple):
    """A recurrent operator.

    Attributes:
        gates: how many matrices it has.
        states: how many arrays it hands on.
        functions: its activations, unless others are given.
        make: adds the nodes of a step; the results are its states.
    """

    gates: int
    states: int
    functions: list[str]
    make: Callable[[Direction], list[Node]]


LENGTHS, PEEPHOLES = 4, 7
"""Inputs of a recurrent operator that may be left out."""

UNITS = {
    "LSTM": Unit(4, 2, ["sigmoid", "tanh", "tanh"], _lstm),
    "GRU": Unit(3, 1, ["sigmoid", "tanh"], _gru),
    "RNN": Unit(1, 1, ["tanh"], _rnn),
}


def recurrence(use: Use) -> list[Value]:
    """LSTM, GRU or RNN."""
    unit, build, x = UNITS[use.operator.kind], use.build, use.data()
    by_batch = use.get("layout", 0) == 1
    if len(x.words) != 2 or x.axes[2:] != x.dims or len(x.dims) != 1:
        raise Unusable(f"its input must have the axes time, batch and elements, not {list(x.axes)}")
    if use.get("clip") is not None or use.get("input_forget", 0):
        raise Unusable("clip and input_forget are not supported")
    time, batch = x.words[::-1] if by_batch else x.words
    _check_lengths(use, build.fixed.get(time))
    if time not in build.times:
        build.times.append(time)
    ways = {"forward": (PAST,), "reverse": (FUTURE,), "bidirectional": (PAST, FUTURE)}.get(
        use.get("direction", "forward")
    )
    if ways is None:
        raise Unusable(f"direction = {use.get('direction')} is not supported")
    functions = [str(name).lower() for name in use.get("activations") or unit.functions * len(ways)]
    if any(function not in ACTIVATIONS for function in functions):
        raise Unusable(f"activations = {use.get('activations')} are not supported")
    owner, every = build.owner, list[list[Node]]()
    for index, kind in enumerate(ways):
        build.owner = owner if len(ways) == 1 else f"{owner}.{('forward', 'backward')[index]}"
        every.append(unit.make(_direction(use, x.node, unit, index, kind, functions)))
    build.owner = owner
    hidden = every[0][0].shape or (1,)
    steps = build.node("RowStack", *(direction[0] for direction in every)) if len(ways) > 1 else every[0][0]
    axes = (batch, time, len(ways), hidden[0]) if by_batch else (time, len(ways), batch, hidden[0])
    results: list[Value] = [build.data(steps, axes)]
    for index, name in enumerate(use.operator.outputs[1:]):
        if name:
            ends = [edge_of(use, direction[index], kind == PAST) for direction, kind in zip(every, ways, strict=True)]
            node = build.node("RowStack", *ends) if len(ends) > 1 else ends[0]
            results.append(
                build.data(node, (batch, len(ways), hidden[0]) if by_batch else (len(ways), batch, hidden[0]))
            )
        else:
            results.append(results[0])
    return results


def _check_lengths(use: Use, steps: int | None) -> None:
    """Refuse lengths of sequences that are not those of the data."""
    if use.has(LENGTHS):
        lengths = set(use.array(LENGTHS).value.reshape(-1).tolist())
        if lengths != {steps}:
            raise Unusable(f"sequences of {sorted(lengths)} steps; lengths that are known must be those of its input")


def _direction(use: Use, x: Node, unit: Unit, index: int, kind: str, functions: list[str]) -> Direction:
    weights, recurrence_ = (use.array(position).value[index] for position in (1, 2))
    hidden = recurrence_.shape[1]
    if len(weights) != unit.gates * hidden or len(recurrence_) != unit.gates * hidden:
        raise Unusable("its weights do not have the sizes of its gates")
    bias = use.array(3).value[index] if use.has(3) else np.zeros(2 * unit.gates * hidden, weights.dtype)
    starts: list[Array] = []
    for state in range(unit.states):
        start = use.array(5 + state).value if use.has(5 + state) else np.zeros((1, 1, 1), weights.dtype)
        start = start[:, index] if use.get("layout", 0) else start[index % len(start)]
        if not (start == start[:1]).all():
            raise Unusable("its initial states differ from sample to sample")
        starts.append(Array(start[0]))
    gates = functions[index * len(unit.functions) : (index + 1) * len(unit.functions)]
    nodes = [ACTIVATIONS[name] for name in gates]
    peepholes = use.array(PEEPHOLES).value[index].reshape(3, -1) if use.has(PEEPHOLES) else None
    bias = bias.reshape(2, -1)
    return Direction(use, x, weights, recurrence_, bias, kind, nodes, starts, use.build.owner, peepholes)


# ---- scan


def scan(use: Use) -> list[Value]:
    """Return a loop over time: states become delays, and the body is computed once, for all steps."""
    body = use.get("body")
    if not isinstance(body, Model):
        raise Unusable("it has no body")
    count = int(use.get("num_scan_inputs", 0))
    kind = _direction_of(use)
    first = len(use.inputs) - count
    sequences = [use.data(index) for index in range(first, len(use.inputs))]
    if not sequences or any(
        not isinstance(sequence.axes[0], str) or len(sequence.words) != 2 for sequence in sequences
    ):
        raise Unusable("its scanned inputs must have the axes time and batch first")
    time, batch = sequences[0].words
    if time not in use.build.times:
        use.build.times.append(time)
    inner = use.scope.body()
    states = [scanned_state(use, index, kind, batch) for index in range(first)]
    reconcile(use, body, inner, sequences[0])
    operands = [*states, *(Data(sequence.node, sequence.axes[1:]) for sequence in sequences)]
    if len(body.inputs) != len(operands):
        raise Unusable("its body has another number of inputs")
    inner.add_initialisers(body)
    inner.values.update({port.name: value for port, value in zip(body.inputs, operands, strict=True)})
    inner.run(body.operators)
    if inner.refused:
        use.scope.refused.extend(inner.refused)
        raise Unusable("operators of its body are not supported")
    return _results(use, [inner.values.get(name) for name in body.outputs], states, (kind, time))


def _direction_of(use: Use) -> str:
    directions = {*use.sizes("scan_input_directions", [0]), *use.sizes("scan_output_directions", [0])}
    if len(directions) > 1:
        raise Unusable("its inputs and outputs are scanned in different directions")
    for name in ("scan_input_axes", "scan_output_axes"):
        if any(use.sizes(name)):
            raise Unusable(f"{name} must be 0")
    return FUTURE if directions.pop() else PAST


def scanned_state(use: Use, index: int, kind: str, batch: str) -> Data:
    """Return a state of a loop, to be connected.

    Args:
        use: the loop.
        index: of the input that is its value before the first step.
        kind: of the delay.
        batch: the axis of the samples.

    Raises:
        Unusable: that value differs from sample to sample, but is a constant.
    """
    start = use.value(index)
    if isinstance(start, Data):
        return Data(delay(use, kind, None, start, start.dims), start.axes)
    if not isinstance(start, Array) or start.value.ndim < 1 or not (start.value == start.value[:1]).all():
        raise Unusable("the initial values of its states differ from sample to sample")
    dims = start.value.shape[1:]
    return Data(delay(use, kind, None, Array(start.value[0], start.name), dims), (batch, *dims))


def reconcile(use: Use, body: Model, inner: Scope, like: Data) -> None:
    """Values from outside of the loop that have one step per sequence are the same at every step of it."""
    names = {
        *(operand.name for operand in body.inputs),
        *(name for operator in body.operators for name in operator.outputs),
    }
    for name in dict.fromkeys(name for operator in body.operators for name in operator.inputs):
        value = inner.values.get(name)
        if name not in names and isinstance(value, Data) and len(value.words) == 1:
            node = use.build.node("ReconcileDynamicAxis", value.node, like.node, broadcast=True)
            inner.values[name] = Data(node, value.axes)


def _results(use: Use, outputs: list[Value | None], states: list[Data], way: tuple[str, str]) -> list[Value]:
    kind, time = way
    results: list[Value] = []
    for state, value in zip(states, outputs, strict=False):
        if not isinstance(value, Data):
            raise Unusable("a state of it does not depend on the data")
        node = use.build.data(value.node, state.axes).node
        connected(state.node, node)
        results.append(Data(node, value.axes))
    for index, name in enumerate(use.operator.outputs[: len(states)]):
        value = results[index]
        assert isinstance(value, Data)
        if name:
            results[index] = Data(edge_of(use, value.node, kind == PAST), value.axes)
    for value in outputs[len(states) :]:
        if not isinstance(value, Data):
            raise Unusable("an output of it does not depend on the data")
        results.append(Data(value.node, (time, *value.axes)))
    return results


RULES: dict[str, Rule] = {**dict.fromkeys(UNITS, recurrence), "Scan": scan}
