"""Meaning of names in a text of BrainScript, without evaluating it: for editors, and for members nobody uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import (
    ArrayLiteral,
    Call,
    Conditional,
    Expression,
    Infix,
    Lambda,
    Member,
    Name,
    New,
    Prefix,
    Range,
    RecordLiteral,
    Select,
    Subscript,
)
from cntkpy.networks.builders.brainscript.reference import Documented, described


@dataclass(eq=False)
class Definition:
    """A member of a record, or a parameter of a function.

    Attributes:
        name: its name.
        place: where it is defined; of a parameter, the function.
        value: the expression; None for a parameter.
        scope: the names that its own members may be looked up in, if it is a record.
    """

    name: str
    place: Place
    value: Expression | None
    members: Names | None = None


class Names:
    """The names of a record or a function, and those around."""

    def __init__(self, outer: Names | None) -> None:
        self.own: dict[str, Definition] = {}
        self.outer = outer

    def find(self, name: str) -> Definition | None:
        """Return the meaning of a name here."""
        names: Names | None = self
        while names is not None:
            if name in names.own:
                return names.own[name]
            names = names.outer
        return None


@dataclass
class Mention:
    """A name in the text, and what it means: one of both, or nothing that is known."""

    name: str
    place: Place
    definition: Definition | None = None
    library: Documented | None = None


@dataclass
class Outline:
    """All names of a text.

    Attributes:
        members: the outermost members.
        mentions: every use and every definition of a name.
    """

    members: dict[str, Definition] = field(default_factory=dict[str, Definition])
    mentions: list[Mention] = field(default_factory=list[Mention])

    def used(self) -> set[Definition]:
        """Return the definitions that something refers to."""
        return {
            mention.definition
            for mention in self.mentions
            if mention.definition and mention.place != mention.definition.place
        }


def outline_of(expression: Expression) -> Outline:
    """Return the names of an expression, usually the record of a network or of a file."""
    outline = Outline()
    pending: list[tuple[Expression, Names]] = [(expression, Names(None))]
    first: Names | None = None
    while pending:
        record, names = pending.pop()
        if isinstance(record, RecordLiteral):
            inside = _members(record, names, outline)
            first = first or inside
            pending += [(member.value, inside) for member in record.members.values()]
        elif isinstance(record, Lambda):
            inside = Names(names)
            for parameter in (*record.parameters, *(name for name, _ in record.defaults)):
                inside.own[parameter] = Definition(parameter, record.place, None)
            pending += [(record.body, inside), *((default, names) for _, default in record.defaults)]
        else:
            outline.mentions += _mentions(record, names)
            pending += [(part, names) for part in _parts(record)]
    outline.members = first.own if first is not None else {}
    for mention in outline.mentions:
        _resolve_selected(mention)
    return outline


def _members(record: RecordLiteral, names: Names, outline: Outline) -> Names:
    inside = Names(names)
    for member in record.members.values():
        definition = Definition(member.name, member.place, member.value)
        inside.own[member.name] = definition
        outline.mentions.append(Mention(member.name, member.place, definition))
    owner = next((names for names in _around(names) if names.value is record), None)
    if owner is not None:
        owner.members = inside
    return inside


def _around(names: Names | None) -> Iterator[Definition]:
    while names is not None:
        yield from names.own.values()
        names = names.outer


def _mentions(expression: Expression, names: Names) -> Iterator[Mention]:
    if isinstance(expression, Name):
        definition = names.find(expression.name)
        yield Mention(expression.name, expression.place, definition, None if definition else described(expression.name))
    elif isinstance(expression, Select):
        mention = _Selected(expression.name, expression.place)
        mention.select, mention.names = expression, names
        yield mention
    elif isinstance(expression, Call):
        function = _static(expression.function, names)
        for name, _, place in expression.named:
            yield Mention(name, place, library=function if isinstance(function, Documented) else None)


@dataclass
class _Selected(Mention):
    """`record.name`, resolved when all members are known."""

    select: Select | None = None
    names: Names | None = None


def _resolve_selected(mention: Mention) -> None:
    if isinstance(mention, _Selected) and mention.select is not None and mention.names is not None:
        record = _static(mention.select, mention.names)
        if isinstance(record, Definition):
            mention.definition = record
        else:
            mention.library = record


def _static(expression: Expression, names: Names) -> Definition | Documented | None:
    """Return the meaning of a name, or of a chain of names with dots."""
    chain: list[str] = []
    while isinstance(expression, Select):
        chain.append(expression.name)
        expression = expression.value
    if not isinstance(expression, Name):
        return None
    definition = names.find(expression.name)
    if definition is None:
        return described(".".join([expression.name, *reversed(chain)]))
    for name in reversed(chain):
        if definition.members is None or name not in definition.members.own:
            return None
        definition = definition.members.own[name]
    return definition


def parts_of(expression: Expression) -> list[Expression]:
    """Return the expressions directly inside another one that are evaluated whenever it is, as far as the text says.

    Args:
        expression: An expression; a record or a function has no such parts.
    """
    return [expression.condition] if isinstance(expression, Conditional) else _parts(expression)


def _parts(expression: Expression) -> list[Expression]:
    """Return the expressions directly inside another one that has no names of its own."""
    if isinstance(expression, Infix):
        return [expression.left, expression.right]
    if isinstance(expression, Prefix):
        return [expression.operand]
    if isinstance(expression, Conditional):
        return [expression.condition, expression.yes, expression.no]
    if isinstance(expression, Select):
        return [expression.value]
    if isinstance(expression, Subscript):
        return [expression.array, expression.index]
    if isinstance(expression, Call):
        return [expression.function, *expression.positional, *(value for _, value, _ in expression.named)]
    if isinstance(expression, New):
        return [expression.record]
    if isinstance(expression, ArrayLiteral):
        return expression.items
    return [expression.first, expression.last, expression.function] if isinstance(expression, Range) else []


__all__ = ["Definition", "Member", "Mention", "Names", "Outline", "outline_of"]
