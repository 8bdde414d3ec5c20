"""The rule for OptimizedRNNStack: the LSTM, GRU and RNN operators of ONNX, one per layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from networks.graph import shapes
from networks.nodes.recurrent_stack import Layer, layers_of
from networks.onnx.elementwise import Rule
from networks.onnx.graph import NotExpressible
from networks.onnx.use import Use


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


def _parameters(flat: np.ndarray, layer: Layer, unit: Unit, hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights of input and state, and the biases of one direction, gates in ONNX's order."""
    gates, order = len(unit.order), list(unit.order)
    middle = layer.weights + gates * hidden * layer.inputs
    from_input = flat[layer.weights : middle].reshape(gates, hidden, layer.inputs)[order]
    from_state = flat[middle : middle + gates * hidden * hidden].reshape(gates, hidden, hidden)[order]
    biases = flat[layer.biases : layer.biases + 2 * gates * hidden].reshape(2, gates, hidden)[:, order]
    return from_input.reshape(-1, layer.inputs), from_state.reshape(-1, hidden), biases.reshape(-1)


def stack(use: Use) -> str:
    """All layers, each of one or two directions."""
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
    attributes = dict(unit.attributes)
    if "activations" in attributes:
        attributes["activations"] = attributes["activations"] * ways
    every, _ = layers_of(use.node, width)
    lengths = None if along_axis else emit.lengths.get(use.node.input(1).axis or "")
    ends = [] if lengths is None else [emit.op("Cast", lengths, to=np.dtype(np.int32))]
    name = use.operands[0].name
    for first in range(0, len(every), ways):
        arrays = [_parameters(weights.reshape(-1), one, unit, hidden) for one in every[first : first + ways]]
        given = [
            emit.constant(np.stack(parts), f"{name}/{first // ways + 1}/{word}")
            for parts, word in zip(zip(*arrays, strict=True), ("input", "state", "bias"), strict=True)
        ]
        direction = "bidirectional" if ways == 2 else "forward"
        found = emit.op(unit.kind, value, *given, *ends, hidden_size=hidden, direction=direction, **attributes)
        joined = emit.op("Transpose", found, perm=[0, 2, 1, 3])  # (steps, direction, batch, ...)
        value = emit.reshape(joined, 2, (ways * hidden,))
    if not along_axis:
        return use.shaped(value, (ways * hidden,))
    value = emit.op("Transpose", value, perm=[1, 0, 2])
    leading = emit.leading(x.name, x.lead) if x.lead else emit.integers(())
    return emit.op("Reshape", value, emit.op("Concat", leading, emit.integers(use.dims), axis=0))


RULES: dict[str, Rule] = {"OptimizedRNNStack": stack}
