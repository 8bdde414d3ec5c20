"""cntk.misc.converter: other functions in the place of parts of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.recipes import resolve
from cntkpy.readers.errors import ArgumentError

from ..missing import no_attribute


def convert(
    root_func: Function, filter: Callable[[Function], bool], converter: Callable[[Function], Function]
) -> Function:
    """Return a copy of a model with other functions in the place of some of its parts.

    Parts come in the order of computation: what a converted part is computed from is converted before.

    Args:
        root_func: the model, which stays as it is.
        filter: whether a part is to be converted: a primitive function or block, see `Function.root_function`.
        converter: makes the function that takes its place of the part.

    Returns:
        The copy; its parameters are copies with the values of now.

    Raises:
        ArgumentError: `converter` gives something else than a function, or one of another shape.
    """
    return converted(root_func.clone("clone"), filter, converter)


def converted(
    model: Function, filter: Callable[[Function], bool], converter: Callable[[Function], Function]
) -> Function:
    """Return a model with other functions in the place of some of its parts; parameters are shared. See `convert`."""
    made: dict[Function, Function] = {}
    chosen = [part for part in map(Function, resolve(model.roots)) if part.is_output and filter(part.root_function)]
    below = {part: set(map(Function, resolve(part.roots))) for part in chosen}
    for function in sorted(chosen, key=lambda part: len(below[part])):
        now = function.clone("share", {part: made[part] for part in made if part in below[function]})
        replacement: Any = converter(now.root_function)
        if not isinstance(replacement, Function):
            message = f"convert: the converter of {function!r} gives {shorten(repr(replacement))}, not a function"
            raise ArgumentError(message, hint="return the function that takes its place, or the part itself")
        if replacement.shape != function.shape:
            message = f"convert: {function!r} has the shape {function.shape}, what takes its place {replacement.shape}"
            raise ArgumentError(message)
        made[function] = replacement
    return model.clone("share", made)


__all__ = ["convert"]

__getattr__ = no_attribute("cntk.misc.converter", __all__)
