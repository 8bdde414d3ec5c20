"""How NDL text is cut into statements and arguments (docs/specification/networks.md A.2, A.3)."""

from __future__ import annotations

import pytest

from cntkpy.cntk_config import ConfigError, Diagnostic
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.graph.network import Network


def build(text: str, **options) -> Network:
    return parse_ndl(text, "t.ndl", require_features=False, **options)


def nodes(text: str) -> list[str]:
    """`name = Operation(inputs)` or `name = Operation[shape]`, in order."""
    found = []
    for node in build(text).nodes.values():
        inside = f"({', '.join(i.name for i in node.connected)})" if node.inputs else str(list(node.shape or ()))
        found.append(f"{node.name} = {node.operation}{inside}")
    return found


X = "x = InputValue[3]"
W = "W = LearnableParameter[2, 3]"
Z = "z = Times(W, x)"


@pytest.mark.parametrize(
    "text",
    [
        "x = Input(3)\nW = Parameter(2, 3)\nz = Times(W, x)",
        "x = Input(3) W = Parameter(2, 3) z = Times(W, x)",  # a statement ends after its brackets
        "x=Input(3)W=Parameter(2,3)z=Times(W,x)",
        "x = Input(3); W = Parameter(2, 3), z = Times(W, x)",
        "x = Input(3)\r\nW = Parameter(2, 3)\r\nz = Times(W, x)\r\n",
        "x = Input(3)\rW = Parameter(2, 3)\rz = Times(W, x)",
        ";;\n, x = Input(3) ;;, W = Parameter(2, 3);;\n\n\n,;z = Times(W, x),,",
        "[\nx = Input(3)\nW = Parameter(2, 3)\nz = Times(W, x)\n]",
        "[ x = Input(3) ] [ W = Parameter(2, 3) ]\n[z = Times(W, x)]",
        "x = Input(3)\nW = Parameter(\n 2,\n 3\n)\nz = Times(W,\n  x)",
        "x = Input(3)\nW = Parameter(2\n3)\nz = Times(W\n\n x)",  # newline separates arguments
        "x = Input(3)\nW = Parameter(2:3)\nz = Times(W : x)",  # so does a colon
        "x = Input (3)\nW = Parameter (2, 3)\nz = Times\t(W, x)",
        'x = Input(3)\nW = Parameter("2", 3)\nz = Times("W", "x")',  # a quoted word is a name
        "x = Input( 3 )\nW = Parameter(,2,,3,)\nz = Times(W , x)",
        "# a comment\nx = Input(3) # one\n  # two\nW = Parameter(2, # rows\n 3) #\tcolumns\nz = Times(W, x)# three",
        "x = Input(3)\nW = Parameter(2, 3)\nz = times(w, X)",
    ],
)
def test_layout_of_the_text_does_not_matter(text):
    assert nodes(text) == [X, W, Z]


def test_arguments_end_after_brackets_too():
    assert nodes("x = Input(3)\nz = Times(Parameter(2, 3) x)")[1:] == [
        "unnamed1 = LearnableParameter[2, 3]",
        "z = Times(unnamed1, x)",
    ]


def test_nested_calls():
    assert nodes("x = Input(3) z = Sin(Exp(Negate(x)))") == [
        X,
        "unnamed1 = Negate(x)",
        "unnamed2 = Exp(unnamed1)",
        "z = Sin(unnamed2)",
    ]


@pytest.mark.parametrize("argument", ["-1", ".5", "+2", "-.5e-1", "1#INF"])
def test_numbers_at_the_start_of_an_argument_list_keep_their_first_character(argument):
    value = build(f"c = Constant({argument})")["c"].matrix()
    expected = float("inf") if "INF" in argument else float(argument)
    assert value.shape == (1, 1)
    assert value[0, 0] == pytest.approx(expected)


def test_names_may_begin_with_an_underscore_and_hold_dashes():
    assert nodes("_x = Input(3) a-b = Negate(_x) c.d = Sin(a-b)")[1:] == ["a-b = Negate(_x)", "c.d = Sin(a-b)"]


@pytest.mark.parametrize(
    "header",
    ["{ BODY }", "[ BODY ]", "= { BODY }", "= [ BODY ]", "\n{\nBODY\n}", "\n# remark\n\n= [ BODY ]", "={\nBODY}"],
)
def test_forms_of_a_macro(header):
    body = "A = Parameter(o, i) t = Times(A, v)"
    text = f"Lin(v, o, i) {header.replace('BODY', body)}\nx = Input(3)\nz = Lin(x, 2, 3)"
    assert nodes(text) == [X, "z.A = LearnableParameter[2, 3]", "z.t = Times(z.A, x)"]


def test_one_line_macro():
    assert nodes("F(v) = Sin(Exp(v))\nx = Input(3)\nz = F(x)") == [
        X,
        "z.unnamed1 = Exp(x)",
        "z.unnamed2 = Sin(z.unnamed1)",
    ]


def test_one_line_macro_with_dimensions_inside_a_nested_call():
    assert nodes("T(v, o, i) = Times(Parameter(o, i), v)\nx = Input(3)\nz = T(x, 2, 3)")[1] == (
        "z.unnamed1 = LearnableParameter[2, 3]"
    )


def test_block_after_equals_may_hold_an_unnamed_call():
    assert nodes("F(v) = { Sin(v) }\nx = Input(3)\nz = F(x)") == [X, "z.unnamed1 = Sin(x)"]


@pytest.mark.parametrize("array", ["(x, y)", "{x, y}", "[x : y]", "(x\ny)", "(;x;y)", '("x" "y")', "( x:y: )"])
def test_forms_of_an_array(array):
    network = build(f"x = Input(3) y = Input(2)\nFeatureNodes = {array}")
    assert [node.name for node in network.groups["feature"]] == ["x", "y"]


def test_repeated_array_element():
    x = "x = Input(6, 5, 1)\nW = Parameter(2, 9)\n"
    text = x + "z = Convolution(W, x, {3*2, 1}, mapCount=2, stride={1*3}, autoPadding={false*3})"
    assert build(text)["z"].options["kernelShape"] == (3, 3, 1)


def test_repeated_argument_is_repeated_with_a_warning():
    found: list[Diagnostic] = []
    assert build("x = Input(2*3)", diagnostics=found)["x"].shape == (2, 2, 2)
    assert [(d.kind, d.severity) for d in found] == [("RepeatedArgument", "warning")]


@pytest.mark.parametrize(
    ("text", "kind", "place", "words"),
    [
        ("x = Input(3", "UnclosedBracket", "1:10", ["'('", "')'"]),
        ("x = Input(3]", "MismatchedBracket", "1:12", ["']'", "')'"]),
        ("x = Input(3))", "StrayBracket", "1:13", ["')'"]),
        ("[\nx = Input(3)\n", "UnclosedBracket", "1:1", ["'['"]),
        ('x = Input(3, tag="feature)', "UnclosedBracket", "1:18", ["quote"]),
        ("hello", "InvalidStatement", "1:1", ["no '='", "hello"]),
        ("x = Input(3)\nSin(x)", "InvalidStatement", "2:1", ["no '='", "Sin(x)"]),
        ("x = Input(3)\ny = Sin(x) + 1", "InvalidStatement", "2:12", ["+ 1"]),
        ("n = 1 + 1", "InvalidStatement", "1:5", ["1 + 1"]),
        ("n = 2 W = Parameter(n, 3)", "InvalidStatement", "1:9", ["="]),
        ("x = Input(3)\nz =\ny = Sin(x)", "MissingValue", "2:4", ["right"]),
        ("x = Input(3,\n tag=)", "MissingValue", "2:6", ["right"]),
        ("= Input(3)", "InvalidStatement", "1:1", ["="]),
        ("{ x = 3 }\n= { y = 4 }", "InvalidStatement", "2:1", ["left"]),
        ("x = Input(3; 4)", "InvalidStatement", "1:12", [";"]),
        ("x = Input(3 4)", "InvalidArgument", "1:12", ["separator"]),
        ("x = Input(3)\nz = Plus((x), x)", "InvalidArgument", "2:10", ["("]),
        ("x = Input(3)\nz = Sin(x, tag=Sin(x))", "InvalidArgument", "2:16", ["tag"]),
        ("x = Input{3}", "InvalidStatement", "1:10", ["{"]),
        ("M(a) { N(b) { c = Sin(b) } }", "InvalidMacro", "1:8", ["inside"]),
        ("M(a=1) { c = Sin(a) }", "InvalidMacro", "1:3", ["default"]),
        ("M(Sin(a)) { c = Sin(a) }", "InvalidMacro", "1:3", ["parameter"]),
        ("M(a) { Sin(a) }", "InvalidStatement", "1:8", ["no '='"]),
        ("a+b = Input(3)", "InvalidName", "1:1", ["a+b"]),
        ("a b = Input(3)", "InvalidName", "1:1", ["a b"]),
        ("12 = Input(3)", "InvalidName", "1:1", ["12"]),
        ("x = Input(2*)", "BadRepeat", "1:11", ["2*"]),
        ("x = Input(2*-1)", "BadRepeat", "1:11", ["2*-1"]),
        ("x = Input(2*99999999999)", "BadRepeat", "1:11", []),
        ('n = "text"', "UndefinedNode", "1:5", ["text"]),
    ],
)
def test_faults_of_the_text(text, kind, place, words):
    with pytest.raises(ConfigError) as caught:
        build(text)
    error = caught.value
    assert (error.kind, str(error.span)) == (kind, f"t.ndl:{place}")
    for word in words:
        assert word in str(error)
    assert "^" in error.diagnostic.render()
