"""Editor queries about networks in NDL, those of a configuration or a file: names, and where they are used.

    H(x) { h = Sigmoid(x) }
    a = H(features)
    z = Times(W, a.h)               `h` is that of the macro

A name means that of the macro it is in, else that of the script. Letter case does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.commands.catalogue.section_map import section_map
from cntkpy.networks.builders.ndl.alone import file_statements
from cntkpy.networks.builders.ndl.parse import Array, Assignment, Call, Macro, Statement, Word, parse_document
from cntkpy.networks.builders.ndl.source import find_program

Key = tuple[str, str]
"""The macro that a name belongs to, empty for the script, and the name; both in lower case."""


@dataclass
class Name:
    """A name that a network defines.

    Attributes:
        name: as it is written.
        span: where.
        end: line and column, both from 1, after its definition.
        is_macro: whether it is a macro.
        inside: the names of a macro.
    """

    name: str
    span: Span
    end: tuple[int, int]
    is_macro: bool = False
    inside: list[Name] = field(default_factory=list["Name"])


class NetworkText:
    """The scripts of one builder, with the names in them.

    Attributes:
        names: the names that it defines, those of macros inside of them.
        mentions: the places of every name, its definition included.
        definitions: where every name is defined.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        statements = list(statements)
        self.names = list(filter(None, map(_name_of, statements)))
        self.mentions: dict[Key, list[Span]] = {}
        self.definitions: dict[Key, Span] = {}
        self._macros = {statement.name.text.lower() for statement in statements if isinstance(statement, Macro)}
        self._known: dict[str, set[str]] = {"": set(self._macros)}
        self._instances: dict[Key, str] = {}
        for statement in statements:
            macro = statement.name.text.lower() if isinstance(statement, Macro) else ""
            for name, value in _defined(statement):
                self._known.setdefault(macro, set()).add(name.text.lower())
                if isinstance(value, Call) and value.function.text.lower() in self._macros:
                    self._instances[macro, name.text.lower()] = value.function.text.lower()
        for inner in statements:
            self._mention(inner)

    def at(self, name: str, line: int, column: int) -> Key | None:
        """Return the key that is mentioned at a place of the file `name`."""
        for key, spans in self.mentions.items():
            for span in spans:
                if (
                    span.line == line
                    and span.column <= column <= span.column + span.length
                    and span.source.name == name
                ):
                    return key
        return None

    def defines(self, macro: str, name: str) -> bool:
        """Return whether a macro (or, if that is empty, the script) or the script around it has a name."""
        return any(name.lower() in self._known.get(scope, ()) for scope in (macro, ""))

    def _mention(self, statement: Statement) -> None:
        macro = statement.name.text.lower() if isinstance(statement, Macro) else ""
        if isinstance(statement, Macro):
            self._define("", statement.name)
        for name, value in _defined(statement):
            self._define(macro, name)
            for word in _words(value):
                self._use(macro, word)

    def _use(self, macro: str, word: Word) -> None:
        """The parts of `a.h`: a name, then names of the macro that it is an instance of."""
        start, scope = word.place.start, macro
        for number, part in enumerate(word.text.split(".")):
            key = part.lower()
            if key not in self._known.get(scope, ()):
                if number or key not in self._known[""]:
                    return
                scope = ""
            place = word.place._replace(start=start, end=start + len(part))
            self._add(scope, Word(part, place))
            start += len(part) + 1
            scope = self._instances.get((scope, key), "?")

    def _define(self, macro: str, word: Word) -> None:
        self._add(macro, word)
        span = _span(word)
        if span is not None:
            self.definitions.setdefault((macro, word.text.lower()), span)

    def _add(self, macro: str, word: Word) -> None:
        span = _span(word)
        if span is not None:
            self.mentions.setdefault((macro, word.text.lower()), []).append(span)


def is_network(name: str) -> bool:
    """Return whether a file is one of networks or macros in NDL, by its name."""
    return name.lower().endswith(".ndl")


def read_file(text: str, name: str) -> NetworkText:
    """Return the names of a file in NDL: its whole text, or all of its sections.

    Values of `$variables$` belong to a configuration. A number stands for each of them here.

    Raises:
        ConfigError: what the grammar does not allow.
    """
    return NetworkText(file_statements(text, name))


def networks_of(root: ConfigParameters) -> Iterator[NetworkText]:
    """Return the networks in NDL of a configuration; those that cannot be read are left out."""
    for use in section_map(root).walk():
        if use.role != "NDLNetworkBuilder":
            continue
        try:
            program = find_program(use.section)
            documents = [*program.macros, *program.scripts]
            yield NetworkText([statement for document in documents for statement in parse_document(document)[0]])
        except ConfigError:
            continue  # a finding says what is wrong


def _defined(statement: Statement) -> Iterator[tuple[Word, Word | Call | Array | None]]:
    """Return the names that a statement defines, in the macro if it is one, with their values; parameters have none."""
    if isinstance(statement, Assignment):
        yield statement.name, statement.value
        return
    yield from ((parameter, None) for parameter in statement.parameters)
    for inner in statement.body:
        if isinstance(inner, Assignment):
            yield inner.name, inner.value
        else:
            yield Word("", inner.place._replace(end=inner.place.start)), inner


def _words(value: Word | Call | Array | None) -> Iterator[Word]:
    """Return the words of a value that may be names, the functions that it calls among them."""
    if isinstance(value, Word):
        if not value.quoted:
            yield value
    elif isinstance(value, Array):
        for item in value.items:
            yield from _words(item)
    elif isinstance(value, Call):
        yield value.function
        options = (option.value for option in value.options if option.name.text.lower() != "tag")
        for argument in (*value.arguments, *options):
            yield from _words(argument)


def _name_of(statement: Statement) -> Name | None:
    span = _span(statement.name)
    if span is None:
        return None
    name, is_macro = statement.name.text, isinstance(statement, Macro)
    definition = Name(name, span, _end(statement), is_macro, [])
    if isinstance(statement, Macro):
        definition.inside = [
            result for part in statement.body if isinstance(part, Assignment) and (result := _name_of(part))
        ]
    return definition


def _end(statement: Statement) -> tuple[int, int]:
    """Line and column after a statement, as far as its parts show."""
    if isinstance(statement, Macro):
        last = statement.body[-1] if statement.body else statement.name
        place = last.place if isinstance(last, Word | Call) else last.value.place
    else:
        place = statement.value.place
    span = place._replace(start=max(place.start, place.end - 1)).span
    return (span.line, span.column + 1) if span is not None else (0, 0)


def _span(word: Word) -> Span | None:
    """Return the place of a word in the file; None if a variable has put it there."""
    span = word.place.span if word.text else None
    return span if span is not None and span.starts_with(word.text) else None
