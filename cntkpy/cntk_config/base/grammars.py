"""The grammars of the folder `grammar`, with their parsing tables kept in the user's cache folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cntkpy import grammar
from cntkpy.cntk_config.base.cache_folders import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Token


class Parser(Protocol):
    """Protocol of the used part of `lark.Lark`."""

    def parse(self, text: str, start: str | None = None) -> Any:
        """Return the tree of a text, or what a transformer makes of it."""
        ...

    def lex(self, text: str) -> Iterator[Token]:
        """Return the tokens of a text."""
        ...


class Unexpected(Protocol):
    """Protocol of the used part of `lark.UnexpectedInput`: the token or character that does not fit, and the parser
    there."""

    token: Token
    pos_in_stream: int | None
    interactive_parser: Any


def load(name: str, **options: Any) -> Parser:
    """See `grammar.load`."""
    return grammar.load(name, private_folder(), **options)
