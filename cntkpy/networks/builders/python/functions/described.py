"""Operators that are one operation in CNTK 2 and several nodes here: they have the name and attributes of CNTK's."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.blocks import Shown, mark_shown
from cntkpy.networks.builders.python.functions.function import Function

P = ParamSpec("P")

Attributes = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes the attributes of an operation of the arguments of a call."""


def described(
    op_name: str, attributes: Attributes | None = None
) -> Callable[[Callable[P, Function]], Callable[P, Function]]:
    """Return a decorator of operators whose value is shown as one operation.

    Args:
        op_name: the name that the operation has in CNTK 2.
        attributes: makes its attributes, by CNTK's names; None: it has none.
    """

    def decorate(operator: Callable[P, Function]) -> Callable[P, Function]:
        signature = inspect.signature(operator)
        taken = [name for name, parameter in signature.parameters.items() if parameter.annotation == "Operand"]

        @functools.wraps(operator)
        def apply(*arguments: P.args, **named: P.kwargs) -> Function:
            made = operator(*arguments, **named)
            bound = signature.bind(*arguments, **named)
            bound.apply_defaults()
            operands = tuple(root for value in bound.arguments.values() for root in _roots(value))
            are_functions = all(_are_functions(bound.arguments[name]) for name in taken)
            if operands and are_functions and not set(made.roots) & set(operands):
                shown = Shown(op_name, attributes(bound.arguments) if attributes else {}, operands)
                for root in made.roots:
                    mark_shown(root, shown)
            return made

        return apply

    return decorate


def _are_functions(value: object) -> bool:
    """Return whether an operand is a function, or several are; other operands are known to nodes only."""
    return isinstance(value, Function) or (isinstance(value, tuple) and all(map(_are_functions, value)))


def _roots(value: object) -> tuple[NodeValue, ...]:
    """Return the nodes of a function among arguments; those of a tuple of functions."""
    if isinstance(value, Function):
        return value.roots
    if isinstance(value, tuple):
        return tuple(root for item in value if isinstance(item, Function) for root in item.roots)
    return ()
