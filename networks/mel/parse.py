"""MEL text -> statements, every part with its place in the text. The grammar is `grammar/mel.lark`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from cntk_config.base import grammars
from networks.builders.ndl.parse import HINTS as NDL_HINTS
from networks.builders.ndl.parse import NAME, Word, syntax_error
from networks.builders.ndl.text import Document, Place, error

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
    """A part of a document as a document of its own."""
    document, start = place.document, place.start
    return Document(place.text, lambda offset: document.locate(start + offset), document.name)


def parse_commands(document: Document, makes_model: Callable[[str], bool]) -> list[Statement]:
    """The statements of a script in order.

    Args:
        document: the script.
        makes_model: whether the function of that name, on the right of `=`, is a command.

    Raises:
        ConfigError: something that is no statement, with its place.
    """
    reader = _Reader(document)
    statements: list[Statement] = []
    for item in _children(_parse(document, "statements")):
        if item.data == "bare":
            place = reader.place(item)
            hint = "a command is written with brackets: " + (place.text.split()[0] + "(...)")
            raise error("InvalidStatement", f"a command was expected: Name(...), not '{place.one_line}'", place, hint)
        if item.data == "call":
            statements.append(reader.call(item))
            continue
        name = reader.name(_children(item)[0])
        if item.data == "snippet":
            inside = reader.place(_children(item)[1])
            statements.append(Snippet(name, Place(document, inside.start + 1, inside.end - 1)))
            continue
        right = _children(item)[1:]
        function = reader.word(right[0]) if len(right) == 2 else None
        if function is not None and makes_model(function.text):
            start = function.place.start
            statements.append(_named_command(Place(document, start, reader.place(item).end), name))
        else:
            statements.append(Inline(reader.place(item), () if function is None else (function,)))
    return statements


def _named_command(place: Place, model: Word) -> Command:
    """`model = Command(...)`, whose text is parsed once more as a command."""
    reader = _Reader(part(place))
    command = reader.call(_parse(reader.document, "call"))
    return Command(command.name, command.arguments, command.options, command.place, model)


@cache
def _parser() -> Lark:
    return grammars.load("mel", propagate_positions=True, start=["statements", "call"])


def _parse(document: Document, start: str) -> Tree[Token]:
    try:
        return _parser().parse(document.text, start=start)
    except UnexpectedInput as problem:
        raise syntax_error(document, problem, HINTS) from None


class _Reader:
    """Turns Lark's trees into statements."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def place(self, tree: Tree[Token]) -> Place:
        return Place(self.document, tree.meta.start_pos, tree.meta.end_pos)

    def word(self, tree: Tree[Token]) -> Word:
        place = self.place(tree)
        if tree.data == "quoted":
            return Word(place.text[1:-1].strip(), place, quoted=True)
        return Word(place.text, place)

    def name(self, tree: Tree[Token]) -> Word:
        word = self.word(tree)
        if NAME.fullmatch(word.text):
            return word
        hint = "names consist of letters, digits, '_', '.' and '-'; statements are separated by newlines, ',' or ';'"
        raise error("InvalidName", f"'{word.place.one_line}' is not a name", word.place, hint)

    def call(self, tree: Tree[Token]) -> Command:
        function, *rest = _children(tree)
        arguments: list[Word] = []
        options: list[tuple[Word, Word]] = []
        for item in rest:
            if item.data == "option":
                left, right = _children(item)
                options.append((self.name(left), self.word(right)))
            else:
                arguments.append(self.word(item))
        return Command(self.name(function), tuple(arguments), tuple(options), self.place(tree))


def _children(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]
