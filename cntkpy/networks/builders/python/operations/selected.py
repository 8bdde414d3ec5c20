"""Steps of sequences selected and put back, with what a program says about the lengths."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

from cntkpy.cntk_config.base.diagnostics import CallError, shorten
from cntkpy.networks.builders.python.functions.checks import is_whole
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.operations import operators
from cntkpy.networks.builders.python.operations.operators import Operand, reconcile_dynamic_axes


@described("Sequence::Gather")
def gather(
    seq: Operand, condition: Operand, new_sequence_axis_typeinfo: Sequence[int] | None = None, name: str = ""
) -> Function:
    """Return the steps whose condition is not 0.

    Args:
        seq: the sequence.
        condition: a number for each of its steps.
        new_sequence_axis_typeinfo: two whole numbers (factor, summand): the result has `factor * length + summand`
            steps. With (1, 0) it lies on the sequence axis of `seq`, with (0, 1) on none, else on one of its own.
        name: names the result.

    Raises:
        UserError: `new_sequence_axis_typeinfo` is no such pair.
    """
    if _keeps_length("sequence.gather", new_sequence_axis_typeinfo):
        return reconcile_dynamic_axes(operators.gather(seq, condition), seq, name)
    if new_sequence_axis_typeinfo is not None and tuple(new_sequence_axis_typeinfo) == (0, 1):
        return operators.gather(seq, condition, name)
    return on_an_axis(lambda flags, label: operators.gather(seq, flags, label), condition, name)


@described("Sequence::Scatter")
def scatter(
    seq: Operand, condition: Operand, new_sequence_axis_typeinfo: Sequence[int] | None = None, name: str = ""
) -> Function:
    """Return the steps put where the condition is not 0, zeros elsewhere.

    Args:
        seq: the sequence.
        condition: a number for each step of the result, which lies on its sequence axis.
        new_sequence_axis_typeinfo: see `gather`; it is checked, and changes nothing.
        name: names the result.

    Raises:
        UserError: `new_sequence_axis_typeinfo` is no such pair.
    """
    _keeps_length("sequence.scatter", new_sequence_axis_typeinfo)
    return operators.scatter(seq, condition, name)


def on_an_axis(select: Callable[[Operand, str], Function], condition: Operand, name: str) -> Function:
    """Select steps onto a sequence axis, also where it is known that there is one step of each sequence.

    Args:
        select: selects by a condition, and names the result.
        condition: the condition.
        name: names the result.
    """
    result = select(condition, name)
    try:
        has_steps = len(result.dynamic_axes) > 1
    except OpenShape:
        return result
    return result if has_steps else select(operators.not_equal(condition, 0), name)


def _keeps_length(call: str, pair: object) -> bool:
    """Return whether the pair says that the length stays."""
    if pair is None:
        return False
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(is_whole, pair)):
        message = f"{call}: new_sequence_axis_typeinfo is a pair of whole numbers, not {shorten(repr(pair))}"
        raise CallError("WrongArguments", message, hint="name='...' names the result")
    return tuple(pair) == (1, 0)


__all__ = ["gather", "on_an_axis", "scatter"]
