"""Text -> syntax tree. The grammar is `cntkpy/grammar/brainscript.lark`."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from cntkpy.cntk_config.base.diagnostics import ConfigError, suggestion
from cntkpy.cntk_config.base.source import Text
from cntkpy.grammar.tables import NotAcceptedError, table_parser
from cntkpy.networks.builders.brainscript.language.source import WORDS, Place, error
from cntkpy.networks.builders.brainscript.language.syntax import (
    ArrayLiteral,
    Call,
    Conditional,
    Expression,
    Infix,
    Lambda,
    Literal,
    Member,
    Name,
    New,
    Prefix,
    Range,
    RecordLiteral,
    Select,
    Subscript,
)

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedInput

    from cntkpy.cntk_config.base import grammars

Children = list[Any]

KEYWORDS = ("include", "new", "with", "true", "false", "if", "then", "else", "array")
DEEP = 1 << 30
MAX_HEIGHT = 40
"""Up to which height an expression of numbers and operators is evaluated in one go."""


class _TreeMaker:
    """Makes the nodes of the tree of a text: its methods are called with the children of each rule."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def _place(self, start: int | None, end: int | None) -> Place:
        return Place(self.text, start or 0, end or 0)

    def _token(self, token: Token) -> Place:
        return self._place(token.start_pos, token.end_pos)

    def start(self, children: Children) -> RecordLiteral:
        return children[0]

    def one_expression(self, children: Children) -> Expression:
        return children[0]

    def members(self, children: Children) -> RecordLiteral:
        members: dict[str, Member] = {}
        for member in children:
            former = members.setdefault(member.name, member)
            if former is not member:
                raise error(
                    "DuplicateMember",
                    f"the record has two members '{member.name}'",
                    member.place,
                    "names cannot be defined again; give one of them another name",
                    (f"the other one is at {former.place}",),
                )
        place = self._place(children[0].place.start, end_of(children[-1].value)) if children else self._place(0, 0)
        return RecordLiteral(place, members)

    def member(self, children: Children) -> Member:
        name, index, parameters, value = children
        place, word = self._token(name), str(name)
        if parameters is not None:
            value = self._function(place, parameters, value, word)
        if index is not None:
            variable, first, last = index
            function = Lambda(self._token(variable), (str(variable),), (), value)
            value = Range(place, first, last, function)
        elif isinstance(value, Lambda) and not value.name:
            value.name = word
        return Member(place, word, value)

    def index(self, children: Children) -> Children:
        return children

    def parameters(self, children: Children) -> Children:
        return [child for child in children if child is not None]

    def parameter(self, children: Children) -> Children:
        return children

    def _function(self, place: Place, parameters: Children, body: Expression, name: str) -> Lambda:
        required: list[str] = []
        optional: dict[str, Expression] = {}
        for word, default in parameters:
            parameter = str(word)
            if parameter in optional or parameter in required:
                raise error("DuplicateParameter", f"'{name}' has two parameters '{parameter}'", self._token(word))
            if default is None:
                required.append(parameter)
            else:
                optional[parameter] = default
        return Lambda(place, tuple(required), tuple(optional.items()), body, name)

    def lambda_(self, children: Children) -> Lambda:
        parameter, body = children
        if not isinstance(parameter, Name):
            raise error(
                "BadSyntax",
                "the left side of '=>' must be a single name",
                parameter.place,
                "a function of several parameters is a member: f (x, y) = ..., or x => y => ...",
            )
        return Lambda(parameter.place, (parameter.name,), (), body)

    def pair(self, children: Children) -> ArrayLiteral:
        left, right = children
        if isinstance(left, ArrayLiteral) and left.open:
            left.items.append(right)
            left.place = self._place(left.place.start, end_of(right))
            return left
        return ArrayLiteral(self._place(start_of(left), end_of(right)), [left, right], True)

    def elements(self, children: Children) -> ArrayLiteral:
        opening, *items = children
        return ArrayLiteral(self._token(opening), [item for item in items if item is not None], False)

    def range(self, children: Children) -> Range:
        word, first, last, function = children
        return Range(self._token(word), first, last, function)

    def infix(self, children: Children) -> Infix:
        left, operator, right = children
        height = 1 + max(_height(left), _height(right))
        return Infix(self._token(operator), str(operator), left, right, height if height <= MAX_HEIGHT else DEEP)

    def prefix(self, children: Children) -> Prefix:
        operator, operand = children
        return Prefix(self._token(operator), str(operator), operand)

    def select(self, children: Children) -> Select:
        value, name = children
        return Select(self._token(name), value, str(name))

    def subscript(self, children: Children) -> Subscript:
        array, index = children
        return Subscript(self._place(start_of(array), end_of(index) + 1), array, index)

    def argument(self, children: Children) -> tuple[Token | None, Expression]:
        return (children[0], children[1]) if len(children) == 2 else (None, children[0])

    def call(self, children: Children) -> Call:
        function, *arguments = children
        positional: list[Expression] = []
        named: dict[str, tuple[str, Expression, Place]] = {}
        for argument in arguments:
            if argument is None:
                continue
            word, value = argument
            if word is None:
                positional.append(value)
                continue
            place = self._token(word)
            if str(word) in named:
                raise error("DuplicateArgument", f"the argument '{word}' is given twice", place)
            named[str(word)] = (str(word), value, place)
        place = self._place(start_of(function), end_of(function))
        return Call(place, function, tuple(positional), tuple(named.values()))

    def new(self, children: Children) -> New:
        word, name, record = children
        return New(self._place(word.start_pos, name.end_pos), str(name), record)

    def conditional(self, children: Children) -> Conditional:
        word, condition, yes, no = children
        return Conditional(self._token(word), condition, yes, no)

    def number(self, children: Children) -> Literal:
        word = str(children[0])
        try:
            value = float.fromhex(word) if word[:2] in ("0x", "0X") else float(word)
        except OverflowError:
            value = math.inf
        return Literal(self._token(children[0]), value)

    def text_(self, children: Children) -> Literal:
        return Literal(self._token(children[0]), str(children[0])[1:-1])

    def true(self, children: Children) -> Literal:
        return Literal(self._token(children[0]), True)

    def false(self, children: Children) -> Literal:
        return Literal(self._token(children[0]), False)

    def name(self, children: Children) -> Name:
        return Name(self._token(children[0]), str(children[0]))

    def record(self, children: Children) -> RecordLiteral:
        opening, record = children
        return RecordLiteral(self._place(opening.start_pos, max(opening.end_pos, record.place.end)), record.members)


def start_of(expression: Expression) -> int:
    """Return the position where an expression starts, as far as its tree shows (brackets leave no trace)."""
    while True:
        if isinstance(expression, Infix):
            expression = expression.left
        elif isinstance(expression, Select):
            expression = expression.value
        else:
            return expression.place.start


def end_of(expression: Expression) -> int:
    """Return the position where an expression ends, as far as its tree shows."""
    while True:
        if isinstance(expression, Infix):
            expression = expression.right
        elif isinstance(expression, Conditional):
            expression = expression.no
        elif isinstance(expression, Prefix):
            expression = expression.operand
        elif isinstance(expression, Lambda):
            expression = expression.body
        else:
            return expression.place.end


def source_of(expression: Expression) -> str:
    """Return the text of an expression, on one line."""
    if isinstance(expression, Lambda) and len(expression.parameters) == 1 and not expression.name:
        return f"({expression.parameters[0]} => {source_of(expression.body)})"
    text = expression.place.text.string[start_of(expression) : end_of(expression)]
    return " ".join(text.split()) or "..."


def _height(expression: Expression) -> int:
    if isinstance(expression, Literal | Name):
        return 0
    return expression.height if isinstance(expression, Infix) else DEEP


_RULES = [name for name in vars(_TreeMaker) if not name.startswith("_")]


@cache
def _parser(start: str) -> grammars.Parser:
    """Return Lark's parser, which says what it expects where a text is wrong."""
    from cntkpy.cntk_config.base import grammars

    return grammars.load("brainscript", start=start, lexer="basic")


def parse_members(text: Text, begin: int = 0, end: int | None = None) -> RecordLiteral:
    """Parse the members of a file.

    Args:
        text: where they stand.
        begin: offset of the first one.
        end: offset after the last one, None: the end of the text.

    Raises:
        ConfigError: what is wrong, where, and what was expected.
    """
    return _parse(text, "start", begin, end)


def parse_expression(text: Text) -> Expression:
    """Return the expression that a text is."""
    return _parse(text, "one_expression")


def _parse(text: Text, start: str, begin: int = 0, end: int | None = None) -> Any:
    parser, maker = table_parser("brainscript"), _TreeMaker(text)
    makers = {name.rstrip("_"): getattr(maker, name) for name in _RULES}
    try:
        return parser.parse(parser.tokens(text.string, begin, len(text.string) if end is None else end), start, makers)
    except NotAcceptedError:
        from lark.exceptions import UnexpectedInput

        try:
            _parser(start).parse(" " * begin + text.string[begin:end])
        except UnexpectedInput as problem:
            raise _syntax_error(text, problem) from None
        raise


# ------------------------------------------------------------------------------------------------------------- messages

_OPENER = {")": "(", "]": "[", "}": "{", "|]": "[|"}
_BRACKETS = re.compile(f"{WORDS.pattern}|(?P<bracket>\\[\\||\\|\\]|[][(){{}}])")
_HINTS = {
    ",": "members are separated by newlines or ';', array elements by ':'; ',' separates arguments only",
    ";": "one ';' ends a member; elements of [| |] are separated by ';', arguments by ','",
    "=": "equality is written '=='; a member is name = expression",
    ":": "':' makes an array; a member is written with '='",
    "=>": "the left side of '=>' is one name: x => ...; for several parameters write f (x, y) = ...",
    "then": "an 'if' is before it: if ... then ... else ...",
    "else": "an 'if' is before it: if ... then ... else ...",
}


def _syntax_error(text: Text, problem: UnexpectedInput) -> ConfigError:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    string = text.string
    if isinstance(problem, UnexpectedCharacters):
        return _bad_character(text, cast("grammars.Unexpected", problem).pos_in_stream or 0)
    if unmatched := _unmatched_bracket(text):
        return unmatched
    assert isinstance(problem, UnexpectedToken)
    token = cast("grammars.Unexpected", problem).token
    ended = token.type == "$END"
    start = len(string.rstrip()) if ended else token.start_pos or 0
    place = Place(text, start, start + 1 if ended else token.end_pos or start + 1)
    shown = "the end" if ended else f"'{token}'"
    for slash in (start, start - 1):
        if slash >= 0 and string.startswith("/*", slash):
            return error("BadSyntax", "this comment is not closed: '*/' is missing", Place(text, slash, slash + 2))
    wanted = set(problem.expected)
    if "NUMBER" in wanted:
        message = f"an operand is expected, not {shown}"
    elif "_ASSIGN" in wanted and "PLUS" not in wanted:
        message = f"'=' is expected, not {shown}"
    elif "THEN" in wanted or "ELSE" in wanted:
        message = f"'{'then' if 'THEN' in wanted else 'else'}' is expected, not {shown}"
    elif wanted == {"NAME"}:
        message = f"a name is expected, not {shown}"
    else:
        message = f"{shown} is not expected here"
    hint = _HINTS.get(str(token)) or suggestion(
        str(token), [keyword for keyword in KEYWORDS if keyword.upper() in wanted]
    )
    if message.startswith("'='") and token.type in ("LBRACE", "LBRACKET"):
        hint = "unlike in the network description language, a function needs '=': f (x) = { y = x + 1 }.y"
    if not ended and str(token) in KEYWORDS and wanted and "NAME" in wanted and "NUMBER" not in wanted:
        hint = f"'{token}' is a word of the language and cannot be a name"
    return error("BadSyntax", message, place, hint)


def _bad_character(text: Text, start: int) -> ConfigError:
    character = text.string[start]
    place = Place(text, start, start + 1)
    if character in "\"'":
        return error("BadSyntax", f"this text is not closed: {character} is missing", place)
    hints = {
        "^": "powers are written x ** y",
        "|": "or is written '||'",
        "&": "and is written '&&'",
        "$": "the variable is not defined, or a '$' is missing",
        "?": "write if ... then ... else ...",
        **dict.fromkeys("‘’“”`", "it is not a quotation mark: write ' or \""),
    }
    return error("BadSyntax", f"unexpected character '{character}'", place, hints.get(character))


def _unmatched_bracket(text: Text) -> ConfigError | None:
    """Return the first bracket without a partner."""
    opened: list[tuple[str, int]] = []
    for word in _BRACKETS.finditer(text.string):
        bracket = word["bracket"]
        if not bracket:
            continue
        place = Place(text, word.start(), word.end())
        if bracket not in _OPENER:
            opened.append((bracket, word.start()))
        elif not opened:
            return error("BadSyntax", f"'{bracket}' closes nothing", place)
        elif opened[-1][0] != _OPENER[bracket]:
            opener, start = opened[-1]
            closer = next(close for close, partner in _OPENER.items() if partner == opener)
            note = f"'{opener}' was opened at {Place(text, start, start + 1)}"
            return error("BadSyntax", f"'{bracket}' found, '{closer}' expected", place, notes=(note,))
        else:
            opened.pop()
    if not opened:
        return None
    opener, start = opened[-1]
    closer = next(close for close, partner in _OPENER.items() if partner == opener)
    return error("BadSyntax", f"'{opener}' is not closed: '{closer}' is missing", Place(text, start, start + 1))


__all__ = ["KEYWORDS", "end_of", "parse_expression", "parse_members", "source_of", "start_of", "suggestion"]
