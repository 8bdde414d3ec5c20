"""Usual records and elements are read by regular expressions; they are what the grammar makes of the same text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.source import Fragment
from cntkpy.cntk_config.includes import plain_text
from cntkpy.cntk_config.parse import parse_level, usual_items, usual_records
from cntkpy.cntk_config.pieces import Level

USUAL = ["a", "b c", "=", " ", "\t", ";", ",", "\n", ":", "*", "3", '"x y"', "[p=1]", "(1:2)", "{q}"]
STRANGE = ['"', '"a\nb"', "[", "]", "(", ")", "{", "}", "|", "~", "$v$"]
SEPARATORS = ";:|*~^-"


def level(text: str, separator: str, is_list: bool) -> Level:
    whole = plain_text(text, "<text>")
    return Level(Fragment(whole, 0, len(whole.string)), separator, is_list)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(USUAL + STRANGE), max_size=12).map("".join), st.sampled_from(SEPARATORS), st.booleans())
def test_the_grammar_gives_the_same(text: str, separator: str, is_list: bool) -> None:
    one = level(text, separator, is_list)
    found = usual_items(one) if is_list else usual_records(one)
    if found is not None:
        assert found == parse_level(one, "array_text" if is_list else "set_text")


RECORD = st.sampled_from(["a=1", "b", 'c = "x; y"', "d=[p=1;q=2]", "e = 1:2*3", "f g=h", "i=(1:2)\t", "j=x y "])


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORD, min_size=1, max_size=6), st.sampled_from([";", "\n", " , ", ";;\n"]))
def test_usual_records_are_known(records: list[str], separator: str) -> None:
    one = level(separator.join(records), ";", False)
    found = usual_records(one)
    assert found is not None and len(found) == len(records)
    assert found == parse_level(one, "set_text")


ITEM = st.sampled_from(["1", "0.1*3", "a b", "p=1", "x *2", "*"])


@settings(max_examples=100, deadline=None)
@given(st.lists(ITEM, min_size=1, max_size=6), st.sampled_from([":", "\n", " : ", "::,"]))
def test_usual_elements_are_known(items: list[str], separator: str) -> None:
    one = level(separator.join(items), ":", True)
    found = usual_items(one)
    assert ("*" in items) == (found is None), found
    if found is not None:
        assert len(found) == len(items) and found == parse_level(one, "array_text")


def test_a_star_may_separate_elements_that_contain_an_equals_sign() -> None:
    assert list(parse("x={*a=b*c=[d]}").array("x")) == ["a=b", "c=[d]"]
