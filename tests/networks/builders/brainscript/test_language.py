"""The language alone: what expressions mean, and what is said about wrong ones."""

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.builders.brainscript.language import evaluate, parameters, source
from cntkpy.networks.builders.brainscript.language.parameters import flattened
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.language.values import Array

VALUES = {
    "2+3*4": 14,
    "2*3**2": 36,  # the operators of a level are equal, from left to right
    "2**3**2": 64,
    "-2**2": 4,  # a sign binds tighter than any operator
    "-7 % 4": -3,
    "7 % -4": 3,
    "10-4-3": 3,
    "2.*3": 6,  # the dot belongs to the number
    ".5 + 0x1F + 1e2 + 1.": 132.5,
    "1/0": float("inf"),
    "0**-1": float("inf"),
    "'a' + \"b\"": "ab",
    "1 < 2 == true": True,
    "!true == false": True,
    "true || false && false": True,
    "'b' > 'abc'": True,
    "if true then 1 else 2 + 10": 1,  # the else part takes everything
    "(if false then 1 else 2) + 10": 12,
    "10 + if false then 1 else 2": 12,
    "(1:2:3)[1]": 2,
    "((1:2):3)[2]": 3,  # parentheses leave no trace
    "(1:(2:3))[1][0]": 2,
    "(array [2..4] (i => i*i))[4]": 16,
    "((1:2:3) << 1)[0]": 2,
    "[| 7 |][0]": 7,
    "{a = b + 1; b = 5}.a": 6,
    "{a = { c = b } ; b = 5}.a.c": 5,
    "(x => y => x*10 + y) (4) (2)": 42,
    "((x => x + 1) >> (x => x*2)) (3)": 8,
    "{f (x, k=2) = x*k}.f (4)": 8,
    "{f (x, k=2) = x*k}.f (k=3, 4)": 12,
    "{f (x, y) = x}.f (1, nobody)": 1,  # arguments are lazy
    "{x[i:0..3] = if i == 0 then 1 else x[i-1]*2}.x[3]": 8,
    "new StringFunction [ what='Replace' ; arg='aXb' ; replacewhat='X' ; withwhat='-' ]": "a-b",
    "new NumericFunction ([ what = 'Length' ; arg = 1:2:3 ])": 3,
    "new NumericFunction if 1 < 2 then { what = 'Length' ; arg = 'abc' } else { what = 'none' }": 3,
}


@pytest.mark.parametrize("text", VALUES)
def test_value(plain, text):
    found = plain(f"z = {text}")
    assert found == VALUES[text]
    assert isinstance(found, bool) == isinstance(VALUES[text], bool)


def test_members_need_no_separator(plain):
    assert plain("a = 13 b = 42\nz = a\n - b") == -29


def test_comments(plain):
    assert plain("# one\nz = /* inside */ 1 // rest\n + 1 # end") == 2


WRONG = {
    # text: kind, where, part of the message, part of the hint
    "z = b_missing + 1": ("UnknownName", 5, "unknown identifier 'b_missing'", None),
    "z = first ; frist = 1": ("UnknownName", 5, "unknown identifier 'first'", "did you mean 'frist'?"),
    "ns = { in = { f (x) = x } } z = f (1)": ("UnknownName", 33, "unknown identifier 'f'", "did you mean 'ns.in.f'?"),
    "z = True": ("UnknownName", 5, "unknown identifier 'True'", "in small letters: true"),
    "z = a ; a = z + 1": ("CircularReference", 13, "'z' is needed to compute itself (z -> a -> z)", "PastValue"),
    "f (x) = x z = f (1, 2)": ("WrongArguments", 15, "'f' takes 1 positional argument, 2 given", "usage: f (x)"),
    "f (x, k=1) = x z = f (1, q=2)": ("UnknownArgument", 26, "'f' has no parameter 'q'", "usage: f (x, k=1)"),
    "f (x) = x z = f (x=1)": ("WrongArguments", 15, "0 given", "'x' is passed by position"),
    "z = f (1, k=2, k=3)": ("DuplicateArgument", 16, "'k' is given twice", None),
    "z = (1:2)[0.5]": ("NoInteger", 6, "expected integer", None),
    "z = (1:2)[2]": ("BadIndex", 6, "index 2 is out of range; valid are 0 to 1", None),
    "z = 5 [0]": ("NoArray", 5, "an index needs an array, not the number 5", None),
    "z = 1 + 'x'": ("BadOperand", 7, "operator + cannot be applied to the number 1 and the text 'x'", "Format"),
    "z = 2 .* 3": ("BadOperand", 7, "operator .*", "'*'"),
    "z = if 1 then 2 else 3": ("BadCondition", 5, "must be a truth value", "!= 0"),
    "z = !5": ("BadOperand", 5, "operator !", None),
    "z = 1 z = 2": ("DuplicateMember", 7, "two members 'z'", None),
    "f (x) { y = x }.y": ("BadSyntax", 7, "'=' is expected, not '{'", "a function needs '=': f (x) = {"),
    "z 5": ("BadSyntax", 3, "'=' is expected, not '5'", None),
    "z = 1 ;; b = 2": ("BadSyntax", 8, "';' is not expected here", "one ';'"),
    "z = (x, y) => x": ("BadSyntax", 7, "',' is not expected", None),
    "z = f (1) => 2": ("BadSyntax", 5, "the left side of '=>' must be a single name", "f (x, y)"),
    "z = 3 ^ 2": ("BadSyntax", 7, "unexpected character '^'", "x ** y"),
    "z = if 1 == 2 the 3 else 4": ("BadSyntax", 15, "'then' is expected, not 'the'", "did you mean 'then'?"),
    "z = if 1 == 2 then 3 esle 4": ("BadSyntax", 22, "'else' is expected, not 'esle'", "did you mean 'else'?"),
    "z = if 1 == 2 then 3 x = 4": ("BadSyntax", 22, "'else' is expected, not 'x'", None),
    "ReLU = 1 ns = { Relu = 2 } z = Relu": ("UnknownName", 32, "unknown identifier 'Relu'", "did you mean 'ReLU'?"),
    "z = ‘a’": ("BadSyntax", 5, "unexpected character '‘'", "write ' or"),
    "z = `a`": ("BadSyntax", 5, "unexpected character '`'", "write ' or"),
    "z = true | false": ("BadSyntax", 10, "unexpected character '|'", "'||'"),
    "z = 'abc": ("BadSyntax", 5, "this text is not closed", None),
    "z = 1 /* never": ("BadSyntax", 7, "this comment is not closed", None),
    "z = (1": ("BadSyntax", 5, "'(' is not closed", None),
    "z = 1)": ("BadSyntax", 6, "')' closes nothing", None),
    "z = (1]": ("BadSyntax", 7, "']' found, ')' expected", None),
    "if = 3": ("BadSyntax", 1, "'if' is not expected here", "cannot be a name"),
    "z =": ("BadSyntax", 4, "an operand is expected, not the end", None),
    "z = { v = 1 }.w": ("UnknownMember", 15, "unknown identifier 'w'", "it has v"),
    "ns = { g = 1 } on = { gg = 2 } z = on.g": ("UnknownMember", 39, "unknown identifier 'g'", "did you mean 'ns.g'?"),
    "z = 5 .b": ("NoRecord", 8, "'.b' needs a record, not the number 5", None),
    "z = new Wonder [ ]": ("UnknownClass", 5, "unknown class 'Wonder'", None),
    "z = new NumericFunction [ what='Mod' ]": ("MissingParameter", 5, "required parameter 'args' not found", None),
    "z = array [0..1.5] (i => i)": ("NoInteger", 5, "expected integer", None),
    "z = array [0..1e12] (i => i)": ("TooMany", 5, "at most 1000000", None),
    "f (x) = f (x + 1) + 1 z = f (0)": ("TooDeep", 9, "never stops calling itself", "if n == 0"),
    "include macros": ("BadSyntax", 1, "include needs the name of a file", 'include "file.bs"'),
    "include 'no_such.bs'": ("FileNotFound", 1, "'no_such.bs' does not exist", "searched in"),
}


@pytest.mark.parametrize("text", WRONG)
def test_error(plain, text):
    kind, column, message, hint = WRONG[text]
    with pytest.raises(ConfigError) as caught:
        plain(text)
    found = caught.value.diagnostic
    assert found.kind == kind
    assert message in found.message
    assert str(found.span) == f"test.bs:1:{column}"
    assert hint is None or hint in found.hint


def test_an_error_names_the_calls_that_led_there(plain):
    with pytest.raises(ConfigError) as caught:
        plain("f (x) = x + missing\ng (y) = f (y)\nz = g (2)")
    assert str(caught.value.span) == "test.bs:1:13"
    assert [note for note in caught.value.notes if "called" in note] == [
        "called at test.bs:2:9: f",
        "called at test.bs:3:5: g",
    ]


@pytest.mark.thorough
def test_recursion_is_deeper_than_pythons(plain):
    assert plain("sum (n) = if n == 0 then 0 else n + sum (n-1)\nz = sum (5000)") == 5000 * 5001 / 2
    assert plain("x[i:0..3000] = if i == 0 then 1 else x[i-1] + 1\nz = x[3000]") == 3001
    assert plain("z = " + "(" * 3000 + "1" + ")" * 3000) == 1
    assert plain("z = " + "1 + " * 3000 + "1") == 3001


@pytest.mark.parametrize("body", ["if n == 0 then 1 else f (n-1) + f (n-1)", "f (n) + 1"])
def test_an_evaluation_without_end_is_refused(plain, body, monkeypatch):
    """The time of two calls in each of 40 levels grows without end, though nothing is nested deeply."""
    monkeypatch.setattr(evaluate, "MAX_STEPS", 30_000)
    monkeypatch.setattr(evaluate, "MAX_DEPTH", 1 << 30)
    with pytest.raises(ConfigError, match="the evaluation takes more than 30000 steps") as caught:
        plain(f"z = f (40)\nf (n) = {body}")
    assert caught.value.kind == "TooMany"
    assert caught.value.span is not None


def test_arrays_without_elements_count_too(plain, monkeypatch):
    """Each holds the one before twice: 2**40 arrays and no element."""
    monkeypatch.setattr(parameters, "MAX_ELEMENTS", 1_000)
    nested = "".join(f"a{i} = (a{i - 1} : a{i - 1})\n" for i in range(1, 40))
    with pytest.raises(ConfigError, match="more than 1000 arrays of"):
        plain(f"a0 = [| |]\n{nested}z = new NumericFunction [ what='Mod' args=a39 ]")


def test_a_hexadecimal_number_that_is_too_large(plain):
    assert plain(f"z = 0x{'F' * 400}") == float("inf")


def test_each_value_is_computed_once(plain):
    """Without sharing, this would take 2^60 steps."""
    lines = [f"a{i} = a{i - 1} + a{i - 1}" for i in range(1, 61)]
    assert plain("a0 = 1\n" + "\n".join(lines) + "\nz = a60") == 2.0**60


def test_includes(plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner.bs").write_text("inner = 41 # comment\n")
    (tmp_path / "outer.bs").write_text('include "inner.bs"\nouter = inner + 1\n')
    assert plain("include 'outer.bs' z = outer") == 42
    (tmp_path / "self.bs").write_text('include "self.bs"')
    with pytest.raises(ConfigError, match=r"'self\.bs' includes itself"):
        plain("include 'self.bs'")
    (tmp_path / "wrong.bs").write_text("\n  a = nothing\n")
    with pytest.raises(ConfigError) as caught:
        plain("include 'wrong.bs' z = a")
    assert str(caught.value.span) == "wrong.bs:2:7"


@pytest.mark.parametrize("name", ["parts/unit.bs", "elsewhere/unit.bs"])
def test_an_include_in_a_folder(tmp_path, monkeypatch, name):
    """CNTK's manual: a relative path counts from the configuration, too. CNTK itself looks for the file's own name."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "unit.bs").write_text("unit = 6 ; include 'beside.bs'")
    (tmp_path / "parts" / "beside.bs").write_text("beside = 7")
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    folder = tmp_path if name.startswith("parts") else tmp_path / "parts"
    text = text_of_string(f"include '{name}'", "test.bs", (folder,))
    assert set(parse_members(text).members) == {"unit", "beside"}


def test_included_files_have_a_limit_together(tmp_path, monkeypatch):
    """A file that includes another one many times makes a text that no file has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source, "TEXT_LIMIT", 2_000)
    (tmp_path / "many.bs").write_text("# a comment\n" * 50)
    with pytest.raises(ConfigError, match="the included files have more than") as caught:
        text_of_string('include "many.bs"\n' * 9, "t.bs")
    assert caught.value.span is not None and caught.value.span.line == 4


def test_the_language_needs_neither_numpy_nor_jax():
    code = (
        "import cntkpy.networks.builders.brainscript.language.standard, sys; print({'numpy', 'jax'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


# -------------------------------------------------------------------------------------------------- laws and accidents

numbers = st.integers(0, 99).map(str) | st.sampled_from(["1.5", ".25", "1e3"])
expressions = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"(-{t})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_arithmetic_is_pythons(text):
    from cntkpy.networks.builders.brainscript.language.expressions import evaluator_of
    from cntkpy.networks.builders.brainscript.language.parse import parse_expression
    from cntkpy.networks.builders.brainscript.language.source import text_of_string
    from cntkpy.networks.builders.brainscript.language.values import Scope

    found = evaluator_of({}).evaluate(parse_expression(text_of_string(text, "x")), Scope({}, None))
    assert found == eval(text.replace("(-0", "(-0"))


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4))
def test_arrays_flatten(lists):
    from cntkpy.networks.builders.brainscript.language.expressions import evaluator_of
    from cntkpy.networks.builders.brainscript.language.parse import parse_expression
    from cntkpy.networks.builders.brainscript.language.source import text_of_string
    from cntkpy.networks.builders.brainscript.language.values import Scope

    text = "[|" + ";".join("[|" + ";".join(map(str, one)) + "|]" for one in lists) + "|]"
    evaluator = evaluator_of({})
    expression = parse_expression(text_of_string(text, "x"))
    found = evaluator.evaluate(expression, Scope({}, None))
    assert isinstance(found, Array)
    flat = evaluator.run(flattened(evaluator, found, expression.place, None, "numbers"))
    assert flat == [number for one in lists for number in one]


SCRIPT = """
f (x, k=2) = if x > 0 then { a = x*k ; b[i:0..2] = a + i }.b[1] else 'none' // a comment
g = f >> (y => y : y)
r = { h (u, v) = u : v ; n = 3 ; w = "text" + 'more' }
z = (g (3))[0] + r.h (1, r.n)[1] ** 2 % 7
"""


def test_mutated_scripts_give_located_errors_only(plain):
    """A longer run of the same is in benchmarks; every error has a place, no other exception comes out."""
    chance = random.Random(1)
    alphabet = "(){}[]|:;,.=<>+-*/%!&'\"#xz01 \n"
    wrong = 0
    for _ in range(600):
        text = list(SCRIPT)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 2)] = chance.choice(alphabet)
        try:
            plain("".join(text))
        except KeyError:
            continue  # z is gone
        except ConfigError as problem:
            assert problem.span is not None
            wrong += 1
    assert wrong > 300
