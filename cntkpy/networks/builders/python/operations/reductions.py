"""Reductions over axes of samples, over sequences and over the minibatch."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.axes import Axis, is_batch, is_sequence
from cntkpy.networks.builders.python.functions.checks import check_flag
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.operations.elements import labelled, over_axes
from cntkpy.networks.builders.python.operations.operators import abs, sqrt, square
from cntkpy.networks.builders.python.operations.reshaping import Operand
from cntkpy.networks.builders.python.operations.sequences import over_steps

Along = Any
"""The axes of a reduction: one, several, or all static ones (None)."""


def _reduction(call: str, how: str, meaning: str) -> Callable[..., Function]:
    def function(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
        keepdims, name = _name_of(keepdims, name)
        return _reduced(call, how, x, axis, keepdims, name)

    function.__doc__ = f"""{meaning}

    Args:
        x: the operand.
        axis: a number, an `Axis`, or several; None: all axes of a sample. Over the axis of minibatches, and over all
            axes, the result is the same for all samples.
        keepdims: whether an axis of one element stays for each axis of the sample that is reduced.
        name: names the result.

    Raises:
        UserError: an axis does not exist.
    """
    function.__name__ = call
    return described(
        "ReduceElements",
        lambda of: {"axis": of["axis"], "reductionOpName": how, "reductionKeepDimensions": bool(of["keepdims"])},
    )(function)


reduce_sum = _reduction("reduce_sum", "Sum", "The sum.")
reduce_mean = _reduction("reduce_mean", "Mean", "The mean.")
reduce_max = _reduction("reduce_max", "Max", "The largest element.")
reduce_min = _reduction("reduce_min", "Min", "The smallest element.")
reduce_prod = _reduction("reduce_prod", "Prod", "The product.")
reduce_log_sum_exp = _reduction("reduce_log_sum_exp", "LogSum", "The logarithm of the sum of exponentials.")


def _reduced(call: str, how: str, x: Operand, axis: Along, keepdims: object, name: str) -> Function:
    keepdims = check_flag(f"{call}: keepdims", keepdims)
    several = list(axis) if isinstance(axis, list | tuple) else [axis]
    if not several:
        raise UserError("BadIndex", f"{call}: a reduction goes over one axis at least", hint="None: over all elements")
    kinds = [item.kind if isinstance(item, Axis) else "" for item in several]
    batch, everything = any(map(is_batch, several)), "all" in kinds
    steps = any(map(is_sequence, several))
    result = as_node(x)
    if everything or None in several or "all static" in kinds:
        result = over_axes(call, how, result, None, keepdims and not everything)
    elif static := [item for item in several if not is_batch(item) and not is_sequence(item)]:
        result = over_axes(call, how, result, static, keepdims)
    if batch or everything:
        result = operator("_ReduceMinibatch", result, how)
    elif steps:
        result = over_steps(how, result)
    return labelled(result, name)


def _name_of(keepdims: bool | str, name: str) -> tuple[bool | str, str]:
    """Return whether axes stay, and the name, which may be in its place in older programs."""
    return (True, keepdims) if isinstance(keepdims, str) else (keepdims, name)


def reduce_l1(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """Return the sum of absolute values; see `reduce_sum`."""
    keepdims, name = _name_of(keepdims, name)
    return _reduced("reduce_l1", "Sum", abs(x), axis, keepdims, name)


def reduce_sum_square(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """Return the sum of squares; see `reduce_sum`."""
    keepdims, name = _name_of(keepdims, name)
    return _reduced("reduce_sum_square", "Sum", square(x), axis, keepdims, name)


def reduce_l2(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """Return the root of the sum of squares; see `reduce_sum`."""
    keepdims, name = _name_of(keepdims, name)
    return sqrt(_reduced("reduce_l2", "Sum", square(x), axis, keepdims, ""), name)


__all__ = [
    "Along", "reduce_l1", "reduce_l2", "reduce_log_sum_exp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum", "reduce_sum_square",
]  # fmt: skip
