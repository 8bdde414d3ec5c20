"""The outline of a document: sections with what is in them, and the names of networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.cntk_config.base.source import Fragment
from cntkpy.commands.editor.brainscript import KEYS, Script
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.ndl import Name
from cntkpy.networks.builders.brainscript.language.syntax import Lambda
from cntkpy.networks.builders.brainscript.outline import Definition


@dataclass
class Symbol:
    """One name of the document.

    Attributes:
        name: as it is written.
        kind: `command`, `section`, `value`, `function` or `member`.
        detail: the value, in short.
        span: where the name stands.
        end: line and column, both from 1, after what belongs to it.
        inside: what it contains.
    """

    name: str
    kind: str
    detail: str
    span: Span
    end: tuple[int, int]
    inside: list[Symbol] = field(default_factory=list["Symbol"])


def symbols(analysis: Analysis) -> list[Symbol]:
    """Return the outline of a document, in the order of its text."""
    if analysis.is_script:
        return _ordered(_members(analysis.name, analysis.scripts))
    if analysis.is_network:
        return _ordered(_of_network(name) for network in analysis.networks for name in network.names)
    return _ordered(_sections(analysis, analysis.root, 0)) if analysis.root is not None else []


def _sections(analysis: Analysis, section: ConfigParameters, depth: int) -> Iterator[Symbol]:
    for name in section.names():
        entry = section.definition(name)
        span = entry.name_span if entry is not None else None
        if entry is None or span is None or span.source.name != analysis.name:
            continue
        own_parts = [part for part in entry.parts if part.span.source.name == analysis.name]
        end = max((_end(part) for part in own_parts), default=(span.line, span.column + span.length))
        text = "" if entry.bracket else " ".join(entry.text.split())
        symbol = Symbol(name, "section" if entry.bracket else "value", text[:60], span, max(end, _behind(span)))
        if entry.bracket and depth < 20:
            symbol.inside = _inside(analysis, section, name, depth)
            if depth == 0 and any(part.name.lower() == "action" for part in symbol.inside):
                symbol.kind = "command"
        yield symbol


def _inside(analysis: Analysis, section: ConfigParameters, name: str, depth: int) -> list[Symbol]:
    if name.lower() in KEYS:
        first = section.definition(name)
        start, end = (first.parts[0].span.line, _end(first.parts[-1])[0]) if first is not None else (0, 0)
        inside = [member for member in _members(analysis.name, analysis.scripts) if start <= member.span.line <= end]
        return _ordered(inside)
    entry = section.definition(name)
    if entry is not None and name.lower() in analysis.network_texts:
        return _network(analysis, entry.parts)
    try:
        return _ordered(_sections(analysis, ConfigParameters.from_value(section.stored(name, raw=True)), depth + 1))
    except ConfigError:
        return []


def _network(analysis: Analysis, parts: Iterable[Fragment]) -> list[Symbol]:
    """Return the names of a network in NDL that stand in a section; none if it is not a network."""
    places = [(part.span, _end(part)) for part in parts if part.span.source.name == analysis.name]
    stretches = [((span.line, span.column), end) for span, end in places]
    names = {
        (name.span.line, name.span.column): name
        for network in analysis.networks
        for name in network.names
        if name.span.source.name == analysis.name
    }
    return _ordered(_of_network(name) for key, name in names.items() if any(a <= key <= b for a, b in stretches))


def _of_network(name: Name) -> Symbol:
    kind = "function" if name.is_macro else "member"
    return Symbol(
        name.name, kind, "", name.span, max(name.end, _behind(name.span)), list(map(_of_network, name.inside))
    )


def _members(name: str, scripts: Iterable[Script]) -> Iterator[Symbol]:
    for script in scripts:
        for member in script.outline.members.values():
            if member.place.span.source.name == name:
                yield _member(member)


def _member(definition: Definition) -> Symbol:
    span = definition.place.span
    span = Span(span.source, span.line, span.column, len(definition.name))
    inside = [_member(value) for value in definition.members.own.values()] if definition.members is not None else []
    kind = "function" if isinstance(definition.value, Lambda) else "member"
    value = definition.value.place if definition.value is not None else definition.place
    end = max([_behind(span), _end(value), *(symbol.end for symbol in inside)])
    return Symbol(definition.name, kind, "", span, end, _ordered(inside))


def _ordered(entries: Iterable[Symbol]) -> list[Symbol]:
    return sorted(entries, key=lambda symbol: (symbol.span.line, symbol.span.column))


def _behind(span: Span) -> tuple[int, int]:
    return span.line, span.column + span.length


def _end(part: Fragment) -> tuple[int, int]:
    """Line and column after a stretch of text."""
    last = part.text.span(max(part.start, part.end - 1))
    return last.line, last.column + 1
