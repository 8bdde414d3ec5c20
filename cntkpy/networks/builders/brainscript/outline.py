"""What names in a text of BrainScript mean, found without evaluating it: for editors, and for members nobody uses."""

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
from cntkpy.networks.builders.brainscript.reference import Documented, documented


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
        """What a name means here."""
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
        """The definitions that something refers to."""
        return {one.definition for one in self.mentions if one.definition and one.place != one.definition.place}


def outline_of(expression: Expression) -> Outline:
    """The names of an expression, usually the record of a network or of a file."""
    found = Outline()
    pending: list[tuple[Expression, Names]] = [(expression, Names(None))]
    first: Names | None = None
    while pending:
        one, names = pending.pop()
        if isinstance(one, RecordLiteral):
            inside = _members(one, names, found)
            first = first or inside
            pending += [(member.value, inside) for member in one.members.values()]
        elif isinstance(one, Lambda):
            inside = Names(names)
            for parameter in (*one.parameters, *(name for name, _ in one.defaults)):
                inside.own[parameter] = Definition(parameter, one.place, None)
            pending += [(one.body, inside), *((default, names) for _, default in one.defaults)]
        else:
            found.mentions += _mentions(one, names)
            pending += [(part, names) for part in _parts(one)]
    found.members = first.own if first is not None else {}
    for mention in found.mentions:
        _resolve_selected(mention)
    return found


def _members(record: RecordLiteral, names: Names, found: Outline) -> Names:
    inside = Names(names)
    for member in record.members.values():
        definition = Definition(member.name, member.place, member.value)
        inside.own[member.name] = definition
        found.mentions.append(Mention(member.name, member.place, definition))
    owner = next((one for one in _around(names) if one.value is record), None)
    if owner is not None:
        owner.members = inside
    return inside


def _around(names: Names | None) -> Iterator[Definition]:
    while names is not None:
        yield from names.own.values()
        names = names.outer


def _mentions(one: Expression, names: Names) -> Iterator[Mention]:
    if isinstance(one, Name):
        definition = names.find(one.name)
        yield Mention(one.name, one.place, definition, None if definition else documented().get(one.name))
    elif isinstance(one, Select):
        mention = _Selected(one.name, one.place)
        mention.select, mention.names = one, names
        yield mention
    elif isinstance(one, Call):
        function = _static(one.function, names)
        for name, _, place in one.named:
            yield Mention(name, place, library=function if isinstance(function, Documented) else None)


@dataclass
class _Selected(Mention):
    """`record.name`, resolved when all members are known."""

    select: Select | None = None
    names: Names | None = None


def _resolve_selected(mention: Mention) -> None:
    if isinstance(mention, _Selected) and mention.select is not None and mention.names is not None:
        found = _static(mention.select, mention.names)
        if isinstance(found, Definition):
            mention.definition = found
        else:
            mention.library = found


def _static(expression: Expression, names: Names) -> Definition | Documented | None:
    """What a name, or a chain of names with dots, means."""
    chain: list[str] = []
    while isinstance(expression, Select):
        chain.append(expression.name)
        expression = expression.value
    if not isinstance(expression, Name):
        return None
    found = names.find(expression.name)
    if found is None:
        return documented().get(".".join([expression.name, *reversed(chain)]))
    for name in reversed(chain):
        if found.members is None or name not in found.members.own:
            return None
        found = found.members.own[name]
    return found


def _parts(one: Expression) -> list[Expression]:
    """The expressions directly inside another one that has no names of its own."""
    if isinstance(one, Infix):
        return [one.left, one.right]
    if isinstance(one, Prefix):
        return [one.operand]
    if isinstance(one, Conditional):
        return [one.condition, one.yes, one.no]
    if isinstance(one, Select):
        return [one.value]
    if isinstance(one, Subscript):
        return [one.array, one.index]
    if isinstance(one, Call):
        return [one.function, *one.positional, *(value for _, value, _ in one.named)]
    if isinstance(one, New):
        return [one.record]
    if isinstance(one, ArrayLiteral):
        return one.items
    return [one.first, one.last, one.function] if isinstance(one, Range) else []


__all__ = ["Definition", "Member", "Mention", "Names", "Outline", "outline_of"]
