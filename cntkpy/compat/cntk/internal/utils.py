"""cntk.internal.utils: helpers that libraries on top of CNTK 2 import."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers import Record

from ..missing import no_attribute


def _as_tuple(x: Any) -> tuple[Any, ...]:
    """Return a tuple of a tuple or list; of anything else a tuple of that."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def get_data_type(*args: Any) -> Any:
    """NumPy's element type that arguments have together: the widest one of functions, else of the others.

    None where none of them has one, as placeholders.
    """
    args = tuple(argument for argument in args if not (isinstance(argument, Function) and argument.is_placeholder))
    args = tuple(argument for argument in args if isinstance(argument, Function)) or args
    known = [np.dtype(argument.dtype) for argument in args if getattr(argument, "dtype", None) is not None]
    known += [
        np.dtype(argument) for argument in args if isinstance(argument, type) and issubclass(argument, np.floating)
    ]
    floats = [argument for argument in known if argument.kind == "f"]
    return max(floats, key=lambda argument: argument.itemsize).type if floats else np.float32 if known else None


def get_python_function_arguments(f: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the parameters that a Python function takes, and their annotations."""
    parameters = inspect.signature(f).parameters.values()
    named = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in named if parameter.default is parameter.empty]
    return [parameter.name for parameter in required], {
        parameter.name: parameter.annotation for parameter in required if parameter.annotation is not parameter.empty
    }


def map_function_arguments(params: Any, params_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> dict[Any, Any]:
    """By parameter, the argument of a call.

    Args:
        params: the parameters in their order.
        params_dict: the parameters by name.
        args: the arguments by position.
        kwargs: those by name.

    Raises:
        TypeError: there are too many, or a name is not one of a parameter.
    """
    if len(args) > len(params):
        raise TypeError(f"the function takes {len(params)} arguments, {len(args)} were given")
    mapping = dict(zip(params, args, strict=False))
    for name, value in kwargs.items():
        if name not in params_dict:
            raise TypeError(f"the function has no parameter '{name}': {', '.join(params_dict)}")
        if params_dict[name] in mapping:
            raise TypeError(f"the argument '{name}' is given twice")
        mapping[params_dict[name]] = value
    return mapping


def memoize(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, computed once for each choice of arguments."""
    return functools.cache(func)


def is_string(value: Any) -> bool:
    """Return whether it is a text."""
    return isinstance(value, str)


def value_to_seq(value: Any) -> list[Any]:
    """Return the sequences of a value, see `Value.as_sequences`."""
    return value.as_sequences()


def variable_value_to_seq(value: Any, variable: Any) -> list[Any]:
    """Return the sequences of a value of an input or output, see `Value.as_sequences`."""
    return value.as_sequences(variable)


def _value_as_sequence_or_array(val: Any, var: Any) -> Any:
    """Return the sequences of a value where its function has a sequence axis; else an array."""
    return val.as_sequences(var) if len(var.dynamic_axes) == 2 else val.asarray()


def _ones_like(batch: Any, precision: Any) -> list[Any]:
    """For each array of a list, one of ones with its shape."""
    return [np.ones_like(sample, dtype=_dtype(precision)) for sample in batch]


def _zeros_like(batch: Any, precision: Any) -> list[Any]:
    """For each array of a list, one of zeros with its shape."""
    return [np.zeros_like(sample, dtype=_dtype(precision)) for sample in batch]


def _dtype(precision: Any) -> Any:
    return {"float": np.float32, "double": np.float64}.get(precision, precision)


def _is_c_contiguous(data: Any) -> bool:
    """Return whether the elements of an array, or of each array of a list, stand in the order of the axes."""
    return all(np.asarray(array).flags.c_contiguous for array in _as_tuple(data))


def _py_dict_to_cntk_dict(py_dict: Mapping[str, Any]) -> Any:
    """Return a dictionary as `cntk_py.Dictionary`, those in it as well."""
    from ..cntk_py import Dictionary

    return Dictionary((key, _to_cntk_dict_value(value)) for key, value in py_dict.items())


def _to_cntk_dict_value(py_value: Any) -> Any:
    """Return a value of `cntk_py.Dictionary`."""
    if isinstance(py_value, Mapping):
        return _py_dict_to_cntk_dict(py_value)
    return [_to_cntk_dict_value(item) for item in py_value] if isinstance(py_value, list | tuple) else py_value


def get_train_loss(trainer: Any) -> float:
    """Return the loss per sample of the last minibatch."""
    return float(trainer.previous_minibatch_loss_average)


def get_train_eval_criterion(trainer: Any) -> float:
    """Return the metric per sample of the last minibatch."""
    return float(trainer.previous_minibatch_evaluation_average)


def cntk_device(device_id: int) -> Any:
    """Return the GPU of that number; of -1 the CPU."""
    from ..device import cpu, gpu

    return cpu() if device_id == -1 else gpu(device_id)


def eval(
    op: Any,
    arguments: Any = None,
    precision: Any = None,
    device: Any = None,
    backward_pass: bool = False,
    expected_backward: Any = None,
) -> tuple[dict[Any, Any], dict[Any, Any] | None]:
    """Return the values of a function and, if asked for, its gradients.

    Args:
        op: the function.
        arguments: data, as `Function.forward` takes them.
        precision: accepted; functions have their own.
        device: accepted; data stay in the memory of the process.
        backward_pass: whether gradients are asked for, of the sum of the function.
        expected_backward: what to differentiate by; by default the inputs that need a gradient and all parameters.

    Returns:
        By output, its values; and the gradients, by what is differentiated by, or None.
    """
    del precision, device
    outputs = op.outputs
    state, values = op.forward(arguments, outputs, set(outputs) if backward_pass else None)
    if not backward_pass:
        return values, None
    roots = {
        output: _ones_like(value, None) if isinstance(value, list) else np.ones_like(value)
        for output, value in values.items()
    }
    default = {value for value in op.arguments if value.needs_gradient} | set(op.parameters)
    return values, op.backward(state, roots, default if expected_backward is None else set(expected_backward))


__all__ = [
    "Record", "_as_tuple", "_is_c_contiguous", "_ones_like", "_py_dict_to_cntk_dict", "_to_cntk_dict_value",
    "_value_as_sequence_or_array", "_zeros_like", "cntk_device", "eval", "get_data_type",
    "get_python_function_arguments", "get_train_eval_criterion", "get_train_loss", "is_string",
    "map_function_arguments", "memoize", "value_to_seq", "variable_value_to_seq",
]  # fmt: skip

__getattr__ = no_attribute("cntk.internal.utils", __all__)
