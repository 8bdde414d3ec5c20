"""The rule for OptimizedRNNStack: the operators LSTM, GRU and RNN, one per layer; in double precision Scan."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.onnx_support.graph import INT64_MAX, NotExpressible
from cntkpy.networks.nodes.onnx_support.lengths import kept
from cntkpy.networks.nodes.onnx_support.use import Operand, Rule, Use
from cntkpy.networks.nodes.recurrence.onnx_scan import Weights, layer
from cntkpy.networks.nodes.recurrence.stack import Layer, layers_of


class Unit(NamedTuple):
    """A kind of unit in ONNX.

    Attributes:
        kind: the operator.
        order: for each gate of ONNX, its number in the stack's parameter.
        attributes: of the operator.
    """

    kind: str
    order: tuple[int, ...]
    attributes: dict[str, Any]


UNITS = {
    "lstm": Unit("LSTM", (0, 3, 1, 2), {}),
    "gru": Unit("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnntanh": Unit("RNN", (0,), {"activations": ["Tanh"]}),
    "rnnrelu": Unit("RNN", (0,), {"activations": ["Relu"]}),
}


def _parameters(flat: np.ndarray, layer: Layer, gates: int, hidden: int) -> Weights:
    """Return the parameters of one direction."""
    middle = layer.weights + gates * hidden * layer.inputs
    from_input = flat[layer.weights : middle].reshape(gates, hidden, layer.inputs)
    from_state = flat[middle : middle + gates * hidden * hidden].reshape(gates, hidden, hidden)
    biases = flat[layer.biases : layer.biases + 2 * gates * hidden].reshape(2, gates, hidden)
    return Weights(from_input, from_state, biases)


def _operator(use: Use, unit: Unit, value: str, every: list[Weights], ends: list[str], name: str) -> str:
    """Return a layer as an operator; its result has the directions joined."""
    emit, order, ways = use.emit, list(unit.order), len(every)
    hidden = every[0].from_state.shape[1]
    arrays = {
        "input": [weights.from_input[order].reshape(-1, weights.from_input.shape[2]) for weights in every],
        "state": [weights.from_state[order].reshape(-1, hidden) for weights in every],
        "bias": [weights.biases[:, order].reshape(-1) for weights in every],
    }
    weights = [emit.constant(np.stack(parts), f"{name}/{word}") for word, parts in arrays.items()]
    if use.node.input(0).trainable:
        emit.names.trained.update(weights)
    attributes = dict(unit.attributes)
    if "activations" in attributes:
        attributes["activations"] = attributes["activations"] * ways
    direction = "bidirectional" if ways == 2 else "forward"
    output = emit.op(unit.kind, value, *weights, *ends, hidden_size=hidden, direction=direction, **attributes)
    joined = emit.op("Transpose", output, perm=[0, 2, 1, 3])  # (steps, direction, batch, ...)
    return emit.reshape(joined, 2, (ways * hidden,))


def stack(use: Use) -> str:
    """Return all layers, each of one or two directions."""
    emit, options, weights = use.emit, use.options, use.constants.get(0)
    if weights is None:
        raise NotExpressible("its weights depend on the data")
    unit, hidden = UNITS[str(options["recurrentOp"]).lower()], int(options["hiddenDims"])
    x, along_axis = use.operands[1], int(options["axis"]) == 2
    shape = use.node.input(1).shape or (1,)
    width, steps = shape[0], shapes.size(shape[1:])
    if along_axis:
        value = emit.op("Reshape", x.name, emit.integers([-1, steps, width]))
        value = emit.op("Transpose", value, perm=[1, 0, 2])
    else:
        value = x.name if x.dims == (width,) else emit.reshape(x.name, 2, (width,))
    ways = 1 + bool(options["bidirectional"])
    every, _ = layers_of(use.node, width)
    lengths = None if along_axis else emit.lengths.get(use.node.input(1).axis or "")
    ends = [] if lengths is None else [emit.op("Cast", lengths, to=np.dtype(np.int32))]
    kind, gates = str(options["recurrentOp"]).lower(), len(unit.order)
    for first in range(0, len(every), ways):
        parts = [
            _parameters(weights.reshape(-1), direction, gates, hidden) for direction in every[first : first + ways]
        ]
        if emit.dtype == np.float64:
            results = [layer(emit, kind, value, part, index == 1, lengths) for index, part in enumerate(parts)]
            value = results[0] if ways == 1 else emit.op("Concat", *results, axis=-1)
        else:
            value = _operator(use, unit, value, parts, ends, f"{use.operands[0].name}/{first // ways + 1}")
    if not along_axis:
        return use.shaped(value, (ways * hidden,))
    value = emit.op("Transpose", value, perm=[1, 0, 2])
    leading = emit.leading(x.name, x.lead) if x.lead else emit.integers(())
    return emit.op("Reshape", value, emit.op("Concat", leading, emit.integers(use.dims), axis=0))


def shift(use: Use) -> str:
    """Return a delay outside of loops: the steps, and in place of those that are missing, the initial state."""
    emit, x, steps = use.emit, use.operands[0], int(use.options["timeStep"])
    data = use.ranked(x, len(use.dims))
    if (*(1,) * (len(use.dims) - len(x.dims)), *x.dims) != use.dims:
        data = emit.op("Expand", data, emit.integers([1, 1, *use.dims]))
    sizes = emit.op("Concat", emit.integers([steps]), emit.op("Shape", x.name, start=1, end=2), axis=0)
    state = initial_state(use)
    edge = emit.expand(state.name, sizes, use.dims)
    if use.node.kind.time.delay < 0:
        return emit.slice(emit.op("Concat", edge, data, axis=0), 0, 0, -steps)
    later = emit.slice(emit.op("Concat", data, edge, axis=0), 0, steps, INT64_MAX)
    return kept(emit, use.node, later, len(use.dims), state.name, steps)


def initial_state(use: Use) -> Operand:
    """Return the operand that a delay has outside of the sequence; it is broadcast."""
    if len(use.operands) > 1:
        initial = use.operands[1]
        return initial._replace(name=use.ranked(initial, len(use.dims)))
    return Operand(use.emit.real(float(use.options["defaultHiddenActivity"])), 0, ())


RULES: dict[str, Rule] = {"OptimizedRNNStack": stack, "PastValue": shift, "FutureValue": shift}
