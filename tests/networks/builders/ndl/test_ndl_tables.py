"""Scripts are read by tables as Lark reads them; Lark reads those that are wrong."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.grammar.tables import NotAcceptedError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.parse import MAX_DEPTH, parse_document, read_by_lark, read_by_tables
from cntkpy.networks.builders.ndl.text import Document

PIECES = [
    "a",
    "W.x",
    "12",
    "-1e-3",
    "3*2",
    '"a b"',
    '""',
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "=",
    ",",
    ";",
    ":",
    "# c (",
    "#",
]
BETWEEN = ["", " ", "  ", "\t", "\n", "\r\n"]
SCRIPTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(BETWEEN)), max_size=30).map(
    lambda parts: "".join(map("".join, parts))
)
WORDS = st.sampled_from(["a", "b1", "12", "3*2"])
ARRAYS = st.lists(WORDS, max_size=3).map(lambda words: "{" + ", ".join(words) + "}")


def _call(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(st.one_of(arguments, ARRAYS, arguments.map("tag={}".format), st.just('o="x y"')), max_size=3)
    return st.builds(
        "{}({}{})".format, st.sampled_from(["F", "G.h"]), st.sampled_from(["", "\n", " "]), parts.map(", ".join)
    )


CALLS = st.recursive(WORDS, _call, max_leaves=8)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, st.sampled_from("xyz"), st.one_of(CALLS, ARRAYS)),
    st.builds("M(p, q)\n{{ {} }}".format, CALLS.map("r = {}".format)),
    st.just("M(p) = F(p)"),
    st.just("# a (comment"),
)
GOOD_SCRIPTS = st.lists(STATEMENTS, max_size=6).map("\n".join)
EXAMPLES = [kind.example for kind in nodes.kinds() if kind.example]


def _document(text: str) -> Document:
    return Document(text, lambda offset: None)


def _outcome(read, document):
    try:
        return read(document)
    except ConfigError as error:
        return str(error)


def _check(text: str) -> bool:
    document = _document(text)
    by_lark = _outcome(read_by_lark, document)
    try:
        by_tables = read_by_tables(document)
    except (NotAcceptedError, ConfigError):
        assert isinstance(by_lark, str)
        return False
    assert by_tables == by_lark
    return True


@settings(max_examples=300, deadline=None)
@given(SCRIPTS)
def test_any_text(text):
    _check(text)


@settings(max_examples=200, deadline=None)
@given(GOOD_SCRIPTS)
def test_statements(text):
    _check(text)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_of_kinds(text):
    assert _check(text)


def test_the_error_is_that_of_the_grammar_where_another_one_comes_first():
    with pytest.raises(ConfigError, match="is not closed"):
        parse_document(_document("a = b c\nd = F(1"))


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
def test_depth_of_brackets(depth):
    text = "x = " + "F(" * depth + "1" + ")" * depth
    assert _check(text) == (depth <= MAX_DEPTH)


def test_a_right_script_needs_no_lark():
    program = (
        "import sys; from cntkpy.networks.builders.ndl.parse import parse_document;"
        "from cntkpy.networks.builders.ndl.text import Document;"
        "parse_document(Document('a = Input(3)', lambda offset: None)); print('lark' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
