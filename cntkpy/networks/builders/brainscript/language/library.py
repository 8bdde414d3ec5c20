"""Libraries: files whose definitions begin lines, each read when a network uses it: from its tree, if that is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import Expression, Member, RecordLiteral, Unparsed
from cntkpy.networks.builders.brainscript.language.trees import kept_tree

_TOKENS = re.compile(r"//[^\n]*|'[^'\n]*'|\"[^\"\n]*\"|(?P<bracket>[][(){}])|^(?P<name>[A-Za-z_]\w*)", re.MULTILINE)
_NAMESPACE = re.compile(r"[ ]*=[ ]*\{\n(?=(?:\s|//[^\n]*\n)*^[A-Za-z_])", re.MULTILINE)


def library_members(text: Text) -> RecordLiteral:
    """Return the members of a library, unparsed.

    A definition begins a line. So do those in a record whose first line ends with `{`.
    """
    return _record(text, 0, len(text.string))


def _record(text: Text, begin: int, end: int) -> RecordLiteral:
    """Return the definitions between two places, of which none is inside of another one."""
    names = list(_names(text.string, begin, end))
    ends = [start for start, _ in names[1:]] + [end]
    members: dict[str, Member] = {}
    for (start, stop), last in zip(names, ends, strict=True):
        name, place = text.string[start:stop], Place(text, start, last)
        opening = _NAMESPACE.match(text.string, stop, last)
        value = (
            _record(text, opening.end(), text.string.rindex("}", stop, last)) if opening else Unparsed(place, _value)
        )
        members[name] = Member(Place(text, start, stop), name, value)
    return RecordLiteral(Place(text, begin, end), members)


def _value(member: Place) -> Expression:
    """Return the value of a member: of its tree, else parsed."""
    return kept_tree(member) or parsed_value(member)


def parsed_value(member: Place) -> Expression:
    """Parse a member and return its value."""
    (definition,) = parse_members(*member).members.values()
    return definition.value


def definitions(record: RecordLiteral) -> Iterator[Place]:
    """Iterate over the members of a library that `library_members` leaves unparsed, those in its records among them."""
    for member in record.members.values():
        if isinstance(member.value, Unparsed):
            yield member.value.place
        elif isinstance(member.value, RecordLiteral):
            yield from definitions(member.value)


def _names(string: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Iterate over the places of names that begin lines outside of brackets."""
    depth = 0
    for token in _TOKENS.finditer(string, begin, end):
        if token["bracket"]:
            depth += 1 if token["bracket"] in "([{" else -1
        elif token["name"] and not depth:
            yield token.span()
