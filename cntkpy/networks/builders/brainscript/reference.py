"""Functions of the library: every function with its parameters and the comment above it, of its texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.parse import source_of
from cntkpy.networks.builders.brainscript.language.syntax import (
    Expression,
    Lambda,
    Literal,
    Member,
    Name,
    New,
    RecordLiteral,
    parsed,
)
from cntkpy.networks.builders.brainscript.operations import OPERATIONS
from cntkpy.networks.builders.brainscript.program import library

HEADING = re.compile(r"^// =+ (.*)$", re.MULTILINE)
COMMENT = re.compile(r"[ \t]*//(.*)")


class Documented(NamedTuple):
    """One member of the library.

    Attributes:
        name: with its namespaces: `BS.Loop.Previous`.
        heading: the part of the library.
        usage: how it is called; empty for a value.
        meaning: the comment above it, as one line.
        parameters: names of what is passed by position.
        options: names of what is passed by name, with the text of the default.
        alias: the member that it is another name of.
    """

    name: str
    heading: str
    usage: str
    meaning: str
    parameters: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    alias: str = ""


@cache
def documented() -> dict[str, Documented]:
    """Return every member of the library that is meant for users, by its name, in the order of the text."""
    return {function.name: function for function in _of(library()[1], "")}


@cache
def described(name: str) -> Documented | None:
    """Return one member of the library that is meant for users; the others need not be parsed."""
    record, member = library()[1], None
    for part in name.split("."):
        member = record.members.get(part) if record is not None else None
        if member is None or _is_private(member):
            return None
        value = parsed(member.value)
        record = value if isinstance(value, RecordLiteral) else None
    return _entry(member, name) if member is not None else None


def _is_private(member: Member) -> bool:
    return member.name.startswith("_") and member.name != "_Parameter"


def _of(record: RecordLiteral, prefix: str) -> Iterator[Documented]:
    for member in record.members.values():
        if _is_private(member):
            continue
        yield _entry(member, prefix + member.name)
        value = parsed(member.value)
        if isinstance(value, RecordLiteral):
            yield from _of(value, f"{prefix}{member.name}.")


def _entry(member: Member, name: str) -> Documented:
    text, start = member.place.text.string, member.place.start
    heading = HEADING.match(text, text.rfind("\n// =", 0, start) + 1)
    value, meaning = parsed(member.value), _comment(text, start)
    part = name.rpartition(".")[0] or (heading[1] if heading else "")
    meaning = meaning or _meaning(value)
    if isinstance(value, Lambda):
        options = tuple((option, source_of(default)) for option, default in value.defaults)
        return Documented(name, part, usage_of(name, value), meaning, value.parameters, options)
    return Documented(name, part, "", meaning, alias=value.name if isinstance(value, Name) else "")


def _meaning(value: Expression) -> str:
    """Return the meaning of the node that a function without comment makes."""
    while isinstance(value, Lambda):
        value = value.body
    if not isinstance(value, New) or not isinstance(value.record, RecordLiteral):
        return ""
    operation = value.record.members["operation"].value
    known = OPERATIONS.get(str(operation.value)) if isinstance(operation, Literal) else None
    kind = nodes.find(known.kind_name) if known is not None else None
    if kind is None:
        return ""
    return kind.meaning or f"Not supported: {kind.unsupported}."


def usage_of(name: str, function: Lambda) -> str:
    """Return the form of a call: `Softmax (z, axis=0, tag='')`; with braces, if it is declared with them."""
    words = [*function.parameters, *(f"{option}={source_of(value)}" for option, value in function.defaults)]
    text = function.place.text.string
    braces = text[function.place.end :].lstrip().startswith("{")
    return f"{name} {{{', '.join(words)}}}" if braces else f"{name} ({', '.join(words)})"


def _comment(text: str, start: int) -> str:
    """Return the lines of comment directly above a member, joined."""
    comments: list[str] = []
    end = text.rfind("\n", 0, start)
    while end > 0:
        begin = text.rfind("\n", 0, end) + 1
        comment = COMMENT.fullmatch(text, begin, end)
        if comment is None or HEADING.fullmatch(text[begin:end].strip()):
            break
        comments.append(comment[1].strip())
        end = begin - 1
    return " ".join(reversed(comments))
