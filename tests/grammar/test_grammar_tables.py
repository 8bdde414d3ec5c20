"""The tables of `cntkpy/grammar/tables.json`: they are those of the grammars, and give what Lark gives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Tree
from lark.exceptions import UnexpectedInput

from cntkpy import grammar
from cntkpy.grammar.tables import FILE, NotAcceptedError, table_parser, terminal
from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.language import trees
from tools.grammar_tables import STARTS, index_text, text, trees_text

LARK = grammar.load("brainscript", start=STARTS["brainscript"], lexer="basic")
RULES = {rule.alias or rule.options.template_source or rule.origin.name for rule in LARK.rules}

NAMES = st.sampled_from(["a", "b1", "newer", "x_y", "withs", "truth"])
LITERALS = st.sampled_from(["1", "2.5e-3", "0x1F", ".5", "'t'", '"a b"', "true", "false"])
OPERATORS = st.sampled_from(
    "+ - * / .* ** % == != < <= > >= && || >> << with : =>".split()  # noqa: SIM905
)
BLANKS = st.sampled_from([" ", "\n", " # words\n", " /* a */ ", " // b\n"])


def _expressions(inner):
    arguments = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(inner, OPERATORS, inner).map(" ".join),
        st.tuples(st.sampled_from("+-!"), inner).map("".join),
        st.tuples(NAMES, arguments).map(lambda parts: f"{parts[0]} ({', '.join(parts[1])})"),
        st.tuples(inner, NAMES, inner).map(lambda parts: f"f ({parts[0]}, {parts[1]} = {parts[2]})"),
        st.tuples(NAMES, inner).map(lambda parts: f"new Thing {{ {parts[0]} = {parts[1]} }}"),
        st.tuples(NAMES, inner, NAMES).map(
            lambda parts: f"{{ {parts[0]} = {parts[1]} ; c (d, e = 1) = 2 }}.{parts[2]}"
        ),
        st.tuples(NAMES, inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(inner, inner, inner).map(lambda parts: f"if {parts[0]} then {parts[1]} else {parts[2]}"),
        st.tuples(inner, inner).map(lambda parts: f"array[{parts[0]}..{parts[1]}] (i => i)"),
        st.lists(inner, max_size=3).map(lambda items: f"[| {' ; '.join(items)} |]"),
        inner.map("({})".format),
    )


EXPRESSIONS = st.recursive(NAMES | LITERALS, _expressions, max_leaves=12)
MEMBERS = st.tuples(NAMES, st.sampled_from(["", "[i:1..3]", " (p)", " (p, q = 2)"]), EXPRESSIONS).map(
    lambda parts: f"{parts[0]}{parts[1]} = {parts[2]}"
)
WORDS = st.one_of(NAMES, LITERALS, OPERATORS, st.sampled_from([*"()[]{}.,;=$", "[|", "|]", "new", "if", "then"]))


def _of_lark(string, start):
    """The tree that Lark makes, as tuples and words; None where it does not accept the text."""
    try:
        return _tuples(LARK.parse(string, start=start))
    except UnexpectedInput:
        return None


def _tuples(tree):
    if isinstance(tree, Tree):
        return (str(tree.data), *map(_tuples, tree.children))
    return tree if tree is None else (tree.type, str(tree), tree.start_pos, tree.end_pos)


def _of_tables(string, start):
    parser = table_parser("brainscript")
    makers = {rule: lambda children, rule=rule: (rule, *map(_value, children)) for rule in RULES}
    try:
        return parser.parse(parser.tokens(string, 0, len(string)), start, makers)
    except NotAcceptedError:
        return None


def _value(child):
    return (
        child if child is None or isinstance(child, tuple) else (child.type, str(child), child.start_pos, child.end_pos)
    )


MADE = {"tables": (FILE, text), "trees of the library": (trees.FILE, trees_text), "names": (nodes.INDEX, index_text)}


@pytest.mark.parametrize("name", MADE)
def test_the_file_is_that_of_its_source(name):
    file, made = MADE[name]
    assert file.read_text(encoding="utf-8") == made(), "run `python -m tools.grammar_tables`"


def test_only_one_module_declares_what_is_not_supported():
    assert nodes.missing() == [kind for kind in nodes.kinds() if kind.unsupported]


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_expressions_have_the_trees_of_lark(string):
    tree = _of_lark(string, "one_expression")
    assert _of_tables(string, "one_expression") == tree


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(MEMBERS, BLANKS).map("".join), max_size=4).map("".join))
def test_members_have_the_trees_of_lark(string):
    assert _of_tables(string, "start") == _of_lark(string, "start")


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=10).map(" ".join), st.sampled_from(STARTS["brainscript"]))
def test_the_same_texts_are_accepted(string, start):
    assert _of_tables(string, start) == _of_lark(string, start)


@pytest.mark.parametrize("string", ["f (x, y = 2)", "[| 1 ; 2 |]", "a.b[1] (2) { c = 3 }", "if a then b else c + 1"])
def test_forms_are_accepted(string):
    tree = _of_tables(string, "one_expression")
    assert tree is not None
    assert tree == _of_lark(string, "one_expression")


def test_a_character_of_no_word_is_not_accepted():
    with pytest.raises(NotAcceptedError):
        list(table_parser("brainscript").tokens("a ? b", 0, 5))


def test_terminals_are_patterns():
    variable = terminal("config", "VARIABLE")
    assert [m["name"] for m in variable.finditer("$a$$_b-c.d$ $5$ $x y$ p$q")] == ["a", "_b-c.d"]
    assert terminal("config", "INTEGER").fullmatch("+010")
    assert not terminal("config", "INTEGER").fullmatch("1_0")
    assert not terminal("config", "REAL").fullmatch("1e")
