"""Conditions on the columns of tables, as `filter` has them: the text becomes plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from lark import Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.base.grammars import Parser, Unexpected, load

LONGEST, MOST_BRACKETS = 4000, 100
"""Characters of a condition, and its opening brackets: nested ones take a level of the stack each."""
EXAMPLE = "write for instance: label < 5 and split == 'train'"
Value = int | float | str | bool


class Comparison(NamedTuple):
    """A column and what its values are compared with: one value, several of `in`, none of `null`."""

    column: str
    sign: str
    """==, !=, <, <=, >, >=, in, or null."""
    values: tuple[Value, ...]


class Draw(NamedTuple):
    """A number that is drawn for each row, and what it is compared with."""

    seed: int
    sign: str
    """One of those of `Comparison` with one value."""
    value: float


class Combined(NamedTuple):
    """Conditions that are joined."""

    word: str
    """and, or, not; the last has one part."""
    parts: tuple[Condition, ...]


Condition = Comparison | Draw | Combined


class BadConditionError(ValueError):
    """A text is no condition. hint: what to write instead."""

    def __init__(self, message: str, hint: str = EXAMPLE) -> None:
        super().__init__(message)
        self.hint = hint


def condition_of(text: str) -> Condition:
    """Return the condition that a text says.

    Raises:
        BadConditionError: it says none; the message has the place.
    """
    if len(text) > LONGEST or text.count("(") > MOST_BRACKETS:
        raise BadConditionError(
            f"a condition has at most {LONGEST} characters and {MOST_BRACKETS} brackets", "list values: in (1, 2, 3)"
        )
    try:
        return cast("Condition", _parser().parse(text))
    except UnexpectedInput as problem:
        result = cast("Unexpected", problem)
        ended = not isinstance(problem, UnexpectedCharacters) and result.token.type == "$END"
        pos_in_stream = result.pos_in_stream or 0
        where = "at its end" if ended else f"at '{shorten(text[pos_in_stream:], 20)}' (character {pos_in_stream + 1})"
        raise BadConditionError(f"'{shorten(text)}' is no condition: look {where}") from None


def comparisons(condition: Condition) -> Iterator[Comparison]:
    """Yield all comparisons of a condition, from left to right."""
    if isinstance(condition, Comparison):
        yield condition
    for part in condition.parts if isinstance(condition, Combined) else ():
        yield from comparisons(part)


def draws(condition: Condition) -> Iterator[Draw]:
    """Yield all draws of a condition, from left to right."""
    if isinstance(condition, Draw):
        yield condition
    for part in condition.parts if isinstance(condition, Combined) else ():
        yield from draws(part)


class _Made(Transformer[Any, Condition]):
    """Transformer of the grammar's rules."""

    def NAME(self, word: str) -> str:
        return str(word).strip("`")

    def SIGN(self, word: str) -> str:
        return "==" if word == "=" else str(word)

    def NUMBER(self, word: str) -> int | float:
        return int(word) if word.lstrip("+-").isdecimal() else float(word)

    def TEXT(self, word: str) -> str:
        return str(word)[1:-1]

    def TRUE(self, _: str) -> bool:
        return True

    def FALSE(self, _: str) -> bool:
        return False

    def values(self, several: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(several)

    def comparison(self, parts: Sequence[Any]) -> Condition:
        return Comparison(parts[0], parts[1], (parts[2],))

    def SEED(self, word: str) -> int:
        return int(word)

    def draw(self, parts: Sequence[Any]) -> Condition:
        return Draw(parts[0], parts[1], float(parts[2]))

    def among(self, parts: Sequence[Any]) -> Condition:
        return Comparison(parts[0], "in", parts[1])

    def not_among(self, parts: Sequence[Any]) -> Condition:
        return Combined("not", (self.among(parts),))

    def missing(self, parts: Sequence[Any]) -> Condition:
        return Comparison(parts[0], "null", ())

    def given(self, parts: Sequence[Any]) -> Condition:
        return Combined("not", (self.missing(parts),))

    def negation(self, parts: Sequence[Any]) -> Condition:
        inner = parts[0]
        double = isinstance(inner, Combined) and inner.word == "not"
        return inner.parts[0] if double else Combined("not", (inner,))

    def both(self, parts: Sequence[Any]) -> Condition:
        return Combined("and", tuple(parts))

    def either(self, parts: Sequence[Any]) -> Condition:
        return Combined("or", tuple(parts))


@cache
def _parser() -> Parser:
    return load("filter", transformer=_Made())
