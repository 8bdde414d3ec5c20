"""The syntax tree. Data only; `evaluate` gives it its meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from cntkpy.networks.builders.brainscript.language.source import Place


@dataclass(slots=True, eq=False)
class Literal:
    """A number, a text, `true` or `false`."""

    place: Place
    value: float | str | bool


@dataclass(slots=True, eq=False)
class Name:
    """A name, which stands for what it is in the scopes around."""

    place: Place
    name: str


@dataclass(slots=True, eq=False)
class Prefix:
    """`-x`, `+x`, `!x`."""

    place: Place
    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Infix:
    """Two operands with an operator between them. `place` is the operator."""

    place: Place
    operator: str
    left: Expression
    right: Expression
    height: int
    """Depth of the tree below, if it consists of numbers, names and operators; else a large number."""


@dataclass(slots=True, eq=False)
class Conditional:
    """`if condition then yes else no`."""

    place: Place
    condition: Expression
    yes: Expression
    no: Expression


@dataclass(slots=True, eq=False)
class Select:
    """`value.name`. `place` is the name."""

    place: Place
    value: Expression
    name: str


@dataclass(slots=True, eq=False)
class Subscript:
    """`array[index]`."""

    place: Place
    array: Expression
    index: Expression


@dataclass(slots=True, eq=False)
class Call:
    """`function(positional, name=value)`, also with braces."""

    place: Place
    function: Expression
    positional: tuple[Expression, ...]
    named: tuple[tuple[str, Expression, Place], ...]


@dataclass(slots=True, eq=False)
class Lambda:
    """A function. `defaults` has the parameters that are passed by name."""

    place: Place
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, Expression], ...]
    body: Expression
    name: str = ""
    """The member it defines, if any."""


@dataclass(slots=True, eq=False)
class New:
    """`new Class record`."""

    place: Place
    name: str
    record: Expression


@dataclass(slots=True, eq=False)
class Member:
    """One member of a record. `place` is its name."""

    place: Place
    name: str
    value: Expression


@dataclass(slots=True, eq=False)
class RecordLiteral:
    """`{ members }` or `[ members ]`; also the members of a file."""

    place: Place
    members: dict[str, Member]


@dataclass(slots=True, eq=False)
class ArrayLiteral:
    """`a : b` and `[| a ; b |]`. `open`: a further `:` adds an element to it."""

    place: Place
    items: list[Expression]
    open: bool


@dataclass(slots=True, eq=False)
class Range:
    """`array [first..last] (function)`."""

    place: Place
    first: Expression
    last: Expression
    function: Expression


Other = TypeVar("Other")


class Unparsed:
    """The value of a member of a library, which is parsed when it is first asked for.

    Attributes:
        place: the member.
    """

    def __init__(self, place: Place, parse: Callable[[Place], Expression]) -> None:
        self.place = place
        self._parse = parse

    @cached_property
    def expression(self) -> Expression:
        """Parse the value, once."""
        return self._parse(self.place)


def parsed(expression: Other | Unparsed) -> Other | Expression:
    """Return the expression, parsed if it was not."""
    return expression.expression if isinstance(expression, Unparsed) else expression


Expression = (
    Literal
    | Name
    | Prefix
    | Infix
    | Conditional
    | Select
    | Subscript
    | Call
    | Lambda
    | New
    | RecordLiteral
    | ArrayLiteral
    | Range
    | Unparsed
)
