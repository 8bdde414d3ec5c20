"""Parsing tables of the grammars, made of them by `python -m tools.grammar_tables` and kept in `tables.json`.

Every command reads a configuration, and many read a network. These tables need no Lark, whose import and own tables
take longer than most texts. Lark runs where a text is wrong, for the message.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("tables.json")

Maker = Callable[[list[Any]], Any]


class NotAcceptedError(Exception):
    """The text does not follow the grammar."""


class Token(str):
    """A word of a text, with the attributes that Lark's tokens have."""

    __slots__ = ("end_pos", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int


def make_token(kind: str, word: str, start: int, end: int) -> Token:
    """Make a token of a terminal, from its text and its place."""
    token = Token(word)
    token.type, token.start_pos, token.end_pos = kind, start, end
    return token


class Stretch(NamedTuple):
    """The characters of a rule, by the names of Lark."""

    start_pos: int
    end_pos: int


NOWHERE = Stretch(-1, -1)
"""The stretch of a rule without characters."""
_END = make_token("$END", "", -1, -1)


@cache
def _tables() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def terminal(name: str, term: str) -> re.Pattern[str]:
    """Return the pattern of a terminal that the rule `lexical` of `cntkpy/grammar/NAME.lark` names."""
    return re.compile(_tables()[name]["lexical"][term], re.MULTILINE)


@cache
def table_parser(name: str) -> TableParser:
    """Return the parser of `cntkpy/grammar/NAME.lark`."""
    return TableParser(_tables()[name])


class TableParser:
    """An LALR parser that runs a table.

    Args:
        table: states, rules and terminals of a grammar, as `tools/grammar_tables.py` writes them.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._states: list[dict[str, int]] = table["states"]
        self._rules: list[tuple[str, int, str | None, list[tuple[int, bool, int]] | None, int, bool]] = table["rules"]
        self._starts: dict[str, tuple[int, int]] = table["starts"]
        self._words = re.compile(table["words"], re.MULTILINE) if table["words"] else None
        self._keywords: dict[str, dict[str, str]] = table["keywords"]
        self._ignored = frozenset(table["ignored"])

    def tokens(self, text: str, position: int, end: int) -> Iterator[Token]:
        """Iterate over the words of a text between two places, for a grammar whose terminals have patterns.

        Raises:
            NotAcceptedError: A character begins no word.
        """
        assert self._words is not None
        match_at = self._words.match
        while position < end:
            match = match_at(text, position, end)
            if match is None:
                raise NotAcceptedError
            kind, start, position = match.lastgroup or "", position, match.end()
            if kind not in self._ignored:
                word = match[0]
                if kind in self._keywords:
                    kind = self._keywords[kind].get(word, kind)
                yield make_token(kind, word, start, position)

    def parse(
        self, tokens: Iterable[Token], start: str, makers: Mapping[str, Callable[..., Any]], places: bool = False
    ) -> Any:
        """Parse a text.

        Args:
            tokens: its words.
            start: rule that the whole text follows.
            makers: what makes the value of a rule, or of an alternative with a name, from the values of its parts.
            places: makers are called with the `Stretch` of the rule, too, before the values.

        Returns:
            The value of the rule `start`.

        Raises:
            NotAcceptedError: The text does not follow the grammar.
        """
        table, (state, final) = self._states, self._starts[start]
        rules = [(*rule[:2], makers.get(rule[2] or ""), *rule[3:]) for rule in self._rules]
        states: list[int] = [state]
        values: list[Any] = []
        stretches: list[Stretch] = []
        for token in itertools.chain(tokens, (_END,)):
            kind = token.type
            while True:
                action = table[state].get(kind)
                if action is None:
                    raise NotAcceptedError
                if action >= 0:
                    state = action
                    states.append(state)
                    values.append(token)
                    if places:
                        stretches.append(Stretch(token.start_pos, token.end_pos))
                    break
                origin, size, make, kept, missing, is_single = rules[~action]
                if size == 1 and is_single and kept is None:  # nine of ten: levels of operators without an operator
                    states.pop()
                else:
                    children: list[Any] = []
                    if places:
                        stretches[len(stretches) - size :] = [stretch := _joined(stretches[len(stretches) - size :])]
                        make = partial(make, stretch) if make else None
                    if size:
                        children = values[-size:]
                        del values[-size:], states[-size:]
                    if kept is not None:
                        children = _kept(children, kept, missing)
                    is_child = is_single and len(children) == 1
                    values.append(children[0] if is_child else make(children) if make else children)
                state = table[states[-1]][origin]
                states.append(state)
                if state == final and token is _END:
                    return values[-1]
        raise AssertionError("the end of a text ends its parsing")


def _joined(stretches: list[Stretch]) -> Stretch:
    """Return the stretch from the first part of a rule to its last one that has characters."""
    filled = [stretch for stretch in stretches if stretch is not NOWHERE]
    return Stretch(filled[0].start_pos, filled[-1].end_pos) if filled else NOWHERE


def _kept(children: list[Any], kept: list[tuple[int, bool, int]], missing: int) -> list[Any]:
    """Return the parts of a rule without those that the grammar drops, with None for optional ones that are not there.

    The parts of a rule whose name begins with `_` take the place of its value.
    """
    result: list[Any] = []
    for index, expands, leading in kept:
        if leading:
            result += [None] * leading
        if not expands:
            result.append(children[index])
        elif result:
            result += children[index]
        else:
            result = children[index]
    return result + [None] * missing if missing else result
