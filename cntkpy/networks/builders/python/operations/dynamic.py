"""Operators that make axes of sequences of those of samples, and the other way round."""

from __future__ import annotations

from typing import Any

from cntkpy.cntk_config.base.diagnostics import CallError, shorten
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.checks import check_flag, check_number
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import (
    Function,
    as_node,
    checked,
    combine,
    named_function,
    operator,
    to_operand,
)
from cntkpy.networks.builders.python.operations.reshaping import Operand
from cntkpy.networks.builders.python.operations.steps_of import fixed_steps


def to_sequence(
    x: Operand, sequence_lengths: Operand = None, sequence_axis_name_prefix: str = "toSequence_", name: str = ""
) -> Function:
    """Sequences whose steps lie along the first axis of samples, on a sequence axis of their own.

    Args:
        x: the operand, with one sample (steps, ...) for each sequence.
        sequence_lengths: how many of the steps each sequence has, a number for each sample; None: all of them.
        sequence_axis_name_prefix: begins the name of the sequence axis.
        name: names the result.

    Raises:
        UserError: samples of x are numbers, or x has a sequence axis already; with the data, a length is not a whole
            number from 1 to the size of the axis.
    """
    label: Any = sequence_axis_name_prefix
    if not isinstance(label, str) or not label.isidentifier():
        message = f"to_sequence: sequence_axis_name_prefix is a name, not {shorten(repr(label))}"
        raise CallError("WrongArguments", message, hint="to_sequence(x, lengths, 'words_')")
    operands = [as_node(operand) for operand in (x, sequence_lengths) if operand is not None]
    made = calls.call(
        "_ToSequence" if len(operands) == 1 else "_ToSequenceOf",
        *map(to_operand, operands),
        name=name or label.rstrip("_"),
    )
    return checked(named_function(made, name))


def to_sequence_like(x: Operand, dynamic_axes_like: Operand, name: str = "") -> Function:
    """Sequences whose steps lie along the first axis of samples, on the sequence axis of another function.

    Args:
        x: the operand, with one sample (steps, ...) for each sequence; steps behind the end of a sequence are left out.
        dynamic_axes_like: the function whose sequences say how many steps there are.
        name: names the result.

    Raises:
        UserError: samples of x are numbers, or x has a sequence axis already; with the data, a sequence is longer than
            the axis.
    """
    return operator("_ToSequenceLike", as_node(x), as_node(dynamic_axes_like), label=name)


@described(
    "UnpackSequence",
    lambda of: {
        "sequenceUnpackPaddingValue": of["padding_value"],
        "sequenceUnpackSuppressMaskOutput": of["no_mask_output"],
    },
)
def unpack(x: Operand, padding_value: float, no_mask_output: bool = False, name: str = "") -> Function:
    """Sequences as samples, whose first axis has the steps: as many as the longest sequence of the minibatch has.

    There is a network for each number of steps that minibatches have.

    Args:
        x: the sequences.
        padding_value: what the elements behind the end of a sequence are.
        no_mask_output: whether the values are the only output.
        name: names the values.

    Returns:
        The values (steps, ...); and, unless `no_mask_output`, a mask (steps,), 1 for each step of the sequence and 0
        behind it: a function of two outputs.

    Raises:
        UserError: with the data, x has no sequence axis.
    """
    padding = check_number("sequence.unpack: padding_value", padding_value)
    x = as_node(x)
    if x.is_input and x.data_axes is not None and x.data_axes.dynamic in (0, 1):
        message = f"sequence.unpack: '{x.name or 'Input'}' has no sequence axis"
        raise CallError("WrongArguments", message, hint="make it a sequence.input_variable")
    parts = [operator("_UnpackSequence", x, padding, False, label=name)]
    if not check_flag("sequence.unpack: no_mask_output", no_mask_output):
        parts.append(operator("_UnpackSequence", x, padding, True))
    if (steps := fixed_steps(x)) is not None:
        for part in parts:
            part.root.options["steps"] = float(steps)
    return combine(*parts)


def unpack_batch(x: Operand, name: str = "") -> Function:
    """Return all samples of the minibatch as one value, whose first axis counts them.

    There is a network for each number of samples that minibatches have.

    Args:
        x: the operand, with one sample for each sequence.
        name: names the result.

    Raises:
        UserError: with the data, x has a sequence axis, or no axis of the minibatch.
    """
    return operator("_UnpackBatch", as_node(x), label=name)


def to_batch(x: Operand, name: str = "") -> Function:
    """Return the elements along the first axis of a value, a sample each.

    Args:
        x: the operand, without dynamic axes. Where a function has other data, these are as many samples.
        name: names the result.

    Raises:
        UserError: x is a number, or has dynamic axes; with the data, there are other numbers of samples.
    """
    x = as_node(x)
    if x.dynamic_axes:
        message = f"to_batch: an operand without dynamic axes is expected, x has {len(x.dynamic_axes)}"
        raise CallError(
            "WrongArguments", message, hint="unpack_batch makes an axis of samples of that of the minibatch"
        )
    return operator("_ToBatch", x, label=name)


__all__ = ["to_batch", "to_sequence", "to_sequence_like", "unpack", "unpack_batch"]
