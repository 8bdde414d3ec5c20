"""Axes of an input whose size each minibatch says: read from its data."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.readers.errors import ArgumentError

from .batches import InputAxes

FREE = 0
"""Stands in the shape of an input for a size that each minibatch says."""


def sized(axes: InputAxes, data: Any) -> InputAxes:
    """Return the axes of an input with the sizes that its data have; those of an input without free axes themselves.

    Args:
        axes: of the input.
        data: an array, a list of arrays or lists, or a `Value`.

    Raises:
        ArgumentError: samples have several shapes, or too few axes.
    """
    if FREE not in axes.shape:
        return axes
    rank = len(axes.shape)
    shapes = {shape[len(shape) - rank :] for shape in _shapes(data) if len(shape) >= rank}
    shown = tuple(size or -3 for size in axes.shape)
    if len(shapes) > 1:
        listed = " and ".join(map(str, sorted(shapes)[:2]))
        message = f"samples of one minibatch have one shape; those of the {axes.name} have the shapes {listed}"
        raise ArgumentError(message, "pad them, or give minibatches of equal shapes")
    if not shapes:
        message = f"data for the {axes.name} have too few axes; samples have the shape {shown}, -3 is any size"
        raise ArgumentError(message, f"an array (n, {', '.join(str(size or 5) for size in axes.shape)})")
    sizes = zip(axes.shape, shapes.pop(), strict=True)
    return replace(axes, shape=tuple(known or int(own_size) for known, own_size in sizes))


def of_elements(axes: InputAxes, count: int) -> InputAxes | None:
    """Return the axes of an input whose samples have a number of elements; None: this does not say the sizes."""
    known = math.prod(size for size in axes.shape if size != FREE)
    if axes.shape.count(FREE) != 1 or count % known or not count:
        return None
    return replace(axes, shape=tuple(size or count // known for size in axes.shape))


def _shapes(data: Any) -> set[tuple[int, ...]]:
    """Return the shapes of the arrays that data consist of."""
    if is_several(data):
        if not any(is_several(value) or getattr(value, "shape", ()) for value in data):
            return {(len(data),)}
        inner = {shape for value in data for shape in _shapes(value)}
        return {(len(data), *item) for item in inner}
    shape = getattr(data, "shape", None)
    if shape is None:
        raise ArgumentError(f"data are arrays, not {shorten(repr(data))}")
    return {tuple(shape)}


__all__ = ["FREE", "of_elements", "sized"]
