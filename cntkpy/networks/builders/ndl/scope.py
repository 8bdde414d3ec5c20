"""Values of names while a script is expanded: constants, nodes, instances of macros, and the scopes that hold them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import Diagnostic, UserError
from cntkpy.networks.builders.ndl.parse import Call, Macro, Option, Word
from cntkpy.networks.builders.ndl.text import Place, error

MAX_STEPS = 100_000  # of a look-up, which ends by itself in all texts that people write
MAX_ERRORS = 100
"""Errors of a network that are looked for."""
NUMBER = re.compile(
    r"[+-]?(0[xX][0-9a-fA-F]+|(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?(#[iI][nN][fF])?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])"
)


class Constant(NamedTuple):
    """A number, still as written; `used`: the name through which it came."""

    word: Word
    used: Word | None = None

    @property
    def place(self) -> Place:
        """The place where it is used."""
        return (self.used or self.word).place

    @property
    def shown(self) -> str:
        """For messages."""
        return f"'{self.word.text}'" + (f" (the value of '{self.used.text}')" if self.used else "")


class Reference(NamedTuple):
    """A name that was not known when it was met; perhaps just a text."""

    word: Word
    scope: Scope

    @property
    def place(self) -> Place:
        """The place where it is used."""
        return self.word.place

    @property
    def shown(self) -> str:
        """For messages."""
        return f"'{self.word.text}'"


class Values(NamedTuple):
    """An array."""

    items: tuple[Value, ...]
    place: Place


@dataclass(eq=False, slots=True)
class NodeCall:
    """A call of a function: a node to be made. `local` is its name inside `scope`, None while it has none."""

    call: Call
    scope: Scope
    local: str | None
    arguments: tuple[Value, ...]
    options: tuple[tuple[Option, Value], ...]

    @property
    def name(self) -> str:
        """The node's full name."""
        return f"{self.scope.prefix}{self.local or 'unnamed'}"


@dataclass(eq=False, slots=True)
class Instance:
    """One expansion of a macro. `result` is what its name stands for."""

    macro: Macro
    call: Call
    parent: Scope
    local: str | None
    scope: Scope = field(init=False)
    result: Value | None = None

    def __post_init__(self) -> None:
        self.scope = Scope(self)


Value = Constant | Reference | Values | NodeCall | Instance


@dataclass(slots=True)
class Symbol:
    """A name in a scope; `parameter`: it came with the call of the macro."""

    name: Word
    value: Value
    parameter: bool = False


class DependsOnFailed(Exception):
    """A value depends on something wrong that has been noted."""


class TooManyErrors(Exception):
    """As many errors as are shown have been noted."""


class Scope:
    """The names of the script (owner None) or of one instance of a macro."""

    def __init__(self, owner: Instance | None = None) -> None:
        self.owner = owner
        self.symbols: dict[str, Symbol] = {}
        self.lost: set[str] = set()
        """Names, in lower case, whose statements are wrong."""

    @property
    def prefix(self) -> str:
        """The prefix of names of nodes made in this scope: `H1.Aff.`; empty at the top."""
        parts: list[str] = []
        owner = self.owner
        while owner is not None:
            parts.append(owner.local or "unnamed")
            owner = owner.parent.owner
        return "".join(f"{part}." for part in reversed(parts))

    def find(self, word: Word, strict: bool = False) -> Value | None:
        """Return the value of a (dotted) name here, or None. `strict`: `x.y` is an error if x is no macro instance."""
        scope, path = self, word.text.lower()
        for _ in range(MAX_STEPS):
            symbol = scope.symbols.get(path)
            if symbol is not None:
                return symbol.value
            head, dot, path = path.partition(".")
            symbol = scope.symbols.get(head) if dot else None
            if symbol is None:
                return None
            value = followed(symbol.value)
            if not isinstance(value, Instance):
                if strict and not isinstance(value, Reference):
                    message = f"'{symbol.name.text}' is not a macro, so '{word.text}' cannot be interpreted"
                    raise error("UndefinedNode", message, word.place)
                return None
            scope = value.scope
        return None

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and those of the calls that led to it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.owner.parent if scope.owner else None


def followed(value: Value) -> Value:
    """Return the value after references, as far as it is known."""
    for _ in range(MAX_STEPS):
        if not isinstance(value, Reference):
            break
        target = value.scope.find(value.word)
        if target is None or target is value:
            break
        value = target
    return value


@dataclass(eq=False)
class Expansion:
    """The result: calls and instances of macros in the order of creation, and what the groups are to hold."""

    created: list[NodeCall | Instance] = field(default_factory=list["NodeCall | Instance"])
    tags: list[tuple[str, Value, Place]] = field(default_factory=list["tuple[str, Value, Place]"])
    arrays: list[tuple[str, Value, Place]] = field(default_factory=list["tuple[str, Value, Place]"])
    warnings: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    top: Scope = field(default_factory=Scope)
    errors: list[UserError] | None = None
    """Collects errors; None: the first one is raised."""
    lost: set[str] = field(default_factory=set[str])
    """Names, in lower case, of statements that cannot be read."""
    numbered: int = 0
    """The last number of a call without a name."""

    def note(self, problem: UserError) -> None:
        """Keep an error, once for each place.

        Raises:
            UserError: The error, if none are collected or nothing may follow it.
            TooManyErrors: There are `MAX_ERRORS`.
        """
        if self.errors is None or problem.kind == "TooLarge":
            raise problem
        if len(self.errors) >= MAX_ERRORS:
            raise TooManyErrors
        if not any(known.kind == problem.kind and known.span == problem.span for known in self.errors):
            self.errors.append(problem)

    def require_known(self, word: Word, scope: Scope) -> None:
        """Refuse to say that a name is unknown if its statement is wrong.

        Raises:
            DependsOnFailed: The statement is wrong.
        """
        head = word.text.lower().partition(".")[0]
        if head in self.lost or any(head in outer.lost for outer in scope.chain()):
            raise DependsOnFailed

    def name_unnamed(self, added: Iterable[NodeCall | Instance], taken: Collection[str]) -> None:
        """Number the calls that have no name: `unnamed1`, `unnamed2`, ... in the order of creation.

        Args:
            added: The calls.
            taken: Names, in lower case, of nodes that are no part of the expansion.
        """
        unnamed = [item for item in added if item.local is None]
        if not unnamed:
            return
        known = {name for scope in self.scopes for name in scope.symbols}.union(taken)
        for item in unnamed:
            self.numbered += 1
            while f"unnamed{self.numbered}" in known:
                self.numbered += 1
            item.local = f"unnamed{self.numbered}"

    @property
    def calls(self) -> list[NodeCall]:
        """The nodes to be made, in order."""
        return [item for item in self.created if isinstance(item, NodeCall)]

    @property
    def scopes(self) -> list[Scope]:
        """All scopes."""
        return [self.top, *(item.scope for item in self.created if isinstance(item, Instance))]
