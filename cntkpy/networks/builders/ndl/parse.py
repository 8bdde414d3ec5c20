"""NDL text -> statements, every part with its place in the text. The grammar is `cntkpy/grammar/ndl.lark`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Never, Protocol

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic
from cntkpy.grammar.tables import NotAcceptedError, Token, table_parser
from cntkpy.networks.builders.ndl.text import Document, Place, error, warning

if TYPE_CHECKING:
    import lark

    from cntkpy.cntk_config.base import grammars

OPENERS, CLOSERS = frozenset("([{"), frozenset(")]}")
MAX_DEPTH = 100  # brackets inside brackets
MAX_REPEAT = 10_000  # of `value*count`
BLANK = re.compile(r"\s")
NAME = re.compile(r"[\w.\-]+")
REPEATED = re.compile(r"([^*]*)\*(.*)", re.DOTALL)
SEPARATORS = "`~!@%^&*+|?"  # right after the bracket of an array; those that may be in names or numbers are not taken


class Word(NamedTuple):
    """A name, a number or a text. Quotes are not part of the text."""

    text: str
    place: Place
    quoted: bool = False


class Array(NamedTuple):
    """`(a, b)`, also in other brackets."""

    items: tuple[Word, ...]
    place: Place


class Option(NamedTuple):
    """`name=value` inside a call."""

    name: Word
    value: Word | Array


class Call(NamedTuple):
    """`Function(arguments, option=value)`; options may be anywhere."""

    function: Word
    arguments: tuple[Word | Call | Array, ...]
    options: tuple[Option, ...]
    place: Place


class Assignment(NamedTuple):
    """`name = value`."""

    name: Word
    value: Word | Call | Array


class Macro(NamedTuple):
    """`Name(parameters) { body }`; a call without a name in the body stands for `Name(parameters) = Call(...)`."""

    name: Word
    parameters: tuple[Word, ...]
    body: tuple[Assignment | Call, ...]


Statement = Assignment | Macro


def parse_document(document: Document) -> tuple[list[Statement], list[Diagnostic]]:
    """Parse one script.

    Returns:
        Its statements in order, and warnings.

    Raises:
        ConfigError: anything that is no statement, with its place.
    """
    try:
        items, warnings = read_by_tables(document)
    except (NotAcceptedError, ConfigError):
        items, warnings = read_by_lark(document)
    statements: list[Statement] = []
    for item in items:
        if isinstance(item, Call):
            raise _unnamed_call(item)
        statements.append(item)
    return statements, warnings


def read_by_tables(document: Document) -> tuple[list[Assignment | Macro | Call], list[Diagnostic]]:
    """Return what stands in a script, and warnings.

    Raises:
        NotAcceptedError: It does not follow the grammar, or is nested deep.
        ConfigError: The first mistake; a text that does not follow the grammar may come after it.
    """
    reader, parser = _Reader(document), table_parser("ndl")
    tokens = _shallow(parser.tokens(document.text, 0, len(document.text)))
    return parser.parse(tokens, "start", {rule: getattr(reader, rule) for rule in _RULES}, places=True), reader.warnings


def _shallow(words: Iterable[Token]) -> Iterator[Token]:
    """Yield the words of a script as long as its brackets are not nested too deep."""
    depth = 0
    for word in words:
        depth += (word in OPENERS) - (word in CLOSERS)
        if depth > MAX_DEPTH:
            raise NotAcceptedError
        yield word


def read_by_lark(document: Document) -> tuple[list[Assignment | Macro | Call], list[Diagnostic]]:
    """Return what stands in a script, and warnings; Lark says what is wrong with it.

    Raises:
        ConfigError: The first mistake: of grammar, else of nesting, else of another kind.
    """
    from cntkpy.networks.builders.ndl.syntax import parsed, transformed_by

    tree = parsed(_parser(), document)
    _check_depth(document, tree)
    reader = _Reader(document)
    return transformed_by(reader, tree), reader.warnings


@cache
def _parser() -> grammars.Parser:
    from cntkpy.cntk_config.base import grammars

    return grammars.load("ndl", propagate_positions=True)


def _check_depth(document: Document, tree: lark.Tree[lark.Token]) -> None:
    """Refuse brackets that are nested too deep."""
    waiting = [(tree, 0)]
    while waiting:
        item, depth = waiting.pop()
        depth += item.data in ("call", "array", "block")
        if depth > MAX_DEPTH:
            place = Place(document, item.meta.start_pos, item.meta.end_pos)
            raise error("TooDeep", f"brackets are nested more than {MAX_DEPTH} deep", place)
        waiting.extend((child, depth) for child in reversed(item.children) if not isinstance(child, str))


class _Block(NamedTuple):
    """`{ statements }`; `bare`: no `=` is before it."""

    body: tuple[Assignment | Macro | Call, ...]
    place: Place
    bare: bool = True


class _Body(NamedTuple):
    """`= Call(...)` after the header of a macro."""

    call: Call
    place: Place


class Meta(Protocol):
    """Place of a rule, as Lark and `cntkpy/grammar/tables.py` give it."""

    @property
    def start_pos(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end_pos(self) -> int:
        """Offset after the last character."""
        ...


class _Reader:
    """Makes statements: its methods are called with the place of each rule of the grammar and its parts."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.warnings: list[Diagnostic] = []

    def statements(
        self, meta: Meta, items: list[Assignment | Call | _Block | _Body]
    ) -> list[Assignment | Macro | Call]:
        """Macro headers are joined with the bodies that follow them."""
        result: list[Assignment | Macro | Call] = []
        header: Call | None = None  # the call just read: perhaps the header of a macro
        for item in items:
            if isinstance(item, Assignment | Call):
                result.append(item)
            elif header is not None:
                result[-1] = self._macro(header, item)
            elif isinstance(item, _Block) and item.bare:  # the brackets round a section
                result.extend(item.body)
            else:
                raise error("InvalidStatement", "there is no name on the left of '='", item.place)
            header = item if isinstance(item, Call) else None
        return result

    def bare(self, meta: Meta, items: list[Word]) -> Never:
        word = items[0]
        hint = None
        preceding = self.document.text[: word.place.start].rstrip(" \t")
        if preceding.endswith((")", "]", "}")):
            hint = "a statement ends after its first brackets, nothing may follow; NDL has no expressions"
        raise error("InvalidStatement", f"invalid statement, no '=': '{word.text}'", word.place, hint=hint)

    def scalar(self, meta: Meta, items: list[Word]) -> Assignment:
        return self._assignment(items[0], items[1])

    def assignment(self, meta: Meta, items: list[Word | Call | Array]) -> Assignment:
        name, value = items
        assert isinstance(name, Word)
        return self._assignment(name, self._finished(value, own_separator=True) if isinstance(value, Array) else value)

    def _assignment(self, name: Word, value: Word | Call | Array) -> Assignment:
        self._check_name(name, "the name on the left of '='")
        if isinstance(value, Word) and _several(value):
            raise error(
                "InvalidStatement",
                f"'{value.text}' is neither a number nor a name",
                value.place,
                hint="NDL has no expressions; statements are separated by a newline, ',' or ';'",
            )
        return Assignment(name, value)

    def block(self, meta: Meta, items: list[list[Assignment | Macro | Call]]) -> _Block:
        return _Block(tuple(items[0]), self._place(meta))

    def body(self, meta: Meta, items: list[Call | _Block]) -> _Block | _Body:
        content = items[0]
        place = self._place(meta)
        return _Body(content, place) if isinstance(content, Call) else _Block(content.body, place, bare=False)

    def _macro(self, header: Call, content: _Block | _Body) -> Macro:
        """Join a header with its body: a block, or `= block`, or `= Call(...)`."""
        parameters: list[Word] = []
        for argument in header.arguments:
            if not isinstance(argument, Word) or not NAME.fullmatch(argument.text):
                raise error("InvalidMacro", "a parameter of a macro must be a plain name", argument.place)
            parameters.append(argument)
        if header.options:
            raise error("InvalidMacro", "a parameter of a macro has no default value", header.options[0].name.place)
        name = self._check_name(header.function, "the name of a macro")
        if isinstance(content, _Body):
            return Macro(name, tuple(parameters), (content.call,))
        body: list[Assignment | Call] = []
        for item in content.body:
            if isinstance(item, Macro):
                raise error("InvalidMacro", "a macro cannot be defined inside another macro", item.name.place)
            if isinstance(item, Call) and content.bare:
                raise _unnamed_call(item)
            body.append(item)
        return Macro(name, tuple(parameters), tuple(body))

    def call(self, meta: Meta, items: list[Word | Call | Array | Option]) -> Call:
        function, *parts = items
        assert isinstance(function, Word)
        arguments: list[Word | Call | Array] = []
        options: list[Option] = []
        for item in parts:
            if isinstance(item, Option):
                options.append(item)
            elif isinstance(item, Word):
                arguments.extend(self._argument(item))
            elif isinstance(item, Array):
                if self.document.text[item.place.start] == "(":
                    hint = "an array among arguments is written with braces: {a, b}"
                    raise error("InvalidArgument", "an argument cannot begin with '('", item.place, hint=hint)
                arguments.append(self._finished(item))
            else:
                arguments.append(item)
        self._check_name(function, "the name of a function")
        return Call(function, tuple(arguments), tuple(options), self._place(meta))

    def _argument(self, word: Word) -> list[Word]:
        repeated = self._repeated(word)
        if len(repeated) != 1 or repeated[0] is not word:
            text = f"'{word.text}' repeats an argument; it does not multiply"
            self.warnings.append(warning("RepeatedArgument", text, word.place))
        return [self._single(part) for part in repeated]

    def option(self, meta: Meta, items: list[Word | Call | Array]) -> Option:
        name, value = items
        assert isinstance(name, Word)
        self._check_name(name, "the name of an option")
        if isinstance(value, Call):
            raise error("InvalidArgument", f"the value of the option '{name.text}' cannot be a call", value.place)
        return Option(name, self._single(value) if isinstance(value, Word) else self._finished(value))

    def array(self, meta: Meta, items: list[Word | Call | Array]) -> Array:
        """Return an array whose words are as they were written; see `_finished`."""
        words: list[Word] = []
        for value in items:
            if not isinstance(value, Word):
                raise error("InvalidArgument", "an array holds only names and numbers", value.place)
            words.append(value)
        return Array(tuple(words), self._place(meta))

    def _finished(self, array: Array, own_separator: bool = False) -> Array:
        """Return an array; `own_separator`: a sign right after the bracket separates its elements, as in `(|a|b)`."""
        sign = self.document.text[array.place.start + 1] if own_separator else ""
        items: list[Word] = []
        for word in array.items:
            for part in self._split(word, sign) if sign and sign in SEPARATORS else [word]:
                items.extend(self._single(word) for word in self._repeated(part))
        return Array(tuple(items), array.place)

    def words(self, meta: Meta, tokens: list[Token]) -> Word:
        place = self._place(meta)
        return Word(place.text, place)

    def quoted(self, meta: Meta, tokens: list[Token]) -> Word:
        place = self._place(meta)
        return Word(place.text[1:-1].strip(), place, quoted=True)

    def _split(self, word: Word, sign: str) -> list[Word]:
        if word.quoted:
            return [word]
        matches = re.finditer(rf"[^\s{re.escape(sign)}](?:[^{re.escape(sign)}]*[^\s{re.escape(sign)}])?", word.text)
        starts = [(word.place.start + match.start(), match[0]) for match in matches]
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
        if word.quoted or (blank := BLANK.search(word.text)) is None:
            return word
        place = Place(self.document, word.place.start + blank.start(), word.place.end)
        raise error("InvalidArgument", "a separator is missing here", place, hint="arguments are separated by ','")

    def _check_name(self, word: Word, role: str) -> Word:
        if word.quoted or not NAME.fullmatch(word.text):
            raise error(
                "InvalidName",
                f"'{word.text}' cannot be {role}",
                word.place,
                hint="names consist of letters, digits, '_', '.' and '-'; separators are newlines, ',' and ';'",
            )
        return word

    def _place(self, meta: Meta) -> Place:
        return Place(self.document, meta.start_pos, meta.end_pos)


_RULES = [name for name in vars(_Reader) if not name.startswith("_")]


def _several(word: Word) -> bool:
    return not word.quoted and BLANK.search(word.text) is not None


def _unnamed_call(call: Call) -> ConfigError:
    text = call.place.text
    return error(
        "InvalidStatement",
        f"invalid statement, no '=': '{text}'",
        call.place,
        hint=f"give the result a name: name = {text}" if len(text) < 60 else "give the result a name",
    )


def calls_in(body: Sequence[Assignment | Call]) -> list[Call]:
    """Return the calls of functions and macros in a body, in order."""
    calls: list[Call] = []
    waiting: list[object] = list(reversed(body))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Assignment):
            waiting.append(item.value)
        elif isinstance(item, Call):
            calls.append(item)
            waiting.extend(reversed(item.arguments))
    return calls
