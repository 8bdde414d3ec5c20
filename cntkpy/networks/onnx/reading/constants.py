"""Operators of values that are known: computed by NumPy, sizes of axes of the minibatch included."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cntkpy.networks.nodes.onnx_support.building import Use
from cntkpy.networks.nodes.onnx_support.values import (
    MOST_SIZES,
    VARYING,
    Array,
    Data,
    Longer,
    Step,
    Unusable,
    Value,
    varying,
)
from cntkpy.networks.nodes.recurrence import onnx_delays as delays
from cntkpy.networks.nodes.shape.onnx_axes import part_sizes

Rule = Callable[[Use], "list[Value]"]


def shape(use: Use) -> list[Value]:
    """Return the sizes of a value."""
    value = use.value(0)
    if isinstance(value, Longer):
        raise Unusable("it looks at values that were put before or behind a sequence")
    sizes = () if isinstance(value, Step) else value.axes
    if isinstance(value, Array):
        sizes = value.axes or value.value.shape
    known = [
        size if isinstance(size, int) else use.build.fixed.get(size) or use.build.number_of(size) for size in sizes
    ]
    return [Array(np.array(known[use.get("start", 0) : use.get("end", len(known))], np.int64))]


def _product(use: Use, sizes: np.ndarray) -> int:
    return functools.reduce(use.build.product, (int(size) for size in sizes.reshape(-1)), 1)


def size(use: Use) -> list[Value]:
    """Return the number of elements."""
    value = shape(use)[0]
    assert isinstance(value, Array)
    return [Array(np.array(_product(use, value.value), np.int64))]


def constant(use: Use) -> list[Value]:
    """Return a constant."""
    for name, dtype in (("value", None), ("value_float", np.float32), ("value_int", np.int64)):
        if use.get(name) is not None:
            return [Array(np.asarray(use.get(name), dtype))]
    for name, dtype in (("value_floats", np.float32), ("value_ints", np.int64)):
        if use.get(name) is not None:
            return [Array(np.asarray(use.get(name), dtype))]
    raise Unusable("its value is of a type that is not supported")


def _dims(array: np.ndarray) -> list[int]:
    """Sizes of axes. Those of the minibatch are 1, to be broadcast."""
    limit = -VARYING - MOST_SIZES
    return [1 if limit < number <= -VARYING else int(number) for number in array.reshape(-1).tolist()]


def constant_of_shape(use: Use) -> list[Value]:
    """Return one value everywhere. Axes of the minibatch have one element, to be broadcast."""
    value = np.asarray(use.get("value", np.zeros(1, np.float32)))
    dims = _dims(use.array(0).value)
    use.build.take(*dims)
    return [Array(np.full(dims, value.reshape(-1)[0]))]


def expand(use: Use) -> list[Value]:
    """Broadcast. Axes of the minibatch have one element."""
    array, sizes = use.array(0), use.array(1).value
    full = np.broadcast_shapes(array.value.shape, tuple(_dims(sizes)))
    use.build.take(*full)
    words = [None] * (len(full) - len(sizes)) + [use.build.word_of(int(number)) for number in sizes]
    axes = tuple(word or size for word, size in zip(words, full, strict=True))
    return [Array(np.broadcast_to(array.value, full), array.name if full == array.value.shape else "", axes)]


SIZES_AT_ONCE = 1 << 12
"""Elements of arrays with sizes of axes of the minibatch that are computed one by one, at most."""


def _exact(function: Callable[..., np.ndarray | bool], of_sizes: Callable[[Use, int, int], int] | None = None) -> Rule:
    """Return an operation of each element.

    Args:
        function: of arrays.
        of_sizes: of two elements, one of which is the size of an axis of the minibatch; None: refused.
    """

    def rule(use: Use) -> list[Value]:
        arrays = [use.array(index).value for index in range(len(use.inputs))]
        use.build.take(*np.broadcast_shapes(*(array.shape for array in arrays)))
        if not any(varying(array) for array in arrays):
            return [Array(np.asarray(function(*arrays)))]
        if of_sizes is None or len(arrays) != 2:
            raise Unusable("it computes with the size of an axis of the minibatch")
        pairs = np.broadcast(*arrays)
        if pairs.size > SIZES_AT_ONCE or any((array != np.floor(array)).any() for array in arrays):
            raise Unusable("it computes with the size of an axis of the minibatch and fractions")
        results = [of_sizes(use, int(x), int(y)) for x, y in pairs]
        return [Array(np.array(results, np.bool_ if isinstance(results[0], bool) else np.int64).reshape(pairs.shape))]

    return rule


def _is_size(number: int) -> bool:
    return -VARYING - MOST_SIZES < number <= -VARYING


def _added(sign: int) -> Callable[[Use, int, int], int]:
    def function(use: Use, x: int, y: int) -> int:
        if not (_is_size(x) or _is_size(y)):
            return x + sign * y
        if y == 0 or (x == 0 and sign > 0):
            return x or y
        raise Unusable("it computes with the size of an axis of the minibatch")

    return function


def _times(use: Use, x: int, y: int) -> int:
    return use.build.product(x, y)


def _by(use: Use, x: int, y: int) -> int:
    if not (_is_size(x) or _is_size(y)):
        return int(_divided(np.array(x), np.array(y)))
    return use.build.quotient(x, y)


def _compared(function: Callable[[int, int], bool]) -> Callable[[Use, int, int], bool]:
    """Return a comparison of a size with a number, whose result is the same for all sizes from 1 on."""

    def compare(use: Use, x: int, y: int) -> bool:
        if x == y or not (_is_size(x) or _is_size(y)):
            return bool(function(x, y))
        sizes = [use.build.size_of(number) for number in (x, y)]
        if sizes[0].words and sizes[1].words:
            raise Unusable("it compares sizes of axes of the minibatch")
        size, number = sizes if sizes[0].words else sizes[::-1]
        equal = number.known // size.known if number.known >= size.known > 0 == number.known % size.known else 1
        results = set[bool]()
        for count in (1, equal, VARYING):  # the least one, one that is as large as the number, a very large one
            results.add(bool(function(*(size.known * count if size.words else size.known for size in sizes))))
        if len(results) > 1:
            raise Unusable("it compares the size of an axis of the minibatch with a number")
        return results.pop()

    return compare


def _whole(use: Use) -> list[Value]:
    """Floor, Ceil, Round, Abs: of a size of an axis of the minibatch it is the size."""
    if varying(use.array(0).value):
        return [use.array(0)]
    return _exact(ROUNDED[use.operator.kind])(use)


def _reduced(function: Callable[..., np.ndarray]) -> Rule:
    """Return a reduction."""

    def rule(use: Use) -> list[Value]:
        array = use.array(0).value
        axes = use.integers("axes", 1)
        if not axes and use.get("noop_with_empty_axes", 0):
            return [use.array(0)]
        use.build.take(array.size)
        if _varies(use.array(0), axes or range(array.ndim)):
            raise Unusable("it computes with the size of an axis of the minibatch")
        keep = bool(use.get("keepdims", 1))
        if varying(array):
            if use.operator.kind != "ReduceProd" or array.ndim != 1:
                raise Unusable("it computes with the size of an axis of the minibatch")
            return [Array(np.array(_product(use, array)).reshape((1,) if keep else ()))]
        result = function(array, axis=tuple(axes) if axes else None, keepdims=keep)
        return [Array(np.asarray(result, array.dtype))]

    return rule


def _product_of_matrices(use: Use) -> list[Value]:
    x, y = use.array(0).value, use.array(1).value
    if x.ndim < 1 or y.ndim < 1 or varying(x) or varying(y):
        raise Unusable("its operands are no matrices")
    rows, columns = x.shape[:-1], y.shape[-1:] if y.ndim > 1 else ()
    use.build.take(*np.broadcast_shapes(rows[:-1], y.shape[:-2]), *rows[-1:], *columns)
    return [Array(np.asarray(x @ y))]


def _tiled(use: Use) -> list[Value]:
    array, counts = use.array(0).value, use.integers("repeats", 1) or []
    if len(counts) != array.ndim:
        raise Unusable(f"{len(counts)} repeats for {array.ndim} axes")
    use.build.take(*(size * count for size, count in zip(array.shape, counts, strict=True)))
    return [Array(np.tile(array, counts))]


def _padded(use: Use) -> list[Value]:
    array, pads, value = use.array(0).value, use.integers("pads", 1) or [], use.real("value", 2, 0.0)
    mode = use.get("mode", "constant")
    if len(pads) != 2 * array.ndim or min(pads, default=0) < 0 or use.has(3) or mode != "constant" or varying(array):
        raise Unusable("only a constant around all axes is supported there")
    around = [*zip(pads[: array.ndim], pads[array.ndim :], strict=True)]
    use.build.take(*(size + sum(padding) for size, padding in zip(array.shape, around, strict=True)))
    return [Array(np.pad(array, around, constant_values=value or 0.0))]


def _parts(use: Use) -> list[Value]:
    array, count = use.array(0).value, len(use.operator.outputs)
    axis = use.axis(use.integer("axis", 0), array.ndim)
    sizes = part_sizes(use, array.shape[axis], count)
    places = np.cumsum(sizes)[:-1]
    return [Array(part) for part in np.split(array, places, axis)]


def _one_hot(use: Use) -> list[Value]:
    index, depth, values = use.array(0).value, int(use.array(1).value.reshape(-1)[0]), use.array(2).value
    axis = use.axis(use.integer("axis", -1), index.ndim + 1)
    use.build.take(depth, *index.shape)
    index = np.where(index < 0, index + depth, index).astype(np.int64)
    hot = np.expand_dims(index, axis) == np.arange(depth).reshape(-1, *(1,) * (index.ndim - axis))
    return [Array(np.where(hot, values[1], values[0]))]


def _dequantised(use: Use) -> list[Value]:
    """DequantizeLinear: (x - zero point) * scale, of a whole array, an axis, or blocks of an axis."""
    x, scale = use.array(0).value, use.array(1).value
    zero = use.array(2).value if use.has(2) else np.zeros((), np.int8)
    use.build.take(x.size)
    if scale.size == 1:
        factors = [scale.reshape(()), zero.reshape(())]
    elif scale.ndim == 1 and not use.get("block_size", 0):
        axis = use.axis(use.integer("axis", 1), x.ndim)
        shape = (-1, *(1,) * (x.ndim - 1 - axis))
        factors = [scale.reshape(shape), zero.reshape(shape) if zero.ndim else zero]
    else:
        axis, size = use.axis(use.integer("axis", 1), x.ndim), use.integer("block_size", 0)
        if size < 1 or scale.ndim != x.ndim or size * scale.shape[axis] < x.shape[axis] or size > x.shape[axis]:
            raise Unusable(f"block_size = {size} does not fit its scales")
        use.build.take(x.size, 2)
        places = np.arange(int(x.shape[axis])) // size
        factors = [scale.take(places, axis), zero.take(places, axis) if zero.ndim else zero]
    return [Array((x.astype(scale.dtype) - factors[1].astype(scale.dtype)) * factors[0])]


def _triangle(use: Use) -> list[Value]:
    array, k = use.array(0).value, int(use.array(1).value.reshape(())) if use.has(1) else 0
    use.build.take(array.size)
    return [Array(np.triu(array, k) if use.get("upper", 1) else np.tril(array, k))]


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu" and not y.all():
        raise Unusable("it divides by 0")
    return np.mod(x, y)


def _reshaped(use: Use) -> list[Value]:
    array, wanted = use.array(0), [int(integer) for integer in use.integers("shape", 1) or []]
    keep = not use.get("allowzero", 0)
    dims = [array.value.shape[axis] if size == 0 and keep else size for axis, size in enumerate(wanted)]
    if any(size < -1 for size in dims):
        raise Unusable("a constant cannot have the size of the minibatch")
    use.build.take(array.value.size)
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
    axis = use.axis(use.integer("axis", 0), array.value.ndim)
    use.build.take(array.value.size // max(array.value.shape[axis], 1), index.value.size)
    return [Array(np.take(array.value, index.value.astype(np.int64), axis=axis))]


def _joined(use: Use) -> list[Value]:
    operands, axis = [use.array(index) for index in range(len(use.inputs))], use.integer("axis", 0)
    for index, operand in enumerate(operands):
        if _varies(operand, [axis]):
            place = use.axis(axis, len(operand.axes))
            values = [*operands[:index], _of_data(use, operand, place), *operands[index + 1 :]]
            return [delays.lengthened(use, values, place)]
    arrays = [operand.value for operand in operands]
    use.build.take(sum(array.size for array in arrays))
    if any(varying(array) for array in arrays):  # as integers, so that no size becomes a rounded one
        arrays = [array.astype(np.int64) for array in arrays]
    return [Array(np.concatenate([np.atleast_1d(array) for array in arrays], axis=axis))]


def _varies(array: Array, axes: Sequence[int]) -> bool:
    """Return whether an axis of a constant is one of the minibatch."""
    return any(-len(array.axes) <= axis < len(array.axes) and isinstance(array.axes[axis], str) for axis in axes)


def _of_data(use: Use, array: Array, place: int) -> Data:
    """Return a constant at every step of the sequences of an input."""
    dims = [axis for axis in array.axes if isinstance(axis, int)]
    like = use.build.on_axis.get(str(array.axes[place]))
    if like is None:
        raise Unusable("it looks along an axis of the minibatch that no input has")
    constant = use.build.parameter(Array(array.value.reshape(dims)), dims)
    return use.build.data(use.build.node("ReconcileDynamicAxis", constant, like), array.axes)


def _sliced(use: Use) -> list[Value]:
    array = use.array(0).value
    starts, ends = use.integers("starts", 1) or [], use.integers("ends", 2) or []
    axes = use.integers("axes", 3) or list(range(len(starts)))
    if _varies(use.array(0), axes):
        raise Unusable("it takes steps of a constant")
    steps = use.integers("steps", 4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index: list[Any] = [slice(None)] * array.ndim
        index[axis] = slice(start, None if step < 0 and end < -array.shape[axis] else end, step)
        array = array[tuple(index)]
    return [Array(array)]


TYPES: dict[int, type[np.generic]] = {
    1: np.float32,
    11: np.float64,
    10: np.float32,
    16: np.float32,
    9: np.bool_,
    7: np.int64,
    6: np.int32,
    5: np.int16,
    3: np.int8,
    13: np.uint64,
    12: np.uint32,
    4: np.uint16,
    2: np.uint8,
}
"""Types of elements by ONNX's numbers; numbers of 2 bytes are kept in 4."""


def _cast(use: Use) -> list[Value]:
    array = use.array(0)
    dtype = TYPES.get(use.get("to"))
    if dtype is None:
        raise Unusable(f"to = {use.get('to')} is not supported")
    return [Array(_as_type(use, array.value, dtype), array.name)]


def _as_type(use: Use, value: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    """Return an array of another type. Sizes of axes of the minibatch are kept in a type that has them."""
    use.build.take(value.size)
    if not varying(value):
        return value.astype(dtype)
    if dtype is np.bool_:
        return value != 0
    return value.astype(np.int64 if np.issubdtype(dtype, np.integer) else np.float64)


def _cast_like(use: Use) -> list[Value]:
    array, like = use.array(0), use.array(1).value
    return [Array(_as_type(use, array.value, like.dtype.type), array.name)]


def _identity(use: Use) -> list[Value]:
    return [use.array(0)]


def _range(use: Use) -> list[Value]:
    start, limit, step = (use.array(index).value.reshape(()) for index in range(3))
    if not step:
        raise Unusable("its step is 0")
    if any(varying(number) for number in (start, limit, step)):
        raise Unusable("it computes with the size of an axis of the minibatch")
    use.build.take(max(0, math.ceil((limit.item() - start.item()) / step.item())))
    return [Array(np.arange(start.item(), limit.item(), step.item(), dtype=start.dtype))]


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


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _sum(*arrays: np.ndarray) -> np.ndarray:
    return functools.reduce(operator.add, arrays)


ROUNDED = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Abs": np.abs}


NUMPY: dict[str, Callable[..., Any]] = {
    "Mod": _remainder,
    "Neg": operator.neg,
    "Pow": _raised,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Sign": np.sign,
    "Sin": np.sin,
    "Cos": np.cos,
    "Erf": _erf,
    "Relu": _relu,
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Sum": _sum,
    "Max": _largest,
    "Min": _smallest,
    "Not": np.logical_not,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "IsNaN": np.isnan,
}
"""Operators of numbers, by functions of NumPy."""


def _chosen(use: Use) -> list[Value]:
    """Choose elements by a condition. Sizes of axes of the minibatch may be chosen."""
    arrays = [use.array(index).value for index in range(3)]
    use.build.take(*np.broadcast_shapes(*(array.shape for array in arrays)))
    if varying(arrays[0]):
        raise Unusable("it computes with the size of an axis of the minibatch")
    return [Array(np.where(*arrays))]


OF_SIZES = ("Shape", "Size")


def is_known(use: Use) -> bool:
    """Return whether the result of an operator is known: its operands are, and it has no graph that may take others."""
    if use.operator.bodies:
        return False
    return use.operator.kind in OF_SIZES or all(operand is None or isinstance(operand, Array) for operand in use.inputs)


RULES: dict[str, Rule] = {
    **{name: _exact(function) for name, function in NUMPY.items()},
    **dict.fromkeys(ROUNDED, _whole),
    "Add": _exact(operator.add, _added(1)),
    "Sub": _exact(operator.sub, _added(-1)),
    "Mul": _exact(operator.mul, _times),
    "Div": _exact(_divided, _by),
    "Less": _exact(operator.lt, _compared(operator.lt)),
    "LessOrEqual": _exact(operator.le, _compared(operator.le)),
    "Greater": _exact(operator.gt, _compared(operator.gt)),
    "GreaterOrEqual": _exact(operator.ge, _compared(operator.ge)),
    "Equal": _exact(operator.eq, _compared(operator.eq)),
    "Where": _chosen,
    "ReduceSum": _reduced(np.sum),
    "ReduceMean": _reduced(np.mean),
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceProd": _reduced(np.prod),
    "MatMul": _product_of_matrices,
    "Tile": _tiled,
    "Pad": _padded,
    "Split": _parts,
    "OneHot": _one_hot,
    "Trilu": _triangle,
    "Range": _range,
    "CastLike": _cast_like,
    "DequantizeLinear": _dequantised,
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
