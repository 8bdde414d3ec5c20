"""Functions that Python code computes: `UserFunction` and `user_function`."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.brainscript.operations import Operation
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.axes import axis_name, is_batch
from cntkpy.networks.builders.python.functions.checks import check_name
from cntkpy.networks.builders.python.functions.defaults import HALF
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.function import Function, as_node, to_node
from cntkpy.networks.builders.python.functions.leaves import data_input
from cntkpy.networks.builders.python.functions.nodes import Input
from cntkpy.networks.builders.python.functions.user_code import FACTORIES
from cntkpy.networks.builders.python.operations.operators import alias, slice
from cntkpy.networks.builders.python.operations.reshaping import reshape
from cntkpy.networks.nodes.host.kinds import DIMS, HOST, StoredHost
from cntkpy.readers import Value
from cntkpy.readers.common.planned import State
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.step.memory import HostArray

_OPERATION = Operation("UserFunction")

Deserialize = Callable[[Sequence[Function], str, Any], Any]
"""Makes a `UserFunction` of its inputs, its name and what its `serialize` gave."""


def output_variable(shape: Any, dtype: Any, dynamic_axes: Any, needs_gradient: bool = True, name: str = "") -> Function:
    """Description of an output of a user-defined function; see `UserFunction.infer_outputs`."""
    check_name(name)
    named = [axis_name(axis) for axis in dynamic_axes if not is_batch(axis)]
    kind = Input(bool(named), named[-1] if named else "", static=not dynamic_axes, needs_gradient=needs_gradient)
    return Function(data_input(shape, dtype, False, name or "Output", kind))


class UserFunction:
    """A function that Python code computes. A subclass has `forward`, `backward` and `infer_outputs`.

    Data are arrays with the minibatch as their first axis, or lists of arrays, one for each sequence; those of
    operands without dynamic axes are arrays.

    Args:
        inputs: what it is computed from.
        as_numpy: False: data are `Value`s.
        attributes: kept as `attributes`.
        name: names the result.
    """

    _function: Function | None = None
    """The function of a network, once it was used without `user_function`."""

    def __init__(self, inputs: Sequence[object], as_numpy: bool = True, attributes: Any = None, name: str = "") -> None:
        if isinstance(inputs, Function) or not isinstance(inputs, list | tuple):
            message = f"the inputs of {type(self).__name__} are a list, not {shorten(repr(inputs))}"
            raise ArgumentError(message, "super().__init__([x], name=name)")
        self.inputs: tuple[Function, ...] = tuple(as_node(argument) for argument in inputs)
        self.as_numpy = as_numpy
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.name = name

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        overrides = cls.deserialize is not UserFunction.deserialize
        register_deserializer(_name_of(cls), cls.deserialize if overrides else partial(_without_state, cls))

    # ---- what a subclass says

    def infer_outputs(self) -> list[Function]:
        """Return an `output_variable` for each output; the shapes of the inputs are known now."""
        raise NotImplementedError(f"{type(self).__name__} needs infer_outputs(self): a list of output_variable(...)")

    def forward(self, *arguments: object) -> Any:
        """Return the value.

        Args:
            arguments: the data of the only input, or a tuple of those of all; with several outputs a dictionary to be
                filled, by output; the device; the outputs that `backward` starts from.

        Returns:
            A pair of a state for `backward` and the value; with several outputs the state alone.
        """
        raise NotImplementedError(f"{type(self).__name__} needs forward(self, argument, device, outputs_to_retain)")

    def backward(self, *arguments: object) -> Any:
        """Return the gradient by the inputs.

        Args:
            arguments: the state; the gradient by the output, or a dictionary of those by all; of a function of several
                inputs a dictionary to be filled, whose keys are the inputs that need a gradient.

        Returns:
            The gradient by the input, where there is one input.
        """
        raise NotImplementedError(f"{type(self).__name__} needs backward(self, state, root_gradients)")

    def serialize(self) -> State:
        """Return the state in the form of model files: numbers, texts, arrays, lists and dictionaries of them."""
        return {}

    @staticmethod
    def deserialize(inputs: Sequence[Function], name: str, state: object) -> UserFunction:
        """Return the function of a model file, of what `serialize` gave; a subclass whose functions have a state has
        it.

        One without a state is made of its inputs and `name`.
        """
        raise NotImplementedError("a class that models are loaded with needs deserialize(inputs, name, state)")

    def clone(self, cloned_inputs: Sequence[Function]) -> UserFunction:
        """Return the same function of other inputs."""
        make: Any = type(self)
        return make(*cloned_inputs, name=self.name)

    @property
    def op_name(self) -> str:
        """Return the name of the operation in a model file: that of the class with its module."""
        return _name_of(type(self))

    # ---- what it is as a function

    @cached_property
    def outputs(self) -> tuple[Function, ...]:
        """Its outputs, as `infer_outputs` says."""
        functions: Any = self.infer_outputs()
        if (
            not isinstance(functions, list | tuple)
            or not functions
            or not all(isinstance(function, Function) for function in functions)
        ):
            message = f"{type(self).__name__}.infer_outputs gives {shorten(repr(functions))}, not a list of outputs"
            raise ArgumentError(message, "return [output_variable(x.shape, x.dtype, x.dynamic_axes)]")
        most = max((len(function.dynamic_axes) for function in self.inputs), default=0)
        for function in functions:
            if len(function.dynamic_axes) != most:
                axes, name = len(function.dynamic_axes), type(self).__name__
                message = f"an output of {name} has {axes} dynamic axes, its inputs {most}"
                raise ArgumentError(message, "give each output the dynamic_axes of the input that has most of them")
        return tuple(functions)

    @property
    def output(self) -> Function:
        """Its only output."""
        return self.outputs[0]

    def __call__(self) -> Function:
        """See `user_function`."""
        return user_function(self)

    def of_placeholder(self) -> Function:
        """Return the function of a network that it computes, the same one every time: what operators take it for."""
        if self._function is None:
            self._function = user_function(self)
        return self._function

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the function: `eval`, `grad`, `find_by_name` and so on."""
        if name.startswith("_") or "inputs" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        return getattr(self.of_placeholder(), name)


def _without_state(cls: Any, inputs: Sequence[Function], name: str, state: Any) -> Any:
    """Return a function of a model file whose class has no `deserialize`.

    Raises:
        UserError: it has a state.
    """
    if state:
        message = f"{cls.__name__} has a state in the model ({shorten(repr(state))}) and no deserialize to take it"
        raise UserError("NotSupported", message, hint="add @staticmethod def deserialize(inputs, name, state)")
    return cls(*inputs, name=name)


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def user_function(user_func: UserFunction) -> Function:
    """Return the function of a network that a `UserFunction` computes.

    Training calls its `forward` and its `backward` once for each minibatch.
    """
    if not isinstance(user_func, UserFunction):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"user_function takes a UserFunction, not {shorten(repr(user_func))}"
        raise ArgumentError(message, "class MyFunction(UserFunction): ...; user_function(MyFunction(x))")
    if calls.is_inside_step():
        message = f"the step of a recurrence cannot have a user-defined function, {user_func.op_name}"
        raise ArgumentError(message, "apply it to the whole sequence, before or after the recurrence")
    return _built(list(user_func.inputs), lambda: user_func, user_func.name)


@needs_shapes
def _built(inputs: list[Function], code: Callable[[], UserFunction], name: str) -> Function:
    """Return the function of some inputs; `code` gives the code, which is an operand itself elsewhere."""
    user_func = code()
    if tuple(inputs) != user_func.inputs:
        user_func.inputs = tuple(inputs)
        vars(user_func).pop("outputs", None)
    outputs = user_func.outputs
    sizes = [math.prod(function.shape) for function in outputs]
    shape = outputs[0].shape if len(outputs) == 1 else (sum(sizes),)
    dynamic = tuple(len(function.dynamic_axes) for function in inputs)
    node = NodeValue(_OPERATION, calls.origin(name or "UserFunction"), inputs=tuple(map(to_node, inputs)))
    node.options = {HOST: _Host(user_func, dynamic), DIMS: tuple(reversed(shape))}
    joint = Function(node)
    if len(outputs) == 1:
        node.name = name
        return joint
    parts: list[Function] = []
    begin = 0
    for function, size in zip(outputs, sizes, strict=True):
        part = slice(joint, 0, begin, begin + size)
        parts.append(alias(reshape(part, function.shape), function.name if function.name != "Output" else ""))
        begin += size
    return Function(function.root for function in parts)


class _Host:
    """A `UserFunction` as the code of a node.

    Args:
        function: the function.
        dynamic: how many dynamic axes its inputs have.
    """

    def __init__(self, function: UserFunction, dynamic: tuple[int, ...]) -> None:
        self.function, self.dynamic = function, dynamic

    @cached_property
    def _wanted(self) -> list[Function]:
        """Return the inputs whose gradient `backward` gives; all, if none was said to need one."""
        inputs = self.function.inputs
        return [argument for argument in inputs if argument.needs_gradient] or list(inputs)

    @cached_property
    def _takes_variables(self) -> bool:
        """Return whether `backward` fills a dictionary: that of a function of several inputs does, as in CNTK.

        One that takes no dictionary returns the gradient by the only input that needs one.
        """
        if len(self._wanted) > 1:
            return True
        if len(self.function.inputs) < 2:
            return False
        try:
            inspect.signature(self.function.backward).bind(None, None, None)
        except TypeError:
            return False
        return True

    def forward(self, operands: list[HostArray | list[HostArray]]) -> tuple[Any, Any]:
        """See `HostFunction`."""
        function = self.function
        arguments = tuple(map(self._given, operands, function.inputs))
        whole = next(iter(arguments), None) if len(arguments) < 2 else arguments
        if len(function.outputs) == 1:
            answer: Any = function.forward(whole, None, function.outputs)
            if not isinstance(answer, tuple) or len(answer) != 2:
                message = f"{type(function).__name__}.forward gives {_kind(answer)}, not a state and a value"
                raise ArgumentError(message, "return state, value; without a state: return None, value")
            return answer[0], _plain(answer[1])
        outputs: dict[Function, Any] = dict.fromkeys(function.outputs)
        state = function.forward(whole, outputs, None, function.outputs)
        for output, value in outputs.items():
            if value is None:
                message = f"{type(function).__name__}.forward has given no value to its output {output!r}"
                raise ArgumentError(message, "for output in outputs: outputs[output] = ...")
        return state, self._joined([_plain(output) for output in outputs.values()])

    def backward(self, state: object, gradient: object) -> list[Any]:
        """See `HostFunction`."""
        function = self.function
        roots: Any = self._given(gradient, function.outputs[0])
        if len(function.outputs) > 1:
            parts = self._split(gradient)
            roots = {
                variable: self._given(part, variable) for variable, part in zip(function.outputs, parts, strict=True)
            }
        if self._takes_variables:
            gradients = dict[Function, Any].fromkeys(self._wanted)
            function.backward(state, roots, gradients)
        else:
            gradients = {self._wanted[0]: function.backward(state, roots)}
        if any(value is None for value in gradients.values()):
            missing = next(variable for variable, value in gradients.items() if value is None)
            message = f"{type(function).__name__}.backward has given no gradient by its input {missing!r}"
            raise ArgumentError(message, "with one input: return the gradient; with several: variables[input] = ...")
        return [_plain(gradients[variable]) if variable in gradients else None for variable in function.inputs]

    def stored(self) -> State:
        """See `HostFunction`."""
        state = _stored(self.function.serialize(), type(self.function).__name__)
        return {"operation": self.function.op_name, "state": state, "dynamic": list(self.dynamic)}

    @cached_property
    def _half(self) -> set[Function]:
        """Return the inputs and outputs of half precision."""
        return {variable for variable in (*self.function.inputs, *self.function.outputs) if variable.dtype == HALF}

    def _given(self, samples: Any, function: Function) -> Any:
        """Data of an input or an output as the code wants them."""
        if function in self._half:
            samples = [sample.astype(HALF) for sample in samples] if isinstance(samples, list) else samples.astype(HALF)
        return samples if self.function.as_numpy else Value(samples)

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [output.shape for output in self.function.outputs]

    def _joined(self, values: list[Any]) -> Any:
        """Values of several outputs as one value: their elements one after another."""
        if isinstance(values[0], list):
            return [self._joined(list(part)) for part in zip(*values, strict=True)]
        sizes = [math.prod(shape) for shape in self._shapes]
        lead = np.asarray(values[0]).shape[: np.ndim(values[0]) - len(self._shapes[0])]
        flat = [np.reshape(part, (*lead, size)) for part, size in zip(values, sizes, strict=True)]
        return np.concatenate(flat, axis=-1)

    def _split(self, value: Any) -> list[Any]:
        """Return the inverse of `_joined`."""
        if isinstance(value, list):
            return [list(pieces) for pieces in zip(*map(self._split, value), strict=True)]
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])[:-1]
        parts = np.split(value, ends, axis=-1)
        return [part.reshape(*part.shape[:-1], *shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _kind(value: object) -> str:
    return f"{len(value)} values" if isinstance(value, tuple) else type(value).__name__


def _plain(value: Any) -> Any:
    """Arrays of what the code gives."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.asarray() if hasattr(value, "asarray") else value


# ---- models

_ARRAY = "ndarray"


def _stored(state: object, name: str) -> Any:
    """Return a value in the form of model files, JSON-able.

    Raises:
        ArgumentError: it cannot be kept.
    """
    if isinstance(state, np.ndarray):
        return {_ARRAY: state.tolist(), "dtype": state.dtype.name}
    if isinstance(state, np.generic):
        return state.item()
    if isinstance(state, Mapping):
        return {str(key): _stored(value, name) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [_stored(item, name) for item in state]
    if state is None or isinstance(state, bool | int | float | str):
        return state
    message = f"{name}.serialize gives a {type(state).__name__}, which a model file cannot keep"
    raise ArgumentError(message, "give numbers, texts, arrays, lists and dictionaries of them")


def _restored(state: object) -> Any:
    """Return the inverse of `_stored`."""
    if isinstance(state, Mapping):
        if set(state) == {_ARRAY, "dtype"}:
            return np.array(state[_ARRAY], state["dtype"])
        return {key: _restored(value) for key, value in state.items()}
    return [_restored(item) for item in state] if isinstance(state, list) else state


def register_deserializer(op_name: str, callback: Deserialize) -> None:
    """Let models with nodes of an operation be loaded: `callback(inputs, name, state)` gives the `UserFunction`."""

    def make(inputs: Sequence[Function], name: str, stored: StoredHost) -> _Host:
        function = callback(tuple(inputs), name, _restored(stored.state))
        if not isinstance(function, UserFunction):
            message = f"the deserializer of {op_name} gives {shorten(repr(function))}, not a UserFunction"
            raise CallError("NoFunction", message, hint="return MyFunction(inputs[0], name=name)")
        return _Host(function, stored.dynamic)

    FACTORIES[op_name] = make
