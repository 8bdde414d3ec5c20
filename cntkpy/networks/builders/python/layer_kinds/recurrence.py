"""Cells, and layers that apply a step along sequences."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import mark_written
from cntkpy.networks.builders.python.functions.checks import as_array, check_flag, check_number, check_whole, is_whole
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.function import Function, as_node, named_function, to_node, to_operand
from cntkpy.networks.builders.python.functions.leaves import Initializer, Shape, dims
from cntkpy.networks.builders.python.layer_kinds.base import Layer, identity, makes_blocks
from cntkpy.networks.builders.python.layer_kinds.library import (
    LibraryLayer,
    activation_function,
    call_nodes,
    weights_start,
)
from cntkpy.networks.builders.python.layer_kinds.normalization import Stabilizer
from cntkpy.networks.builders.python.operations import operators
from cntkpy.networks.builders.python.operations.reshaping import Operand
from cntkpy.networks.builders.python.operations.steps_of import remember


class Cell(Layer):
    """A step of a recurrent layer: a function of the states before and the input that gives the states.

    Args:
        step: takes the states and the input, gives the states.
        states: how many there are.
        name: names it.
    """

    def __init__(self, step: Callable[..., Function], states: int, name: str = "") -> None:
        super().__init__(step, name)
        self.states = states

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the states after a step."""
        if len(arguments) + len(named) != self.states + 1:
            message = f"a step takes {self.states} states and the input, not {len(arguments) + len(named)} arguments"
            raise CallError("WrongArguments", message, hint="Recurrence(LSTM(n))(x) goes along a sequence")
        return super().__call__(*arguments, **named)


class _Block(LibraryLayer):
    """The library's part of a step, whatever it gives."""

    def values(self, *arguments: Any, activation: Callable[..., Function] = operators.tanh) -> Any:
        """Call the library's function; replace its tanh by another activation."""
        self._applied += 1
        name = self._mark if self._applied == 1 else calls.marked(self._label)
        state = calls.call(self._function, *arguments, name=name)
        self.prepare(state)
        if activation is not operators.tanh:
            made = [node for node in call_nodes(state) if node.origin.name.startswith(f"{name}.")]
            of_tanh = [node for node in made if node.operation.name == "Tanh"]
            new = {node: to_node(activation(Function(calls.inputs_of(node)[0]))) for node in of_tanh}
            for node in made:
                node.inputs = tuple(new.get(source, source) for source in calls.inputs_of(node))
        return state


BIAS = ("fixedValue", 0.0)
"""Default start of a bias."""


def LSTM(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Callable[[Function], Function] | None = DEFAULT,
    use_peepholes: bool = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT,
    init_bias: float = DEFAULT,
    enable_self_stabilization: bool = DEFAULT,
    name: str = "",
) -> Cell:
    """Return a step of LSTM cells: a function of output, cell and input that gives output and cell.

    Args:
        shape: of the output.
        cell_shape: of the cell, if another: the output is then a projection.
        activation: of what enters the cell, and of the cell; tanh.
        use_peepholes: gates see the cell.
        init: how the weights start; glorot_uniform.
        init_bias: how the biases of gates and cell start.
        enable_self_stabilization: states are scaled by learned numbers.
        name: names the output.
    """
    activate = activation_function(chosen("LSTM", "activation", activation, operators.tanh)) or identity
    bias = check_number("init_bias", chosen("LSTM", "init_bias", init_bias, 0.0))
    peepholes = check_flag("use_peepholes", chosen("LSTM", "use_peepholes", use_peepholes, False))
    block = _Block(
        "BS.RNNs.LSTMBlock",
        _single(shape),
        label=name or "LSTM",
        usePeepholes=peepholes,
        cellShape=None if cell_shape is None else _single(cell_shape),
        init=weights_start(chosen("LSTM", "init", init, None)),
        enableSelfStabilization=_stabilized("LSTM", enable_self_stabilization),
    )

    def step(dh: Operand, dc: Operand, x: Operand) -> Function:
        value = block.values(to_node(x), calls.record(h=to_node(dh), c=to_node(dc)), activation=activate)
        for node in call_nodes(value):
            start = node.start
            if bias and node.learning_rate_multiplier > 0 and start is not None and (start.kind, start.value) == BIAS:
                start.value = bias
            if node.origin.name.endswith(".param"):  # of a stabilizer
                node.name = "alpha"
        return Function((calls.member(value, "h"), calls.member(value, "c")))

    return Cell(step, 2, name)


def _stabilized(layer: str, value: bool) -> bool:
    name = "enable_self_stabilization"
    return check_flag(name, chosen(layer, name, value, False))


def _one_state(
    layer: str,
    kind: str,
    shape: Shape,
    cell_shape: Shape | None,
    init: Initializer | ArrayLike | None,
    init_bias: float,
    enable_self_stabilization: bool,
    name: str,
) -> tuple[Layer, _Block]:
    """Return the layer that stabilises the state before a step of one state, and the block of the step.

    Args:
        layer: the layer, for messages and defaults.
        kind: the block of BrainScript's library.
        shape, cell_shape, init, init_bias, enable_self_stabilization, name: see `GRU`.
    """
    if cell_shape is not None and _single(cell_shape) != _single(shape):
        hint = f"Dense after the {layer} makes another shape of its state"
        raise UserError("NotSupported", f"{layer} has no cell of another shape than its state", hint=hint)
    stabilizer = Stabilizer(enable_self_stabilization=_stabilized(layer, enable_self_stabilization))
    block = _Block(
        kind,
        _single(shape),
        label=name or layer,
        init=weights_start(chosen(layer, "init", init, None)),
        initBias=check_number("init_bias", chosen(layer, "init_bias", init_bias, 0.0)),
    )
    return stabilizer, block


def GRU(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Callable[[Function], Function] | None = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT,
    init_bias: float = DEFAULT,
    enable_self_stabilization: bool = DEFAULT,
    name: str = "",
) -> Cell:
    """Return a step of gated recurrent units: a function of state and input that gives the state."""
    activate = activation_function(chosen("GRU", "activation", activation, operators.tanh)) or identity
    stabilizer, block = _one_state(
        "GRU", "_GRUBlock", shape, cell_shape, init, init_bias, enable_self_stabilization, name
    )

    def step(dh: Operand, x: Operand) -> Function:
        made = named_function(block.values(to_node(x), to_node(stabilizer(dh)), activation=activate), "")
        by_name = {
            node.origin.name.rpartition(".")[2]: node for node in call_nodes(made.root) if node.start is not None
        }
        mark_written(made.root, (by_name[letter] for letter in ("b", "W", "H", "H1")))  # CNTK computes the gates first
        return made

    return Cell(step, 1, name)


def RNNStep(
    shape: Shape,
    cell_shape: Shape | None = None,
    activation: Callable[[Function], Function] | None = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT,
    init_bias: float = DEFAULT,
    enable_self_stabilization: bool = DEFAULT,
    name: str = "",
) -> Cell:
    """Return a step of a plain recurrent network: activation(b + W x + H h)."""
    stabilizer, block = _one_state(
        "RNNStep", "_RNNBlock", shape, cell_shape, init, init_bias, enable_self_stabilization, name
    )
    activate = activation_function(chosen("RNNStep", "activation", activation, operators.sigmoid)) or identity

    def step(dh: Operand, x: Operand) -> Function:
        return activate(named_function(block.values(to_node(x), to_node(stabilizer(dh))), ""))

    return Cell(step, 1, name)


RNNUnit = RNNStep


def _single(shape: Shape) -> int:
    size = dims(shape)
    if len(size) != 1:
        raise UserError("BadShape", f"the state of a step has one axis, {shape} has {len(size)}")
    return size[0]


@makes_blocks
def Recurrence(
    step_function: Callable[..., object],
    go_backwards: bool = DEFAULT,
    initial_state: Function | ArrayLike | Sequence[Function | ArrayLike | None] | None = DEFAULT,
    return_full_state: bool = False,
    name: str = "",
) -> Layer:
    """Return a step applied to every element of a sequence, with the states of the element before.

    Args:
        step_function: a layer such as LSTM, or a function of the states (1 to 6) and the input.
        go_backwards: from the end to the beginning.
        initial_state: the states before the first step: a number or a function (also one that has a value for each
            sequence), or one for each.
        return_full_state: all states instead of the first one.
        name: names the result.
    """
    states = _states_of(step_function)
    backwards = check_flag("go_backwards", chosen("Recurrence", "go_backwards", go_backwards, False))
    initial = chosen("Recurrence", "initial_state", initial_state, 0.0)
    several: Sequence[Any] = initial if isinstance(initial, list | tuple) else [initial] * states
    starts = [to_operand(0.0 if start is None else _initial(start)) for start in several]
    if len(starts) != states:
        raise CallError("WrongArguments", f"{len(starts)} initial states for a step with {states}")
    names = STATES[:states]
    data = [start if isinstance(start, NodeValue) and Function(start).data_arguments else None for start in starts]
    starts = [start if array is None else 0.0 for start, array in zip(starts, data, strict=True)]
    is_start = operators.is_last if backwards else operators.is_first

    def started(value: NodeValue, start: NodeValue | None, x: Function) -> Function:
        """Return the state before a step; at the first one the start, if that is a value for each sequence."""
        if start is None:
            return Function(value)
        everywhere = operators.state_along(Function(start), x)
        return operators.element_select(is_start(x), everywhere, Function(value))

    def step(x: NodeValue, earlier: Sequence[NodeValue]) -> Sequence[NodeValue]:
        for node in earlier:  # what has the steps of a state has those of the input
            remember(Function(node), Function(x))
        states_before = [started(node, start, Function(x)) for node, start in zip(earlier, data, strict=True)]
        after = cast("Any", step_function(*states_before, Function(x)))
        for state in after if isinstance(after, tuple) else (after,):
            if not isinstance(state, Function):
                message = f"a step of a recurrence gives functions, not {state!r}"
                raise CallError("NoFunction", message, hint="return the state, or the states (h, c)")
        results = after if isinstance(after, tuple) else after.outputs if len(after.roots) == states else (after,)
        if len(results) != states:
            raise CallError("WrongArguments", f"the step gave {len(results)} states, it takes {states}")
        return [to_node(state) for state in results]

    def apply(x: Operand) -> Function:
        body, mark = calls.step_function(step, names), calls.marked(name or "Recurrence")
        made = calls.call(f"_Recurrence{states}", body, -1.0 if backwards else 1.0, *starts, name=mark)
        state = calls.call(made, to_operand(x), name=mark)
        nodes = [calls.member(state, letter) for letter in names]
        for node in nodes:  # evaluates the inputs of delay nodes
            calls.inputs_of(node)
        return Function(nodes if return_full_state else nodes[0])

    return Layer(apply, name)


def _initial(value: object) -> Function | NodeValue | np.ndarray | float:
    if isinstance(value, Function | NodeValue):
        return value
    array = as_array("an initial state", value, np.float64)
    return array if array.ndim else float(array)


@makes_blocks
def RecurrenceFrom(
    step_function: Callable[..., object], go_backwards: bool = DEFAULT, return_full_state: bool = False, name: str = ""
) -> Layer:
    """Return a `Recurrence` whose states before the first step are arguments: `layer(h, c, x)` for an LSTM."""

    def apply(*arguments: Any) -> Function:
        recurrence = Recurrence(step_function, go_backwards, list(arguments[:-1]), return_full_state, name)
        return recurrence(arguments[-1])

    return Layer(apply)


@makes_blocks
def Fold(
    folder_function: Callable[..., object],
    go_backwards: bool = DEFAULT,
    initial_state: Function | ArrayLike | Sequence[Function | ArrayLike | None] | None = DEFAULT,
    return_full_state: bool = False,
    name: str = "",
) -> Layer:
    """Return the state after the last step of a `Recurrence`."""
    backwards = check_flag("go_backwards", chosen("Fold", "go_backwards", go_backwards, False))
    end = operators.first if backwards else operators.last
    recurrence = Recurrence(folder_function, backwards, initial_state, return_full_state)

    def apply(x: Operand) -> Function:
        return Function(end(output).root for output in recurrence(x).outputs)

    return Layer(apply, name)


@makes_blocks
def Delay(T: int = 1, initial_state: Function | ArrayLike | None = DEFAULT, name: str = "") -> Layer:
    """Return the value T steps earlier (later for a negative T)."""
    state = chosen("Delay", "initial_state", initial_state, 0.0)
    check_whole("T", T)

    def apply(x: Operand) -> Function:
        if T == 0:
            return operators.alias(x)
        return operators.past_value(x, state, T) if T > 0 else operators.future_value(x, state, -T)

    return Layer(apply, name)


def PastValueWindow(window_size: int, axis: int = -2, go_backwards: bool = DEFAULT, name: str = "") -> Layer:
    """Return the last steps of each sequence as one sample, the last step first; with `go_backwards` the first ones.

    Args:
        window_size: how many steps.
        axis: the axis along which they lie, a negative number: of steps (n,) they make (window_size, n) with -2 and
            (window_size * n,) with -1.
        go_backwards: the first steps, from the first one on.
        name: names the values.

    Returns:
        A layer of two outputs: the values, 0 where a sequence has not that many steps, and for each step whether it is
        there, as 1 or 0: (window_size, 1) with the axis -2.
    """
    check_whole("PastValueWindow: window_size", window_size, 1)
    if not is_whole(axis) or axis >= 0:
        hint = "PastValueWindow(n, axis=-2)"
        raise UserError("BadIndex", f"PastValueWindow: an axis is a number below 0, not {axis!r}", hint=hint)
    backwards = check_flag("go_backwards", chosen("PastValueWindow", "go_backwards", go_backwards, False))
    end = operators.first if backwards else operators.last

    def shifted_by(x: Function, steps: int) -> Function:
        if steps == 0:
            return operators.alias(x)
        return operators.future_value(x, None, steps) if backwards else operators.past_value(x, None, steps)

    def apply(x: Operand) -> Function:
        x = as_node(x)
        there = operators.zeros_like(operators.is_first(x)) + 1.0
        value, valid = (
            end(operators.splice([along(shifted_by(values, steps)) for steps in range(window_size)], axis=axis))
            for values, along in ((x, _window), (operators.reshape(there, (1,) * -axis), operators.alias))
        )
        value.root.name = name or value.root.name
        return Function((value.root, valid.root))

    @needs_shapes
    def _window(value: Function) -> Function:
        return operators.reshape(value, (*(1,) * (-axis - len(value.shape)), *value.shape))

    return Layer(apply)


STATES = "hcpqrs"
"""The names of the states of a step in the library."""


_STEPS = "use LSTM(n), GRU(n), RNNStep(n) or a function of the states and the input"


def _states_of(step: object) -> int:
    if isinstance(step, Cell):
        return step.states
    count = -1
    if isinstance(step, Function):
        count += len(step.arguments)
    elif callable(step):
        parameters = inspect.signature(step.function if isinstance(step, Layer) else step).parameters.values()
        count += sum(
            parameter.kind <= parameter.POSITIONAL_OR_KEYWORD and parameter.default is parameter.empty
            for parameter in parameters
        )
    if count < 0:
        raise CallError("NoFunction", f"{step!r} is not a step of a recurrence", hint=_STEPS)
    if not 1 <= count <= len(STATES):
        message = f"a step has 1 to {len(STATES)} states and the input, not {count + 1} parameters"
        raise CallError("WrongArguments", message, hint=_STEPS)
    return count
