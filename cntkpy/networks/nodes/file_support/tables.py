"""Operations of CNTK's later format: their names, attributes and inputs in the terms of the first format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cntkpy.networks.nodes.file_support.dictionary import AxisValue, Table
from cntkpy.networks.nodes.file_support.records import Axis, BadFile

Attributes = dict[str, Any]

COMBINE, PASS, BLOCK, NO_OP, CAST = 44, 56, 57, 62, 91
"""Numbers of operations that only arrange others."""

SWAPPED = (1, 0)
"""Order of two inputs that the first format has the other way round."""

_DYNAMIC, _ALL_STATIC, END, _ALL = 2147483647, 2147483646, 2147483644, 2147483643
BATCH = "defaultBatchAxis"


def no_attributes(table: Table) -> Attributes:
    """Return the attributes of an operation that has none."""
    return {}


@dataclass(frozen=True)
class Operation:
    """An operation.

    Attributes:
        name: its name in the first format, or its own if it is not there.
        attributes: reads its attributes.
        order: positions of its inputs in the first format's order; inputs beyond keep their places.
    """

    name: str
    attributes: Callable[[Table], Attributes] = no_attributes
    order: tuple[int, ...] = ()

    def ordered(self, inputs: list[str]) -> list[str]:
        """Return the inputs in the order of the first format."""
        if len(inputs) < len(self.order):
            return inputs
        return [inputs[i] for i in self.order] + inputs[len(self.order) :]


def axis_of(value: AxisValue, position: int) -> Axis:
    """Return an axis as records have it."""
    special = {_ALL_STATIC: "all static", END: "end", _ALL: "all"}
    if value.index == _DYNAMIC:
        return Axis("batch" if value.name == BATCH else "sequence")
    if value.index in special:
        return Axis(special[value.index])
    if abs(value.index) > 1000:
        raise BadFile(f"the axis {value.index} is not known", position)
    return Axis("static", value.index)


def is_batch(value: AxisValue) -> bool:
    """Return whether this is the batch axis."""
    return value.name == BATCH or not value.ordered


def axes_of(table: Table, single: str, many: str = "axisVec") -> tuple[Axis, ...]:
    """Return a list of axes, or the one axis of an older file.

    Raises:
        BadFile: there are other values in it.
    """
    value = table.get(many, list, [])
    if not value:
        value = [table.need(single, AxisValue, "a function")]
    if not all(isinstance(value, AxisValue) for value in value):
        raise BadFile(f"'{many}' is not a list of axes", table.at)
    return tuple(axis_of(value, table.at) for value in value)


def numbers_of(table: Table, key: str) -> tuple[int, ...]:
    """Return a list of numbers, which may be stored as a shape."""
    value = table.entries.get(key)
    if value is None:
        return ()
    if isinstance(value, bool | int):
        return (int(value),)
    values = tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else None
    if values is None or not all(type(v) is int for v in values):
        raise BadFile(f"'{key}' is not a list of numbers", table.at)
    return values


def booleans_of(table: Table, key: str, default: bool) -> tuple[bool, ...]:
    """Return a list of booleans, or one default."""
    value = table.get(key, list, [])
    if not all(isinstance(v, bool) for v in value):
        raise BadFile(f"'{key}' is not a list of bools", table.at)
    return tuple(value) or (default,)
