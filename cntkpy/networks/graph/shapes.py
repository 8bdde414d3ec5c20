"""Sample shapes.

A shape is CNTK's: `(rows, ...)`, first axis fastest in memory. The array that holds it has the reversed shape,
so that C order in memory is CNTK's column-major order. Data additionally have time and slot in front:
`(T, S, *reversed(shape))`. Left-aligned broadcasting of shapes is numpy's right-aligned broadcasting of the arrays once
both have the same rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]

MAX_RANK = 30
"""Axes of a sample; NumPy and XLA have 32, two of which are steps and sequences."""


class ShapeProblem(Exception):
    """Why a shape rule refuses its inputs; `Network.validate` adds nodes, shapes and place.

    Args:
        message: what is wrong.
        hint: what to do.
        provisional: the shape to continue with while those of the inputs may still change, in loops.
    """

    def __init__(self, message: str, hint: str | None = None, provisional: Shape | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.provisional = provisional


def text(shape: Sequence[int] | None) -> str:
    """Return the form used in logs and messages: `[6 x 1]`; `[?]` for a shape not known yet."""
    return "[?]" if shape is None else "[" + " x ".join(str(d) for d in shape) + "]"


def size(shape: Iterable[int]) -> int:
    """Number of elements."""
    return math.prod(shape)


def trimmed(shape: Sequence[int]) -> Shape:
    """Without trailing axes of 1 (at least one axis stays): `[n x 1]` and `[n]` compare equal in this form."""
    shape = tuple(shape)
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def padded(shape: Sequence[int], rank: int) -> Shape:
    """With trailing axes of 1 up to `rank`.

    Raises:
        ShapeProblem: that are more than an array can have.
    """
    if rank > MAX_RANK:
        raise ShapeProblem(f"{rank} axes are too many; at most {MAX_RANK} are possible")
    return tuple(shape) + (1,) * (rank - len(shape))


def matrix(shape: Sequence[int]) -> tuple[int, int]:
    """Return the matrix view of a parameter: first axis as rows, the rest as columns."""
    shape = tuple(shape)
    return (shape[0], size(shape[1:])) if shape else (1, 1)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Left-aligned broadcast of sample shapes; axes must be equal or 1.

    Raises:
        ShapeProblem: where two shapes do not fit.
    """
    rank = max(len(s) for s in shapes)
    result: list[int] = []
    for axis in range(rank):
        dims = {s[axis] for s in shapes if axis < len(s)} - {1}
        if len(dims) > 1:
            raise ShapeProblem("the shapes do not match: on every axis they must be equal, or one of them 1")
        result.append(dims.pop() if dims else 1)
    return tuple(result)


def incomplete(shape: Sequence[int] | None) -> bool:
    """Return True for a shape that is unknown or has axes to be inferred (0)."""
    return shape is None or 0 in shape


def fill_in(shape: Shape, offered: Sequence[int]) -> Shape:
    """Return the shape of a parameter with 0 axes after seeing the shape it is combined with.

    All axes 0: takes the offered shape. Some axes 0: these are filled axis by axis, the offered rank must be at least
    the own rank.

    Raises:
        ShapeProblem: if the offered rank is smaller.
    """
    offered = tuple(offered)
    if not incomplete(shape):
        return shape
    if all(d == 0 for d in shape):
        return offered
    if len(offered) < len(shape):
        raise ShapeProblem(f"dimensions of {text(shape)} cannot be inferred from {text(offered)}, which has fewer axes")
    shape = padded(shape, len(offered))
    return tuple(o if o else d for o, d in zip(shape, offered, strict=True))
