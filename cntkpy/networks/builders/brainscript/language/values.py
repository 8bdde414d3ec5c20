"""Values of expressions.

Numbers are Python floats, truth values bools, texts strs; the rest is declared here. An expression that was not needed
yet is a `Delayed`, which `evaluate` computes at most once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cntkpy.networks.builders.brainscript.language.source import Place
    from cntkpy.networks.builders.brainscript.language.syntax import Expression

Path = tuple["Path | None", str]
"""Places of a value in the tree of expressions, innermost first: (what is around, `.name` or `[index]`)."""


class _Pending:
    def __repr__(self) -> str:
        return "PENDING"


PENDING: Any = _Pending()
"""Stands for the value of an expression that was not evaluated yet."""


class Delayed:
    """An expression with all it needs to be evaluated later.

    Attributes:
        expression: what to evaluate.
        scope: where its names are looked up.
        path: the path of its value.
        value: the value, PENDING before it was asked for.
        busy: whether it is being evaluated.
    """

    __slots__ = ("busy", "expression", "path", "scope", "value")

    def __init__(self, expression: Expression | Applied, scope: Scope | None, path: Path | None) -> None:
        self.expression = expression
        self.scope = scope
        self.path = path
        self.value: Any = PENDING
        self.busy = False


@dataclass(slots=True, eq=False)
class Applied:
    """A function with its arguments, as an expression: the elements of arrays that a function makes."""

    place: Place
    function: Any
    positional: tuple[Any, ...]
    named: dict[str, Any]


class Scope:
    """Names and what they stand for, with the scope around.

    Attributes:
        names: values or `Delayed` ones.
        outer: the scope around.
        call: for the parameters of a function, the place of the call.
        caller: and the scope it was called from.
    """

    __slots__ = ("call", "caller", "names", "outer")

    def __init__(
        self,
        names: dict[str, Any],
        outer: Scope | None,
        call: Place | None = None,
        caller: Scope | None = None,
    ) -> None:
        self.names = names
        self.outer = outer
        self.call = call
        self.caller = caller

    def find(self, name: str) -> Any:
        """Return the value of a name here or further out, or None."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.names.get(name)
            if value is not None:
                return value
            scope = scope.outer
        return None

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def visible(self) -> list[str]:
        """Return all names that can be used here, the nearest first."""
        return list(dict.fromkeys(name for scope in self.chain() for name in scope.names))

    def calls(self) -> Iterator[Place]:
        """Yield the calls that led here, the last one first."""
        scope: Scope | None = self
        while scope is not None:
            if scope.call is None:
                scope = scope.outer
            else:
                yield scope.call
                scope = scope.caller


class Record(Scope):
    """A record: a scope that is a value."""

    __slots__ = ("path", "place")

    def __init__(self, names: dict[str, Any], outer: Scope | None, place: Place, path: Path | None) -> None:
        super().__init__(names, outer)
        self.place = place
        self.path = path


class Array:
    """An array.

    Attributes:
        first: the index of its first element.
        items: values or `Delayed` ones.
    """

    __slots__ = ("first", "items")

    def __init__(self, items: list[Any], first: int = 0) -> None:
        self.items = items
        self.first = first


class Function:
    """A function.

    Attributes:
        name: what to call it in messages.
        parameters: what is passed by position.
        defaults: what may be passed by name, with its values or `Delayed` ones.
        body: an expression, or a function `(evaluator, arguments by name, path, scope) -> generator` of the value.
        scope: the scope of its definition.
    """

    __slots__ = ("body", "defaults", "name", "parameters", "place", "scope")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        defaults: dict[str, Any],
        body: Expression | Callable[..., Any],
        scope: Scope | None,
        place: Place,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.defaults = defaults
        self.body = body
        self.scope = scope
        self.place = place


class Object:
    """The base of everything that `new` makes and that is not a number, text or array."""

    __slots__ = ()

    kind = "an object"
    """Its name in messages."""

    def member(self, name: str) -> object:
        """Return the value of `object.name`, or None when there is none; may raise a `ValueError` that says why."""
        return None

    def members(self) -> list[str]:
        """Return the names that `member` knows."""
        return []

    def lines(self) -> list[str]:
        """Return its printed form."""
        return [self.kind]


class Effect(Object):
    """The useless result of `Print`."""

    __slots__ = ()
    kind = "the result of Print"


def joined(path: Path | None) -> str:
    """Return a path as text: `h.PlusArgs[0]`."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(part)
    text = "".join(reversed(parts))
    return text[1:] if text.startswith(".") else text


def kind_of(value: object) -> str:
    """Return the kind of a value in the words of a message."""
    if isinstance(value, bool):
        return f"the truth value {'true' if value else 'false'}"
    if isinstance(value, float):
        return f"the number {number_text(value)}"
    if isinstance(value, str):
        return f"the text '{value if len(value) <= 30 else value[:27] + '...'}'"
    if isinstance(value, Array):
        return "an array" if value.items else "an empty array"
    if isinstance(value, Record):
        return "a record"
    if isinstance(value, Function):
        return f"the function '{value.name}'" if value.name else "a function"
    return value.kind if isinstance(value, Object) else type(value).__name__


def number_text(value: float) -> str:
    """Return a number as it prints: whole numbers within 32 bits without a point, others with six decimals."""
    if value == value and -2147483648 <= value <= 2147483647 and value == int(value):
        return str(int(value))
    if value != value:  # the sign of a not-a-number prints, as in C
        return "-nan" if math.copysign(1, value) < 0 else "nan"
    return f"{value:f}"


@dataclass(slots=True, eq=False)
class Origin:
    """Origin of a value: its path, the expression, and the scope that tells the calls which led to it."""

    path: Path | None
    place: Place
    scope: Scope

    @property
    def name(self) -> str:
        """The path as text."""
        return joined(self.path)


class Operand(Object):
    """An object that operators take: what they make of it is its own affair."""

    __slots__ = ()

    def infix(self, operator: str, left: object, right: object, origin: Origin) -> object:
        """Return the value of `left operator right`, of which one is this object; PENDING where there is none."""
        return PENDING

    def prefix(self, operator: str, origin: Origin) -> object:
        """Return the value of `operator self`; PENDING where there is none."""
        return PENDING

    def choose(self, yes: object, no: object, origin: Origin) -> object:
        """Return the value of `if self then yes else no`; PENDING where there is none."""
        return PENDING
