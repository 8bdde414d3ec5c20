"""Occurrences of a name in a document: the same variable or section, or the same name of a network.

Variables mean the nearest definition around them, as when a configuration is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span, UserError
from cntkpy.cntk_config.base.source import VARIABLE
from cntkpy.commands.editor.brainscript import Script
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.ndl import Key, NetworkText
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.outline import Definition, Mention
from cntkpy.networks.builders.ndl.groups import ARRAYS

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFINED = re.compile(r"(?<![$\w./])([A-Za-z_][A-Za-z0-9_]*)(?=\s*=(?!=))")
_COMMANDS = re.compile(r"(?<![$\w])command\s*=\s*([^#;\]]*)", re.IGNORECASE)

Scope = tuple[str, ...]
"""The names of the sections around a place, in lower case."""


def occurrences(analysis: Analysis, line: int, column: int) -> list[Span]:
    """Return all places of the document that mean what the name at a place means (both from 1), in their order."""
    script, network = _script_at(analysis, line, column), analysis.network_at(line, column)
    if script is not None:
        spans = _of_script(analysis, *script)
    elif network is not None:
        spans = _of_network(analysis, network[1])
    else:
        name_place = _name_at(analysis, line, column)
        spans = list(_of_configuration(analysis, *name_place)) if name_place is not None else []
    return sorted(spans, key=lambda span: (span.line, span.column))


def renamed(analysis: Analysis, line: int, column: int, new: str) -> list[Span]:
    """Return the places to be changed when the name at a place (both from 1) becomes another.

    Raises:
        UserError: it cannot have another name, or not this one.
    """
    if not NAME.fullmatch(new):
        raise UserError("BadValue", f"'{new}' is not a name: letters, digits and _, no digit first")
    script = _script_at(analysis, line, column)
    if script is not None:
        spans = occurrences(analysis, line, column)
        if not spans:
            raise UserError("BadValue", f"'{script[1].name}' is a function of the library; it keeps its name")
        if any(mention.name == new for mention in script[0].outline.mentions):
            raise UserError("BadValue", f"'{new}' is used in this network already")
        return spans
    network = analysis.network_at(line, column)
    if network is not None:
        return _renamed_in_network(analysis, *network, new)
    name_place = _name_at(analysis, line, column)
    if name_place is None:
        raise UserError("BadValue", "there is no variable and no section of yours to rename")
    scope, name = name_place
    use = analysis.use(list(scope))
    read = {name.lower() for name in (*use.names(), *use.reads_below())} if use is not None else set[str]()
    if name.lower() in read:
        raise UserError("BadValue", f"'{name}' is a parameter: under another name it would not be read")
    if new.lower() in read:
        raise UserError("BadValue", f"'{new}' is a parameter of this section")
    for depth in range(len(scope), -1, -1):
        section = _section(analysis, scope[:depth])
        if section is not None and section.definition(new) is not None:
            raise UserError("BadValue", f"'{new}' is defined already")
    section = _section(analysis, scope)
    entry = section.definition(name) if section is not None else None
    if entry is not None and entry.name_span is not None and entry.name_span.source.name != analysis.name:
        raise UserError("BadValue", f"'{name}' is defined at {entry.name_span}: rename it there")
    return occurrences(analysis, line, column)


def _script_at(analysis: Analysis, line: int, column: int) -> tuple[Script, Mention] | None:
    """Return the network and the name in it at a place, where that is a parameter of a function, too."""
    known = analysis.script_at(line, column)
    if known is not None:
        return known
    for script in analysis.scripts:
        parameters = {
            mention.definition: mention
            for mention in script.outline.mentions
            if mention.definition and not mention.definition.value
        }
        for definition, mention in parameters.items():
            for span in _parameter(definition):
                if span.line == line and span.column <= column <= span.column + span.length:
                    return script, mention
    return None


def _of_script(analysis: Analysis, script: Script, mention: Mention) -> list[Span]:
    definition = mention.definition
    if definition is None:
        return []
    places = [mention.place.span for mention in script.outline.mentions if mention.definition is definition]
    if definition.value is None:
        places += _parameter(definition)
    own_spans = {(span.line, span.column): span for span in places if span.source.name == analysis.name}
    return [span for span in own_spans.values() if _is_name(analysis, span, definition.name)]


def _of_network(analysis: Analysis, key: Key) -> list[Span]:
    """Return the places of a name in NDL; a section may be run by several commands."""
    spans = [span for network in analysis.networks for span in network.mentions.get(key, ())]
    own_spans = {(span.line, span.column): span for span in spans if span.source.name == analysis.name}
    return list(own_spans.values())


def _renamed_in_network(analysis: Analysis, network: NetworkText, key: Key, new: str) -> list[Span]:
    macro, name = key
    first = network.definitions.get(key)
    if first is None or first.source.name != analysis.name:
        raise UserError("BadValue", f"'{name}' is defined at {first}: rename it there")
    if name in ARRAYS:
        raise UserError("BadValue", f"'{name}' is the name of a group of nodes; it keeps its name")
    if nodes.find(new) is not None:
        raise UserError("BadValue", f"'{new}' is a function")
    if new.lower() != name and any(network.defines(macro, new) for network in analysis.networks):
        raise UserError("BadValue", f"'{new}' is used in this network already")
    return sorted(_of_network(analysis, key), key=lambda span: (span.line, span.column))


def _parameter(definition: Definition) -> Iterator[Span]:
    """Return the place of a function's parameter in its list, which comes first in the text of the function."""
    place = definition.place
    match = re.search(rf"\b{re.escape(definition.name)}\b", place.text.string[place.start :])
    if match is not None:
        yield place.text.span(place.start + match.start(), len(definition.name))


def _is_name(analysis: Analysis, span: Span, name: str) -> bool:
    """Return whether the text at a place is the name; the place of a definition is that of all of it."""
    return analysis.lines[span.line - 1][span.column - 1 :].startswith(name)


def _of_configuration(analysis: Analysis, scope: Scope, name: str) -> Iterator[Span]:
    """Yield the definitions of a name in a section, its variables, and its place in a list of commands."""
    spans: dict[tuple[int, int], Span] = {}
    document = _Document(analysis)

    def add(line: int, start: int) -> None:
        spans[line, start] = Span(document, line, start + 1, len(name))

    for line, start, word in _definitions(analysis):
        if word.lower() == name.lower() and _scope(analysis, line, start) == scope:
            add(line, start)
    for number, start in _variables(analysis, scope, name):
        add(number, start)
    for number, text in enumerate(analysis.lines, 1):
        if not scope:
            for commands in _COMMANDS.finditer(text):
                for word in NAME.finditer(commands[1]):
                    if word[0].lower() == name.lower():
                        add(number, commands.start(1) + word.start())
    yield from spans.values()


def _variables(analysis: Analysis, scope: Scope, name: str) -> Iterator[tuple[int, int]]:
    """Line from 1 and column from 0 of the variables of a name which mean that of a section."""

    @cache
    def visible(around: Scope) -> Scope | None:
        return _visible(analysis, around, name)

    for number, text in enumerate(analysis.lines, 1):
        for variable in VARIABLE.finditer(text):
            is_named = variable["name"].lower() == name.lower()
            if is_named and visible(_scope(analysis, number, variable.start())) == scope:
                yield number, variable.start("name")


def _definitions(analysis: Analysis) -> Iterator[tuple[int, int, str]]:
    """Line from 1, column from 0 and name of everything that is assigned, outside of comments."""
    for number, text in enumerate(analysis.lines, 1):
        for match in _DEFINED.finditer(re.sub(r"(^|\s)#.*", "", text)):
            yield number, match.start(), match[1]


def _name_at(analysis: Analysis, line: int, column: int) -> tuple[Scope, str] | None:
    """Return the section and the name that are meant at a place: by a variable, a definition, or a list of commands."""
    if analysis.root is None or line > len(analysis.lines):
        return None
    text = analysis.lines[line - 1]
    for variable in VARIABLE.finditer(text):
        if variable.start() < column <= variable.end():
            scope = _visible(analysis, _scope(analysis, line, variable.start()), variable["name"])
            return (scope, variable["name"]) if scope is not None else None
    for number, start, name in _definitions(analysis):
        if number == line and start < column <= start + len(name) + 1:
            return _scope(analysis, line, start), name
    for commands in _COMMANDS.finditer(text):
        for word in NAME.finditer(commands[1]):
            start = commands.start(1) + word.start()
            if start < column <= start + len(word[0]) + 1 and analysis.root.definition(word[0]) is not None:
                return (), word[0]
    return None


def _scope(analysis: Analysis, line: int, start: int) -> Scope:
    return tuple(name.lower() for name in analysis.enclosing(line, start + 1))


def _visible(analysis: Analysis, scope: Scope, name: str) -> Scope | None:
    """Return the section, from one outwards, that defines a name; None if none does."""
    for depth in range(len(scope), -1, -1):
        section = _section(analysis, scope[:depth])
        if section is not None and section.definition(name) is not None:
            return scope[:depth]
    return None


def _section(analysis: Analysis, scope: Scope) -> ConfigParameters | None:
    section = analysis.root
    for name in scope:
        if section is None or section.definition(name) is None:
            return None
        try:
            section = ConfigParameters.from_value(section.stored(name, raw=True))
        except ConfigError:
            return None
    return section


class _Document:
    """The document as the source of its places."""

    def __init__(self, analysis: Analysis) -> None:
        self.name = analysis.name
        self._lines = analysis.lines

    def line(self, number: int) -> str | None:
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else None
