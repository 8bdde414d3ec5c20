"""More operators of CNTK 2: values for parameters, binary values, unit matrices, folds of operators of two operands."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.networks.builders.python.functions.blocks import mark_sparse
from cntkpy.networks.builders.python.functions.checks import check_flag
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, known_shape, operator
from cntkpy.networks.builders.python.functions.leaves import differ_by_leading_ones
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.operations.composed import ones_like
from cntkpy.networks.builders.python.operations.operators import (
    clip,
    element_select,
    equal,
    greater,
    minus,
    negate,
    plus,
    stop_gradient,
    zeros_like,
)
from cntkpy.networks.builders.python.operations.reshaping import Operand, reshape


@described("StraightThrough")
def straight_through_impl(x: Operand, name: str = "") -> Function:
    """1 where x is larger than 0, else -1; the gradient of x is that of the result where x lies from -1 to 1, else 0.

    Args:
        x: the operand.
        name: names the result.
    """
    x = as_node(x)
    ones = ones_like(x)
    sign = element_select(greater(x, 0.0), ones, negate(ones))
    inside = clip(x, -1.0, 1.0)
    return plus(stop_gradient(minus(sign, inside)), inside, name=name)


def assign(ref: Function, input: Operand, name: str = "") -> Function:
    """Return a value, which becomes that of a parameter or constant after all functions of the minibatch are computed.

    It does with `eval`, `forward`, and in each minibatch of a training or a test whose criteria depend on it. In
    training mode (`forward` with `keep_for_backward`, `grad`) it does after the gradients are computed.

    Args:
        ref: the parameter or constant; no learner trains it.
        input: the value, of the same shape; one for the whole minibatch.
        name: names the result.

    Returns:
        The value. It has no gradient.

    Raises:
        UserError: `ref` is no parameter or constant.
    """
    target: Any = ref
    if not isinstance(target, Function) or not (target.is_parameter or target.is_constant):
        message = f"assign: a value is assigned to a parameter or a constant, not to {shorten(repr(target))}"
        raise CallError("WrongArguments", message, hint="assign(constant(0, shape=(3,)), value)")
    value = as_node(input)
    try:
        shape, expected = known_shape(value), known_shape(target)
    except OpenShape:
        return operator("_Assign", target, value, label=name)
    if differ_by_leading_ones(shape, expected):
        value = reshape(value, expected)
    elif shape != expected:
        message = f"assign: a value of shape {shape} for {target!r} of shape {expected}"
        raise UserError("BadShape", message, hint=f"reshape(value, {expected})")
    return operator("_Assign", target, value, label=name)


@described("EyeLikeOp", lambda of: {"outputSparse": of["sparse_output"]})
@needs_shapes
def eye_like(x: Operand, sparse_output: bool = True, name: str = "") -> Function:
    """Return a matrix with 1 on the diagonal and 0 elsewhere, of the axes of x, whatever its values are.

    Args:
        x: the operand. It has two axes: those of its samples; or that of the minibatch, and one of its samples. Of
            samples of two axes there is a matrix for each.
        sparse_output: `eval` gives sparse matrices (scipy's CSR), where values have two axes. Others stay dense.
        name: names the result.

    Raises:
        UserError: x has other axes.
    """
    x = as_node(x)
    shape = x.shape
    if len(shape) == 2:
        made = plus(zeros_like(x), as_node(np.eye(*shape, dtype=np.float32)), name=name)
    elif len(shape) == 1 and len(x.dynamic_axes) == 1:
        made = equal(operator("_SampleNumber", x), as_node(np.arange(shape[0], dtype=np.float32)), name=name)
    else:
        message = (
            f"eye_like: two axes are expected, x has those of the shape {shape} and {len(x.dynamic_axes)} dynamic ones"
        )
        raise UserError("BadShape", message, hint="reshape(x, (rows, columns))")
    if check_flag("eye_like: sparse_output", sparse_output):
        mark_sparse(made.root)
    return made


def associative_multi_arg(f: Callable[..., Function]) -> Callable[..., Function]:
    """Return an operator of two or more operands, made of one of two: f(f(a, b), c).

    Args:
        f: takes two operands and `name`; it is associative.
    """

    @functools.wraps(f)
    def apply(arg1: Operand, arg2: Operand, *more_args: Any, name: str = "") -> Function:
        operands, label = more_args, name
        if operands and isinstance(operands[-1], str):
            operands, label = operands[:-1], operands[-1]
        result = f(arg1, arg2, name="" if operands else label)
        for index, operand in enumerate(operands):
            result = f(result, operand, name=label if index == len(operands) - 1 else "")
        return result

    return apply


__all__ = ["assign", "associative_multi_arg", "eye_like", "straight_through_impl"]
