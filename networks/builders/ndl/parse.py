"""NDL text -> statements, every part with its place in the text. The grammar is `grammar/ndl.lark`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from cntk_config.base import grammars
from cntk_config.base.diagnostics import ConfigError, Diagnostic
from networks.builders.ndl.text import Document, Place, error, warning

MAX_DEPTH = 100  # brackets inside brackets
MAX_REPEAT = 10_000  # of `value*count`
CLOSER = {"(": ")", "[": "]", "{": "}"}
NAME = re.compile(r"[\w.\-]+")
REPEATED = re.compile(r"([^*]*)\*(.*)", re.DOTALL)
SEPARATORS = (
    "`~!@%^&*+|?"  # right after the bracket of an array; those that may stand in names or numbers are not taken
)


@dataclass(frozen=True, slots=True)
class Word:
    """A name, a number or a text. Quotes are not part of the text."""

    text: str
    place: Place
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """`(a, b)`, also in other brackets."""

    items: tuple[Word, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Option:
    """`name=value` inside a call."""

    name: Word
    value: Word | Array


@dataclass(frozen=True, slots=True)
class Call:
    """`Function(arguments, option=value)`; options may stand anywhere."""

    function: Word
    arguments: tuple[Word | Call | Array, ...]
    options: tuple[Option, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name = value`."""

    name: Word
    value: Word | Call | Array


@dataclass(frozen=True, slots=True)
class Macro:
    """`Name(parameters) { body }`; a call without a name in the body stands for `Name(parameters) = Call(...)`."""

    name: Word
    parameters: tuple[Word, ...]
    body: tuple[Assignment | Call, ...]


Statement = Assignment | Macro


def parse_document(document: Document) -> tuple[list[Statement], list[Diagnostic]]:
    """Parse one script; return its statements in order and warnings. Errors are located `ConfigError`s."""
    try:
        tree = _parser().parse(document.text)
    except UnexpectedInput as problem:
        raise syntax_error(document, problem) from None
    reader = _TreeReader(document)
    statements: list[Statement] = []
    for item in reader.statements(tree, depth=0):
        if isinstance(item, Call):
            raise _unnamed_call(item)
        statements.append(item)
    return statements, reader.warnings


@cache
def _parser() -> Lark:
    return grammars.load("ndl", propagate_positions=True)


class _TreeReader:
    """Turns Lark's tree into statements."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.warnings: list[Diagnostic] = []

    def statements(self, tree: Tree[Token], depth: int) -> list[Assignment | Macro | Call]:
        """The statements of a text or block; macro headers are joined with the bodies that follow them."""
        result: list[Assignment | Macro | Call] = []
        header: Call | None = None  # the call just read: perhaps the header of a macro
        for item in _children(tree):
            kind = item.data
            if kind == "bare":
                raise self._bare(item)
            if kind == "call":
                header = self._call(item, depth)
                result.append(header)
                continue
            if kind in ("scalar", "assignment"):
                result.append(self._assignment(item, depth))
            elif header is not None:
                result[-1] = self._macro(header, item, depth)
            elif kind == "block":  # the brackets round a section
                result.extend(self.statements(_children(item)[0], self._deeper(item, depth)))
            else:
                raise error("InvalidStatement", "there is no name on the left of '='", self._place(item))
            header = None
        return result

    def _assignment(self, tree: Tree[Token], depth: int) -> Assignment:
        left, right = _children(tree)
        name = self._name(left, "the name on the left of '='")
        value = self._array(right, depth, own_separator=True) if right.data == "array" else self._value(right, depth)
        if isinstance(value, Word) and len(_children_tokens(right)) > 1:
            raise error(
                "InvalidStatement",
                f"'{value.text}' is neither a number nor a name",
                value.place,
                hint="NDL has no expressions; statements are separated by a newline, ',' or ';'",
            )
        return Assignment(name, value)

    def _macro(self, header: Call, tree: Tree[Token], depth: int) -> Macro:
        """Join a header with its body: a `block`, or `= block`, or `= Call(...)`."""
        parameters: list[Word] = []
        for argument in header.arguments:
            if not isinstance(argument, Word) or not NAME.fullmatch(argument.text):
                raise error("InvalidMacro", "a parameter of a macro must be a plain name", argument.place)
            parameters.append(argument)
        if header.options:
            raise error("InvalidMacro", "a parameter of a macro has no default value", header.options[0].name.place)
        name = self._checked_name(header.function, "the name of a macro")
        with_equals = tree.data == "body"
        content = _children(tree)[0] if with_equals else tree
        if content.data == "call":
            return Macro(name, tuple(parameters), (self._call(content, depth),))
        body: list[Assignment | Call] = []
        for item in self.statements(_children(content)[0], self._deeper(tree, depth)):
            if isinstance(item, Macro):
                raise error("InvalidMacro", "a macro cannot be defined inside another macro", item.name.place)
            if isinstance(item, Call) and not with_equals:
                raise _unnamed_call(item)
            body.append(item)
        return Macro(name, tuple(parameters), tuple(body))

    def _call(self, tree: Tree[Token], depth: int) -> Call:
        depth = self._deeper(tree, depth)
        function, *rest = _children(tree)
        arguments: list[Word | Call | Array] = []
        options: list[Option] = []
        for item in rest:
            if item.data == "option":
                options.append(self._option(item, depth))
                continue
            value = self._value(item, depth)
            if isinstance(value, Array) and self.document.text[value.place.start] == "(":
                raise error(
                    "InvalidArgument",
                    "an argument cannot begin with '('",
                    value.place,
                    hint="an array among arguments is written with braces: {a, b}",
                )
            if not isinstance(value, Word):
                arguments.append(value)
                continue
            repeated = self._repeated(value)
            if len(repeated) != 1 or repeated[0] is not value:
                text = f"'{value.text}' repeats an argument; it does not multiply"
                self.warnings.append(warning("RepeatedArgument", text, value.place))
            for word in repeated:
                self._single(word)
            arguments.extend(repeated)
        return Call(self._name(function, "the name of a function"), tuple(arguments), tuple(options), self._place(tree))

    def _option(self, tree: Tree[Token], depth: int) -> Option:
        left, right = _children(tree)
        name = self._name(left, "the name of an option")
        value = self._value(right, depth)
        if isinstance(value, Call):
            raise error("InvalidArgument", f"the value of the option '{name.text}' cannot be a call", value.place)
        return Option(name, self._single(value) if isinstance(value, Word) else value)

    def _value(self, tree: Tree[Token], depth: int) -> Word | Call | Array:
        if tree.data == "call":
            return self._call(tree, depth)
        if tree.data == "array":
            return self._array(tree, depth)
        place = self._place(tree)
        text = self.document.text[place.start : place.end]
        if tree.data == "quoted":
            return Word(text[1:-1].strip(), place, quoted=True)
        return Word(text, place)

    def _array(self, tree: Tree[Token], depth: int, own_separator: bool = False) -> Array:
        """An array; `own_separator`: a sign right after the bracket separates its elements, as in `(|a|b)`."""
        depth = self._deeper(tree, depth)
        place = self._place(tree)
        sign = self.document.text[place.start + 1] if own_separator else ""
        items: list[Word] = []
        for child in _children(tree):
            value = self._value(child, depth)
            if not isinstance(value, Word):
                raise error("InvalidArgument", "an array holds only names and numbers", value.place)
            for part in self._split(value, sign) if sign and sign in SEPARATORS else [value]:
                items.extend(self._single(word) for word in self._repeated(part))
        return Array(tuple(items), place)

    def _split(self, word: Word, sign: str) -> list[Word]:
        if word.quoted:
            return [word]
        found = re.finditer(rf"[^\s{re.escape(sign)}](?:[^{re.escape(sign)}]*[^\s{re.escape(sign)}])?", word.text)
        starts = [(word.place.start + match.start(), match[0]) for match in found]
        return [Word(text, Place(self.document, start, start + len(text))) for start, text in starts]

    def _repeated(self, word: Word) -> list[Word]:
        """`v*3` is v, v, v."""
        match = None if word.quoted else REPEATED.fullmatch(word.text)
        if match is None:
            return [word]
        value, count = match[1].rstrip(), match[2].strip()
        if not value or not (count.isascii() and count.isdigit()) or len(count) > 9 or int(count) > MAX_REPEAT:
            raise error("BadRepeat", f"'{word.text}' is not of the form value*count", word.place)
        place = Place(self.document, word.place.start, word.place.start + len(value))
        return [Word(value, place)] * int(count)

    def _single(self, word: Word) -> Word:
        if word.quoted or not (blank := re.search(r"\s", word.text)):
            return word
        place = Place(self.document, word.place.start + blank.start(), word.place.end)
        raise error("InvalidArgument", "a separator is missing here", place, hint="arguments are separated by ','")

    def _name(self, tree: Tree[Token], what: str) -> Word:
        place = self._place(tree)
        return self._checked_name(Word(self.document.text[place.start : place.end], place), what)

    def _checked_name(self, word: Word, what: str) -> Word:
        if word.quoted or not NAME.fullmatch(word.text):
            raise error(
                "InvalidName",
                f"'{word.text}' cannot be {what}",
                word.place,
                hint="names consist of letters, digits, '_', '.' and '-'; separators are newlines, ',' and ';'",
            )
        return word

    def _bare(self, tree: Tree[Token]) -> ConfigError:
        place = self._place(tree)
        text = self.document.text[place.start : place.end]
        hint = None
        before = self.document.text[: place.start].rstrip(" \t")
        if before.endswith((")", "]", "}")):
            hint = "a statement ends after its first brackets, nothing may follow; NDL has no expressions"
        return error("InvalidStatement", f"invalid statement, no '=': '{text}'", place, hint=hint)

    def _deeper(self, tree: Tree[Token], depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise error("TooDeep", f"brackets are nested more than {MAX_DEPTH} deep", self._place(tree))
        return depth + 1

    def _place(self, tree: Tree[Token]) -> Place:
        return Place(self.document, tree.meta.start_pos, tree.meta.end_pos)


def _children(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _children_tokens(tree: Tree[Token]) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


def _unnamed_call(call: Call) -> ConfigError:
    text = call.place.text
    return error(
        "InvalidStatement",
        f"invalid statement, no '=': '{text}'",
        call.place,
        hint=f"give the result a name: name = {text}" if len(text) < 60 else "give the result a name",
    )


LAST_VALUE = re.compile(r"=[ \t]*([^\s,;:=()\[\]{}\"]+)[ \t]*\Z")
HINTS = {
    "=": "before the next 'name = ...' a newline, ',' or ';' is missing",
    ";": "arguments are separated by ','",
    "{": "a function is called with round brackets, a macro is defined as Name(parameters) { ... }",
    "[": "a function is called with round brackets, a macro is defined as Name(parameters) [ ... ]",
    ":": "statements are separated by newlines, ',' or ';'",
}
"""What may be wrong where a sign is not expected."""


def syntax_error(document: Document, problem: UnexpectedInput, hints: Mapping[str, str] = HINTS) -> ConfigError:
    """Say in the user's words what Lark met."""
    bracket = _bracket_error(document)
    if bracket is not None:
        return bracket
    start = problem.pos_in_stream or 0
    found = ""
    if isinstance(problem, UnexpectedToken):
        found = str(problem.token)
        ended = problem.token.type == "$END" or problem.token.start_pos is None
        start = len(document.text.rstrip()) if ended else problem.token.start_pos or 0
    elif isinstance(problem, UnexpectedCharacters):
        found = document.text[start : start + 1]
    place = Place(document, start, start + max(1, len(found.rstrip("\r\n"))))
    before = document.text[:start].rstrip()
    if before.endswith("=") and (not found.strip() or found in ",;:)]}"):
        return error("MissingValue", "nothing stands on the right of '='", place)
    if found != "=" and (value := LAST_VALUE.search(document.text, 0, start)):
        left = document.text[: value.start()].rstrip(" \t")
        if left.endswith(")"):
            message = "the body of a macro is a call, or it stands in brackets"
            return error("InvalidMacro", message, Place(document, value.start(1), value.end(1)))
        if not left or left[-1] in "\r\n,;":
            missing = Place(document, value.start(), value.start() + 1)
            return error("InvalidStatement", "a name is missing on the left of '='", missing)
    hint = hints.get(found)
    if found == "=" and (not before or before[-1] in ",;=(" or "\n" in document.text[len(before) : start]):
        hint = "a name is missing on the left of '='" if not before.endswith("=") else "one '=' is enough"
    return error("InvalidStatement", f"'{found.strip() or 'end of line'}' is not expected here", place, hint)


def _bracket_error(document: Document) -> ConfigError | None:
    """The first bracket or quote without a partner."""
    opened: list[int] = []
    position = 0
    pattern = re.compile(r'(?<![^\s)\]}])#[^\r\n]*|"[^"]*"|["(){}\[\]]')
    while match := pattern.search(document.text, position):
        character, start, position = match[0][0], match.start(), match.end()
        place = Place(document, start, start + 1)
        if match[0] == '"':
            return error("UnclosedBracket", "this quote is not closed: '\"' is missing", place)
        if character in CLOSER:
            opened.append(start)
        elif character in ")]}":
            if not opened:
                return error("StrayBracket", f"'{character}' closes nothing", place)
            opener = document.text[opened[-1]]
            if CLOSER[opener] != character:
                note = f"'{opener}' was opened at {Place(document, opened[-1], opened[-1] + 1).short}"
                return error("MismatchedBracket", f"'{character}' found, '{CLOSER[opener]}' expected", place, note)
            opened.pop()
    if not opened:
        return None
    opener = document.text[opened[-1]]
    place = Place(document, opened[-1], opened[-1] + 1)
    return error("UnclosedBracket", f"'{opener}' is not closed: '{CLOSER[opener]}' is missing", place)


def calls_in(body: Sequence[Assignment | Call]) -> list[Call]:
    """The calls of functions and macros in a body, in order."""
    found: list[Call] = []
    waiting: list[object] = list(reversed(body))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Assignment):
            waiting.append(item.value)
        elif isinstance(item, Call):
            found.append(item)
            waiting.extend(reversed(item.arguments))
    return found
