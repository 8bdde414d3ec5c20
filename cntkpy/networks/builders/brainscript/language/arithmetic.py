"""Operators on numbers, texts and truth values, and what is said about operands that an operator does not take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import Infix, Literal, Name
from cntkpy.networks.builders.brainscript.language.values import PENDING, Delayed, Operand, Scope, kind_of

OPERAND_NAMES = {
    "+": "Plus",
    "-": "Minus",
    "*": "Times",
    ".*": "ElementTimes",
    "/": "Div",
    "**": "Pow",
    "%": "Mod",
    "==": "Equal",
    "!=": "NotEqual",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GT",
    "&&": "And",
    "||": "Or",
    ">>": "Before",
    "<<": "Shift",
    "with": "With",
}
"""Names of the paths of an operator's operands: `P.PlusArgs[0]`."""
LEFT = {operator: f".{name}Args[0]" for operator, name in OPERAND_NAMES.items()}
RIGHT = {operator: f".{name}Args[1]" for operator, name in OPERAND_NAMES.items()}
PREFIX = {"-": "._negate", "!": "._not"}


UNDEFINED = -math.nan
"""Result of the C library where it is undefined: a not-a-number with its sign set, which prints as `-nan`."""


def quotient(a: float, b: float) -> float:
    """a / b, also by 0."""
    if b:
        return a / b
    if a != a:
        return a
    return math.copysign(math.inf, a) * math.copysign(1, b) if a else UNDEFINED


def _power(a: float, b: float) -> float:
    odd = b % 2 == 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        if a:
            return UNDEFINED
        return math.copysign(math.inf, a) if odd else math.inf


def _remainder(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return UNDEFINED


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
ON_NUMBERS: dict[str, Callable[[float, float], Any]] = {
    **COMPARISONS,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": quotient,
    "**": _power,
    "%": _remainder,
}
ON_TEXTS: dict[str, Callable[[str, str], Any]] = {**COMPARISONS, "+": lambda a, b: a + b}
ON_BOOLS: dict[str, Callable[[bool, bool], bool]] = {
    **COMPARISONS,
    "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b,
}
ON_EQUAL_TYPES: dict[type, Mapping[str, Callable[[Any, Any], Any]]] = {float: ON_NUMBERS, str: ON_TEXTS, bool: ON_BOOLS}
"""Functions of operators with two operands of one type."""


def at_hand(e: Any, scope: Scope) -> Any:
    """Return the value of a literal, of a name whose value is known, and of numbers with operators; else PENDING.

    Has no effect and raises nothing.
    """
    kind = type(e)  # pyright: ignore[reportUnknownVariableType]
    if kind is Name:
        name = e.name
        around: Any = scope
        while around is not None:
            member = around.names.get(name)
            if member is not None:
                return member.value if type(member) is Delayed else member
            around = around.outer
        return PENDING
    if kind is Literal:
        return e.value
    if kind is Infix and e.height < 1000:
        left = at_hand(e.left, scope)
        if type(left) is not float:
            return PENDING
        right = at_hand(e.right, scope)
        if type(right) is not float:
            return PENDING
        compute = ON_NUMBERS.get(e.operator)
        return PENDING if compute is None else compute(left, right)
    return PENDING


def bad_operands(
    operator: str, left: object, right: object, place: Place, scope: Scope
) -> tuple[str, Place, Scope, str | None]:
    """Return the arguments of `Messages.error` for operands that an operator does not take."""
    message = f"operator {operator} cannot be applied to {kind_of(left)} and {kind_of(right)}"
    hint = None
    if operator == ".*" and type(left) is float:
        hint = "numbers are multiplied with '*'"
    elif operator == "with":
        hint = "records cannot be merged: 'with' is a reserved word without a meaning yet"
    elif isinstance(left, Operand) or isinstance(right, Operand):
        hint = {
            "/": "only a node divided by a number and 1 divided by a node are possible: ElementDivide (x, y)",
            "**": "there is no power of a node: Exp (y .* Log (x)), or x .* x",
            "%": "there is no remainder of a node",
            "||": "BS.Boolean.Or (x, y) takes two nodes",
        }.get(operator)
    elif type(left) is not type(right) and operator in ON_TEXTS:
        hint = "both must be numbers, or both texts; Format (x, '') makes a text of a number"
    return message, place, scope, hint
