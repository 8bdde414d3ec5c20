"""Axes as Python programs name them: numbers count as in NumPy, other axes are objects."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.networks.builders.python.functions.checks import is_whole

DEFAULT_AXIS = "defaultDynamicAxis"
"""The name of the sequence axis of inputs that name none."""

BATCH_AXIS = "defaultBatchAxis"
"""The name of the axis of minibatches."""

_numbers = itertools.count(1)

Kind = Literal["", "batch", "static", "sequence", "all", "all static", "new leading"]


@dataclass(frozen=True)
class Axis:
    """An axis.

    Args:
        of: the number of a static axis, counted as in NumPy; or the name of a sequence axis. Inputs of the same name
            have sequences of the same lengths.
        kind: which of the axes it is; it follows from `of` if it is not given.
    """

    of: int | str = ""
    kind: Kind = ""

    def __post_init__(self) -> None:
        """Find the kind of an axis that a program makes.

        Raises:
            UserError: neither a number nor a name is given.
        """
        if not is_whole(self.of) and not isinstance(self.of, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"Axis: an axis has a number or a name, not {shorten(repr(self.of))}"
            raise CallError("WrongArguments", message, hint="Axis(0), Axis('words')")
        if not self.kind:
            object.__setattr__(self, "kind", "sequence" if isinstance(self.of, str) else "static")

    @property
    def name(self) -> str:
        """The name of a dynamic axis; of another one, what it is."""
        return self.of if isinstance(self.of, str) else f"staticAxis({self.of})"

    def __repr__(self) -> str:
        return f"Axis({self.of!r})"

    @property
    def is_static_axis(self) -> bool:
        """Return whether it is an axis of a sample."""
        return self.kind == "static"

    @property
    def is_batch_axis(self) -> bool:
        """Return whether it is the axis of minibatches."""
        return self.kind == "batch"

    @property
    def is_sequence_axis(self) -> bool:
        """Return whether it is an axis of sequences."""
        return self.kind == "sequence"

    @property
    def is_ordered(self) -> bool:
        """Return whether its places have an order, as in samples and sequences; sequences of a minibatch have none."""
        return self.kind in ("static", "sequence")

    def static_axis_index(self, checked: bool = True) -> int:
        """Return the number of a static axis.

        Args:
            checked: whether another axis is an error; else it is -1.

        Raises:
            UserError: it is another axis.
        """
        if isinstance(self.of, str) and checked:
            raise CallError("WrongArguments", f"{self!r} is not a static axis, so it has no number", hint="Axis(0)")
        return -1 if isinstance(self.of, str) else self.of

    @staticmethod
    def default_batch_axis() -> Axis:
        """Return the axis of minibatches."""
        return Axis(BATCH_AXIS, "batch")

    @staticmethod
    def default_dynamic_axis() -> Axis:
        """Return the sequence axis of inputs that name none."""
        return Axis(DEFAULT_AXIS)

    @staticmethod
    def default_input_variable_dynamic_axes() -> tuple[Axis, ...]:
        """Return the dynamic axes of an `input_variable` that names none."""
        return (Axis.default_batch_axis(),)

    @staticmethod
    def all_axes() -> Axis:
        """Return all axes of a sample, that of sequences, and that of the minibatch, for reductions."""
        return Axis("allAxes", "all")

    @staticmethod
    def all_static_axes() -> Axis:
        """Return all axes of a sample, for reductions."""
        return Axis("allStaticAxes", "all static")

    @staticmethod
    def new_leading_axis() -> Axis:
        """Return an axis in front of the first one, for `reshape`."""
        return Axis("newLeadingAxis", "new leading")

    @staticmethod
    def unknown_dynamic_axes() -> tuple[Axis, ...]:
        """Return the axes that follow from how something is used."""
        return (Axis(DEFAULT_AXIS),)

    @staticmethod
    def new_unique_dynamic_axis(name: str) -> Axis:
        """Return a sequence axis of its own: no two calls give the same one, also with the same name."""
        return Axis(f"{name}{next(_numbers)}")


def axis_name(axis: object) -> str:
    """Return the name of the sequence axis that an argument names; "" for the one of inputs that name none."""
    name = "" if axis is None else axis.name if isinstance(axis, Axis) else str(axis)
    return "" if name == DEFAULT_AXIS else name


def is_batch(axis: object) -> bool:
    """Return whether an argument is the axis of minibatches, or its name."""
    return axis == BATCH_AXIS or (isinstance(axis, Axis) and axis.kind == "batch")


def is_sequence(axis: object) -> bool:
    """Return whether an argument is a sequence axis."""
    return isinstance(axis, Axis) and axis.kind == "sequence"


def static_axis(call: str, axis: object, rank: int, beyond: int = 0) -> int:
    """Return the number of an axis of a sample, counted from the first.

    Args:
        call: the operator, for messages.
        axis: a number, which may be negative, or an `Axis`.
        rank: how many axes there are.
        beyond: how many more may be named after the last one.

    Raises:
        UserError: it is no such axis.
    """
    number: Any = axis.of if isinstance(axis, Axis) and axis.kind == "static" else axis
    if not is_whole(number):
        message = f"{call}: an axis is a whole number, not {shorten(repr(axis))}"
        raise CallError("WrongArguments", message, hint="0 is the first axis of a sample, -1 the last one")
    if not -rank <= number < rank + beyond:
        axes = f"the axes {-rank} to {rank - 1 + beyond}" if rank + beyond else "no axis"
        raise UserError("BadIndex", f"{call}: there is no axis {number}; the operand has {axes}")
    return int(number) if number >= 0 else int(number) + rank
