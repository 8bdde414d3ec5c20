"""A library is parsed member by member: the same members at the same places as when it is parsed at once."""

from typing import Any

import pytest

from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language.library import definitions, library_members, parsed_value
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import joined_text, text_of_string
from cntkpy.networks.builders.brainscript.language.syntax import RecordLiteral, Unparsed
from cntkpy.networks.builders.brainscript.language.trees import kept_tree
from cntkpy.networks.builders.brainscript.program import LIBRARY, library
from cntkpy.networks.builders.brainscript.reference import described as described_alone
from cntkpy.networks.builders.brainscript.reference import documented
from cntkpy.networks.builders.python.functions import calls


def described(node: Any) -> Any:
    """Return all of a syntax tree as tuples, places included; a record's own place is not that of its members."""
    if isinstance(node, Unparsed):
        return described(node.expression)
    if isinstance(node, RecordLiteral):
        return [(name, described(member.value)) for name, member in node.members.items()]
    if isinstance(node, list | tuple):
        return [described(item) for item in node]
    if hasattr(node, "__slots__") and hasattr(node, "place"):
        parts = {name: described(getattr(node, name)) for name in node.__slots__ if name != "place"}
        return type(node).__name__, node.place.start, node.place.end, parts
    return node


PARTS = {"BrainScript": [*nodes.files("library.bs"), LIBRARY], "Python": [*nodes.files("python.bs"), calls.LIBRARY]}


@pytest.mark.parametrize("paths", PARTS.values(), ids=PARTS)
def test_members_are_those_of_the_whole_text(paths) -> None:
    text = joined_text(paths, "library")
    assert len(text.string) > 1000
    assert described(library_members(text)) == described(parse_members(text))


@pytest.mark.parametrize("paths", PARTS.values(), ids=PARTS)
def test_no_two_families_define_the_same_function(paths) -> None:
    names = [name for path in paths for name in library_members(joined_text([path], "library")).members]
    assert len(names) == len(set(names))


def test_what_is_no_definition_of_its_own() -> None:
    """Names in comments, texts and brackets begin no member."""
    string = "a = [\nb = 1\n]\n// c = 2\nd = 'e\\n'\nf = {\n// g\nh = 3\ni (x) = {\nj = x\n}\n}\n"
    text = text_of_string(string, "t.bs")
    members = library_members(text).members
    assert list(members) == ["a", "d", "f"]
    assert described(library_members(text)) == described(parse_members(text))
    inside = members["f"].value
    assert isinstance(inside, RecordLiteral) and all(
        isinstance(member.value, Unparsed) for member in inside.members.values()
    )


def test_a_function_is_described_as_among_all() -> None:
    assert len(documented()) > 150
    assert all(described_alone(name) == function for name, function in documented().items())
    assert (
        described_alone("Relu") is None and described_alone("BS.Nothing") is None and described_alone("_Input") is None
    )


def test_kept_trees_are_those_of_the_text() -> None:
    text, members = library()
    places = list(definitions(members))
    assert len(places) > 150
    assert all(described(kept_tree(place)) == described(parsed_value(place)) for place in places)
    assert all(place.text is text for place in places)


def test_a_text_that_has_changed_is_parsed() -> None:
    text = text_of_string(library()[0].string.replace("spread", "widely spread"), "t.bs")
    (place, *_) = definitions(library_members(text))
    assert kept_tree(place) is None
    assert described(library_members(text)) == described(parse_members(text))
