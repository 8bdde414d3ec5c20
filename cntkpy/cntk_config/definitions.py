"""A definition in a set: a name and its text as it stands, with what it replaced; and the rule by which texts merge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, shorten
from cntkpy.cntk_config.base.source import Fragment, Place, Source, Text, TextBuilder
from cntkpy.cntk_config.parse import Record, parse_set, unquoted

_NAMED = re.compile(r"[\[({]\s*[^\s=\[\](){}\":;,][^=\[\](){}\":;,\n]*=")
"""The beginning of what can only be a section: a name and an equals sign after a bracket."""

Substituted = tuple[list[Fragment], int]
"""The texts of a definition with variables replaced, and how deep variables went."""


class Origin(NamedTuple):
    """One step in the history of a value: `kind` is `set`, `merged`, `overridden` or `variable`."""

    kind: str
    name: str
    text: str
    span: Span | None

    @property
    def short(self) -> str:
        """The text, shortened for one line."""
        return f"'{shorten(self.text, 40)}'"


class Definition:
    """Definition of one name in a set. The text is kept as fragments: several when sections were merged."""

    __slots__ = ("cached", "cached_open", "earlier", "is_list", "name", "name_at", "order", "parts")

    def __init__(self, name: str, name_at: Fragment | None, part: Fragment, is_list: bool = False) -> None:
        self.name = name
        """The spelling of its first definition."""
        self.name_at = name_at
        self.parts: Sequence[Fragment] = (part,)
        self.is_list = is_list
        """A list of bracketed elements such as `[x=1]:[x=2]`, which begins like a section but is none."""
        self.order = 0
        """Grows with every text that is given to an entry of the configuration."""
        self.earlier: list[Fragment] | None = None
        """The texts that were overridden, the oldest first."""
        self.cached: tuple[int, Substituted | ConfigError] | None = None
        self.cached_open: tuple[int, Substituted] | None = None

    @property
    def name_span(self) -> Span | None:
        """Span of the name."""
        return self.name_at.span if self.name_at else None

    @property
    def bracket(self) -> str:
        """The bracket that the text begins with, if it can be a section: `[`, `{`, `(` or nothing."""
        part = self.parts[0]
        first = part.text.string[part.start] if part.start < part.end else ""
        if first == "(" and not self.begins_with_name:
            return ""  # a list, or an expression of a network
        return first if first in "[{(" and not self.is_list else ""

    @property
    def begins_with_name(self) -> bool:
        """True if the text is a bracket that begins with `name=`, which no list does."""
        part = self.parts[0]
        return _NAMED.match(part.text.string, part.start, part.end) is not None

    @property
    def text(self) -> str:
        """The text as it stands, variables not replaced."""
        return " ".join(part.string for part in self.parts)

    @property
    def is_default(self) -> bool:
        """True for the word `default`, which reads as absent."""
        part = self.parts[0]
        return part.end - part.start == 7 and part.string == "default"

    @property
    def is_removal(self) -> bool:
        """True for a word `section/name=default`, which removes the entry, so that one further out is read again."""
        source = self.span.source if self.is_default else None
        return isinstance(source, Source) and source.is_path

    @property
    def span(self) -> Span:
        """Span of the last text."""
        return self.parts[-1].span

    @property
    def history(self) -> tuple[Origin, ...]:
        """The last definition first, then what it was merged with, then what was overridden."""
        last, *merged = self.parts[::-1]
        return (
            Origin("set", self.name, last.string, last.span),
            *(Origin("merged", self.name, part.string, part.span) for part in merged),
            *(Origin("overridden", self.name, part.string, part.span) for part in (self.earlier or ())[::-1]),
        )

    def assign(self, new: Definition) -> Diagnostic | None:
        """Take the text of a later definition of the same name; may give a warning.

        A text in `[ ]` is added to a section, everything else replaces what was there.
        """
        self.order = new.order
        old, bracket = self.bracket, new.bracket
        if old and bracket == "[":
            self.parts = merged = self.parts if isinstance(self.parts, list) else list(self.parts)
            merged.extend(new.parts)
            return None
        warning = None
        if old and bracket and self.parts[0].end - self.parts[0].start > 2:
            warning = Diagnostic(
                "SectionReplaced",
                f"this replaces the whole section '{self.name}', it does not add to it",
                new.span,
                hint=f"write {self.name}=[...] with square brackets to change single entries",
                notes=(f"the section is at {self.span}",),
                severity="warning",
            )
        self.earlier = self.earlier or []
        self.earlier.extend(self.parts)
        self.parts, self.is_list = new.parts, new.is_list
        return warning


class Given(NamedTuple):
    """Beginning of a `Definition`, from a record `name=value` or a flag."""

    name: str
    name_at: Fragment
    part: Fragment
    is_list: bool = False


def given_by(record: Record, text: Text) -> Given:
    """Return the definition of a record with a name."""
    assert record.name is not None
    start, end = record.name
    name = text.string[start:end].strip(" \t")
    name_at = Fragment(text, start, end)
    if record.value is None:
        return Given(name, name_at, _true(name_at.span))
    part = Fragment(text, *record.value)
    if record.form == "quoted":
        return Given(name, name_at, unquoted(part))
    return Given(name, name_at, part, record.form == "list")


def all_given(fragment: Fragment) -> list[Given] | None:
    """Return the definitions in the records of a text, perhaps in a bracket; None if some have no name."""
    records = parse_set(fragment)
    named = records[1:] if records and records[0].kind == "nameless" else records
    if any(record.kind not in ("assignment", "flag") for record in named):
        return None
    definitions = [given_by(record, fragment.text) for record in named]
    return definitions if all(record.name for record in definitions) else None


def _true(span: Span) -> Fragment:
    """Return the text `true`, which a flag stands for, at the place of the flag."""
    assert isinstance(span.source, Source)
    builder = TextBuilder()
    builder.add("true", Place(span.source, span.line, span.column))
    return Fragment(builder.text(), 0, 4)
