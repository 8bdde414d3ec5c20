"""Operators of values that are known: computed by NumPy, sizes of axes of the minibatch included."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from cntkpy.networks.onnx.reading.building import Use
from cntkpy.networks.onnx.reading.values import VARYING, Array, Data, Longer, Scores, Unusable, Value, varying

MOST_ELEMENTS = 1 << 28
"""Of an array that is computed."""


def _limited(count: int) -> None:
    if count > MOST_ELEMENTS:
        raise Unusable(f"it would make {count:,} elements")


def shape(use: Use) -> list[Value]:
    """The sizes of a value."""
    value = use.value(0)
    if isinstance(value, Longer):
        raise Unusable("it looks at values that were put before or behind a sequence")
    sizes = value.value.shape if isinstance(value, Array) else value.axes
    known = [one if isinstance(one, int) else use.build.fixed.get(one) or use.build.number_of(one) for one in sizes]
    return [Array(np.array(known[use.get("start", 0) : use.get("end", len(known))], np.int64))]


def size(use: Use) -> list[Value]:
    """The number of elements."""
    value = shape(use)[0]
    assert isinstance(value, Array)
    if varying(value.value):
        raise Unusable("the number of elements of a minibatch varies")
    return [Array(np.array(math.prod(value.value.tolist()), np.int64))]


def constant(use: Use) -> list[Value]:
    """A constant."""
    for name, dtype in (("value", None), ("value_float", np.float32), ("value_int", np.int64)):
        if use.get(name) is not None:
            return [Array(np.asarray(use.get(name), dtype))]
    for name, dtype in (("value_floats", np.float32), ("value_ints", np.int64)):
        if use.get(name) is not None:
            return [Array(np.asarray(use.get(name), dtype))]
    raise Unusable("its value is of a type that is not supported")


def constant_of_shape(use: Use) -> list[Value]:
    """One value everywhere. Axes of the minibatch have one element, to be broadcast."""
    value = np.asarray(use.get("value", np.zeros(1, np.float32)))
    dims = [1 if one <= -VARYING else int(one) for one in use.array(0).value.tolist()]
    if any(one < 0 for one in dims):
        raise Unusable("a size is negative")
    _limited(math.prod(dims))
    return [Array(np.full(dims, value.reshape(-1)[0]))]


def expand(use: Use) -> list[Value]:
    """Broadcast. Axes of the minibatch have one element."""
    dims = [1 if one <= -VARYING else int(one) for one in use.array(1).value.tolist()]
    array = use.array(0)
    full = np.broadcast_shapes(array.value.shape, tuple(dims))
    _limited(math.prod(full))
    return [Array(np.broadcast_to(array.value, full), array.name if full == array.value.shape else "")]


def _exact(function: Callable[..., Any]) -> Callable[[Use], list[Value]]:
    """An operation that may not look at sizes that vary."""

    def rule(use: Use) -> list[Value]:
        arrays = [use.array(index).value for index in range(len(use.inputs))]
        if any(varying(one) for one in arrays):
            raise Unusable("it computes with the size of an axis of the minibatch")
        return [Array(np.asarray(function(*arrays)))]

    return rule


def _multiplied(use: Use) -> list[Value]:
    """Mul, also of the size of an axis of the minibatch."""
    x, y = use.array(0).value, use.array(1).value
    if not (varying(x) or varying(y)):
        return [Array(np.asarray(x * y))]
    pairs = np.broadcast(x, y)
    products = [use.build.product(int(one), int(other)) for one, other in pairs]
    return [Array(np.array(products, np.int64).reshape(pairs.shape))]


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu" and not y.all():
        raise Unusable("it divides by 0")
    return np.mod(x, y)


def _reshaped(use: Use) -> list[Value]:
    array, wanted = use.array(0), [int(one) for one in use.integers("shape", 1) or []]
    dims = [array.value.shape[axis] if one == 0 else one for axis, one in enumerate(wanted)]
    if any(one < -1 for one in dims):
        raise Unusable("a constant cannot have the size of the minibatch")
    return [Array(array.value.reshape(dims), array.name)]


def _squeezed(use: Use) -> list[Value]:
    array, axes = use.array(0), use.integers("axes", 1)
    return [Array(np.squeeze(array.value, tuple(axes) if axes is not None else None), array.name)]


def _unsqueezed(use: Use) -> list[Value]:
    array = use.array(0)
    return [Array(np.expand_dims(array.value, tuple(use.integers("axes", 1) or ())), array.name)]


def _transposed(use: Use) -> list[Value]:
    array = use.array(0)
    return [Array(np.transpose(array.value, use.get("perm")))]


def _gathered(use: Use) -> list[Value]:
    array, index = use.array(0), use.array(1)
    return [Array(np.take(array.value, index.value.astype(np.int64), axis=use.integer("axis", 0)))]


def _joined(use: Use) -> list[Value]:
    arrays = [use.array(index).value for index in range(len(use.inputs))]
    return [Array(np.concatenate([np.atleast_1d(one) for one in arrays], axis=use.integer("axis", 0)))]


def _sliced(use: Use) -> list[Value]:
    array = use.array(0).value
    starts, ends = use.integers("starts", 1) or [], use.integers("ends", 2) or []
    axes = use.integers("axes", 3) or list(range(len(starts)))
    steps = use.integers("steps", 4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index: list[Any] = [slice(None)] * array.ndim
        index[axis] = slice(start, None if step < 0 and end < -array.shape[axis] else end, step)
        array = array[tuple(index)]
    return [Array(array)]


def _cast(use: Use) -> list[Value]:
    array = use.array(0)
    names = {1: np.float32, 11: np.float64, 10: np.float32, 7: np.int64, 6: np.int32, 9: np.bool_}
    dtype = names.get(use.get("to"))
    if dtype is None:
        raise Unusable(f"to = {use.get('to')} is not supported")
    if varying(array.value) and dtype is not np.int64:
        raise Unusable("the size of an axis of the minibatch is only an integer")
    return [Array(array.value.astype(dtype), array.name)]


def _identity(use: Use) -> list[Value]:
    return [use.array(0)]


def _range(start: np.ndarray, limit: np.ndarray, step: np.ndarray) -> np.ndarray:
    if not step:
        raise Unusable("its step is 0")
    _limited(int(abs((limit - start) / step)))
    return np.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def _divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu":
        if not y.all():
            raise Unusable("it divides by 0")
        return np.trunc(x / y).astype(x.dtype)
    return x / y


def _raised(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.power(x, y.astype(x.dtype))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _largest(*arrays: np.ndarray) -> np.ndarray:
    return functools.reduce(np.maximum, arrays)


def _smallest(*arrays: np.ndarray) -> np.ndarray:
    return functools.reduce(np.minimum, arrays)


NUMPY: dict[str, Callable[..., Any]] = {
    "Range": _range,
    "Add": operator.add,
    "Sub": operator.sub,
    "Div": _divided,
    "Mod": _remainder,
    "Neg": operator.neg,
    "Pow": _raised,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Floor": np.floor,
    "Abs": np.abs,
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Max": _largest,
    "Min": _smallest,
    "Not": np.logical_not,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Less": operator.lt,
    "Greater": operator.gt,
    "Equal": operator.eq,
    "Where": np.where,
}
"""Operators of numbers, by functions of NumPy."""

RULES: dict[str, Callable[[Use], list[Value]]] = {
    **{name: _exact(function) for name, function in NUMPY.items()},
    "Mul": _multiplied,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Shape": shape,
    "Size": size,
    "Expand": expand,
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
    "Transpose": _transposed,
    "Gather": _gathered,
    "Concat": _joined,
    "Slice": _sliced,
    "Cast": _cast,
    "Identity": _identity,
    "Dropout": _identity,
}
"""By operator: what is computed of known values. `Shape` and `Size` need no more than the sizes of data."""

OF_SIZES = ("Shape", "Size")


def is_known(use: Use) -> bool:
    """Whether the result of an operator is known."""
    return use.operator.kind in OF_SIZES or not any(isinstance(one, (Data, Longer, Scores)) for one in use.inputs)
