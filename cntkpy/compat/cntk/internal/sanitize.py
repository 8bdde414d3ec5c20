"""cntk.internal.sanitize: what arguments of operators may be, and what they become."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntkpy.networks.builders.python.functions.checks import is_whole
from cntkpy.networks.builders.python.functions.function import Function, as_node
from cntkpy.readers import Value
from cntkpy.readers.errors import ArgumentError

from ..axis import Axis
from ..missing import no_attribute
from .utils import _as_tuple, get_data_type


def sanitize_input(arg: Any, fallback_dtype: Any = np.float32, reshape: Any = None) -> Function:
    """Return a function as it is; of a number or an array a constant.

    Args:
        arg: what an operator was given.
        fallback_dtype: accepted; a constant adopts the precision of what it meets.
        reshape: the shape of a constant.
    """
    del fallback_dtype
    if isinstance(arg, Function):
        return arg
    return as_node(arg if reshape is None else np.reshape(arg, reshape))


def sanitize_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of numbers; a number is a shape of one axis."""
    result = _as_tuple(shape.tolist() if isinstance(shape, np.ndarray) else shape)
    if not all(map(is_whole, result)):
        raise ArgumentError(f"{shape!r} is not a shape", "a shape is a number or a tuple of numbers: (3, 4)")
    return tuple(int(size) for size in result)


def sanitize_axis(axis: Any) -> Any:
    """Return an axis as operators take it: an `Axis`; of None all axes of a sample; a number as it is."""
    if axis is None:
        return Axis.all_static_axes()
    if isinstance(axis, Axis) or is_whole(axis):
        return axis
    raise ArgumentError(f"{axis!r} is not an axis", "give a number, an Axis or None")


def sanitize_axis_list(axes: Any) -> list[Any]:
    """Several axes, see `sanitize_axis`."""
    return [sanitize_axis(axis) for axis in (axes if isinstance(axes, list | tuple) else [axes])]


sanitize_multi_axis_reduction_list = sanitize_axis_list


def sanitize_dynamic_axes(axes: Any) -> list[Axis]:
    """Dynamic axes as a list."""
    result = list(axes) if isinstance(axes, list | tuple) else [axes]
    for axis in result:
        if not isinstance(axis, Axis):
            raise ArgumentError(f"{axis!r} is not an axis", "Axis.default_batch_axis() is one")
    return result


def sanitize_dtype_numpy(dtype: Any) -> Any:
    """NumPy's type of elements: float16, float32 or float64; None stays None."""
    if dtype is None:
        return None
    if dtype is int or (isinstance(dtype, str) and dtype == "float"):  # texts and whole numbers are float32
        return np.float32
    result = np.dtype(dtype)
    if result not in (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(
            f"{dtype!r} is not a type of elements", "give numpy.float16, numpy.float32 or numpy.float64"
        )
    return result.type


def sanitize_dtype_cntk(dtype: Any) -> int:
    """Return the number that `cntk_py` has for a type of elements."""
    from ..cntk_py import DataType_Double, DataType_Float, DataType_Float16, DataType_Unknown

    if is_whole(dtype):
        return int(dtype)
    result = sanitize_dtype_numpy(dtype)
    known = {None: DataType_Unknown, np.float16: DataType_Float16, np.float32: DataType_Float}
    return known.get(result, DataType_Double)


def sanitize_precision(precision: Any) -> Any:
    """NumPy's type of elements of "float", "double", such a type, or its number in `cntk_py`."""
    from ..cntk_py import DataType_Double, DataType_Float, DataType_Float16

    names = {
        "single": np.float32, DataType_Float: np.float32, DataType_Double: np.float64, DataType_Float16: np.float16,
    }  # fmt: skip
    known = isinstance(precision, str | int) and precision in names
    return names[precision] if known else sanitize_dtype_numpy(precision)


def sanitize_function(arg: Any) -> Function:
    """Return a function.

    Raises:
        ArgumentError: it is something else.
    """
    if isinstance(arg, Function):
        return arg
    raise ArgumentError(f"{arg!r} is not a function", "operators and layers make functions")


def sanitize_batch(var: Any, batch: Any, seq_starts: Any = None, device: Any = None) -> Value:
    """Data for an input, see `Value.create`."""
    return batch if isinstance(batch, Value) else Value.create(var, batch, seq_starts, device)


def sanitize_value(shape: Any, value: Any, dtype: Any, device: Any = None) -> Any:
    """Return an array of a shape and type: that of a value, or one of zeros where there is none."""
    del device
    kind = sanitize_dtype_numpy(dtype) or np.float32
    if value is None:
        return np.zeros(sanitize_shape(shape), kind)
    result = np.asarray(value, kind)
    return result if shape is None or result.ndim else np.broadcast_to(result, sanitize_shape(shape)).copy()


def sanitize_variable_value_dict(var_map: Mapping[Any, Any]) -> dict[Any, Any]:
    """By variable, an array or a value."""
    return dict(var_map)


def sanitize_var_map(op_arguments: Any, arguments: Any, **further: Any) -> dict[Any, Any]:
    """By input, its data as a `Value`.

    Args:
        op_arguments: the inputs of a function.
        arguments: data by input; of a single input also the data alone.
        further: accepted; changes nothing.
    """
    del further
    inputs = list(op_arguments)
    value = arguments if isinstance(arguments, Mapping) else dict(zip(inputs, [arguments], strict=False))
    return {argument: sanitize_batch(argument, value[argument]) for argument in inputs if argument in value}


def sanitize_2d_number(x: Any) -> tuple[Any, Any]:
    """Return a pair of numbers; a number stands for two of it."""
    result = _as_tuple(x)
    if len(result) not in (1, 2):
        raise ArgumentError(f"{x!r} is not a number or a pair of numbers", "(2, 2)")
    return (result[0], result[-1])


def sanitize_permutation(perm: Any) -> list[int]:
    """Return the places of axes, counted from 0.

    Raises:
        ArgumentError: an axis is missing or there twice.
    """
    result = [axis + len(perm) if axis < 0 else axis for axis in perm]
    if sorted(result) != list(range(len(result))):
        raise ArgumentError(f"{perm!r} is not a permutation", "each axis is there once: (2, 0, 1)")
    return result


def sanitize_variables(variables: Any) -> list[Any]:
    """Several functions of one output as a list."""
    return [sanitize_function(variable).output for variable in _as_tuple(variables)]


def sanitize_range(begin: Any, end: Any, size: int) -> tuple[int, int]:
    """Return the begin and the end of a slice, counted from 0.

    Args:
        begin: the first index; a negative one counts from the end.
        end: the index behind the last; 0 and None: the end.
        size: how many elements there are.
    """
    first = int(begin) + (size if begin < 0 else 0)
    last = size if end in (None, 0) else int(end) + (size if end < 0 else 0)
    return first, last


def sanitize_pooling_args(pooling_window_shape: Any, strides: Any, pad: Any) -> tuple[Any, Any, Any]:
    """Return the shape of a window, its strides and for each axis whether it is padded."""
    return sanitize_shape(pooling_window_shape), sanitize_shape(strides), [bool(axis) for axis in _as_tuple(pad)]


def sanitize_convolution_args(strides: Any, sharing: Any, pad: Any, dilation: Any = (1,)) -> tuple[Any, ...]:
    """Return the strides of a convolution; by axis whether filters are shared, and whether it is padded; the
    dilation.
    """
    flags = [[bool(axis) for axis in _as_tuple(flag)] for flag in (sharing, pad)]
    return sanitize_shape(strides), *flags, sanitize_shape(dilation)


def sanitize_variable_to_learner_map(learners: Any) -> dict[Any, Any]:
    """By parameter, its learner."""
    return {parameter: learner for learner in _as_tuple(learners) for parameter in learner.parameters}


def sanitize_Function_attributes(attributes: Any) -> dict[str, Any]:
    """Attributes of a function as a dictionary."""
    return dict(attributes or {})


def sanitize_random_args(seed: Any, shape: Any = None, dtype: Any = None) -> tuple[Any, Any, Any]:
    """Return the seed, the shape and the type of elements of random numbers."""
    return seed, None if shape is None else sanitize_shape(shape), sanitize_dtype_numpy(dtype)


def sanitize_substitutions(substitutions: Any) -> dict[Any, Any]:
    """Return substitutions as a dictionary."""
    return dict(substitutions or {})


def is_byte_buffer(s: Any) -> bool:
    """Return whether it is a text of bytes."""
    return isinstance(s, bytes | bytearray)


__all__ = [
    "get_data_type", "is_byte_buffer", "sanitize_2d_number", "sanitize_Function_attributes", "sanitize_axis",
    "sanitize_axis_list", "sanitize_batch", "sanitize_convolution_args", "sanitize_dtype_cntk",
    "sanitize_dtype_numpy", "sanitize_dynamic_axes", "sanitize_function", "sanitize_input",
    "sanitize_multi_axis_reduction_list", "sanitize_permutation", "sanitize_pooling_args", "sanitize_precision",
    "sanitize_random_args", "sanitize_range", "sanitize_shape", "sanitize_substitutions", "sanitize_value",
    "sanitize_var_map", "sanitize_variable_to_learner_map", "sanitize_variable_value_dict", "sanitize_variables",
]  # fmt: skip

__getattr__ = no_attribute("cntk.internal.sanitize", __all__)
