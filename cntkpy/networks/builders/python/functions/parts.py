"""Which elements of an axis an index or a slice means."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.networks.builders.python.functions.checks import is_whole

Run = tuple[int, int]
"""Neighbouring elements: the first one, and one past the last."""


def elements(call: str, shape: Sequence[int], axis: int, begin: int, end: int, step: int = 1) -> list[int]:
    """The numbers of the elements of an axis from `begin` to `end` (exclusive; 0 and negative ones: from the end).

    Args:
        call: the operator, for messages.
        shape: of the operand.
        axis: the axis, counted from 0.
        begin: the first element; a negative one counts from the end.
        end: one past the last element.
        step: takes each so many of them, from the last one on if it is negative.

    Raises:
        UserError: the axis has no such elements.
    """
    size = shape[axis]
    first, last = begin + size if begin < 0 else begin, end + size if end <= 0 else end
    if not 0 <= first < last <= size or step == 0:
        what = f"the elements {begin} to {end} (exclusive)" + (f" with the stride {step}" if step != 1 else "")
        message = f"{call}: {what} of the axis {axis}, which has {size}, do not exist"
        raise UserError("BadIndex", f"{message}; the shape is {tuple(shape)}")
    return list(range(first, last)[::step])


def runs(numbers: Sequence[int]) -> list[Run]:
    """The same elements in the same order, neighbours together."""
    found: list[Run] = []
    for one in numbers:
        if found and found[-1][1] == one:
            found[-1] = (found[-1][0], one + 1)
        else:
            found.append((one, one + 1))
    return found


def check_index(given: Any) -> None:
    """An index of one axis.

    Raises:
        UserError: it is neither a number nor a slice nor a list of numbers nor dots.
    """
    if given is ... or is_whole(given) or (isinstance(given, list) and given and all(map(is_whole, given))):
        return
    if isinstance(given, slice) and all(one is None or is_whole(one) for one in (given.start, given.stop, given.step)):
        return
    message = (
        f"{shorten(repr(given))} is not an index: a whole number, a slice begin:end or a list of numbers is expected"
    )
    raise UserError("BadIndex", message)


def indexed(keys: Sequence[Any], shape: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The axes of which some elements are taken, and the numbers of these.

    Args:
        keys: a number, a slice or a list of numbers for each axis from the first one on, or from the last one on after
            dots.
        shape: of the operand.

    Raises:
        UserError: there is no such axis, or it has no such elements.
    """
    dots = [at for at, one in enumerate(keys) if one is ...]
    behind = dots[0] if dots else len(keys)
    if len(keys) - len(dots) > len(shape) or len(dots) > 1:
        what = "has ... more than once" if len(dots) > 1 else f"is for {len(keys) - len(dots)} axes"
        raise UserError("BadIndex", f"the index {what}; the operand has the shape {tuple(shape)}")
    places = [(axis, one) for axis, one in enumerate(keys[:behind])]
    places += [(len(shape) - len(keys) + at, one) for at, one in enumerate(keys) if at > behind]
    return [(axis, _numbers(shape, axis, one)) for axis, one in places]


def _numbers(shape: Sequence[int], axis: int, key: Any) -> list[int]:
    if isinstance(key, slice):
        step = 1 if key.step is None else int(key.step)
        return elements("an index", shape, axis, int(key.start or 0), int(key.stop or 0), step)
    return [
        one
        for at in (key if isinstance(key, list) else [key])
        for one in elements("an index", shape, axis, int(at), int(at) + 1)
    ]


__all__ = ["check_index", "elements", "indexed", "runs"]
