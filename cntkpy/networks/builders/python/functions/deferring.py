"""Operators that need the shapes of their operands, applied to what has no shape yet."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.function import Applies, Function
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.builders.python.functions.recipes import OpenShape, recipe, settled, shape_of

P = ParamSpec("P")


def needs_shapes(build: Callable[P, Function]) -> Callable[P, Function]:
    """A decorator of operators: of operands whose shapes are not known yet they make a recipe.

    Args:
        build: makes the function; operands may be in lists.
    """

    @functools.wraps(build)
    def apply(*given: P.args, **named: P.kwargs) -> Function:
        if any(not _has_shape(one) for one in _functions((given, named))):
            return deferred(build, given, named)
        return build(*given, **named)

    return apply


def deferred(
    build: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any], closed: bool = False
) -> Function:
    """The function that `build` will make of its arguments when the shapes of the functions among them are known.

    Args:
        build: makes it.
        given: its arguments by position.
        named: those by name.
        closed: see `recipe`.
    """
    operands = list(dict.fromkeys(one.root for one in _functions((given, named))))

    def make(nodes: tuple[NodeValue, ...]) -> NodeValue:
        new = dict(zip(operands, nodes, strict=True))
        made = build(*_replaced(given, new), **_replaced(dict(named), new))
        return per_sample(made.root)

    label = named.get("name") or getattr(build, "__name__", "")
    node = recipe(make, map(per_sample, operands), label if label.isidentifier() else "Recipe", closed)
    node.name = named.get("name") or ""
    return Function(node)


def _has_shape(one: Function) -> bool:
    if settled(one.root):
        return True
    try:
        shape_of(one.root)
    except OpenShape:
        return False
    return True


def _functions(given: Any) -> Iterator[Function]:
    """The functions among arguments."""
    if not isinstance(given, Function) and isinstance(given, Applies):  # a function is asked for no attribute
        given = given.of_placeholder()
    if isinstance(given, Function):
        yield from given.outputs
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _functions(one)
    elif isinstance(given, dict):
        yield from _functions(list(given.values()))


def _replaced(given: Any, new: Mapping[NodeValue, NodeValue]) -> Any:
    """Arguments with other functions in the place of those that they name."""
    if not isinstance(given, Function) and isinstance(given, Applies):  # a function is asked for no attribute
        given = given.of_placeholder()
    if isinstance(given, Function):
        return Function(new.get(one, one) for one in given.roots)
    if isinstance(given, list | tuple):
        return type(given)([_replaced(one, new) for one in given])
    if isinstance(given, dict):
        return {key: _replaced(one, new) for key, one in given.items()}
    return given


__all__ = ["deferred", "needs_shapes"]
