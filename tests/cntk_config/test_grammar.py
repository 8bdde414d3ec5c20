"""The grammar file is what runs: its rules see every sequence of pieces, its terminals do the matching."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Token
from lark.lexer import Lexer

from cntkpy.cntk_config.base import grammars

SET_PIECES = ["_SEP", "EQ", "TEXT", "QUOTED", "GROUP", "STRAY"]
LIST_PIECES = ["_SEP", "TEXT", "QUOTED", "GROUP", "REPEAT"]


class Pieces(Lexer):
    """Takes the names of pieces as they are."""

    def __init__(self, lexer_conf: object) -> None:
        pass

    def lex(self, pieces):  # type: ignore[override]
        return (Token(kind, "") for kind in pieces)


def parser():
    return grammars.load("config", start=["set_text", "array_text"], lexer=Pieces)


def scannable(pieces, joined):
    """A sequence as the scanner gives it: TEXT never follows TEXT; JOIN only where a value continues."""
    result, named = [], False
    for kind, join in zip(pieces, joined, strict=False):
        if kind == "TEXT" and result[-1:] == ["TEXT"]:
            continue
        if kind == "STRAY" and named:
            continue
        result.append(kind)
        if kind == "_SEP":
            named = False
        elif kind in ("TEXT", "EQ"):
            named = True
        elif kind in ("QUOTED", "GROUP") and named:
            if join:
                result.append("JOIN")
            else:
                named = False
    return result


@settings(max_examples=40)
@given(st.lists(st.sampled_from(SET_PIECES), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_every_sequence_of_pieces_is_a_set(pieces, joined):
    parser().parse(scannable(pieces, joined), start="set_text")  # type: ignore[arg-type]


def test_every_sequence_of_pieces_is_an_array():
    parse = parser().parse
    for length in range(5):
        for pieces in itertools.product(LIST_PIECES, repeat=length):
            if not any(pair == ("TEXT", "TEXT") for pair in itertools.pairwise(pieces)):
                parse(list(pieces), start="array_text")  # type: ignore[arg-type]


def test_tables_are_kept_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parser()
    kept = list((tmp_path / "cntkpy").iterdir())
    assert kept
    for path in kept:
        path.write_bytes(b"damaged")
    assert parser().parse(["TEXT"], start="set_text")  # type: ignore[arg-type]


def test_without_a_place_for_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert parser().parse(["TEXT"], start="set_text")  # type: ignore[arg-type]
