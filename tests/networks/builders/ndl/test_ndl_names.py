"""Names, constants, options, macros, dots and aliases (docs/specification/networks.md A.4 to A.8)."""

from __future__ import annotations

import pytest

from cntkpy.cntk_config import ConfigError, Diagnostic
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.graph.network import Network

AFFINE = """
Aff(x, nOut, nIn) {
    A = Parameter(nOut, nIn)
    c = Parameter(nOut, init=fixedValue, value=0)
    m = Times(A, x)
    s = Plus(m, c)
}
Hid(x, nOut, nIn) {
    Aff = Aff(x, nOut, nIn)
    h = Sigmoid(Aff)
}
"""


def build(text: str, **options) -> Network:
    return parse_ndl(text, "t.ndl", require_features=False, **options)


def names(text: str) -> list[str]:
    return list(build(text).nodes)


def links(network: Network, name: str) -> list[str]:
    return [node.name for node in network[name].connected]


# -- case, constants, options


def test_names_ignore_case_and_keep_their_first_spelling():
    network = build("Feat = INPUT(3)\nz = sIN(fEAT)")
    assert list(network.nodes) == ["Feat", "z"]
    assert links(network, "Z") == ["Feat"]


def test_constants_make_no_node_and_serve_as_dimensions_and_options():
    network = build("n = 4\nm = n\ns = 0.5e-3\nW = Parameter(n, m, init=gaussian, initValueScale=s)")
    assert list(network.nodes) == ["W"]
    assert network["W"].shape == (4, 4)
    init = network["W"].init
    assert init is not None
    assert (init.kind, init.scale) == ("gaussian", 0.5e-3)


@pytest.mark.parametrize(
    ("text", "value"),
    [(t, True) for t in ("true", "t", "True", "TRUE", "T", "1", '"true"')]
    + [(t, False) for t in ("false", "f", "False", "FALSE", "F", "0", '""')],
)
def test_booleans(text, value):
    network = build(f"W = Parameter(2, 3, needGradient={text})")
    assert network["W"].trainable is value


def test_options_stand_anywhere_ignore_case_and_the_first_one_wins():
    network = build('W = Parameter(INIT="FixedValue", 2, Value=3, 4, value=5)')
    assert network["W"].shape == (2, 4)
    assert (network["W"].matrix() == 3).all()


def test_an_unknown_option_is_a_warning_once_for_a_function():
    found: list[Diagnostic] = []
    text = "x = Input(3)\na = PastValue(3, x, timeStp=2)\nb = PastValue(3, x, TIMESTP=2)\nc = Sin(x, timeStp=2)"
    build(text, diagnostics=found)
    assert [(str(d.span), d.kind, d.severity) for d in found] == [
        ("t.ndl:2:21", "IgnoredOption", "warning"),
        ("t.ndl:4:12", "IgnoredOption", "warning"),
    ]
    assert "timeStep" in str(found[0].hint)


def test_an_unknown_option_is_an_error_when_strict():
    text = "x = Input(3)\na = Sin(x, foo=2)\nb = Sin(x, foo=3)"
    found: list[Diagnostic] = []
    build(text, strict=True, diagnostics=found)
    assert [(str(d.span), d.severity) for d in found] == [("t.ndl:2:12", "error"), ("t.ndl:3:12", "error")]
    with pytest.raises(ConfigError, match="no option 'foo'"):
        build(text, strict=True)


def test_warnings_are_logged(caplog):
    build("x = Input(3)\na = Sin(x, foo=2)")
    assert [record.name for record in caplog.records] == ["cntkpy.networks"]
    assert "t.ndl:2:12" in caplog.text


# -- macros


def test_nested_macros_name_their_nodes():
    network = build(AFFINE + "feat = Input(20)\nH1 = Hid(feat, 64, 20)\nz = Negate(H1)")
    assert list(network.nodes) == ["feat", "H1.Aff.A", "H1.Aff.c", "H1.Aff.m", "H1.Aff.s", "H1.h", "z"]
    assert links(network, "z") == ["H1.h"]
    assert network["H1.Aff.A"].shape == (64, 20)


def test_each_instance_has_nodes_of_its_own():
    assert len(names(AFFINE + "f = Input(2)\na = Aff(f, 2, 2)\nb = Aff(a, 2, 2)\nc = Aff(f, 2, 2)")) == 13


def test_a_macro_returns_the_symbol_of_its_own_name_or_its_last_call():
    text = "M(a) { u = Exp(a) NAME = Negate(u) v = Sin(a) k = 3 }\nx = Input(3)\nq = M(x)\nz = Tanh(q)"
    assert links(build(text.replace("NAME", "m")), "z") == ["q.m"]
    assert links(build(text.replace("NAME", "w")), "z") == ["q.v"]


def test_a_macro_as_an_argument():
    network = build(AFFINE + "x = Input(3)\nz = Sin(Aff(x, 2, 3))")
    assert "unnamed1.A" in network
    assert links(network, "z") == ["unnamed1.s"]


def test_the_same_name_for_a_macro_and_its_instance():
    network = build(AFFINE + "x = Input(3)\nAff = Aff(x, 3, 3)\ngg = Aff(Aff, 2, 3)\nz = Sin(aff)")
    assert links(network, "z") == ["Aff.s"]
    assert links(network, "gg.m") == ["gg.A", "Aff.s"]


def test_numbers_and_words_are_handed_to_macros():
    text = "M(kind, scale2, n) { W = Parameter(n, n, init=kind, initValueScale=scale2) }\nq = M(gaussian, 0.5, 3)"
    init = build(text)["q.W"].init
    assert init is not None
    assert (init.kind, init.scale) == ("gaussian", 0.5)


def test_options_of_a_macro_call_are_constants_of_its_body():
    text = "M(n) { W = Parameter(n, k, init=how, value=v) }\nq = M(2, k=3, how=fixedValue, v=7)"
    node = build(text)["q.W"]
    assert node.shape == (2, 3)
    assert (node.matrix() == 7).all()


def test_array_elements_may_be_macro_parameters():
    text = """Conv(w, i, kw, kh, maps) { z = Convolution(w, i, {kw, kh, 1}, mapCount=maps) }
              i = Input(6, 5, 1) W = Parameter(2, 9) c = Conv(W, i, 3, 3, 2)"""
    assert build(text)["c.z"].options["kernelShape"] == (3, 3, 1)


def test_a_body_sees_no_constants_of_the_script_but_its_nodes():
    network = build("labels = Input(3)\nM(a) { e = SquareError(labels, a) }\nx = Input(3)\nz = M(x)")
    assert links(network, "z.e") == ["labels", "x"]
    with pytest.raises(ConfigError, match=r"scalar expected.*'n'") as caught:
        build("n = 2\nM(a) { W = Parameter(n, 3) t = Times(W, a) }\nx = Input(3)\nz = M(x)")
    assert "hand it over" in str(caught.value.diagnostic.hint)


def test_forward_references_at_the_top_and_inside_a_macro():
    network = build("""
        Cell(x, n) { p = PastValue(n, h)  W = Parameter(n, n)  r = Times(W, p)  s = Plus(x, r)  h = Tanh(s) }
        x = Input(4)
        q = PastValue(4, out)
        s = Plus(x, q)
        out = Cell(s, 4)
    """)
    assert links(network, "q") == ["out.h"]
    assert links(network, "out.p") == ["out.h"]
    network.validate()
    assert network["q"].shape == (4,)


def test_a_forward_reference_can_be_handed_to_a_macro():
    network = build("M(a) { d = Sin(a) }\nz = M(later)\nlater = Input(3)")
    assert links(network, "z.d") == ["later"]


def test_a_body_name_that_hides_a_parameter_is_used_with_a_warning():
    found: list[Diagnostic] = []
    text = "M(a) { A = Parameter(2, 3) t = Times(A, x) }\nx = Input(3)\nz = M(x)"
    network = build(text, diagnostics=found)
    assert links(network, "z.t") == ["z.A", "x"]
    assert [(d.kind, str(d.span)) for d in found] == [("HiddenParameter", "t.ndl:1:8")]


# -- dots


def test_dotted_names_reach_into_instances():
    text = AFFINE + "x = Input(3)\nh = Hid(x, 3, 3)\n"
    network = build(text + "a = Sin(h.Aff.m)\nb = Sin(h.Aff)\nc = Sin(later.m)\nlater = Aff(x, 3, 3)")
    assert links(network, "a") == ["h.Aff.m"]
    assert links(network, "b") == ["h.Aff.s"]  # an instance stands for its result
    assert links(network, "c") == ["later.m"]


def test_a_macro_as_a_namespace_of_constants():
    assert build("dims() { In=4; Out=2 }\nd = dims()\nW = Parameter(d.Out, D.in)")["W"].shape == (2, 4)


def test_a_dot_behind_a_parameter_of_a_macro_reaches_into_the_instance():
    network = build(AFFINE + "Look(p) { y = Sin(p.m) }\nx = Input(3)\nh = Aff(x, 3, 3)\nz = Look(h)")
    assert links(network, "z.y") == ["h.m"]


def test_a_dot_behind_a_node_is_an_error():
    with pytest.raises(ConfigError, match=r"'t' is not a macro, so 't\.W' cannot be interpreted"):
        build("t = Input(3)\nz = Sin(t.W)")


# -- names of nodes


def test_an_alias_renames_the_node():
    network = build("x = Input(3)\nt = Sin(x)\nu = t\nz = Exp(t)\ny = Exp(u)")
    assert list(network.nodes) == ["x", "u", "z", "y"]
    assert links(network, "z") == links(network, "y") == ["u"]


def test_an_alias_of_an_instance_moves_its_nodes():
    network = build(AFFINE + "x = Input(3)\ntop = Hid(x, 2, 3)\nOutputNodes = top\nz = Sin(top.Aff.m)")
    assert [n for n in network.nodes if "." in n] == [
        "OutputNodes.Aff.A",
        "OutputNodes.Aff.c",
        "OutputNodes.Aff.m",
        "OutputNodes.Aff.s",
        "OutputNodes.h",
    ]
    assert [n.name for n in network.groups["output"]] == ["OutputNodes.h"]
    assert links(network, "z") == ["OutputNodes.Aff.m"]


def test_the_last_alias_wins():
    assert names("x = Input(3)\na = x\nb = a\nc = x") == ["c"]


def test_an_alias_of_a_macro_parameter_renames_nothing():
    network = build("M(a) { q = a; t = Sin(q) }\nx = Input(3)\nz = M(x)")
    assert list(network.nodes) == ["x", "z.t"]
    assert links(network, "z.t") == ["x"]


def test_an_alias_inside_a_macro_renames_in_the_instance():
    assert names("M(a) { t = Sin(a) q = t; }\nx = Input(3)\nz = M(x)") == ["x", "z.q"]


def test_unnamed_nodes_are_numbered_and_avoid_the_names_of_the_user():
    text = "x = Input(3)\nunnamed2 = Exp(x)\nz = Sin(Exp(Negate(x)))"
    assert names(text) == ["x", "unnamed2", "unnamed1", "unnamed3", "z"]
    assert names(text) == names(text)


def test_two_nodes_of_one_full_name():
    with pytest.raises(ConfigError, match="duplicated name") as caught:
        build("M(a) { b = Sin(a) }\nx = Input(3)\nz.b = Sin(x)\nz = M(x)")
    assert "t.ndl:3" in str(caught.value.diagnostic.notes)
