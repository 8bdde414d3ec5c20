"""Located text: where a piece of an NDL script is in the user's files, and errors that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span


@dataclass(frozen=True, eq=False)
class Document:
    """One text to be parsed as NDL.

    Args:
        text: the text, after substitution of variables.
        locate: the place in the user's file of the character at an offset.
        name: what to call it in messages.
    """

    text: str = field(repr=False)
    locate: Callable[[int], Span | None] = field(repr=False)
    name: str = "<ndl>"


class Place(NamedTuple):
    """The characters `start` to `end` (exclusive) of a document."""

    document: Document
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text itself."""
        return self.document.text[self.start : self.end]

    @property
    def one_line(self) -> str:
        """The text without line breaks, shortened if long."""
        text = " ".join(self.text.split())
        return text if len(text) <= 100 else text[:97] + "..."

    @property
    def span(self) -> Span | None:
        """The span in the user's file, its first line only."""
        span = self.document.locate(self.start)
        if span is None:
            return None
        text = self.text
        return replace(span, length=max(1, len(text.splitlines()[0]) if text else 1))

    @property
    def short(self) -> str:
        """`file:line:column`."""
        span = self.span
        return self.document.name if span is None else f"{span.source.name}:{span.line}:{span.column}"


class ScriptError(ConfigError):
    """A mistake in a script.

    Attributes:
        place: The place in the document.
    """

    _process_only = frozenset({"place"})
    place: Place | None = None


def error(
    kind: str, message: str, place: Place | None, hint: str | None = None, notes: tuple[str, ...] = ()
) -> ScriptError:
    """Return a located error, to be raised."""
    problem = ScriptError(kind, message, None if place is None else place.span, hint, notes)
    problem.place = place
    return problem


def warning(kind: str, message: str, place: Place, hint: str | None = None) -> Diagnostic:
    """Return a located warning."""
    return Diagnostic(kind, message, place.span, hint, severity="warning")
