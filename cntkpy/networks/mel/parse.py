"""MEL text -> statements, every part with its place in the text. The grammar is `cntkpy/grammar/mel.lark`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Never

from lark import Token, Tree
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from cntkpy.cntk_config.base import grammars
from cntkpy.networks.builders.ndl.parse import NAME, Word
from cntkpy.networks.builders.ndl.syntax import HINTS as NDL_HINTS
from cntkpy.networks.builders.ndl.syntax import parsed, transformed, with_places
from cntkpy.networks.builders.ndl.text import Document, Place, error

_NO_MACRO = "macros are defined in the files that ndlMacros names, or in a model: m = [ ... ]"
HINTS = {**NDL_HINTS, "=": f"{NDL_HINTS['=']}; {_NO_MACRO}", "{": _NO_MACRO, "[": _NO_MACRO}


@dataclass(frozen=True, slots=True)
class Command:
    """`Name(arguments, option=value)`; `model`: the name on the left of `=`, if any."""

    name: Word
    arguments: tuple[Word, ...]
    options: tuple[tuple[Word, Word], ...]
    place: Place
    model: Word | None = None


@dataclass(frozen=True, slots=True)
class Inline:
    """Statements of the network description language; `functions`: what they call."""

    place: Place
    functions: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Snippet:
    """`name = [ ... ]`; `place` is the inside of the brackets."""

    name: Word
    place: Place


Statement = Command | Inline | Snippet


def part(place: Place) -> Document:
    """Return a part of a document as a document of its own."""
    document, start = place.document, place.start
    return Document(place.text, lambda offset: document.locate(start + offset), document.name)


def parse_commands(document: Document, makes_model: Callable[[str], bool]) -> list[Statement]:
    """Return the statements of a script in order.

    Args:
        document: the script.
        makes_model: whether the function of that name, on the right of `=`, is a command.

    Raises:
        ConfigError: something that is no statement, with its place.
    """
    reader = _Reader(document, makes_model)
    return transformed(reader, _parse(document, "statements"))


@cache
def _parser() -> grammars.Parser:
    return grammars.load("mel", propagate_positions=True, start=["statements", "call"])


def _parse(document: Document, start: str) -> Tree[Token]:
    return parsed(_parser(), document, start, HINTS)


@with_places
class _Reader(Transformer_NonRecursive[Token, Any]):
    """Turns Lark's trees into statements; there is one method for each rule of the grammar."""

    def __init__(self, document: Document, makes_model: Callable[[str], bool]) -> None:
        super().__init__()
        self.document = document
        self.makes_model = makes_model

    def statements(self, meta: Meta, items: list[Statement]) -> list[Statement]:
        return items

    def bare(self, meta: Meta, items: list[Word]) -> Never:
        place = items[0].place
        hint = "a command is written with brackets: " + (place.text.split()[0] + "(...)")
        raise error("InvalidStatement", f"a command was expected: Name(...), not '{place.one_line}'", place, hint)

    def plain(self, meta: Meta, items: list[Word]) -> Inline:
        self._check_name(items[0])
        return Inline(self._place(meta))

    def snippet(self, meta: Meta, items: list[Word | Place]) -> Snippet:
        name, inside = items
        assert isinstance(name, Word) and isinstance(inside, Place)
        return Snippet(self._check_name(name), Place(self.document, inside.start + 1, inside.end - 1))

    def definition(self, meta: Meta, items: list[Word | Place]) -> Command | Inline:
        name, right = items[0], items[1]
        assert isinstance(name, Word)
        self._check_name(name)
        place = self._place(meta)
        function = right if len(items) == 3 and isinstance(right, Word) else None
        if function is None or not self.makes_model(function.text):
            return Inline(place, () if function is None else (function,))
        inner = part(Place(self.document, function.place.start, place.end))  # once more, as a command
        command: Command = transformed(_Reader(inner, self.makes_model), _parse(inner, "call"))
        return Command(command.name, command.arguments, command.options, command.place, name)

    def call(self, meta: Meta, items: list[Word | tuple[Word, Word]]) -> Command:
        function, *remainder = items
        assert isinstance(function, Word)
        arguments = tuple(item for item in remainder if isinstance(item, Word))
        options = tuple(item for item in remainder if not isinstance(item, Word))
        return Command(self._check_name(function), arguments, options, self._place(meta))

    def option(self, meta: Meta, items: list[Word]) -> tuple[Word, Word]:
        return self._check_name(items[0]), items[1]

    def words(self, meta: Meta, tokens: list[Token]) -> Word:
        place = self._place(meta)
        return Word(place.text, place)

    def quoted(self, meta: Meta, tokens: list[Token]) -> Word:
        place = self._place(meta)
        return Word(place.text[1:-1].strip(), place, quoted=True)

    def round(self, meta: Meta, items: list[object]) -> Place:
        return self._place(meta)

    square = curly = round

    def _place(self, meta: Meta) -> Place:
        return Place(self.document, meta.start_pos, meta.end_pos)

    def _check_name(self, word: Word) -> Word:
        if NAME.fullmatch(word.text):
            return word
        hint = "names consist of letters, digits, '_', '.' and '-'; statements are separated by newlines, ',' or ';'"
        raise error("InvalidName", f"'{word.place.one_line}' is not a name", word.place, hint)
