"""Operators that need the shapes of their operands, applied to what has no shape yet."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.free import shape_for
from cntkpy.networks.builders.python.functions.function import Applies, Function
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.builders.python.functions.recipes import OpenShape, recipe, settled, shape_of

P = ParamSpec("P")


def needs_shapes(build: Callable[P, Function]) -> Callable[P, Function]:
    """Return a decorator of operators: of operands whose shapes are not known yet they make a recipe.

    Args:
        build: makes the function; operands may be in lists.
    """

    @functools.wraps(build)
    def apply(*arguments: P.args, **named: P.kwargs) -> Function:
        if any(not _has_shape(function) for function in _functions((arguments, named))):
            return deferred(build, arguments, named)
        return build(*arguments, **named)

    return apply


def deferred(
    build: Callable[..., Function],
    positional: tuple[object, ...],
    named: Mapping[str, Any],
    closed: bool = False,
    shape: tuple[int, ...] | None = None,
) -> Function:
    """Return the function that `build` will make of its arguments when the shapes of the functions among them are
    known.

    Args:
        build: makes it.
        positional: its arguments by position.
        named: those by name.
        closed: see `recipe`.
        shape: see `recipe`.
    """
    operands = list(dict.fromkeys(function.root for function in _functions((positional, named))))

    def make(nodes: tuple[NodeValue, ...]) -> NodeValue:
        new = dict(zip(operands, nodes, strict=True))
        made = build(*_replaced(positional, new), **_replaced(dict(named), new))
        return per_sample(made.root)

    label = named.get("name") or getattr(build, "__name__", "")
    name = label if label.isidentifier() else "Recipe"
    node = recipe(make, map(per_sample, operands), name, closed, shape, shape_for)
    node.name = named.get("name") or ""
    return Function(node)


def _has_shape(function: Function) -> bool:
    if settled(function.root):
        return True
    try:
        shape_of(function.root)
    except OpenShape:
        return False
    return True


def _functions(arguments: object) -> Iterator[Function]:
    """Yield the functions among arguments."""
    if not isinstance(arguments, Function) and isinstance(arguments, Applies):  # a function is asked for no attribute
        arguments = arguments.of_placeholder()
    if isinstance(arguments, Function):
        yield from arguments.outputs
    elif isinstance(arguments, list | tuple):
        for value in arguments:
            yield from _functions(value)
    elif isinstance(arguments, dict):
        yield from _functions(list(arguments.values()))


def _replaced(arguments: object, new: Mapping[NodeValue, NodeValue]) -> Any:
    """Arguments with other functions in the place of those that they name."""
    if not isinstance(arguments, Function) and isinstance(arguments, Applies):  # a function is asked for no attribute
        arguments = arguments.of_placeholder()
    if isinstance(arguments, Function):
        return Function(new.get(root, root) for root in arguments.roots)
    if isinstance(arguments, list | tuple):
        return type(arguments)([_replaced(item, new) for item in arguments])
    if isinstance(arguments, dict):
        return {key: _replaced(item, new) for key, item in arguments.items()}
    return arguments
