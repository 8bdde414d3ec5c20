"""Errors and warnings that know where they come from.

A `Diagnostic` is one finding: what is wrong, the place in the user's text, what to do. `UserError` carries one as an
exception; everything a user can cause is a `UserError`, so a traceback always means a fault of the program.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from cntkpy.cntk_config.base.kinds import Kind, Rule, kind_of, rule_of
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.spelling import nearest

Severity = Literal["error", "warning", "note"]
Hint = str | Callable[[], str | None] | None
"""Advice. A function is called only when the hint is shown (looking for similar names takes time)."""


class SourceLike(Protocol):
    """Protocol of a span's source: a name to print and its lines."""

    @property
    def name(self) -> str:
        """The name as the user wrote it: a path, or `<argument 2>`."""
        ...

    def line(self, number: int) -> str | None:
        """Line `number` (from 1) without its line end, or None."""
        ...


BEFORE = 1000
"""Number of characters examined before a place: a line may be long, and have something wrong everywhere."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source. Line and column count from 1, columns count characters."""

    source: SourceLike
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def match(self, pattern: re.Pattern[str], skipped: int = 0) -> re.Match[str] | None:
        """Match a pattern here, or `ahead` characters further on; nothing is copied, for a line may be long."""
        return pattern.match(self.source.line(self.line) or "", self.column - 1 + skipped)

    def starts_with(self, text: str) -> bool:
        """Return whether the line continues with this text here."""
        return (self.source.line(self.line) or "").startswith(text, self.column - 1)

    @property
    def before(self) -> str:
        """The text of the line up to here, the last `BEFORE` characters of it."""
        end = self.column - 1
        return (self.source.line(self.line) or "")[max(0, end - BEFORE) : end]

    @property
    def in_word(self) -> bool:
        """True if it is in a word of the command line."""
        return self.source.name.startswith("<argument")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `kind` is the stable name of a kind such as `BadInteger`, see `cntkpy.cntk_config.base.kinds`.

    Raises:
        ValueError: there is no kind of that name.
    """

    kind: str
    message: str
    span: Span | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    severity: Severity = "error"

    def __post_init__(self) -> None:
        kind_of(self.kind)
        object.__setattr__(self, "message", masked(self.message))
        object.__setattr__(self, "hint", masked(self.hint) if self.hint else self.hint)

    @property
    def rule(self) -> Rule:
        """Code, title and page of its kind."""
        return rule_of(self.kind)

    def one_line(self) -> str:
        """`file:line:col: error: message`, the form editors and CI understand."""
        place = f"{self.span}: " if self.span else ""
        return f"{place}{self.severity}: {printable(self.message)}"

    def render(self) -> str:
        """Several lines: the message, the place, the line with a caret, and what to do."""
        lines = [f"{self.severity}: {printable(self.message)}"]
        if self.span is not None:
            lines.append(f"  --> {self.span}")
            lines.extend(_excerpt(self.span))
        lines.extend(f"  note: {printable(note)}" for note in self.notes)
        if self.hint:
            lines.append(f"  help: {printable(self.hint)}")
        return "\n".join(lines)


class UserError(ValueError, RuntimeError):
    """Something the user can repair. `str()` gives the message, `.diagnostic` the rest.

    CNTK's Python interface raised a `ValueError` or a `RuntimeError`, depending on the part of its library.
    This is both, so that programs for it catch it.

    The classes say who has to act, and with them the exit code; the kind says what to repair.

    - `UserError`: a run cannot continue: a file, a network, a device, another process. Exit code 1.
    - `ConfigError`: a fault in the configuration or a network description. Exit code 2.
    - `CallError`: a program calls something with arguments that do not fit. It is a `TypeError` as well.
    - `DataError` (`cntkpy.readers.errors`): data are not as their section says. Exit code 1.
    - `ArgumentError` (`cntkpy.readers.errors`): a program asks a Python interface for what cannot be.

    Args:
        kind: the name of the kind of error, see `cntkpy.cntk_config.base.kinds`; that of a plug-in is `package.Name`.
        message: what is wrong.
        span: the place in the user's text.
        hint: what to do.
        notes: more about it, one line each.

    Raises:
        ValueError: there is no kind of that name.
    """

    exit_code = 1
    _process_only: ClassVar[frozenset[str]] = frozenset()
    """Attributes that other processes do not get, nor the class that has them: networks and texts."""

    def __init__(
        self, kind: str, message: str, span: Span | None = None, hint: Hint = None, notes: Iterable[str] = ()
    ) -> None:
        message, notes = masked(_without_middle(message)), [masked(note) for note in notes]
        hint = masked(hint) if isinstance(hint, str) else hint
        super().__init__(message)
        self.message = message
        self.span = span
        self.notes = tuple(notes)
        self.kind: Kind = kind_of(kind)
        """Its kind: code, title, page; it equals its name, for instance `BadInteger`."""
        self._hint = hint
        for text in (*self.notes, f"help: {hint}" if isinstance(hint, str) else None):
            if text:
                self.add_note(text)  # programs see a traceback, not a diagnostic: it says there, too, what to do

    @property
    def hint(self) -> str | None:
        """Advice, when known."""
        if callable(self._hint) and not isinstance(self._hint, str):
            self._hint = self._hint()
        return self._hint

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as a finding, ready to be shown."""
        return Diagnostic(self.kind, self.message, self.span, self.hint, self.notes)

    def with_note(self, note: str) -> Self:
        """Return the same error with one more note; eight are enough."""
        if len(self.notes) >= 8:
            return self
        error = copy.copy(self)
        error.notes = (*self.notes, note)
        return error

    def reworded(self, words: Callable[[str], str]) -> Self:
        """Return the same error with each of its texts changed by `words`."""
        error = copy.copy(self)
        error.message, hint = words(self.message), self.hint
        error.args = (error.message, *self.args[1:])
        error.notes, error._hint = tuple(map(words, self.notes)), words(hint) if hint else None
        error.__notes__ = []
        for text in (*error.notes, *([f"help: {error._hint}"] if error._hint else [])):
            error.add_note(text)
        return error

    def __copy__(self) -> Self:
        error = type(self).__new__(type(self), *self.args)
        error.__dict__.update(self.__dict__)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in self.__dict__.items() if name not in self._process_only}
        kinds: tuple[Any, ...] = type(self).__mro__
        kind = next(kind for kind in kinds if not kind._process_only)
        return _restore, (kind, self.args, {**state, "_hint": self.hint})


class ConfigError(UserError):
    """A fault in the configuration: exit code 2."""

    exit_code = 2


class CallError(UserError, TypeError):
    """A program calls something with arguments that do not fit, or with what is no function."""


def _restore(kind: type[UserError], args: tuple[Any, ...], state: dict[str, Any]) -> UserError:
    """Make an error again that came from another process."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


_BEGIN, _END = 1500, 500


def _without_middle(text: str) -> str:
    """Return a message that no screen could hold, as one that quotes a file without line ends, as its begin and end."""
    return text if len(text) <= _BEGIN + _END else f"{text[:_BEGIN]} ... {text[-_END:]}"


def suggestion(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """`did you mean 'x'?` for the nearest candidate, or None; `cutoff`: how alike they have to be, 0 to 1."""
    nearest_name = nearest(name, candidates, cutoff)
    if nearest_name is None:
        return None
    quoted = len(name) > 1 and name[0] == name[-1] == "'"
    return f"did you mean '{nearest_name}'?" + (
        ' Only "..." quotes a value here, single quotes are part of it' * quoted
    )


_BLANKS = re.compile(r"[ \t\r\n\f\v]+")
"""Not the blanks of Unicode, which are not blanks in a configuration: they are shown as they are in the line."""


def shorten(text: str, limit: int = 60) -> str:
    """`text` on one line and at most `limit` characters long, for use inside a message."""
    flat = _BLANKS.sub(" ", text[: 4 * limit]).strip(" ")
    return flat if len(flat) <= limit and len(text) <= 4 * limit else flat[: limit - 3] + "..."


_NOT_ESCAPED = {code: f"\\u{code:04x}" for code in range(127, 160)}
"""Control characters that `json.dumps` leaves as they are, and their escapes."""


def printable_json(text: str) -> str:
    """Return a text of JSON whose control characters are all escaped: some terminals obey those from 128 on, too."""
    return text.translate(_NOT_ESCAPED)


def printable(text: str) -> str:
    """`text` with control characters (which could confuse a terminal) made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


WIDTH = 160
"""Characters of a line that are shown."""
LONG = 30
"""Characters from which on a section is underlined up to its bracket only."""


def _excerpt(span: Span) -> list[str]:
    """Return the line of `span` with a caret under the place; long lines are cut around it."""
    line = span.source.line(span.line)
    if line is None:
        return []
    start = max(0, span.column - 1 - WIDTH // 2) if len(line) > WIDTH else 0
    shown = masked(line, "*")[start : start + WIDTH]
    begin = min(span.column - 1 - start, len(shown))
    length = max(1, min(span.length, len(shown) - begin))
    if length > LONG and "[" in shown[begin : begin + length]:  # a section, not what it contains
        length = shown.index("[", begin) + 1 - begin
    padding = "".join("\t" if c == "\t" else " " * len(printable(c)) for c in shown[:begin])
    carets = "^" * max(1, len(printable(shown[begin : begin + length])))
    number = str(span.line)
    gutter = " " * len(number)
    return [f" {gutter} |", f" {number} | {printable(shown).rstrip()}", f" {gutter} | {padding}{carets}"]
