"""Groups of nodes, order of seeds, and text that is added to a network.

See docs/specification/networks.md A.9, A.10, C and E.6.
"""

from __future__ import annotations

import pytest

from cntkpy.cntk_config import ConfigError, Diagnostic
from cntkpy.networks.builders.ndl.front_end import Session, parse_ndl, plain_document
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network

NET = """
    x = Input(3) l = Input(2) W = Parameter(2, 3) z = Times(W, x)
    ce = SquareError(l, z) er = ErrorPrediction(l, z)
"""


def groups(network: Network) -> dict[str, list[str]]:
    return {group: [node.name for node in members] for group, members in network.groups.items() if members}


ALL = {"feature": ["x"], "label": ["l"], "criterion": ["ce"], "evaluation": ["er"], "output": ["z"]}


def test_arrays():
    text = "FeatureNodes=(x) LabelNodes={l} CriterionNodes=[ce] evalnodes=(er) OUTPUTNODES=(z:Z)"
    assert groups(parse_ndl(NET + text)) == ALL


@pytest.mark.parametrize("array", ["(|z|er)", "[+ z + er ]", "{~z\n~er}", "(*z,er)", "(;z;er)"])
def test_a_sign_after_the_bracket_separates(array):
    assert groups(parse_ndl(f"{NET} FeatureNodes=(x) OutputNodes = {array}"))["output"] == ["z", "er"]


@pytest.mark.parametrize(
    ("statement", "hint"), [("OutputNode = (z)", "'OutputNodes'"), ("M(a) { OutputNodes = (a) }\nq = M(z)", "tag=")]
)
def test_arrays_without_effect_are_warned_of(statement, hint):
    found: list[Diagnostic] = []
    network = parse_ndl(f"{NET} FeatureNodes=(x)\n{statement}", diagnostics=found)
    assert not network.groups["output"]
    assert [one.kind for one in found] == ["UnknownGroup"] and hint in (found[0].hint or "")


def test_tags():
    text = """
        x = Input(3, tag=Feature, tag=multiseq) l = Input(2, tag="label") W = Parameter(2, 3)
        z = Times(W, x, tag=output)
        ce = SquareError(l, z, tag=criteria) er = ErrorPrediction(l, z, tag=evalWhatever)
    """
    assert groups(parse_ndl(text)) == ALL


def test_arrays_may_stand_before_what_they_name():
    text = "FeatureNodes=(x) LabelNodes=(l) CriteriaNodes=(ce) EvalNodes=(er) OutputNodes=(z)"
    assert groups(parse_ndl(text + NET)) == ALL


def test_tags_and_arrays_are_merged_tags_first():
    text = NET.replace("z = Times(W, x)", "z = Times(W, x, tag=output, tag=evaluation)")
    network = parse_ndl(
        text + "FeatureNodes=(x) CriteriaNodes=(er) OutputNodes=(x, z) CriterionNodes=(ce) EvalNodes=(er)"
    )
    assert groups(network) == {
        "feature": ["x"],
        "criterion": ["ce", "er"],
        "evaluation": ["z", "er"],
        "output": ["z", "x"],
    }


def test_members_may_be_dotted_or_instances_and_tags_stand_on_macro_calls():
    text = """
        M(a) { s = Sin(a) c = Exp(s) }
        x = Input(3, tag=feature) h = M(x, tag=output) k = M(h)
        EvalNodes = (h.s, k)
    """
    network = parse_ndl(text)
    assert groups(network) == {"feature": ["x"], "evaluation": ["h.s", "k.c"], "output": ["h.c"]}


def test_arrays_inside_macros_count_for_nothing():
    text = "M(a) { s = Sin(a) OutputNodes = (s) }\nx = Input(3, tag=feature) h = M(x)"
    assert groups(parse_ndl(text)) == {"feature": ["x"]}


def test_tags_inside_macros_count():
    text = "M(a) { s = Sin(a, tag=output) }\nx = Input(3, tag=feature) h = M(x)"
    assert groups(parse_ndl(text))["output"] == ["h.s"]


def test_a_single_name_without_brackets_renames():
    network = parse_ndl(NET + "FeatureNodes=(x)\nOutputNodes = z")
    assert groups(network)["output"] == ["OutputNodes"]
    found: list[Diagnostic] = []
    network = parse_ndl(NET + "FeatureNodes = x", diagnostics=found)
    assert groups(network) == {"feature": ["FeatureNodes"]}
    assert [d.kind for d in found] == ["RenamedInput"]
    assert "FeatureNodes = (x)" in str(found[0].hint)


def test_a_network_needs_a_feature():
    with pytest.raises(ConfigError, match="featureNodes"):
        parse_ndl(NET)
    assert groups(parse_ndl(NET, require_features=False)) == {}


@pytest.mark.parametrize(
    ("array", "word"), [("(x, nosuch)", "nosuch"), ("(x, 3)", "3"), ("(x, d)", "'d'"), ("(x.y)", "x.y")]
)
def test_wrong_members(array, word):
    with pytest.raises(ConfigError, match=word):
        parse_ndl(NET + "d = 4\nFeatureNodes = " + array)


# -- seeds


def seeds_of(text: str, seeds: SeedCounter | None = None) -> dict[str, int]:
    network = parse_ndl(text, seeds=seeds, require_features=False)
    return {n.name: n.init.seed for n in network.nodes.values() if n.init is not None and n.init.seed is not None}


def test_seeds_count_in_the_order_of_statements_through_macros():
    text = """
        Aff(a, o, i) { W = Parameter(o, i) b = Parameter(o, init=fixedValue) t = Times(W, a) s = Plus(t, b) }
        Two(a, o, i) { first = Aff(a, o, i) R = Parameter(o, o, init=gaussian) t = Times(R, first) last = Aff(t, o, o) }
        x = Input(2)
        P = Parameter(2, 2)
        k = Parameter(2, 2, randomSeed=7)
        h = Two(x, 2, 2)
        Q = Parameter(2, 2, init=heNormal)
    """
    assert seeds_of(text) == {"P": 1, "k": 7, "h.first.W": 2, "h.R": 3, "h.last.W": 4, "Q": 5}


def test_nested_parameters_are_initialised_when_they_are_met():
    text = (
        "x = Input(2)\nP = Parameter(2, 2)\nz = Times(Parameter(2, 2), Times(Parameter(2, 2), x))\nQ = Parameter(2, 2)"
    )
    assert seeds_of(text) == {"P": 1, "unnamed1": 2, "unnamed2": 3, "Q": 4}


def test_the_counter_goes_on_from_network_to_network():
    seeds = SeedCounter()
    assert seeds_of("P = Parameter(2, 2)", seeds) == {"P": 1}
    assert seeds_of("P = Parameter(2, 2)", seeds) == {"P": 2}


def test_a_parameter_of_unknown_size_takes_its_seed_at_its_place():
    assert seeds_of("x = Input(2)\nP = Parameter(2, 0)\nQ = Parameter(2, 2)\nz = Times(P, x)") == {"P": 1, "Q": 2}


# -- text that is added to a network


def test_nodes_of_an_existing_network_can_be_used_and_inputs_are_taken_again():
    network = parse_ndl("M(a) { s = Sin(a) }\nx = Input(3, tag=feature) h = M(x)")
    old = network["x"]
    parse_ndl("X = Input(3)\ny = Exp(H.s)\nz = Plus(y, x)", network=network)
    assert [n.name for n in network["z"].connected] == ["y", "x"]
    assert network["y"].input(0) is network["h.s"]
    assert network["x"] is old
    with pytest.raises(ConfigError, match="duplicated name"):
        parse_ndl("y = Sin(x)", network=network)


def test_a_session_remembers_constants_macros_and_aliases():
    network = Network("double")
    session = Session(network)
    session.define_macros(plain_document("M(a) { s = Sin(a) }\nignored = Input(3)", "m.ndl"))
    session.add(plain_document("x = Input(3)\nn = 4", "1"))
    session.add(plain_document("W = Parameter(n, 3)\nt = Times(W, x)", "2"))
    assert network["t"].inputs == []
    session.connect()
    assert [node.name for node in network["t"].connected] == ["W", "x"]
    session.add(plain_document("u = t\nh = M(u, tag=output)", "3"))
    session.connect()
    session.initialise(SeedCounter())
    assert list(network.nodes) == ["x", "W", "u", "h.s"]
    assert network["W"].value is not None
    network.remove("u")
    network.groups["output"].clear()
    session.add(plain_document("u = Exp(x)", "4"))
    session.connect()
    assert network["u"].operation == "Exp"
    assert network.groups["output"] == []
