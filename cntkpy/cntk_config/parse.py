"""From one level of text to its records (in a set) or its elements (in an array), by `cntkpy/grammar/config.lark`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar

from cntkpy.cntk_config.base.source import BLANKS, Fragment, TextBuilder
from cntkpy.cntk_config.pieces import OPENERS, SEPARATORS, Brackets, Level, closer, inside, pieces_of
from cntkpy.grammar.tables import Maker, Token, table_parser

Form = Literal["bare", "quoted", "group", "list"]
"""bare: a, f(1,2), a"b"; quoted: "x"; group: [..] (..) {..}; list: several parts joined by `:` or `*`."""


T = TypeVar("T")


class Record(NamedTuple):
    """One record of a set. `kind` is the name of its rule in the grammar; offsets are in the text of the level."""

    kind: str
    start: int
    end: int
    name: tuple[int, int] | None = None
    value: tuple[int, int] | None = None
    form: Form = "bare"


class Item(NamedTuple):
    """One element of an array as written: what is repeated, and the text of `*count` if there is one."""

    start: int
    end: int
    form: Form
    repeat: tuple[int, int] | None = None


class _Shape(NamedTuple):
    """A part of a value."""

    start: int
    end: int
    form: Form


class _Build:
    """Values of the grammar's rules."""

    def set_text(self, children: list[Record]) -> list[Record]:
        return children

    def assignment(self, children: list[Any]) -> Record:
        name: tuple[int, int] = children[0]
        value: _Shape = children[-1]
        return Record("assignment", name[0], value.end, name, (value.start, value.end), value.form)

    def flag(self, children: list[tuple[int, int]]) -> Record:
        start, end = children[0]
        return Record("flag", start, end, children[0])

    def missing(self, children: list[Any]) -> Record:
        name: tuple[int, int] = children[0]
        return Record("missing", name[0], _edge(children[1])[1], name)

    def unnamed(self, children: list[Token | _Shape]) -> Record:
        return Record("unnamed", _edge(children[0])[0], _edge(children[-1])[1])

    def nameless(self, children: list[Token]) -> Record:
        return Record("nameless", *_ends(children[0]))

    def stray(self, children: list[Token]) -> Record:
        return Record("stray", *_ends(children[0]))

    def name(self, children: list[Token]) -> tuple[int, int]:
        start, end = _ends(children[0])
        return (start + 1, end - 1) if children[0].type == "QUOTED" else (start, end)

    def value(self, children: list[_Shape]) -> _Shape:
        if len(children) == 1:
            return children[0]
        return _Shape(children[0].start, children[1].end, "list" if children[1].form == "list" else "bare")

    def tail(self, children: list[Token | _Shape]) -> _Shape:
        parts = [child for child in children if isinstance(child, _Shape)]
        joins = [_ends(child)[1] for child in children if isinstance(child, Token) and child == "*"]
        if joins and joins[-1] > parts[-1].end:  # a repeat without a count
            return _Shape(parts[0].start, joins[-1], "list")
        return parts[0] if len(parts) == 1 else _Shape(parts[0].start, parts[-1].end, "list")

    def part(self, children: list[_Shape]) -> _Shape | None:
        return _Shape(children[0].start, children[-1].end, "bare") if children else None

    def bare(self, children: list[Token]) -> _Shape:
        return _Shape(_ends(children[0])[0], _ends(children[-1])[1], "bare")

    def closed(self, children: list[Token]) -> _Shape:
        return _Shape(*_ends(children[0]), "quoted" if children[0].type == "QUOTED" else "group")

    def array_text(self, children: list[Item]) -> list[Item]:
        return children

    def item(self, children: list[Token | _Shape]) -> Item:
        element, last = children[:-1], children[-1]
        repeat = _ends(last) if isinstance(last, Token) and last.type == "REPEAT" else None
        if repeat is None:
            element = children
        if not element:
            return Item(repeat[0], repeat[0], "bare", repeat) if repeat else Item(0, 0, "bare")
        start, end = _edge(element[0])[0], _edge(element[-1])[1]
        form: Form = element[0].form if isinstance(element[0], _Shape) else "bare"
        return Item(start, end, form, repeat)


def parse_set(fragment: Fragment) -> Sequence[Record]:
    """Return the records of a text that is read as a set, at its outermost level.

    Brackets around the whole text, or around parts of it, are opened: `[a=1] [b=2]` is `[a=1;b=2]`.
    """
    return remembered(fragment, "set", _records)


def parse_array(fragment: Fragment) -> Sequence[Item]:
    """Return the elements of a text that is read as an array. Brackets around the whole text are opened."""
    return remembered(fragment, "array", _items)


def remembered(fragment: Fragment, form: str, parse: Callable[[Fragment], T]) -> T:
    """Return the parsed form of a stretch of text from a cache: several commands read the same section."""
    key = (form, fragment.start, fragment.end)
    known = fragment.text.parsed
    if key not in known:
        known[key] = parse(fragment)
    return known[key]


def _records(fragment: Fragment) -> list[Record]:
    records: list[Record] = []
    level = _one_group(fragment) or _parse(Level(fragment, ";"), "set_text")
    for record in level:
        records.append(record)
        if record.kind == "nameless":
            records.extend(_parse(inside(fragment, record.start, ";", False), "set_text"))
    return records


def _one_group(fragment: Fragment) -> list[Record]:
    """Return the record of a text that is one bracket from end to end, as that of nearly every section is; or none."""
    text, start, end = fragment
    is_bracket = start < end and text.string[start] in "[({" and Brackets.of(text).closers.get(start) == end - 1
    return [Record("nameless", start, end)] if is_bracket else []


def _items(fragment: Fragment) -> list[Item]:
    levels = [inside(fragment, opener, ":", True) for opener in _groups(fragment)] or [Level(fragment, ":", True)]
    items: list[Item] = []
    for level in levels:
        items += _parse(level, "array_text")
    return items


def is_group(fragment: Fragment) -> bool:
    """Return True for a text that is one bracketed group, or several of them side by side, as merged sections are."""
    return bool(_groups(fragment))


def unquoted(fragment: Fragment) -> Fragment:
    """Return the content of a quoted text, trimmed. Brackets in it are matched again, apart from the text around it."""
    content = Fragment(fragment.text, fragment.start + 1, fragment.end - 1).trimmed()
    if not any(char in content.string for char in "[](){}"):
        return content
    builder = TextBuilder()
    builder.copy(content.text, content.start, content.end)
    return Fragment(builder.text(), 0, builder.length)


def _groups(fragment: Fragment) -> list[int]:
    """Return the openers of a text that consists of bracketed groups only, else nothing."""
    text, position, end = fragment
    string = text.string
    numbers: list[int] = []
    while position < end:
        char = string[position]
        if char in OPENERS and char != '"':
            numbers.append(position)
            position = closer(text, position)
        elif char not in BLANKS and char != "\n":
            return []
        position += 1
    return numbers


def _parse(level: Level, start: str) -> list[Any]:
    if level.fragment.start >= level.fragment.end:
        return []
    usual = usual_items(level) if level.is_list else usual_records(level)
    return usual if usual is not None else parse_level(level, start)


def parse_level(level: Level, start: str) -> list[Any]:
    """Return the records, or the elements, of a level by the grammar."""
    return table_parser("config").parse(pieces_of(level), start, _makers())


class _Usual:
    """Regular expressions for what nearly every record and element is.

    A record is `name=text`, `name="text"`, `name=[...]` with any bracket, or a name; an element is `text` or
    `text*count`. Separators stand around each. The grammar takes ten times as long for the same.
    """

    def __init__(self, separator: str) -> None:
        separators = re.escape(SEPARATORS + separator)
        gap, ordinary = rf"[ \t{separators}]*+", rf'[^{separators}\[\](){{}}"'
        self.end = re.compile(rf"[ \t]*+(?=[{separators}]|\Z)")
        self.record = re.compile(
            rf"{gap}(?:(?P<name>{ordinary}=]++)"
            rf'(?P<value>=[ \t]*+(?:(?P<open>[\[({{])|"(?P<quoted>[^"\n]*)"|(?P<text>{ordinary}=]++)))?)?'
        )
        star = "" if separator == "*" else "*"
        repeat = rf"(?P<repeat>\*{ordinary}]*+)?" if star else "(?P<repeat>(?!))?"
        self.item = re.compile(rf"{gap}(?:(?P<text>{ordinary}{star}]++){repeat})?")


@cache
def _usual(separator: str) -> _Usual:
    return _Usual(separator)


def usual_records(level: Level) -> list[Record] | None:
    """Return the records of a level, as the grammar gives them; None if one is not of the usual forms."""
    (text, position, end), usual = level.fragment, _usual(level.separator)
    string, closers = text.string, Brackets.of(text).closers
    records: list[Record] = []
    while position < end:
        match = usual.record.match(string, position, end)
        assert match is not None  # it matches the empty text, too
        position = match.end()
        if match["name"] is None:
            break
        start = match.start("name")
        name = (start, start + len(match["name"].rstrip(" \t")))
        if match["value"] is None:
            records.append(Record("flag", *name, name))
        elif match["text"] is not None:
            first = match.start("text")
            last = first + len(match["text"].rstrip(" \t"))
            records.append(Record("assignment", start, last, name, (first, last), "bare"))
        elif match["quoted"] is not None:
            value = (match.start("quoted") - 1, position)
            records.append(Record("assignment", start, position, name, value, "quoted"))
        else:
            closed = closers.get(match.start("open"))
            if closed is None:
                return None  # the grammar has the error
            position = closed + 1
            records.append(Record("assignment", start, position, name, (match.start("open"), position), "group"))
        if not usual.end.match(string, position, end):
            return None
    return records if position >= end else None


def usual_items(level: Level) -> list[Item] | None:
    """Return the elements of a level, as the grammar gives them; None if one is not of the usual forms."""
    (text, position, end), usual = level.fragment, _usual(level.separator)
    string = text.string
    items: list[Item] = []
    while position < end:
        match = usual.item.match(string, position, end)
        assert match is not None  # it matches the empty text, too
        position = match.end()
        if match["text"] is None:
            break
        start = match.start("text")
        repeat = match.span("repeat") if match["repeat"] is not None else None
        items.append(Item(start, start + len(match["text"].rstrip(" \t")), "bare", repeat))
        if not usual.end.match(string, position, end):
            return None
    return items if position >= end else None


@cache
def _makers() -> dict[str, Maker]:
    build = _Build()
    return {name: getattr(build, name) for name in vars(_Build) if not name.startswith("_")}


def _ends(token: Token) -> tuple[int, int]:
    return token.start_pos, token.end_pos


def _edge(piece: Token | _Shape) -> tuple[int, int]:
    return _ends(piece) if isinstance(piece, Token) else (piece.start, piece.end)
