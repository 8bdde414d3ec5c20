"""Operators over the steps of sequences, made of recurrences."""

from __future__ import annotations

from collections.abc import Callable

from cntkpy.networks.builders.python.functions.checks import check_whole
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.functions.variables import placeholder
from cntkpy.networks.builders.python.operations.composed import element_max
from cntkpy.networks.builders.python.operations.operators import (
    Operand,
    broadcast_as,
    element_divide,
    element_select,
    element_times,
    exp,
    future_value,
    is_first,
    last,
    log,
    minus,
    negate,
    past_value,
    plus,
)
from cntkpy.networks.builders.python.operations.reshaping import number
from cntkpy.networks.builders.python.operations.selected import on_an_axis
from cntkpy.networks.builders.python.operations.steps_of import steps_of


def delay(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """Return the value `time_step` steps earlier (later, if it is negative); before the first step the initial state
    (0).
    """
    check_whole("time_step", time_step)
    if time_step == 0:
        return as_node(x)
    if time_step < 0:
        return future_value(x, initial_state, -time_step, name)
    return past_value(x, initial_state, time_step, name)


def accumulated(step: Callable[[Function], Function]) -> Function:
    """Return a recurrence: the function that `step` makes of its own value one step earlier."""
    previous = placeholder()
    result = step(past_value(previous))
    return result.replace_placeholders({previous: result})


@described("Sequence::ReduceElements", lambda of: {"reductionOpName": "Sum"})
def reduce_sum(seq: Operand, name: str = "") -> Function:
    """Return the sum over the steps of each sequence."""
    return last(accumulated(lambda previous: plus(previous, seq)), name)


@described("Sequence::ReduceElements", lambda of: {"reductionOpName": "Max"})
def reduce_max(seq: Operand, name: str = "") -> Function:
    """Return the largest value over the steps of each sequence, element by element."""
    return last(accumulated(lambda previous: element_max(element_select(is_first(seq), seq, previous), seq)), name)


def over_steps(how: str, seq: Operand) -> Function:
    """Return a reduction over the steps of each sequence, element by element.

    Args:
        how: Sum, Mean, Max, Min, LogSum or Prod.
        seq: the sequence.
    """
    if how in ("Sum", "Max"):
        return reduce_sum(seq) if how == "Sum" else reduce_max(seq)
    if how == "Min":
        return negate(reduce_max(negate(seq)))
    if how == "Mean":
        return element_divide(reduce_sum(seq), operator("BS.Loop.Count", steps_of(seq)))
    if how == "LogSum":
        largest = reduce_max(seq)
        return plus(largest, log(reduce_sum(exp(minus(seq, broadcast_as(largest, seq))))))
    return last(accumulated(lambda previous: element_select(is_first(seq), seq, element_times(previous, seq))))


@described("Sequence::Softmax")
def softmax(seq: Operand, name: str = "") -> Function:
    """Softmax over the steps of each sequence, element by element."""
    shifted = exp(minus(seq, broadcast_as(reduce_max(seq), seq)))
    return element_divide(shifted, broadcast_as(reduce_sum(shifted), seq), name=name)


@described("Where")
def where(condition: Operand, name: str = "") -> Function:
    """Return the numbers of the steps whose condition is not 0."""
    return on_an_axis(lambda flags, label: number(operator("Where", flags), label), condition, name)


__all__ = ["accumulated", "delay", "over_steps", "reduce_max", "reduce_sum", "softmax", "where"]
