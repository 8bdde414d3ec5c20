"""Operators that arrange the elements of samples in other shapes. Shapes and axes are those of NumPy."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.networks.builders.python.functions.axes import Axis, is_batch, is_sequence, static_axis
from cntkpy.networks.builders.python.functions.checks import check_whole, is_whole
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, checked, operator, taken
from cntkpy.networks.builders.python.functions.leaves import Shape
from cntkpy.networks.builders.python.functions.parts import elements

Operand = Any
"""A function, a number, an array or a list of numbers."""


def alias(x: Operand, name: str = "") -> Function:
    """x itself."""
    return operator("Pass", as_node(x), label=name)


def named(function: Function, name: str) -> Function:
    """Return a function under a name."""
    return alias(function, name) if name else function


def number(x: Function, name: str = "") -> Function:
    """Reshape a function of one element to a number, of shape ()."""
    return operator("NewReshape", x, [], label=name)


def place(axis: int, rank: int) -> int:
    """Return an axis as BrainScript counts it, from 1 on, the last one of NumPy's first."""
    return rank - axis


# --------------------------------------------------------------------------------------------- other shapes


def _bound(axis: int | Axis | None, rank: int, default: int) -> int:
    """Return a bound of the axes that `reshape` replaces; `default` if it is not given."""
    if axis is None:
        return default
    if isinstance(axis, Axis) and axis.kind == "new leading":
        return 0
    return static_axis("reshape", axis, rank, beyond=1)


@described("Reshape", lambda of: {"newShape": of["shape"], "beginAxis": of["begin_axis"], "endAxis": of["end_axis"]})
@needs_shapes
def reshape(
    x: Operand, shape: Shape, begin_axis: int | Axis | None = None, end_axis: int | Axis | None = None, name: str = ""
) -> Function:
    """Return the same elements in another shape, or with other axes from `begin_axis` to `end_axis` (exclusive).

    Args:
        x: the operand.
        shape: the shape, or that of the axes that are replaced; one axis may be -1 or 0, to be inferred.
        begin_axis: the first axis that is replaced, by default the first one. `Axis.new_leading_axis()` is in front of
            it.
        end_axis: the axis after the last one that is replaced; by default they all are.
        name: names the result.

    Raises:
        UserError: the axes do not exist, or the elements do not fit.
    """
    x = as_node(x)
    sizes: Any = list(shape) if isinstance(shape, list | tuple | np.ndarray) else [shape]
    for size in sizes:
        if not is_whole(size) or size < -1:
            message = f"reshape: a shape is made of whole numbers from 1 on, and of one -1, not {shorten(repr(shape))}"
            raise UserError("BadShape", message)
    old_shape, rank = x.shape, len(x.shape)
    begin, end = _bound(begin_axis, rank, 0), _bound(end_axis, rank, rank)
    if isinstance(end_axis, Axis) and end_axis.kind == "new leading":
        end = begin
    if begin > end:
        message = f"reshape: begin_axis {begin_axis} is after end_axis {end_axis}, of an operand of shape {old_shape}"
        raise UserError("BadIndex", message)
    new = _inferred(sizes, old_shape[begin:end])
    whole = (*old_shape[:begin], *new, *old_shape[end:])
    return operator("NewReshape", x, list(reversed(whole)), label=name)


def _inferred(sizes: Sequence[int], replaced: tuple[int, ...]) -> list[int]:
    """Return the sizes, with the one that is to be inferred."""
    open_axes = [index for index, size in enumerate(sizes) if size in (-1, 0)]
    if len(open_axes) > 1:
        message = f"reshape: one axis of {tuple(sizes)} can be inferred, not {len(open_axes)}"
        raise UserError("BadShape", message)
    count, known = math.prod(replaced), math.prod(size for size in sizes if size > 0)
    if count % known if open_axes else count != known:
        message = f"reshape: the {count} elements of the axes {replaced} cannot be arranged as {tuple(sizes)}"
        raise UserError("BadShape", message)
    return [count // known if index in open_axes else int(size) for index, size in enumerate(sizes)]


@needs_shapes
def flatten(x: Operand, axis: int | Axis | str | None = None, name: str = "") -> Function:
    """Return the same elements along two axes: those in front of `axis`, by default 0, and the others."""
    if isinstance(axis, str):  # the name
        axis, name = None, axis
    x = as_node(x)
    begin = static_axis("flatten", 0 if axis is None else axis, len(x.shape), beyond=1)
    return reshape(x, (math.prod(x.shape[:begin]), math.prod(x.shape[begin:])), name=name)


@needs_shapes
def expand_dims(x: Operand, axis: int | Axis, name: str = "") -> Function:
    """Return the same elements with an axis of 1 more, in front of the given one; -1 is after the last one."""
    x = as_node(x)
    if isinstance(axis, Axis) and axis.kind == "new leading":
        axis = 0
    shape = list(x.shape)
    shape.insert(static_axis("expand_dims", axis, len(shape) + 1), 1)
    return reshape(x, shape, name=name)


@described("Squeeze", lambda of: {"axisVec": of["axes"]})
@needs_shapes
def squeeze(x: Operand, axes: int | Axis | Sequence[int | Axis] | None = None, name: str = "") -> Function:
    """Return the same elements without some axes of 1, or without all of them."""
    x = as_node(x)
    shape, several = x.shape, axes if isinstance(axes, list | tuple) else [axes]
    if axes is None:
        gone = [number for number, size in enumerate(shape) if size == 1]
    else:
        gone = [static_axis("squeeze", axis, len(shape)) for axis in several]
    for number in gone:
        if shape[number] != 1:
            message = f"squeeze: the axis {number} of the shape {shape} has {shape[number]} elements, not one"
            raise UserError("BadShape", message)
    return reshape(x, [size for number, size in enumerate(shape) if number not in gone], name=name)


# --------------------------------------------------------------------------------------------- other orders of axes


@described("TransposeAxes", lambda of: {"axis1": of["axis1"], "axis2": of["axis2"]})
@needs_shapes
def swapaxes(x: Operand, axis1: int | Axis = 0, axis2: int | Axis = 1, name: str = "") -> Function:
    """Return two axes exchanged."""
    x = as_node(x)
    rank = len(x.shape)
    first, second = (place(static_axis("swapaxes", axis, rank), rank) for axis in (axis1, axis2))
    return operator("TransposeDimensions", x, first, second, label=name)


@described("TransposeAxes", lambda of: {"axisVec": of["perm"]})
@needs_shapes
def transpose(x: Operand, perm: Any = (1, 0), name: Any = "", axis2: int | None = None) -> Function:
    """Return the axes in another order: `perm` gives the axis of `x` for each axis of the result; or two axes
    exchanged.

    The two axes are `perm` and `axis2`, or, as in older programs, what is in the place of the name.
    """
    x = as_node(x)
    if is_whole(name):
        axis2, name = name, ""
    if is_whole(perm) or isinstance(perm, Axis):
        return swapaxes(x, perm, 1 if axis2 is None else axis2, name)
    rank = len(x.shape)
    if not isinstance(perm, list | tuple | range | np.ndarray):
        message = f"transpose: perm is a list of axes, not {shorten(repr(perm))}"
        raise CallError("WrongArguments", message, hint="transpose(x, (1, 0))")
    wanted = [static_axis("transpose", axis, rank) for axis in perm]
    now = list(range(rank))
    if sorted(wanted) != now:
        raise UserError("BadIndex", f"transpose: {tuple(perm)} is not a permutation of the {rank} axes of {x.shape}")
    result = x
    for index, axis in enumerate(wanted):
        position = now.index(axis)
        if position != index:
            result = swapaxes(result, index, position)
            now[index], now[position] = now[position], now[index]
    return named(result, name)


# --------------------------------------------------------------------------------------------- parts


def _of_slice(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a slice along one axis, or along several."""
    several = isinstance(of["axis"], list | tuple)
    strides = ([1] * len(of["axis"]) if several else 1) if of["strides"] is None else of["strides"]
    names = [name + "Vec" * several for name in ("axis", "beginIndex", "endIndex", "sliceStrides")]
    return dict(zip(names, (of["axis"], of["begin_index"], of["end_index"], strides), strict=True))


@described("Slice", _of_slice)
def slice(
    x: Operand,
    axis: int | Axis | Sequence[int | Axis],
    begin_index: int | Sequence[int],
    end_index: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    name: str = "",
) -> Function:
    """Return the elements from `begin_index` to `end_index` (exclusive, 0: the end) along an axis, or along several.

    With a stride other than 1 each so many of them, from the last one on if it is negative. Along a sequence axis the
    elements are the steps of each sequence.

    Args:
        x: the operand.
        axis: a number, an `Axis`, or several.
        begin_index: a number for each axis; negative ones count from the end.
        end_index: a number for each axis; negative ones and 0 count from the end.
        strides: a number for each axis; None: 1.
        name: names the result.

    Raises:
        UserError: an axis does not exist or has no such elements.
    """
    several = isinstance(axis, list | tuple)
    axes = list(axis) if several else [axis]
    bounds = {"begin_index": begin_index, "end_index": end_index, "strides": 1 if strides is None else strides}
    begins, ends, steps = (_for_axes(label, numbers, len(axes)) for label, numbers in bounds.items())
    result = as_node(x)
    for index, (along, begin, end, step) in enumerate(zip(axes, begins, ends, steps, strict=True)):
        label = name if index == len(axes) - 1 else ""
        if is_sequence(along):
            if step != 1:
                message = f"slice: along the sequence axis the stride is 1, not {step}"
                raise UserError("NotSupported", message, hint="sequence.gather takes any steps")
            result = steps_from("slice", result, begin, end, label)
        elif is_batch(along):
            raise UserError("NotSupported", "slice: the axis of minibatches is not sliced", hint="slice the data")
        else:
            result = _sliced(result, along, begin, end, step, label)
    return result


def steps_from(call: str, x: Function, begin: int, end: int, name: str) -> Function:
    """Return the steps from `begin` to `end` (exclusive) of each sequence; negative numbers and 0 count from the end.

    Raises:
        UserError: there are none, whatever the sequence.
    """
    on_the_same_side = end > 0 if begin >= 0 else end < 0
    if on_the_same_side and begin >= end:
        message = f"{call}: there are no steps from {begin} to {end} (exclusive)"
        raise UserError("BadIndex", message, hint="an end of 0 is that of the sequence, -1 the last step")
    return operator("Slice", begin, end, x, label=name, axis=-1)


def _for_axes(label: str, values: object, count: int) -> list[int]:
    """Return a whole number for each axis; one stride may count for all of them."""
    numbers = list(values) if isinstance(values, list | tuple) else [values] * (count if label == "strides" else 1)
    if len(numbers) != count:
        raise CallError("WrongArguments", f"slice: {len(numbers)} numbers of {label} for {count} axes")
    return [check_whole(f"slice: a number of {label}", number) for number in numbers]


@needs_shapes
def _sliced(x: Function, axis: object, begin: int, end: int, step: int, name: str) -> Function:
    shape, rank = x.shape, len(x.shape)
    along = static_axis("slice", axis, rank)
    return taken(x, rank, along, elements("slice", shape, along, begin, end, step), name)


@described("Splice", lambda of: {"axis": of["axis"]})
@needs_shapes
def splice(*operands: Operand, axis: int | Axis = -1, name: str = "") -> Function:
    """Return the operands, put together along an axis.

    Args:
        operands: functions, or a list of them; other axes have equal sizes, or 1.
        axis: the axis; -1 is the last one. `Axis.new_leading_axis()`, and one in front of the first, make a new axis.
        name: names the result.
    """
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    several = [as_node(part) for part in parts]
    if not several:
        raise CallError("WrongArguments", "splice needs an operand", hint="splice(a, b, axis=0)")
    if is_sequence(axis) or is_batch(axis):
        message = "splice: operands are put together along an axis of samples"
        raise UserError("NotSupported", message, hint="splice(a, b, axis=0)")
    rank = max(len(part.shape) for part in several)
    if isinstance(axis, Axis) and axis.kind == "new leading":
        axis = -rank - 1
    if is_whole(axis) and axis == -rank - 1:
        several, rank, axis = [expand_dims(part, 0) for part in several], rank + 1, 0
    if not rank:
        several, rank = [expand_dims(part, 0) for part in several], 1
    along = place(static_axis("splice", axis, rank), rank)
    return checked(operator("Splice", [part.root for part in map(_of_samples, several)], label=name, axis=along))


def _of_samples(x: Function) -> Function:
    """Return a criterion as its value for each sample."""
    from cntkpy.networks.builders.python.functions.per_sample import per_sample

    return Function(per_sample(x.root))


__all__ = [
    "Operand", "alias", "expand_dims", "flatten", "named", "number", "place", "reshape", "slice", "splice", "squeeze",
    "steps_from", "swapaxes", "transpose",
]  # fmt: skip
