"""`$name$`: replaced when an entry is read, in its whole text.

A variable is looked up in the set that holds the entry and in the sets around it. The outermost set that defines the
name wins, as in CNTK; names defined only further inside are found as well (CNTK fails there).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span, nearest, shorten, suggestion
from cntkpy.cntk_config.base.source import VARIABLE, Fragment, Place, Source, TextBuilder, Use
from cntkpy.cntk_config.definitions import Definition, Substituted

MAX_DEPTH = 100
"""Largest number of variables needed to replace one."""
MAX_LENGTH = 65_536
"""Largest length of a variable's text, in characters."""
SHORT_CYCLE = 8
"""Most variables of a cycle whose error begins with the one that is read."""
MAX_GROWTH = 10
"""Largest growth factor of a text by its variables, beyond MAX_LENGTH."""


class Scope(Protocol):
    """A set in which variables are looked up."""

    @property
    def parent(self) -> Scope | None:
        """The set around it."""
        ...

    @property
    def generation(self) -> int:
        """Changes of the configuration so far: substituted texts are kept until the next one."""
        ...

    def names(self) -> list[str]:
        """Return the names defined in it."""
        ...

    def definition(self, name: str) -> Definition | None:
        """Return the definition of a name in this very set."""
        ...

    def substituted(
        self, definition: Definition, /, *, active: tuple[Definition, ...] = ()
    ) -> tuple[str, tuple[Use, ...], int]:
        """Return the text of an own definition after substitution, what was put in, and how deep variables went."""
        ...


class Expanded(NamedTuple):
    """A text after substitution, and how many variables deep it went."""

    fragment: Fragment
    depth: int = 0


def expand(
    fragment: Fragment, scope: Scope | None, *, strict: bool = True, active: tuple[Definition, ...] = ()
) -> Expanded:
    """Replace the variables in a text, which `scope` holds.

    With `strict` a variable that cannot be replaced is an error. Without, it is left as it is: a section is read this
    way, and only those of its values which need the variable fail.
    """
    text, start, end = fragment
    if text.string.find("$", start, end) < 0:
        return Expanded(fragment)
    builder = TextBuilder()
    position, depth = start, 0
    limit = MAX_LENGTH + MAX_GROWTH * (end - start)
    for match in VARIABLE.finditer(text.string, start, end):
        span = text.span(match.start(), match.end() - match.start())
        try:
            use, below = _value(match["name"], scope, span, active)
        except ConfigError:
            if strict:
                raise
            continue
        builder.copy(text, position, match.start())
        source = span.source
        assert isinstance(source, Source)
        builder.add(use.text, Place(source, span.line, span.column, use))
        position, depth = match.end(), max(depth, below + 1)
        if builder.length > limit:
            raise ConfigError(
                "ExpansionTooLarge",
                f"this value grows beyond {limit} characters by its variables",
                span,
                hint="do variables repeat each other many times?",
            )
    if position == start:
        return Expanded(fragment)
    builder.copy(text, position, end)
    return Expanded(Fragment(builder.text(), 0, builder.length).trimmed(), depth)


def substitute(
    entry: Definition, scope: Scope, *, strict: bool = True, active: tuple[Definition, ...] = ()
) -> Substituted:
    """Return the fragments of a definition with variables replaced, and how many variables deep that went.

    Args:
        entry: The definition.
        scope: The set that holds it.
        strict: Whether a variable that cannot be replaced is an error; else it is left as it is.
        active: The definitions that are being substituted.
    """
    generation = scope.generation
    known = entry.cached if strict else entry.cached_open
    if known is not None and known[0] == generation:
        if isinstance(known[1], ConfigError):
            raise known[1]
        return known[1]
    if not active:
        _substitute_needed(entry, scope, generation)
    return _substitute_parts(entry, scope, generation, strict, active)


def _substitute_needed(entry: Definition, scope: Scope, generation: int) -> None:
    """Substitute the variables that a definition needs, the innermost first: no chain is walked twice.

    The members of a short cycle are left out: its error begins with the one that is read.
    """
    stack = [(scope, entry, _needed(entry, scope))]
    positions = {id(entry): 0}
    skipped: set[int] = set()
    while stack:
        holder, current, pending = stack[-1]
        for inner_scope, inner in pending:
            position = positions.get(id(inner))
            if position is not None and len(stack) - position <= SHORT_CYCLE:
                skipped.update(id(origin) for _, origin, _ in stack[position:])
            if position is None and not (inner.cached is not None and inner.cached[0] == generation):
                positions[id(inner)] = len(stack)
                stack.append((inner_scope, inner, _needed(inner, inner_scope)))
                break
        else:
            stack.pop()
            del positions[id(current)]
            if stack and id(current) not in skipped:
                with suppress(ConfigError):  # kept, and raised where the entry is read
                    _substitute_parts(current, holder, generation, True, ())


def _substitute_parts(
    entry: Definition, scope: Scope, generation: int, strict: bool, active: tuple[Definition, ...]
) -> Substituted:
    try:
        expanded = [expand(part.tidy(), scope, strict=strict, active=(*active, entry)) for part in entry.parts]
    except ConfigError as error:
        if not active and strict:
            entry.cached = (generation, error.with_traceback(None))
        raise
    result = [item.fragment for item in expanded], max(item.depth for item in expanded)
    if strict:
        entry.cached = (generation, result)
    elif not active:
        entry.cached_open = (generation, result)
    return result


def _needed(definition: Definition, scope: Scope) -> Iterator[tuple[Scope, Definition]]:
    """Yield the definitions of the variables in the text of a definition, each with the set that holds it.

    Args:
        definition: One whose text may have variables.
        scope: The set that holds it.
    """
    for text, start, end in definition.parts:
        if text.string.find("$", start, end) >= 0:
            for match in VARIABLE.finditer(text.string, start, end):
                holder, entry = _find(match["name"], scope)
                if holder is not None and entry is not None:
                    yield holder, entry


def _value(name: str, scope: Scope | None, span: Span, active: tuple[Definition, ...]) -> tuple[Use, int]:
    """Return the text of a variable, and how many others it needed below each other."""
    holder, entry = _find(name, scope)
    if holder is None or entry is None:
        raise ConfigError(
            "UnknownVariable",
            f"the variable ${name}$ is not defined",
            span,
            hint=lambda: _suggested(name, scope) or f"define it in the file or on the command line: {name}=...",
        )
    if entry in active:
        chain = [e.name for e in active[active.index(entry) :]]
        if len(chain) == 1:  # name=$name$ says that it is given elsewhere
            message = f"${name}$ is not given: {name}=${name}$ leaves it to the command line"
            raise ConfigError("VariableCycle", message, span, hint=f"pass {name}=...")
        raise ConfigError(
            "VariableCycle",
            "these variables need each other: " + " -> ".join(f"${n}$" for n in [*chain, chain[0]]),
            span,
            hint=f"give ${name}$ a value of its own, for instance on the command line: {name}=...",
        )
    if len(active) >= MAX_DEPTH:
        raise _too_deep(name, span)
    try:
        text, inner, depth = holder.substituted(entry, active=active)
    except ConfigError as error:
        error = error.with_note(f"needed for ${name}$ at {span}")
        if error.kind == "VariableCycle":
            error.span = span  # blame the value that was read; the message has the chain
        raise error from None
    if depth >= MAX_DEPTH:
        raise _too_deep(name, span)
    if "\n" in text:
        raise ConfigError(
            "MultilineVariable",
            f"the variable ${name}$ has several lines; only a text of one line can be put in",
            span,
            notes=[f"${name}$ is defined at {entry.span}"],
        )
    if len(text) > MAX_LENGTH:
        raise ConfigError(
            "ExpansionTooLarge",
            f"the text of the variable ${name}$ is longer than {MAX_LENGTH} characters ({shorten(text, 30)})",
            span,
        )
    return Use(entry.name, text, entry.span, span.length, inner), depth


def _find(name: str, scope: Scope | None) -> tuple[Scope | None, Definition | None]:
    """Return the outermost set that defines the name, and its entry there."""
    holder, entry = None, None
    while scope is not None:
        definition = scope.definition(name)
        if definition is not None and not definition.is_default:
            holder, entry = scope, definition
        scope = scope.parent
    return holder, entry


def _suggested(name: str, scope: Scope | None) -> str | None:
    """Return the nearest name that has a value; a name that was removed, `name=default`, has none."""
    names = _names(scope)
    while (nearby := nearest(name, names)) is not None and _find(nearby, scope)[1] is None:
        names = [known for known in names if known.lower() != nearby.lower()]
    return suggestion(name, [nearby]) if nearby is not None else None


def _names(scope: Scope | None) -> list[str]:
    names: list[str] = []
    while scope is not None:
        names.extend(scope.names())
        scope = scope.parent
    return names


def _too_deep(name: str, span: Span) -> ConfigError:
    return ConfigError(
        "ExpansionTooLarge", f"the variable ${name}$ needs a chain of more than {MAX_DEPTH} other variables", span
    )
