"""The scanner: cuts one level of text into the pieces that `cntkpy/grammar/config.lark` puts together to records.

It does what a grammar cannot: it knows the closer of every bracket (found once for a whole text, however deep the
nesting, and used again when the inside is read), and the separators of the level it is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span
from cntkpy.cntk_config.base.source import BLANKS, COMMENT, VARIABLE, Fragment, Text
from cntkpy.grammar.tables import Token, make_token

OPENERS = {"[": "]", "(": ")", "{": "}", '"': '"'}
CLOSERS = "])}"
SEPARATORS = "\n\r,"
CHOSEN = frozenset("`~!@#$%^&*_-+|:;,?.")
_BRACKET = re.compile(r'[\[\](){}]|"[^"]*"?')
_BLANK = re.compile(r"[ \t]*")
_OPENS = re.compile(r".*(?:[=:,;*+(\[{]|\binclude)", re.IGNORECASE)
"""Pattern of the characters before a quote that begins a text."""
_DATA = re.compile(r"[-+][0-9.]|\.[0-9./\\]|_[0-9A-Za-z]|~[/\\]")
"""Pattern of values that look like the choice of a separator."""


class Brackets:
    """The closer of every bracket and quote of a text; or the error that ends it."""

    def __init__(self, text: Text) -> None:
        string = text.string
        self.closers: dict[int, int] = {}
        self._open: list[int] = []
        self._wrong: int | None = None
        closers, stack = self.closers, self._open
        for match in _BRACKET.finditer(string):
            char, start = string[match.start()], match.start()
            if char == '"':
                closed = match.end() - start > 1 and string[match.end() - 1] == '"'
                # the next quote closes another text if a comment has cut off the one that belongs here
                if not closed or ("\n" in match[0] and _cut_off(text, start)):
                    stack.append(start)
                    return
                closers[start] = match.end() - 1
            elif char in OPENERS:
                stack.append(start)
            elif stack:
                if OPENERS[string[stack[-1]]] != char:
                    self._wrong = start
                    return
                closers[stack.pop()] = start

    @staticmethod
    def of(text: Text) -> Brackets:
        """Return the brackets of a text, looked for once."""
        if not isinstance(text.brackets, Brackets):
            text.brackets = Brackets(text)
        return text.brackets

    def error(self, text: Text, opener: int) -> ConfigError:
        """UnclosedBracket or MismatchedBracket, for an opener of `text` that has no closer."""
        string = text.string
        if (lost := self._lost_quote(string)) is not None:
            return _half_a_quote(text, lost, self.closers[lost])
        if (pair := self._lost_closer(text)) is not None:
            return _never_closed(text, *pair)
        innermost = self._open[-1] if self._open else opener
        bracket = string[innermost]
        if self._wrong is not None:
            return ConfigError(
                "MismatchedBracket",
                f"'{string[self._wrong]}' cannot close the '{bracket}' opened at {text.span(innermost)}",
                text.span(self._wrong),
                hint=f"a '{OPENERS[bracket]}' is missing before it, or this '{string[self._wrong]}' is one too many",
            )
        span = text.span(innermost)
        if bracket == '"':
            return ConfigError(
                "UnclosedBracket",
                "this quote is never closed",
                span,
                hint="the '#' after a blank starts a comment, even in quotes; leave no blank before it"
                if _comment_behind(span)
                else "add the missing '\"' in this line",
            )
        notes: list[str] = []
        if len(self._open) > 1:
            notes.append(f"{len(self._open)} brackets are open; the outermost is at {text.span(self._open[0])}")
        message = f"this '{bracket}' is never closed"
        return ConfigError("UnclosedBracket", message, span, hint=f"add the missing '{OPENERS[bracket]}'", notes=notes)

    def _lost_quote(self, string: str) -> int | None:
        """Return the first quote that continues in other lines, but seems to be half of a text of its own line.

        After a lost quotation mark all others swap their parts: what closes a text is taken for an opener.
        """
        for opener, end in self.closers.items():
            if string[opener] != '"' or "\n" not in string[opener:end]:
                continue
            if not _OPENS.fullmatch(_line_before(string, opener) or "=") or _OPENS.fullmatch(_line_before(string, end)):
                return opener
        return None

    def _lost_closer(self, text: Text) -> tuple[int, int] | None:
        """Return the bracket that the layout tells is never closed, and the closer of another one that was taken for
        its own.

        A closer at the beginning of a line stands no further left than the line of its opener. One that fits only a
        bracket further out ends what is open in lines before.
        """
        string = text.string
        for opener, end in sorted(self.closers.items(), key=lambda pair: pair[1]):
            if string[opener] != '"' and _begins_line(string, end) and _indent(text, end) < _indent(text, opener):
                return opener, end
        if self._wrong is None or not self._open:
            return None
        inner, around = self._open[-1], (OPENERS[string[level]] for level in self._open[:-1])
        if string[self._wrong] in around and "\n" in string[inner : self._wrong]:
            return inner, self._wrong
        return None


def _indent(text: Text, offset: int) -> int:
    """Return the number of blanks the line begins with in which something stands."""
    span = text.span(offset)
    return _blanks_before(span.source.line(span.line) or "")


@lru_cache(1)
def _blanks_before(line: str) -> int:
    """Return the number of blanks a line begins with; many brackets in turn may ask for the same line."""
    return _BLANK.match(line).end()  # type: ignore[union-attr]


def _never_closed(text: Text, opener: int, taken: int) -> ConfigError:
    bracket, character = text.string[opener], text.string[taken]
    hint = f"add the missing '{OPENERS[bracket]}'; the '{character}' at {text.span(taken)} closes another bracket"
    return ConfigError("UnclosedBracket", f"this '{bracket}' is never closed", text.span(opener), hint=hint)


def _begins_line(string: str, offset: int) -> bool:
    """Return whether nothing but blanks is in the line before an offset."""
    while offset > 0 and string[offset - 1] in BLANKS:
        offset -= 1
    return offset == 0 or string[offset - 1] == "\n"


def _line_before(string: str, offset: int) -> str:
    """Return the text of the line before an offset, without trailing blanks."""
    return string[string.rfind("\n", 0, offset) + 1 : offset].rstrip(BLANKS)


def _half_a_quote(text: Text, opener: int, following: int) -> ConfigError:
    return ConfigError(
        "UnclosedBracket",
        "this quote is never closed",
        text.span(opener),
        hint=f"add the missing '\"' in this line; the next one, at {text.span(following)}, belongs to another text",
    )


def _comment_behind(span: Span) -> str:
    """Return the comment after a place, in its line; empty if there is none."""
    line = span.source.line(span.line) or ""
    return next((match[0] for match in COMMENT.finditer(line) if match.start() >= span.column), "")


def _cut_off(text: Text, quote: int) -> bool:
    """Return whether a comment has swallowed the closer of a quote: it has an odd number of them."""
    return _comment_behind(text.span(quote)).count('"') % 2 == 1


def closer(text: Text, opener: int) -> int:
    """Return the offset of the closer of the bracket or quote at `opener`; raises UnclosedBracket or
    MismatchedBracket.
    """
    brackets = Brackets.of(text)
    result = brackets.closers.get(opener)
    if result is None:
        raise brackets.error(text, opener)
    return result


class Level(NamedTuple):
    """Working state of the scanner: a fragment, the separator chosen for it, and whether it is a list."""

    fragment: Fragment
    separator: str
    is_list: bool = False


def inside(fragment: Fragment, opener: int, usual: str, is_list: bool) -> Level:
    """Return the level inside the bracket at `opener`, where `usual` separates unless the bracket chooses another."""
    text = fragment.text
    start, end = opener + 1, closer(text, opener)
    if start < end and text.string[start] in CHOSEN:
        string = text.string
        data = _DATA.match(string, start, end) or string.startswith("\\\\", start, end)
        if not data and not (string[start] == "$" and VARIABLE.match(string, start, end)):
            return Level(Fragment(text, start + 1, end), string[start], is_list)
    return Level(Fragment(text, start, end), usual, is_list)


class _Patterns:
    """The regular expressions of a level with a certain separator."""

    def __init__(self, separator: str, is_list: bool) -> None:
        separators = re.escape(SEPARATORS + separator)
        self.separators = frozenset(SEPARATORS + separator)
        self.gap = re.compile(rf"[ \t{separators}]*")
        joint = "=" if not is_list else "*" if separator != "*" else ""
        self.text = re.compile(rf'[^{separators}\[({{"{joint}]*')
        joints = "".join(c for c in ":*" if c not in self.separators)
        self.join = re.compile(rf"[ \t]*[{joints}]") if joints else re.compile(r"(?!)")
        self.repeat = re.compile(rf'\*[^{separators}\[({{"]*')


@cache
def _patterns(separator: str, is_list: bool) -> _Patterns:
    return _Patterns(separator, is_list)


def pieces_of(level: Level) -> Iterator[Token]:
    """Iterate over the pieces of a level, each a token with `start_pos` and `end_pos` in its text."""
    return list_pieces(level) if level.is_list else set_pieces(level)


def set_pieces(level: Level) -> Iterator[Token]:
    """_SEP, EQ, TEXT, QUOTED, GROUP, JOIN, STRAY."""
    (text, position, end), patterns = level.fragment, _patterns(level.separator, False)
    string, separators = text.string, patterns.separators
    named = False  # a name or a `=` of the record has been seen
    while position < end:
        position = _BLANK.match(string, position, end).end()  # type: ignore[union-attr]
        if position >= end:
            return
        char = string[position]
        if char in separators:
            stop = patterns.gap.match(string, position, end).end()  # type: ignore[union-attr]
            yield _piece("_SEP", position, stop)
            named = False
        elif char == "=":
            stop = position + 1
            yield _piece("EQ", position, stop)
            named = True
        elif char in OPENERS:
            stop = closer(text, position) + 1
            yield _piece("QUOTED" if char == '"' else "GROUP", position, stop)
            if named and (join := patterns.join.match(string, stop, end)):
                yield make_token("JOIN", join[0][-1], stop, join.end())
                stop = join.end()
            elif named:
                named = False
            elif char == '"':
                following = _BLANK.match(string, stop, end).end()  # type: ignore[union-attr]
                named = following < end and (string[following] == "=" or string[following] in OPENERS)
        elif not named and char in CLOSERS:
            stop = position + 1
            yield _piece("STRAY", position, stop)
        else:
            stop = patterns.text.match(string, position, end).end()  # type: ignore[union-attr]
            yield _piece("TEXT", position, position + len(string[position:stop].rstrip(" \t")))
            named = True
        position = stop


def list_pieces(level: Level) -> Iterator[Token]:
    """_SEP, TEXT, QUOTED, GROUP, REPEAT."""
    (text, position, end), patterns = level.fragment, _patterns(level.separator, True)
    string, separators = text.string, patterns.separators
    while position < end:
        position = _BLANK.match(string, position, end).end()  # type: ignore[union-attr]
        if position >= end:
            return
        char = string[position]
        if char in separators:
            stop = patterns.gap.match(string, position, end).end()  # type: ignore[union-attr]
            yield _piece("_SEP", position, stop)
        elif char in OPENERS:
            stop = closer(text, position) + 1
            yield _piece("QUOTED" if char == '"' else "GROUP", position, stop)
        elif char == "*":
            stop = patterns.repeat.match(string, position, end).end()  # type: ignore[union-attr]
            yield _piece("REPEAT", position, stop)
        else:
            stop = patterns.text.match(string, position, end).end()  # type: ignore[union-attr]
            yield _piece("TEXT", position, position + len(string[position:stop].rstrip(" \t")))
        position = stop


def _piece(kind: str, start: int, end: int) -> Token:
    return make_token(kind, "", start, end)
