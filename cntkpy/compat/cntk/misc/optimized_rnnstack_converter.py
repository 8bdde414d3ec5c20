"""cntk.misc.optimized_rnnstack_converter: stacks with cuDNN's weights as layers of recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.variables import parameter
from cntkpy.networks.builders.python.layers import Recurrence
from cntkpy.networks.builders.python.operations.operators import (
    element_times,
    minus,
    plus,
    relu,
    sigmoid,
    splice,
    tanh,
    times,
)
from cntkpy.networks.nodes.recurrence.stack import Direction, directions
from cntkpy.readers.errors import ArgumentError

from ..missing import no_attribute
from .converter import convert

STACK = "OptimizedRNNStack"


def convert_optimized_rnnstack(cudnn_model: Function) -> Function:
    """Return a copy of a model with `Recurrence` layers of the same values in the place of each `optimized_rnnstack`.

    Args:
        cudnn_model: the model, which stays as it is.

    Returns:
        The copy. Each gate has a matrix `W`, a matrix `H` and a bias of its own as parameters.

    Raises:
        ArgumentError: the model has no such stack, or the steps of one are an axis of its samples.
    """
    stacks: list[Function] = []

    def converted(stack: Function) -> Function:
        stacks.append(stack)
        return _layers_of(stack)

    made = convert(cudnn_model, lambda function: function.root.operation.name == STACK, converted)
    if not stacks:
        message = "convert_optimized_rnnstack: the model has no optimized_rnnstack"
        raise ArgumentError(message, hint="print(cntk.logging.graph.plot(model)) lists its parts")
    return made


def _layers_of(stack: Function) -> Function:
    """Return the layers that a stack computes."""
    node = stack.node
    options = node.options
    if int(options["axis"]) != -1:
        message = f"convert_optimized_rnnstack: the steps of {stack!r} are an axis of its samples"
        raise ArgumentError(message, hint="sequences have a dynamic axis: to_sequence(x)")
    weights, x = map(Function, calls.inputs_of(stack.root))
    hidden, every = int(options["hiddenDims"]), directions(node, weights.value.reshape(-1))
    ways = 1 + bool(options["bidirectional"])
    for first in range(0, len(every), ways):
        parts = [_one_way(str(options["recurrentOp"]), item, x, hidden) for item in every[first : first + ways]]
        x = parts[0] if ways == 1 else splice(*parts)
    return x


def _one_way(unit: str, arrays: Direction, x: Function, hidden: int) -> Function:
    """Return one direction of one layer; the part of each gate that the input gives is computed for all steps at
    once.
    """
    gates = range(len(arrays.from_input))
    inputs = [
        plus(times(x, _trained(arrays.from_input[gate], "W")), _trained(arrays.input_bias[gate], "b")) for gate in gates
    ]
    of_state = [(_trained(arrays.from_state[gate], "H"), _trained(arrays.state_bias[gate], "b")) for gate in gates]
    steps = splice(*inputs) if len(inputs) > 1 else inputs[0]

    def weights(x_now: Function, gate: int) -> Function:
        return x_now[gate * hidden : (gate + 1) * hidden] if len(inputs) > 1 else x_now

    def from_state(h: Function, gate: int) -> Function:
        matrix, bias = of_state[gate]
        return plus(times(h, matrix), bias)

    step = UNITS[unit.lower()](weights, from_state)
    return Recurrence(step, go_backwards=arrays.backwards)(steps)


def _trained(array: Any, name: str) -> Function:
    return parameter(init=np.ascontiguousarray(array), dtype=array.dtype, name=name)


Part = Callable[[Function, int], Function]
"""The contribution of the input, or of the state, to a gate."""


def _lstm(weights: Part, from_state: Part) -> Callable[..., tuple[Function, Function]]:
    def step(h: Function, c: Function, x: Function) -> tuple[Function, Function]:
        take, keep, candidate, show = (plus(weights(x, gate), from_state(h, gate)) for gate in range(4))
        cell = plus(element_times(sigmoid(keep), c), element_times(sigmoid(take), tanh(candidate)))
        return element_times(sigmoid(show), tanh(cell)), cell

    return step


def _gru(weights: Part, from_state: Part) -> Callable[..., Function]:
    def step(h: Function, x: Function) -> Function:
        reset, update = (sigmoid(plus(weights(x, gate), from_state(h, gate))) for gate in range(2))
        candidate = tanh(plus(weights(x, 2), element_times(reset, from_state(h, 2))))
        return plus(element_times(minus(1.0, update), candidate), element_times(update, h))

    return step


def _plain(function: Callable[[Function], Function]) -> Callable[[Part, Part], Callable[..., Function]]:
    def unit(weights: Part, from_state: Part) -> Callable[..., Function]:
        def step(h: Function, x: Function) -> Function:
            return function(plus(weights(x, 0), from_state(h, 0)))

        return step

    return unit


UNITS: dict[str, Callable[[Part, Part], Callable[..., Any]]] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnntanh": _plain(tanh),
    "rnnrelu": _plain(relu),
}

__all__ = ["convert_optimized_rnnstack"]

__getattr__ = no_attribute("cntk.misc.optimized_rnnstack_converter", __all__)
