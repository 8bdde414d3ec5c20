"""Which elements of an axis an index or a slice means."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten
from cntkpy.networks.builders.python.functions.checks import is_whole

Run = tuple[int, int]
"""Neighbouring elements: the first one, and one past the last."""


def elements(call: str, shape: Sequence[int], axis: int, begin: int, end: int, step: int = 1) -> list[int]:
    """Return the numbers of the elements of an axis from `begin` to `end` (exclusive; 0 and negative ones: from the
    end).

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
        subject = f"the elements {begin} to {end} (exclusive)" + (f" with the stride {step}" if step != 1 else "")
        message = f"{call}: {subject} of the axis {axis}, which has {size}, do not exist"
        raise UserError("BadIndex", f"{message}; the shape is {tuple(shape)}")
    return list(range(first, last)[::step])


def runs(numbers: Sequence[int]) -> list[Run]:
    """Return the same elements in the same order, neighbours together."""
    result: list[Run] = []
    for number in numbers:
        if result and result[-1][1] == number:
            result[-1] = (result[-1][0], number + 1)
        else:
            result.append((number, number + 1))
    return result


class IndexingError(CallError, IndexError):
    """An index of a function is of no kind that it takes, or has too many axes."""


def check_index(key: object) -> None:
    """An index of one axis.

    Raises:
        IndexingError: it is neither a number nor a slice nor a list of numbers nor dots.
    """
    if key is ... or is_whole(key) or (isinstance(key, list | tuple) and key and all(map(is_whole, key))):
        return
    if isinstance(key, slice) and all(bound is None or is_whole(bound) for bound in (key.start, key.stop, key.step)):
        return
    message = (
        f"{shorten(repr(key))} is not an index: a whole number, a slice begin:end or a list of numbers is expected"
    )
    raise IndexingError("BadIndex", message)


def indexed(keys: Sequence[object], shape: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return the axes of which some elements are taken, and the numbers of these.

    Args:
        keys: a number, a slice or a list of numbers for each axis from the first one on, or from the last one on after
            dots.
        shape: of the operand.

    Raises:
        IndexingError: there is no such axis.
        UserError: it has no such elements.
    """
    dots = [position for position, key in enumerate(keys) if key is ...]
    behind = dots[0] if dots else len(keys)
    if len(keys) - len(dots) > len(shape) or len(dots) > 1:
        problem = "has ... more than once" if len(dots) > 1 else f"is for {len(keys) - len(dots)} axes"
        raise IndexingError("BadIndex", f"the index {problem}; the operand has the shape {tuple(shape)}")
    places = [(axis, key) for axis, key in enumerate(keys[:behind])]
    places += [(len(shape) - len(keys) + position, key) for position, key in enumerate(keys) if position > behind]
    return [(axis, _numbers(shape, axis, key)) for axis, key in places]


def _numbers(shape: Sequence[int], axis: int, key: Any) -> list[int]:
    if isinstance(key, slice):
        step = 1 if key.step is None else int(key.step)
        return elements("an index", shape, axis, int(key.start or 0), int(key.stop or 0), step)
    return [
        index
        for number in (key if isinstance(key, list | tuple) else [key])
        for index in elements("an index", shape, axis, int(number), int(number) + 1)
    ]
