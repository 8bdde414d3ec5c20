"""Windows as Python programs describe them; those along sequences, whose steps become an axis of samples."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.checks import check_flag, check_whole
from cntkpy.networks.builders.python.functions.function import Function, operator
from cntkpy.networks.builders.python.operations.operators import (
    broadcast_as,
    element_times,
    equal,
    floor,
    future_value,
    gather,
    last,
    minus,
    past_value,
    plus,
    reconcile_dynamic_axes,
    zeros_like,
)
from cntkpy.networks.builders.python.operations.reshaping import expand_dims, number, splice
from cntkpy.networks.builders.python.operations.steps_of import steps_of


@dataclass(frozen=True)
class Steps:
    """Windows along a sequence of n steps.

    Attributes:
        size: how many steps of a window count.
        stride: the distance between neighbouring windows.
        padded: there are ceil(n / stride) windows, some partly outside, where zeros are; else all lie inside.
        dilation: the distance between neighbours in a window.
    """

    size: int
    stride: int
    padded: bool
    dilation: int


@dataclass(frozen=True)
class Sliding:
    """The arguments of a convolution that have a value for each axis, as a program gives them, and the groups.

    Attributes:
        call: names the operator or the layer in messages.
        strides, padding, dilation: one value, one for each axis that filters slide along, or one for the channels more.
        groups: of channels.
        padding_name: what `padding` is called there.
    """

    call: str
    strides: Any
    padding: Any
    dilation: Any
    groups: int = 1
    padding_name: str = "auto_padding"

    def options(self, kernel: Sequence[int]) -> dict[str, Any]:
        """Return the options of a node of filters (channels of a group, sizes); unknown channels are 0 or less.

        Raises:
            UserError: a filter has no axis to slide along, or a list has another length than the axes.
        """
        if len(kernel) < 2:
            message = f"{self.call}: filters have at least three axes, (count, channels, size)"
            raise UserError("BadShape", message, hint="reduction_rank=0: samples, and filters, have no channels")
        rank, channels = len(kernel) - 1, kernel[0] * self.groups
        lists = {**self._lists(rank, channels), "kernelShape": list(kernel)}
        known = 0 if channels > 0 else 1
        options: dict[str, Any] = {
            name: tuple(reversed(per_axis_values[known:])) for name, per_axis_values in lists.items()
        }
        return {**options, "groups": self.groups, "sharedPadding": True}

    def along_steps(self, rank: int, size: int) -> Steps:
        """Return the windows along a sequence, the first of `rank` axes that filters slide along, of `size` steps."""
        first = {name: values[1] for name, values in self._lists(rank, 1).items()}
        return Steps(size, first["stride"], first["autoPadding"], first["dilation"])

    def after_steps(self, rank: int) -> Sliding:
        """Return the windows for an operand whose first axis has the steps of a window: no sliding along it."""
        lists = self._lists(rank, 1)
        strides, padding, dilation = ([no, *lists[name][2:]] for name, no in _STILL.items())
        return replace(self, strides=strides, padding=padding, dilation=dilation)

    def _lists(self, rank: int, channels: int) -> dict[str, list[Any]]:
        """Return a value for the channels and one for each of `rank` axes, by options of the node."""
        return {
            "stride": per_axis(f"{self.call}: strides", self.strides, rank, channels),
            "autoPadding": per_axis(f"{self.call}: {self.padding_name}", self.padding, rank, False),
            "dilation": per_axis(f"{self.call}: dilation", self.dilation, rank, 1),
        }


_STILL = {"stride": 1, "autoPadding": False, "dilation": 1}


def per_axis(subject: str, values: object, rank: int, channels: int) -> list[Any]:
    """Return one value for the channels and one for each of `rank` axes; they are flags where `channels` is one."""
    several = list(values) if isinstance(values, list | tuple | np.ndarray) else [values]
    if isinstance(channels, bool):
        several = [check_flag(subject, value) for value in several]
    else:
        several = [check_whole(subject, value, 1) for value in several]
    if len(several) == 1:
        several *= rank
    if len(several) not in (rank, rank + 1):
        message = f"{subject}: {len(several)} values for filters that slide along {rank} axes"
        raise CallError("WrongArguments", message, hint=f"give one value, or {rank}, or {rank + 1} with the channels'")
    return several if len(several) == rank + 1 else [channels, *several]


def steps_in_windows(call: str, x: Function, how: Steps, axis: int) -> Function:
    """Return the steps of each window along a new axis of samples; there is a step for each window.

    Args:
        call: names the operator in messages.
        x: the sequence, whose shape is known.
        how: the windows.
        axis: the place of the new axis.

    Returns:
        A sequence on a time axis of its own, unless there are as many windows as steps.

    Raises:
        UserError: x has no sequence axis.
    """
    if not x.placeholders and len(x.dynamic_axes) < 2:
        message = f"{call}: sequential=True needs a sequence, the operand has the dynamic axes {x.dynamic_axes}"
        raise CallError("WrongArguments", message, hint="sequence.input_variable; without sequential=True else")
    reach = (how.size - 1) * how.dilation + 1
    ahead = (reach - 1) // 2 if how.padded else 0
    parts = [expand_dims(_later(x, index * how.dilation - ahead), axis) for index in range(how.size)]
    windows = splice(*parts, axis=axis) if len(parts) > 1 else parts[0]
    kept: list[Function] = []
    if how.stride > 1:
        kept.append(_on_grid(x, how))
    if not how.padded and reach > 1:  # the last step of the window is there
        kept.append(future_value(_ones(x), 0.0, reach - 1))
    return gather(windows, element_times(*kept) if len(kept) > 1 else kept[0]) if kept else windows


def _later(x: Function, steps: int) -> Function:
    """Return the value some steps later, 0 outside of the sequence."""
    if steps == 0:
        return x
    return future_value(x, None, steps) if steps > 0 else past_value(x, None, -steps)


def _ones(x: Function) -> Function:
    """1 at each step of x."""
    return plus(zeros_like(_numbers(x)), 1.0)


def _numbers(x: Function) -> Function:
    """Return the numbers of the steps of x, from 0 on."""
    like = steps_of(x)
    return reconcile_dynamic_axes(number(operator("_RepeatSteps", like, 1.0)), like)


def _on_grid(x: Function, how: Steps) -> Function:
    """1 at each step at which a window is; padded windows leave as many steps over at both ends."""
    step_numbers = _numbers(x)
    if how.padded and how.stride > 2:
        left_over = _remainder(last(step_numbers), how.stride)
        step_numbers = minus(step_numbers, broadcast_as(floor(element_times(left_over, 0.5)), x))
    return equal(_remainder(step_numbers, how.stride), 0.0)


def _remainder(whole: Function, divisor: int) -> Function:
    """Of whole numbers; half of one more keeps the quotient away from the next whole number."""
    quotient = floor(element_times(plus(whole, 0.5), 1.0 / divisor))
    return minus(whole, element_times(float(divisor), quotient))
