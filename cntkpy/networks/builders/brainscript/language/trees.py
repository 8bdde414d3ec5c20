"""Syntax trees as JSON: the members of BrainScript's library, which `python -m tools.grammar_tables` parses.

A node is a list: the number of its class, its place, its parts. A tree of another text is not used: the file has the
checksum of its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language import syntax
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import Expression

FILE = Path(__file__).parents[1] / "library" / "trees.txt"
"""A line with the checksum of the library's text, and one for each member: where it begins, and its tree."""

_CLASSES: tuple[Callable[..., Any], ...] = (
    syntax.Literal,
    syntax.Name,
    syntax.Prefix,
    syntax.Infix,
    syntax.Conditional,
    syntax.Select,
    syntax.Subscript,
    syntax.Call,
    syntax.Lambda,
    syntax.New,
    syntax.Member,
    syntax.RecordLiteral,
    syntax.ArrayLiteral,
    syntax.Range,
)
_NUMBERS: dict[Any, int] = {kind: number for number, kind in enumerate(_CLASSES)}
_PLACE, _TUPLE, _LIST, _MEMBERS = range(-4, 0)
"""The first elements of lists that are no nodes."""


def _written(value: Any) -> Any:
    """Return a tree, or a part of one, as data of JSON."""
    if isinstance(value, Place):
        return [_PLACE, value.start, value.end]
    if isinstance(value, tuple | list):
        return [_TUPLE if isinstance(value, tuple) else _LIST, *map(_written, cast("list[Any]", value))]
    if isinstance(value, dict):
        return [_MEMBERS, *map(_written, cast("dict[str, Any]", value).values())]
    if (number := _NUMBERS.get(cast("Any", type(value)))) is None:
        return value
    place, *parts = (getattr(value, field.name) for field in fields(value))
    return [number, place.start, place.end, *map(_written, parts)]


def _read(value: Any, text: Text) -> Any:
    if type(value) is not list:
        return value
    number, *items = cast("list[Any]", value)
    if number == _PLACE:
        return Place(text, *items)
    if number >= 0:
        make: Callable[..., Any] = cast("Callable[..., Any]", _CLASSES[number])
        return make(Place(text, items[0], items[1]), *[_read(part, text) for part in items[2:]])
    parts: list[Any] = [_read(part, text) for part in items]
    if number == _MEMBERS:
        return {member.name: member for member in parts}
    return tuple(parts) if number == _TUPLE else parts


@cache
def _trees() -> tuple[int, dict[int, str]]:
    """Return the checksum of the library's text, and the trees of its members by their places."""
    checksum, *lines = FILE.read_text(encoding="utf-8").splitlines()
    members = (line.partition(" ") for line in lines)
    return int(checksum), {int(start): tree for start, _, tree in members}


@cache
def _checksum(string: str) -> int:
    return zlib.crc32(string.encode())


def kept_tree(place: Place) -> Expression | None:
    """Return the value of a member of BrainScript's library; None for a member of another text."""
    checksum, trees = _trees()
    if _checksum(place.text.string) != checksum:
        return None
    return _read(json.loads(trees[place.start]), place.text)


def kept_trees(text: Text, members: Iterable[tuple[Place, Expression]]) -> str:
    """Return the whole file.

    Args:
        text: the library.
        members: the place of each, from its name, and its value.
    """
    trees = (f"{place.start} {json.dumps(_written(value), separators=(',', ':'))}\n" for place, value in members)
    return "".join([f"{_checksum(text.string)}\n", *trees])
