"""Operators along axes of samples: reductions, the largest elements and their numbers, elements of a table."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.axes import Axis, static_axis
from cntkpy.networks.builders.python.functions.blocks import mark_sparse
from cntkpy.networks.builders.python.functions.checks import check_flag, check_whole
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, in_written_order, operator
from cntkpy.networks.builders.python.operations.reshaping import Operand, named, place, reshape, transpose

_LIBRARY = {
    "Sum": "ReduceSum",
    "Mean": "ReduceMean",
    "Max": "ReduceMax",
    "Min": "ReduceMin",
    "LogSum": "ReduceLogSum",
    "Prod": "_ReduceProd",
}


def labelled(made: Function, name: str) -> Function:
    """Return a function that was made just now, under a name."""
    if name:
        made.root.name = name
    return made


@needs_shapes
def over_axes(call: str, how: str, x: Function, axes: Sequence[int | Axis] | None, keepdims: bool) -> Function:
    """Return a reduction over axes of a sample.

    Args:
        call: the operator, for messages.
        how: Sum, Mean, Max, Min, LogSum or Prod.
        x: the operand.
        axes: the axes; None: all of them.
        keepdims: whether an axis of one element stays for each of them.
    """
    shape, rank = x.shape, len(x.shape)
    if axes is None:
        result, gone = operator(_LIBRARY[how], x), set(range(rank))
        if keepdims and rank == 1:
            return result
    else:
        gone, result = {static_axis(call, reduced, rank) for reduced in axes}, x
        for reduced in sorted(gone):
            result = operator(_LIBRARY[how], result, axis=place(reduced, rank))
        if keepdims:
            return result
    kept = [1 if index in gone else size for index, size in enumerate(shape) if keepdims or index not in gone]
    return reshape(result, kept)


# --------------------------------------------------------------------------------------------- numbers of elements


@described("ReduceElements", lambda of: {"axis": of["axis"], "reductionOpName": "Argmax"})
@needs_shapes
def argmax(x: Operand, axis: int | Axis | None = None, name: str = "") -> Function:
    """Return the number of the largest element along an axis, or of all elements (shape `()`); the first of several."""
    return _extreme_number("argmax", as_node(x), axis, name)


@described("ReduceElements", lambda of: {"axis": of["axis"], "reductionOpName": "Argmin"})
@needs_shapes
def argmin(x: Operand, axis: int | Axis | None = None, name: str = "") -> Function:
    """Return the number of the smallest element along an axis, or of all elements (shape `()`); the first of
    several.
    """
    return _extreme_number("argmin", operator("Negate", as_node(x)), axis, name)


def _extreme_number(call: str, x: Function, axis: int | Axis | None, name: str) -> Function:
    rank = len(x.shape)
    if axis is None or (isinstance(axis, Axis) and axis.kind == "all static"):
        return reshape(_extreme_number(call, reshape(x, (-1,)), 0, ""), (), name=name)
    along = static_axis(call, axis, rank)
    numbers = _numbers(x, along)
    size = x.shape[along]
    largest = operator("Equal", x, over_axes(call, "Max", x, [along], True))
    is_largest = operator("Plus", largest, operator("NotEqual", x, x))  # no number is larger than all, as in numpy
    candidates = operator("BS.Boolean.If", is_largest, numbers, as_node(np.float32(size)))
    return labelled(over_axes(call, "Min", candidates, [along], True), name)


def _numbers(x: Function, along: int) -> Function:
    """Return the numbers of the elements along an axis."""
    shape = [1] * len(x.shape)
    shape[along] = x.shape[along]
    return as_node(np.arange(x.shape[along], dtype=np.float32).reshape(shape))


@described("TopK", lambda of: {"axis": of["axis"], "numItems": of["k"]})
def top_k(x: Operand, k: int, axis: int | Axis = -1, name: str = "") -> Function:
    """Return the k largest elements along an axis, the largest one first, and their numbers.

    Args:
        x: the operand.
        k: how many.
        axis: the axis; -1 is the last one.
        name: names the function and the values.

    Returns:
        A function of two outputs: the values, and their numbers along the axis. Both have k elements on the axis.

    Raises:
        UserError: the axis does not exist, or has fewer elements.
    """
    check_whole("top_k: k", k, 1)
    values, numbers = (_top(as_node(x), k, axis, is_number) for is_number in (False, True))
    made = Function((labelled(values, name).root, numbers.root))
    made.name = name
    return made


@needs_shapes
def _top(x: Function, k: int, axis: int | Axis, numbers: bool) -> Function:
    shape, rank = x.shape, len(x.shape)
    along = static_axis("top_k", axis, rank)
    if k > shape[along]:
        message = f"top_k: k is {k}, the axis {along} of the shape {shape} has {shape[along]} elements"
        raise UserError("BadValue", message)
    return operator("_TopK", x, k, numbers, axis=place(along, rank))


@described(
    "OneHotOp",
    lambda of: {"numClass": of["num_classes"], "oneHotOutputSparse": of["sparse_output"], "onehotAxis": of["axis"]},
)
@needs_shapes
def one_hot(
    x: Operand, num_classes: int, sparse_output: bool = False, axis: int | Axis = -1, name: str = ""
) -> Function:
    """Vectors with 1 in the place of the number, for each of the numbers.

    Args:
        x: the numbers.
        num_classes: elements of a vector.
        sparse_output: `eval` gives sparse matrices (scipy's CSR), where values have two axes. Others stay dense.
        axis: where the axis of the vectors is in the result; -1: after all others.
        name: names the result.
    """
    x = as_node(x)
    check_whole("one_hot: num_classes", num_classes, 1)
    rank = len(x.shape) + 1
    along = static_axis("one_hot", axis, rank)
    shape = [1] * rank
    shape[along] = num_classes
    wider = reshape(x, [*x.shape[:along], 1, *x.shape[along:]])
    classes = as_node(np.arange(num_classes, dtype=np.float32).reshape(shape))
    made = operator("Equal", wider, classes, label=name)
    if check_flag("one_hot: sparse_output", sparse_output):
        mark_sparse(made.root)
    return made


def take(reference: Operand, indices: Operand, axis: int | Axis | None = None, name: str = "") -> Function:
    """Return the elements of `reference` along an axis with the numbers of `indices`.

    Args:
        reference: what is taken from.
        indices: numbers from 0 on.
        axis: an axis of `reference`; None: the first one.
        name: names the result.

    Returns:
        A function whose shape has that of `indices` in the place of the axis.
    """
    table, numbers = as_node(reference), as_node(indices)
    return _gathered(numbers, table, axis, name=name)


@described("GatherOp", lambda of: {"axis": of["axis"]})
@needs_shapes
def _gathered(numbers: Function, table: Function, axis: int | Axis | None, name: str) -> Function:
    shape = table.shape
    along = static_axis("gather", 0 if axis is None else axis, len(shape))
    first = transpose(table, [along, *(index for index in range(len(shape)) if index != along)])
    wanted = numbers.shape
    flat = one_hot(reshape(numbers, (-1,)), shape[along])
    rows = operator("Times", reshape(first, (shape[along], -1)), flat)
    front, behind = shape[:along], shape[along + 1 :]
    spread = reshape(rows, (*wanted, *front, *behind))
    order = [
        *range(len(wanted), len(wanted) + along),
        *range(len(wanted)),
        *range(len(wanted) + along, len(wanted) + len(shape) - 1),
    ]
    return in_written_order(named(transpose(spread, order), name), numbers, table)


__all__ = ["argmax", "argmin", "labelled", "one_hot", "over_axes", "take", "top_k"]
