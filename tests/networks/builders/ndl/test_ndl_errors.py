"""Every error of the front end says where it is and what is right (docs/specification/networks.md A.11)."""

from __future__ import annotations

import pytest

from cntkpy.cntk_config import ConfigError, UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import parse_ndl

START = "x = Input(3, tag=feature)\nM(a, b) { W = Parameter(b, 3) t = Times(W, a) }\n"

#: text after START (its first line is line 3), kind, line:column, words of message, hint or notes
CASES = [
    # undefined function or macro: its name and the whole call; a suggestion
    ("y = Sgmoid(x)", "UndefinedFunction", "3:5", ["'Sgmoid'", "Sgmoid(x)", "'Sigmoid'"]),
    ("y = Sin(Foo(x, 2))", "UndefinedFunction", "3:9", ["'Foo'", "Foo(x, 2)"]),
    ("y = MM(x, 2)", "UndefinedFunction", "3:5", ["'MM'", "MM(x, 2)"]),
    ("y = Param(2, 3)", "UndefinedFunction", "3:5", ["'Param'", "'Parameter'"]),
    ("y = K(x)\nK(a) { s = Sin(a) }", "UndefinedFunction", "3:5", ["'K'", "later", "t.ndl:4:1"]),
    ("K(a) { s = Foo(a) }", "UndefinedFunction", "3:12", ["'Foo'", "Foo(a)"]),
    # known, but not supported: what to use instead
    ("y = Sum(x, x)", "Unsupported", "3:5", ["Sum", "Plus"]),
    ("y = ROIPooling(x, x)", "FunctionArguments", "3:5", ["ROIPooling", "outputShape"]),
    ("y = TimeReverse(x)", "Unsupported", "3:5", ["TimeReverse", "FutureValue"]),
    # undefined node: the name and the call that uses it
    (
        "y = Plus(x, fetures)\nfeatures = Sin(x)",
        "UndefinedNode",
        "3:13",
        ["'fetures'", "Plus(x, fetures)", "'features'"],
    ),
    ("y = M(nosuch, 2)", "UndefinedNode", "3:7", ["'nosuch'", "Times(W, a)"]),
    ("y = m.s\nm = M(x, 2)", "UndefinedNode", "3:5", ["'m.s'"]),
    ("m = M(x, 2)\ny = Sin(m.q)", "UndefinedNode", "4:9", ["'m.q'"]),
    ("y = z", "UndefinedNode", "3:5", ["'z'", "y = z"]),
    ("K() { n = 3; }\nk = K()\ny = Sin(k)", "UndefinedNode", "4:5", ["'K'", "Sin(k)"]),
    ("y = Scale(0.5, x)", "UndefinedNode", "3:11", ["'0.5'", "Constant(0.5)"]),
    ("n = 4\ny = Plus(x, n)", "UndefinedNode", "4:13", ["'4'", "'n'", "Constant(4)"]),
    ("y = Sin(M)", "UndefinedNode", "3:9", ["'M'", "it is a macro", "M(a, b)"]),
    ("n = 4\nEvalNodes = (n)", "UndefinedNode", "4:14", ["'4'", "'n'", "an evaluation node"]),
    ("y = z\nz = Sin(x)", "UndefinedNode", "3:5", ["'z'", "later", "t.ndl:4:1"]),
    # a dimension that is no constant
    ("W = Parameter(n, 3)", "ConstantExpected", "3:15", ["'n'", "scalar expected"]),
    ("W = Parameter(n, 3)\nn = 2", "ConstantExpected", "3:15", ["'n'", "t.ndl:4:1"]),
    ("num = 2\nW = Parameter(nun, 3)", "ConstantExpected", "4:15", ["'nun'", "'num'"]),
    ("W = Parameter(x, 3)", "ConstantExpected", "3:15", ["scalar expected", "'x' is a node"]),
    ("W = M(x, size)", "ConstantExpected", "3:10", ["'size'"]),
    ("W = Parameter(2, 3, initValueScale=big)", "ConstantExpected", "3:36", ["'big'", "initValueScale"]),
    # redefinition: name, old value
    ("n = 2\nN = 3", "Redefinition", "4:1", ["'N'", "'2'", "reassigning", "t.ndl:3:1"]),
    ("w = Sin(x)\nW = Sin(x)", "Redefinition", "4:1", ["letter case does not count: 'w' and 'W'", "take 'W1'"]),  # (C5)
    ("n = 2\nn = 2", "Redefinition", "4:1", ["'n'", "'2'"]),
    ("y = Sin(x)\ny = Exp(x)", "Redefinition", "4:1", ["'y'", "Sin(x)", "t.ndl:3:1"]),
    ("K(a) { s = Sin(a) S = Exp(a) }\nk = K(x)", "Redefinition", "3:19", ["'S'", "Sin(a)"]),
    # forms of the manual that CNTK refuses (G13)
    ("y = Sum(x, x)", "Unsupported", "3:5", ["use Plus", "SumElements"]),
    ("y = Parameter(2, 3, init=None)", "BadValue", "3:26", ["'None'", "init=zero"]),
    ("y = Scale(0.5, x)", "UndefinedNode", "3:11", ["write Constant(0.5)"]),
    # reserved names
    ("mean = Parameter(2, 3)", "ReservedName", "3:1", ["'mean'", "function"]),
    ("input = Sin(x)", "ReservedName", "3:1", ["'input'"]),
    ("K(input) { s = Sin(input) }", "ReservedName", "3:3", ["'input'", "such as 'input1'"]),
    ("CrossEntropy = Sin(x)", "ReservedName", "3:1", ["'CrossEntropy'", "such as 'CrossEntropy1'"]),
    ("K(a, Scale) { s = Sin(a) }", "ReservedName", "3:6", ["'Scale'", "'K'"]),
    # macros defined twice
    ("m(a) { s = Sin(a) }", "Redefinition", "3:1", ["'m'", "t.ndl:2:1"]),
    ("sin(a) { s = Exp(a) }", "Redefinition", "3:1", ["'sin'", "function"]),
    ("X(a) { s = Sin(a) }", "Redefinition", "3:1", ["'X'", "t.ndl:1:1"]),
    ("K(a, A) { s = Sin(a) }", "Redefinition", "3:6", ["'A'", "'K'"]),
    ("K(3) { s = Sin(x) }", "InvalidName", "3:3", ["'3' is a number"]),
    ("= 3", "InvalidStatement", "3:1", ["a name is missing"]),
    ("W = Parameter(2, init==uniform)", "InvalidStatement", "3:23", ["one '=' is enough"]),
    ("K(a) { s = K(a) }", "RecursiveMacro", "3:12", ["'K'", "itself"]),
    # arguments of macros
    ("y = M(x)", "MacroArguments", "3:5", ["'M'", "takes 2", "1 given", "t.ndl:2:1"]),
    ("y = M(x, 2, 3)", "MacroArguments", "3:5", ["'M'", "takes 2", "3 given"]),
    ("y = M(x, b=2)", "MacroArguments", "3:5", ["'M'", "'b'", "optional", "M(x, b=2)"]),
    # arguments of functions: the allowed signature
    ("W = Parameter()", "FunctionArguments", "3:5", ["Parameter", "1 or more", "initValueScale="]),
    ("y = PastValue(x)", "FunctionArguments", "3:5", ["PastValue", "2 or 3 or 4", "1 given", "timeStep=1"]),
    ("y = PastValue(3, 1, 1, 1, x)", "FunctionArguments", "3:5", ["5 given"]),
    ("y = Plus(x)", "FunctionArguments", "3:5", ["Plus", "'y'", "2 inputs", "1 given", "Plus(x)"]),
    ("y = Sin(x, x)", "FunctionArguments", "3:5", ["Sin", "'y'", "1 input,", "2 given"]),
    ("y = Plus(x, tag=output)", "FunctionArguments", "3:5", ["Plus", "1 given"]),
    ("y = Plus(x, {x, x})", "InvalidArgument", "3:13", ["array", "Plus"]),
    # literals
    ("W = Parameter(2.0, 3)", "BadInteger", "3:15", ["'2.0'", "Parameter"]),
    ("W = Parameter(2, 3e0)", "BadInteger", "3:18", ["'3e0'"]),
    ("n = 2.5\nW = Parameter(2, n)", "BadInteger", "4:18", ["'2.5'", "'n'"]),
    ("W = Parameter(2, 3, randomSeed=1.5)", "BadInteger", "3:32", ["'1.5'", "randomSeed"]),
    ("W = Parameter(2, 3, value=1,5x)", "BadInteger", "3:29", ["'5x'"]),
    ('W = Parameter(2, 3, value="much")', "BadNumber", "3:27", ["'much'", "value"]),
    ("W = Parameter(2, 3, needGradient=yes)", "BadBoolean", "3:34", ["'yes'", "needGradient"]),
    ("W = Parameter(2, 3, value={1, 2})", "BadValue", "3:27", ["value", "array"]),
    # words
    ("W = Parameter(2, 3, init=unifrom)", "BadValue", "3:26", ["'unifrom'", "gaussian", "'uniform'"]),
    ("i = ImageInput(5, 4, 2, imageLayout=XYZ)", "BadValue", "3:37", ["'XYZ'", "CHW", "HWC"]),
    ("y = Pooling(x, median, {2, 2})", "BadValue", "3:16", ["'median'", "max", "average"]),
    ("y = Sin(x, tag=criterium)", "BadTag", "3:16", ["'criterium'", "feature", "evaluation", "'criterion'"]),
    # what the function itself refuses
    ("W = Parameter(2, 3, learningRateMultiplier=-1)", "BadValue", "3:5", ["learningRateMultiplier"]),
    ("W = Parameter(2, 3, initValueScale=1#INF)", "BadValue", "3:5", ["initValueScale", "finite"]),
    ("W = Parameter(2, 3, init=fromFile)", "BadValue", "3:5", ["initFromFilePath"]),
    ('W = Parameter(2, 3, init=fromFile, initFromFilePath="no/file")', "BadValue", "3:5", ["no/file"]),
    ("FeatureNodes = (x, Y)", "UndefinedNode", "3:20", ["'Y'", "feature node"]),
]


@pytest.mark.parametrize(("text", "kind", "place", "words"), CASES, ids=[case[0].split("\n")[0][:40] for case in CASES])
def test_errors(text, kind, place, words):
    with pytest.raises(ConfigError) as caught:
        parse_ndl(START + text, "t.ndl")
    found = caught.value.diagnostic
    assert (found.kind, str(found.span)) == (kind, f"t.ndl:{place}"), found.render()
    rendered = found.render()
    for word in words:
        assert word in rendered, rendered
    assert "^" in rendered


def test_the_missing_group_is_named():
    with pytest.raises(ConfigError, match="featureNodes") as caught:
        parse_ndl("x = Input(3)\ny = Sin(x)", "t.ndl")
    assert (caught.value.kind, str(caught.value.span)) == ("NoFeatureNode", "t.ndl:1:1")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("W = Parameter(2, 4)\ny = Times(W, x)", "4:5", ["'W' [2 x 4]", "'x' [3]", "'y'", "Times"]),
        ("W = Parameter(0, 3)\ny = Negate(W)", "3:5", ["'W'", "[0 x 3]"]),
        ("a = Plus(x, b)\nb = Sin(a)", "3:5", ["'a'", "PastValue"]),
        ("p = PastValue(3, s)\nf = FutureValue(3, s)\ns = Plus(p, f)", "4:5", ["PastValue", "FutureValue"]),
    ],
)
def test_errors_of_the_whole_network_point_into_the_script(text, place, words):
    with pytest.raises(UserError) as caught:
        parse_ndl(START + text, "t.ndl").validate()
    rendered = caught.value.diagnostic.render()
    assert str(caught.value.span) == f"t.ndl:{place}", rendered
    for word in words:
        assert word in rendered


@pytest.mark.parametrize("dims", ["99999999999, 3, init=gaussian", "4000000000, 4000000000"])
def test_a_parameter_larger_than_memory_is_refused_at_once(dims):
    with pytest.raises(UserError, match="not enough memory for the parameter 'W'") as caught:
        parse_ndl(START + f"W = Parameter({dims})", "t.ndl")
    assert str(caught.value.span) == "t.ndl:3:5"


def test_names_of_functions_that_do_not_exist_here_are_free_for_macros():
    network = parse_ndl(START + "LSTM(a) { s = Sin(a) }\nShift(a) { s = Sin(a) }\ny = LSTM(x)\nz = Shift(y)")
    assert network["z.s"].input(0).name == "y.s"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "y = " + "Sin(" * 5000 + "x" + ")" * 5000,
        "[" * 3000 + "]" * 3000,
        "(" * 9999,
        "y = {" * 2000,
        "\n".join(f"K{i + 1}(a) {{ u = K{i}(a) }}" if i else "K1(a) { u = Sin(a) }" for i in range(400))
        + "\nz = K400(x)",
        "\n".join(f"K{i + 1}(a) {{ u = K{i}(a) v = K{i}(u) }}" if i else "K1(a) { u = Sin(a) }" for i in range(40))
        + "\nz = K40(x)",
        "K() { "
        + " ".join(f"c{i} = {i};" for i in range(2000))
        + " }\n"
        + " ".join(f"k{i} = K()" for i in range(2000)),
    ],
    ids=["calls", "sections", "open", "arrays", "macros", "exponential", "constants"],
)
def test_depth_and_size_are_bounded(text):
    with pytest.raises(ConfigError) as caught:
        parse_ndl(START + text, "t.ndl")
    assert caught.value.kind in ("TooDeep", "TooLarge", "UnclosedBracket")
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("call", "word"), [("Dropout(x, dropoutRate=0.5)", "SGD section"), ("ErrorPrediction(x, x, topN=5)", "Constant(5)")]
)
def test_options_that_belong_elsewhere(call, word):
    found = []
    parse_ndl(f"x = Input(3, tag=feature)\nz = {call}\n", diagnostics=found)
    (one,) = found
    assert "it is ignored" in one.message and word in (one.hint or "")


@pytest.mark.parametrize("kind", [kind for kind in nodes.kinds() if kind.unsupported], ids=lambda kind: kind.name)
def test_functions_that_are_not_supported_say_what_to_use(kind):
    for name in kind.names:
        with pytest.raises(ConfigError, match=f"{name} is not supported") as caught:
            parse_ndl(f"x = Input(3, tag=feature)\nz = {name}(x)\n")
        assert caught.value.diagnostic.hint == kind.unsupported and caught.value.span.line == 2


@pytest.mark.parametrize("call", ["CRF(x, x)", "SequenceWithSoftmax(x, x, x)", "GMMLL(x, x)"])
def test_criteria_of_other_releases_are_known_not_to_be_here(call):
    with pytest.raises(ConfigError, match=r"is not supported"):
        parse_ndl(f"x = Input(3, tag=feature)\nz = {call}\n")


def test_what_lark_tells_of_an_error_does_not_tell_these_apart() -> None:
    """Why messages look at the parser's stack (docs/architecture.md): state and accepted tokens are the same here."""
    from lark import UnexpectedToken

    from cntkpy.networks.builders.ndl.parse import _parser

    told, messages = [], []
    for text in ("= b\n", "f(x) = y\n"):
        with pytest.raises(UnexpectedToken) as found:
            _parser().parse(text)
        parser = found.value.interactive_parser
        told.append((parser.parser_state.position, str(found.value.token), sorted(map(str, parser.accepts()))))
        with pytest.raises(ConfigError) as error:
            parse_ndl(text, "t.ndl")
        messages.append(error.value.message)
    assert told[0] == told[1] and told[0][1:] == ("\n", ["LPAR"])
    assert messages == ["a name is missing on the left of '='", "the body of a macro is a call, or it is in brackets"]
