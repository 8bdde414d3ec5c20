"""Running Lark's parser on a script of NDL or MEL, and saying in the user's words what it did not accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from lark import Token, Tree
from lark import v_args as _v_args  # pyright: ignore[reportUnknownVariableType]
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.grammars import Parser, Unexpected
from cntkpy.networks.builders.ndl.text import Document, Place, error

CLOSER = {"(": ")", "[": "]", "{": "}"}
HINTS = {
    "=": "before the next 'name = ...' a newline, ',' or ';' is missing",
    ";": "arguments are separated by ','",
    "{": "a function is called with round brackets, a macro is defined as Name(parameters) { ... }",
    "[": "a function is called with round brackets, a macro is defined as Name(parameters) [ ... ]",
    ":": "statements are separated by newlines, ',' or ';'",
}
"""Hints by unexpected sign."""

Result = TypeVar("Result")


def parsed(
    parser: Parser, document: Document, start: str | None = None, hints: Mapping[str, str] = HINTS
) -> Tree[Token]:
    """Return the tree of a document.

    Args:
        parser: of NDL or MEL.
        document: the script.
        start: the rule to start with, where the parser has several.
        hints: what may be wrong where a sign is not expected.

    Raises:
        ConfigError: the parser does not accept the text; with the place.
    """
    try:
        return parser.parse(document.text, start=start)
    except UnexpectedInput as problem:
        raise _bracket_error(parser, document) or _syntax_error(document, problem, hints) from None


def with_places(reader: type[Result]) -> type[Result]:
    """Return the decorator of a transformer whose methods get the place of a rule before its parts: `lark.v_args`,
    typed.
    """
    return cast("Callable[[type[Result]], type[Result]]", _v_args(meta=True))(reader)


def transformed(reader: Transformer_NonRecursive[Token, Result], tree: Tree[Token]) -> Result:
    """Transform a tree; raise the errors of the transformer's methods unwrapped."""
    try:
        return reader.transform(tree)
    except VisitError as problem:
        raise problem.orig_exc from None


class _MethodsOf(Transformer_NonRecursive[Token, Any]):
    """Calls the method of a reader for each rule, with the rule's place and parts."""

    def __init__(self, reader: object) -> None:
        super().__init__()
        self._reader = reader

    def __default__(self, data: str, children: list[Any], meta: Meta) -> Any:
        return getattr(self._reader, data)(meta, children)


def transformed_by(reader: object, tree: Tree[Token]) -> Any:
    """Return what a reader makes of a tree."""
    return _MethodsOf(reader).transform(tree)


def _bracket_error(parser: Parser, document: Document) -> ConfigError | None:
    """Return the first bracket or quote without a partner."""
    opened: list[Token] = []
    try:
        for token in parser.lex(document.text):
            if token in CLOSER:
                opened.append(token)
            elif token in CLOSER.values():
                if not opened:
                    return error("StrayBracket", f"'{token}' closes nothing", _at(document, token))
                if CLOSER[opened[-1]] != token:
                    note = f"'{opened[-1]}' was opened at {_at(document, opened[-1]).short}"
                    message = f"'{token}' found, '{CLOSER[opened[-1]]}' expected"
                    return error("MismatchedBracket", message, _at(document, token), note)
                opened.pop()
    except UnexpectedCharacters as problem:  # only a quote can begin nothing
        start = cast("Unexpected", problem).pos_in_stream or 0
        place = Place(document, start, start + 1)
        return error("UnclosedBracket", "this quote is not closed: '\"' is missing", place)
    if not opened:
        return None
    message = f"'{opened[-1]}' is not closed: '{CLOSER[opened[-1]]}' is missing"
    return error("UnclosedBracket", message, _at(document, opened[-1]))


def _syntax_error(document: Document, problem: UnexpectedInput, hints: Mapping[str, str]) -> ConfigError:
    """Return the error for a sign that the parser did not accept; the parser's state decides the message."""
    assert isinstance(problem, UnexpectedToken)
    unexpected = cast("Unexpected", problem)
    token_text, stack = unexpected.token, unexpected.interactive_parser.parser_state.value_stack
    words, preceding = _last_words(stack)
    equals = preceding[-1] if preceding and isinstance(preceding[-1], Token) and preceding[-1] == "=" else None
    end = len(document.text.rstrip())
    start = end if token_text.type == "$END" or token_text.start_pos is None else token_text.start_pos
    place = Place(document, start, start + max(1, len(token_text.rstrip("\r\n"))))
    if equals is not None and not words and (not token_text.strip() or token_text in ",;:)]}"):
        return error("MissingValue", "there is nothing on the right of '='", place)
    if (
        equals is not None and words and token_text != "=" and not _last_words(preceding[:-1])[0]
    ):  # nothing that could get the value
        if _ends_with_call(preceding[:-1]):
            message = "the body of a macro is a call, or it is in brackets"
            return error("InvalidMacro", message, Place(document, words[0].start_pos or 0, words[-1].end_pos or end))
        return error("InvalidStatement", "a name is missing on the left of '='", _at(document, equals))
    hint = hints.get(token_text)
    if token_text == "=" and not words and not (preceding and preceding[-1] == ")"):
        hint = "one '=' is enough" if equals is not None else "a name is missing on the left of '='"
    return error("InvalidStatement", f"'{token_text.strip() or 'end of line'}' is not expected here", place, hint)


def _last_words(stack: list[object]) -> tuple[list[Token], list[object]]:
    """Return the words on top of the parser's stack, and the stack without them."""
    words: list[Token] = []
    stack = list(stack)
    while stack:
        top = stack[-1]
        if isinstance(top, Token) and top.type == "WORD":
            matches = [top]
        elif (tree := _as_tree(top)) is not None and (tree.data == "words" or tree.data.startswith("__words")):
            matches = list(tree.scan_values(_is_token))
        else:
            break
        words = [*matches, *words]
        stack.pop()
    return words, stack


def _ends_with_call(stack: list[object]) -> bool:
    """Return whether the last statement on the parser's stack is a call."""
    top = stack[-1] if stack else None
    while (tree := _as_tree(top)) is not None and tree.data.startswith("_"):
        top = tree.children[-1] if tree.children else None
    return tree is not None and tree.data == "call"


def _is_token(value: object) -> bool:
    return isinstance(value, Token)


def _as_tree(value: object) -> Tree[Token] | None:
    return cast("Tree[Token]", value) if isinstance(value, Tree) else None


def _at(document: Document, token: Token) -> Place:
    start = token.start_pos or 0
    return Place(document, start, start + 1)
