"""Sources of text (files, command-line words), and text which remembers its places.

Everything a user wrote is joined into one `Text` before it is parsed, with comments and empty lines gone. A `Text`
keeps a map from its offsets back to file, line and column; a `Fragment` is a stretch of a `Text`. Nothing is copied
when a section inside a section is read: it is a narrower fragment of the same text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span
from cntkpy.grammar.tables import terminal

COMMENT = terminal("config", "COMMENT")
VARIABLE = terminal("config", "VARIABLE")
UNTIDY = re.compile(rf"{COMMENT.pattern}|^[ \t]*$", re.MULTILINE)
BLANKS = " \t"


class Source:
    """One file, one command-line word, or a text given by a program: its name and its lines, for messages."""

    def __init__(
        self,
        name: str,
        text: str = "",
        *,
        path: Path | None = None,
        argument: int | None = None,
        included_at: Span | None = None,
        url: str | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.path = path
        """The absolute path of a file."""
        self.url = url
        """The URL of a text that is not on this machine."""
        self.argument = argument
        """The number of a command-line word, from 1."""
        self.included_at = included_at
        """The include statement that brought this file in."""
        self.is_path = False
        """True if it is a word `section/name=value`, whose value `default` removes the entry."""

    def __repr__(self) -> str:
        return f"Source({self.name!r})"

    @property
    def identity(self) -> Hashable:
        """All that tells this source from others, for comparisons."""
        return self.name, self.text, self.path, self.argument, str(self.included_at), self.url

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends and without byte order marks."""
        return [line.removesuffix("\r").removeprefix("\ufeff") for line in self.text.split("\n")]

    def line(self, number: int) -> str | None:
        """Line `number` (from 1), or None."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else None


class Use(NamedTuple):
    """A variable that was put into a text."""

    name: str
    text: str
    span: Span
    """Definition of the variable."""
    length: int
    """Length of `$name$` in the text that uses it."""
    inner: tuple[Use, ...] = ()
    """The variables that were put into its own text."""

    @property
    def identity(self) -> Hashable:
        """The variable and its text with their places, for comparisons."""
        assert isinstance(self.span.source, Source)
        place = self.span.source.identity, self.span.line, self.span.column, self.span.length
        return self.name, self.text, place, self.length, tuple(use.identity for use in self.inner)


class Place(NamedTuple):
    """Start of a stretch of text. A stretch that was put in for a variable stays at the place of `$name$`."""

    source: Source
    line: int
    column: int
    use: Use | None = None


class Text:
    """A string with a map from its offsets to places. `TextBuilder` makes one."""

    def __init__(self, string: str, stretches: SourceMap) -> None:
        self.string = string
        self._map = stretches
        self.brackets: object | None = None
        """Brackets found by the scanner; see pieces.py."""
        self.parsed: dict[tuple[str, int, int], Any] = {}
        """Parse results of its stretches; see parse.py."""

    def with_string(self, string: str) -> Text:
        """Return a text with another string of the same length, whose characters have the same places."""
        return Text(string, self._map)

    @property
    def has_uses(self) -> bool:
        """True when a variable was put in somewhere."""
        return bool(self._map.uses)

    @property
    def identity(self) -> Hashable:
        """The string and the places of its characters, for comparisons."""
        return self.string, self._map.identity

    def span(self, offset: int, length: int = 1) -> Span:
        """Return the place of the character at `offset`; past the end, the place after the last character."""
        known = self._map
        if not known.starts:
            return Span(Source("<empty>"), 1, 1, length)
        index = max(0, bisect_right(known.starts, offset) - 1)
        if use := known.uses.get(index):
            return Span(known.sources[index], known.lines[index], known.columns[index], use.length)
        column = known.columns[index] + offset - known.starts[index]
        return Span(known.sources[index], known.lines[index], column, length)

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int, Place]]:
        """Yield the map of `[start, end)`: (start, end, place) of every stretch."""
        known = self._map
        index = max(0, bisect_right(known.starts, start) - 1)
        while start < end:
            last = known.starts[index + 1] if index + 1 < len(known.starts) else len(self.string)
            stop = min(last, end)
            if start < stop:
                use = known.uses.get(index)
                column = known.columns[index] + (0 if use else start - known.starts[index])
                yield start, stop, Place(known.sources[index], known.lines[index], column, use)
                start = stop
            index += 1


class SourceMap:
    """Starts of the stretches of a text, with the origin of each. Flat arrays: there is one stretch for every line."""

    __slots__ = ("columns", "lines", "sources", "starts", "uses")

    def __init__(self) -> None:
        self.starts, self.lines, self.columns = array("q"), array("q"), array("q")
        self.sources: list[Source] = []
        self.uses: dict[int, Use] = {}
        """The variable that follows a stretch, by its index."""

    @property
    def identity(self) -> Hashable:
        """The places of all stretches, for comparisons."""
        numbers = {source: number for number, source in enumerate(dict.fromkeys(self.sources))}
        return (
            *(places.tobytes() for places in (self.starts, self.lines, self.columns)),
            tuple(source.identity for source in numbers),
            tuple(numbers[source] for source in self.sources),
            tuple((index, use.identity) for index, use in self.uses.items()),
        )


class TextBuilder:
    """Collects pieces of text and the place of each."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._map = SourceMap()
        self.length = 0

    def add(self, string: str, place: Place) -> None:
        """Append `string`, which was found at `place`."""
        known, (source, line, column, use) = self._map, place
        if use:
            known.uses[len(known.starts)] = use
        known.starts.append(self.length)
        known.sources.append(source)
        known.lines.append(line)
        known.columns.append(column)
        self._pieces.append(string)
        self.length += len(string)

    def add_lines(self, source: Source) -> None:
        """Append all lines of a source."""
        known, lines = self._map, [f"{line}\n" for line in source.lines]
        *starts, self.length = accumulate(map(len, lines), initial=self.length)
        known.starts.extend(starts)
        known.sources.extend(repeat(source, len(lines)))
        known.lines.extend(range(1, len(lines) + 1))
        known.columns.extend(repeat(1, len(lines)))
        self._pieces.extend(lines)

    def copy(self, text: Text, start: int, end: int) -> None:
        """Append a stretch of another text with its places."""
        for begin, stop, place in text.stretches(start, end):
            self.add(text.string[begin:stop], place)

    def text(self) -> Text:
        """Return the collected text."""
        return Text("".join(self._pieces), self._map)


class Fragment(NamedTuple):
    """The stretch `[start, end)` of a text."""

    text: Text
    start: int
    end: int

    @property
    def string(self) -> str:
        """The characters."""
        return self.text.string[self.start : self.end]

    @property
    def span(self) -> Span:
        """The place of the first character, as long as the first line of the fragment."""
        end = self.text.string.find("\n", self.start, self.end)
        return self.text.span(self.start, max(1, (self.end if end < 0 else end) - self.start))

    @property
    def uses(self) -> tuple[Use, ...]:
        """The variables that were put into this stretch, each once."""
        if not self.text.has_uses:
            return ()
        uses = (place.use for _, _, place in self.text.stretches(self.start, self.end))
        return tuple({use.name.lower(): use for use in uses if use}.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the definitions of variables expanded in this stretch."""
        return tuple(f"${use.name}$ is defined at {use.span}" for use in self.uses)

    def __str__(self) -> str:
        return str(self.span)

    def trimmed(self) -> Fragment:
        """Without the blanks around it."""
        string, start, end = self.text.string, self.start, self.end
        while start < end and string[start] in BLANKS:
            start += 1
        while end > start and string[end - 1] in BLANKS:
            end -= 1
        return Fragment(self.text, start, end)

    def tidy(self) -> Fragment:
        """Without comments and empty lines: files are tidied when they are read, words and values here.

        A `#` directly after a quotation mark is none at the beginning of a line, and so no comment.
        """
        string = self.text.string
        if string.find("#", self.start, self.end) < 0 and string.find("\n", self.start, self.end) < 0:
            return self
        if not UNTIDY.search(self.string):
            return self
        builder = TextBuilder()
        offset = self.start
        quoted = string[self.start - 1 : self.start] == '"'
        for line in self.string.split("\n"):
            kept = tidy_line(line) if offset > self.start or not quoted else tidy_line('"' + line)
            if kept is not None and offset == self.start and quoted:
                kept = kept[0], kept[1][1:]
            if kept is not None:
                column, remainder = kept
                builder.copy(self.text, offset + column, offset + column + len(remainder))
                builder.add("\n", Place(*_corner(self.text.span(offset + column + len(remainder)))))
            offset += len(line) + 1
        if not builder.length:
            builder.add("", Place(*_corner(self.text.span(self.start))))
        text = builder.text()
        return Fragment(text, 0, max(0, builder.length - 1)).trimmed()


class Line(NamedTuple):
    """One line that is left of a source, with its place."""

    string: str
    place: Place


def tidy_line(line: str) -> tuple[int, str] | None:
    """(offset, text) of what is left of a line without its comment, or None if nothing is."""
    if "#" in line and (match := COMMENT.search(line)):
        line = line[: match.start()]
        remainder = line.lstrip(BLANKS)
        return (len(line) - len(remainder), remainder) if remainder else None
    return (0, line) if line.strip(BLANKS) else None


BINARY_BYTES = 4096
"""Bytes at the start of a file among which a zero says that it is no text."""


def _is_binary(start: bytes) -> bool:
    """Return whether a file begins with zeros among bytes that are no text; text in UTF-16 has zeros, too."""
    letters = start.replace(b"\0", b"").translate(None, b"\t\n\r\f\v")
    return 0 in start and not (letters.isascii() and letters.decode("latin-1").isprintable())


def decode(data: bytes, name: str, *, path: Path | None = None, included_at: Span | None = None) -> Source:
    """Return a source from the bytes of a file, which must be UTF-8; a zero is a sign of UTF-16, or of no text at
    all.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        message = "the file is text in UTF-16, of which nothing is read"
        hint = f"save it as UTF-8, for instance: iconv -f UTF-16 -t UTF-8 {name} > utf8-{Path(name).name}"
        raise ConfigError("MalformedLine", message, Span(Source(name, "", path=path), 1, 1), hint)
    bad, reason = data.find(0), "is not a text"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not 0 <= bad < error.start:
            bad, reason = error.start, "is not valid UTF-8"
        text = data.decode("utf-8", "replace")
    source = Source(name, text, path=path, included_at=included_at)
    if bad >= 0:
        previous_data = data[:bad]
        number = previous_data.count(b"\n") + 1
        column = len(previous_data.rpartition(b"\n")[2].decode("utf-8").removeprefix("\ufeff")) + 1
        message = f"the byte 0x{data[bad]:02X} {reason}"
        if _is_binary(data[:BINARY_BYTES]):  # the line is none, and not for a terminal
            place = Span(Source(name, "", path=path, included_at=included_at), number, column)
            hint = f"this is a binary file; if it holds data, `cntkpy preview {name}` may show it"
            raise ConfigError("MalformedLine", message, place, hint)
        raise ConfigError("MalformedLine", message, Span(source, number, column), hint="save the file as UTF-8")
    return source


def read_lines(source: Source, *, tidy: bool = True) -> list[Line]:
    """Return the lines of a source that are left without comments and empty lines."""
    lone = re.search(r"\r(?!\n)", source.text)
    if lone:
        previous = source.text[: lone.start()]
        column = len(previous.rpartition("\n")[2].removeprefix("\ufeff")) + 1
        raise ConfigError(
            "MalformedLine",
            "a carriage return that does not belong to a line end",
            Span(source, previous.count("\n") + 1, column),
            hint="lines end with LF or CR LF; convert the file's line ends",
        )
    lines: list[Line] = []
    for number, string in enumerate(source.lines, 1):
        kept = tidy_line(string) if tidy else (0, string) if string.strip(BLANKS) else None
        if kept is not None:
            lines.append(Line(kept[1], Place(source, number, kept[0] + 1)))
    return lines


def join_lines(lines: list[Line]) -> Text:
    """Return the text of the lines, each followed by a newline."""
    builder = TextBuilder()
    for line in lines:
        builder.add(line.string + "\n", line.place)
    return builder.text()


def _corner(span: Span) -> tuple[Source, int, int]:
    assert isinstance(span.source, Source)
    return span.source, span.line, span.column
