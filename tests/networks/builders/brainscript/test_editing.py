"""Networks made from networks: BS.Network.Load, Edit and CloneFunction, and the errors of each."""

import math

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.builders.brainscript.build import build_program
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.program import parse_network
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter

BASE = """{
    x = Input {3}
    l = Input {2, tag='label'}
    W1 = ParameterTensor {(4:3), learningRateMultiplier=0.5}
    h1 = Sigmoid (W1 * x)
    h2 = BatchNormalizationLayer {} (DenseLayer {4, activation=Sigmoid} (h1))
    z = LinearLayer {2} (h2)
    ce = CrossEntropyWithSoftmax (l, z)
    errs = ClassificationError (l, z)
    featureNodes = (x) ; criterionNodes = (ce) ; evaluationNodes = (errs) ; outputNodes = (z)
}"""
LOOP = """{
    x = Input {3}
    R = ParameterTensor {(3:3)}
    h = Tanh (R * BS.Loop.Previous (h) + x)
    outputNodes = (h)
}"""


def made(text, precision="double", trace_level=0.0):
    """The network of a program."""
    program = parse_network(text_of_string(text, "test.bs"))
    names = {"deviceId": -1.0, "traceLevel": trace_level}
    return build_program(program, precision, SeedCounter(), names).network


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The folder has base.dnn; gives its network."""
    monkeypatch.chdir(tmp_path)
    network = made(BASE)
    for node in network.nodes.values():
        if node.operation == "BatchNormalization":
            node.samples = 77
    save_model("base.dnn", network)
    save_model("loop.dnn", made(LOOP))
    return network


def on(members, result):
    """A program whose network is an expression about the loaded network `old`."""
    return f'({{ old = BS.Network.Load ("base.dnn")\n{members}\nresult = {result} }}.result)'


def lines(network):
    return {
        f"{node.name} = {node.operation}" + (f"({', '.join(i.name for i in node.connected)})" if node.inputs else "")
        for node in network.nodes.values()
    }


def names(network, group):
    return [node.name for node in network.groups[group]]


def replaced(network, **changes):
    """The lines of the network with some of them in another form; None leaves one out."""
    found = {line.partition(" = ")[0]: line for line in lines(network)}
    for name, text in changes.items():
        found[name] = None if text is None else f"{name} = {text}"
    return {line for line in found.values() if line}


# ------------------------------------------------------------------------------------------------------------- loading


def test_a_loaded_network_is_whole(base) -> None:
    found = made('(BS.Network.Load ("base.dnn"))')
    base = load_model("base.dnn")
    assert lines(found) == lines(base)
    assert {group: names(found, group) for group in found.groups} == {
        group: names(base, group) for group in base.groups
    }
    for node in found.nodes.values():
        other = base[node.name]
        assert (node.shape, node.learning_rate_multiplier, node.samples, node.options) == (
            other.shape,
            other.learning_rate_multiplier,
            other.samples,
            other.options,
        )
        if other.value is not None:
            np.testing.assert_array_equal(node.value, other.value)
    assert found["W1"].learning_rate_multiplier == 0.5
    assert any(node.samples == 77 for node in found.nodes.values())


def test_what_was_computed_before_training_stays(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = parse_ndl(
        "x = Input(2, tag=feature)\nm = Mean(x)\ns = InvStdDev(x)\nn = PerDimMeanVarNormalization(x, m, s)"
    )
    network["m"].value, network["m"].computed = np.array([1.0, 2.0], np.float32), True
    save_model("in.dnn", network.validate())
    found = made("""{ old = BS.Network.Load ("in.dnn") ; z = LinearLayer {2} (old.n) ; outputNodes = (z) }""", "float")
    assert (found["m"].computed, found["s"].computed) == (True, False)
    np.testing.assert_array_equal(found["m"].value, [1, 2])
    assert [node.name for node in found.precompute_nodes()] == ["s"]


def test_nodes_are_members(base) -> None:
    """By name in any case, with dots and brackets as `_`, or as a text; loaded operations know their dimensions."""
    found = made("""{
        old = BS.Network.Load ("base.dnn")
        a = Pass (old.Z) ; b = Pass (old.z_b) ; c = Pass (old["z.PlusArgs[0]"]) ; d = Pass (old.z_PlusArgs_0_)
        dims = Constant (old.h1.dim + old.x.dim)
        again = old.h1
        outputNodes = (a : b : c : d)
    }""")
    assert {"a = Pass(z)", "b = Pass(z.b)", "c = Pass(z.PlusArgs[0])", "d = Pass(z.PlusArgs[0])"} <= lines(found)
    assert found["dims"].init.value == 7
    assert "again = Sigmoid(h1._)" in lines(found)


@pytest.mark.parametrize("first", ["", "outputNodes = (old.z)"])
def test_nodes_of_a_loaded_network_give_way_to_new_ones(base, first) -> None:
    """CNTK's manual has errs = Pass (network.errs)."""
    found = made(f'{{ old = BS.Network.Load ("base.dnn") ; z = Pass (old.z) ; {first} }}')
    assert {"z = Pass(_z)", "_z = Plus(z.PlusArgs[0], z.b)"} <= lines(found)
    assert names(found, "output") == ["_z"]


def test_precision_is_that_of_the_run(base) -> None:
    found = made('(BS.Network.Load ("base.dnn"))', "float")
    assert found.precision == "float"
    assert found["W1"].value.dtype == np.float32


@pytest.mark.parametrize(
    ("program", "message", "hint"),
    [
        ('(BS.Network.Load ("bas.dnn"))', "there is no model bas.dnn", "did you mean 'base.dnn'?"),
        ("(BS.Network.Load (3))", "'pathName' must be a text, not the number 3", ""),
        (
            '{ o = BS.Network.Load ("base.dnn") ; z = Pass (o.errrs) }',
            "a network has no such member",
            "did you mean 'errs'",
        ),
        (
            '{ o = BS.Network.Load ("base.dnn") ; x = Input {3} ; z = Pass (o.h1) }',
            "two nodes are called 'x' and 'x'",
            "write x = net.x",
        ),
    ],
)
def test_wrong_loads(base, program, message, hint) -> None:
    with pytest.raises(ConfigError) as caught:
        made(program)
    found = caught.value.diagnostic
    assert message in found.message
    assert hint in (found.hint or "")
    assert str(found.span).startswith("test.bs:1:")


# ------------------------------------------------------------------------------------------------------------- editing


def test_an_operation_replaced_everywhere(base) -> None:
    swap = "swap (n) = if n.operation == 'Sigmoid' then Tanh (n.inputs[0]) else n"
    found = made(on(swap, "BS.Network.Edit (old, swap, None)"))
    for node in base.nodes.values():
        assert found[node.name].operation == ("Tanh" if node.operation == "Sigmoid" else node.operation)
        if node.value is not None:
            np.testing.assert_array_equal(found[node.name].value, node.value)
    assert {group: names(found, group) for group in found.groups} == {
        group: names(base, group) for group in base.groups
    }


def test_edits_that_replace_nothing_are_a_warning(base) -> None:
    def warnings(edit):
        program = parse_network(text_of_string(on("", f"BS.Network.Edit (old, {edit}, None)"), "test.bs"))
        found = build_program(program, "double", SeedCounter(), {"deviceId": -1.0, "traceLevel": 0.0}).warnings
        return [(str(one.span), one.message, one.hint) for one in found]

    message = "the edit functions replace no node of the network"
    ((place, found, hint),) = warnings('BS.Network.Editing.ReplaceLinksToNamedNode ("Z", old.h1)')
    assert (place, found) == ("test.bs:3:32", message)
    assert "letter case" in hint
    assert not warnings("(n => if n.name == 'z' then Tanh (n.inputs[0]) else n)")


@pytest.mark.parametrize("edit", ["ReplaceLinksToNode (old.z, old.h1)", 'ReplaceLinksToNamedNode ("z", old.h1)'])
def test_links_to_a_node_are_redirected(base, edit) -> None:
    """What is not needed any more vanishes, and its group with it; a copy knows the new dimensions."""
    widen = "f (n) = if n.name == 'l' then Input {4, tag='label'} else n"
    found = made(on(widen, f"BS.Network.Edit (old, (f : BS.Network.Editing.{edit}), None)"))
    assert lines(found) == {
        "x = InputValue",
        "W1 = LearnableParameter",
        "h1._ = Times(W1, x)",
        "h1 = Sigmoid(h1._)",
        "l = InputValue",
        "ce = CrossEntropyWithSoftmax(l, h1)",
        "errs = ClassificationError(l, h1)",
    }
    assert names(found, "output") == []
    assert names(found, "criterion") == ["ce"]
    assert found["l"].shape == (4,)


def test_the_first_function_that_gives_another_node_wins(base) -> None:
    members = """f (n) = if n.name == 'h1' then Tanh (n.inputs[0]) else n
        g (n) = if n.name == 'h1' then ReLU (n.inputs[0]) else n"""
    found = made(on(members, "BS.Network.Edit (old, ([| f |] : g), None)"))
    assert found["h1"].operation == "Tanh"


def test_chains_of_replacements(base) -> None:
    members = "f (n) = if n.name == 'z' then old.h2 else if n.name == 'h2' then old.h1 else n"
    found = made(on(members, "BS.Network.Edit (old, (f : (n => if n.name == 'l' then Input {4} else n)), None)"))
    assert "ce = CrossEntropyWithSoftmax(l, h1)" in lines(found)


def test_nodes_of_an_edited_network_know_their_dimensions(base) -> None:
    """Those that are new, those with other inputs, those that are edited again, and those that stay."""
    found = made("""{
        old = BS.Network.Load ("base.dnn")
        other (n) = if n.name == 'h1' then Tanh (n.inputs[0]) else
                    if n.name == 'errs' then RowStack (old.z : old.x) else n
        first = BS.Network.Edit (old, other, None)
        longer (n) = if n.name == 'errs' then RowStack (n.inputs[0] : n.inputs[1] : first.h1) else n
        again = BS.Network.Edit (first, longer, None)
        dims = Constant (1000 * first.h1.dim + 100 * first.errs.dim + 10 * again.errs.dim + again.z.dim)
        p = Pass (old.z) ; outputNodes = (p)
    }""")
    assert found["dims"].init.value == 1000 * 4 + 100 * 5 + 10 * 9 + 2


def test_an_edit_that_does_not_fit_is_an_error_where_a_dimension_is_asked(base) -> None:
    with pytest.raises(ConfigError, match="Plus"):
        made(
            on(
                "e = BS.Network.Edit (old, n => if n.name == 'z.b' then Constant (1, rows=5, cols=7) else n, None)",
                "Constant (e.z.dim)",
            )
        )


def test_the_given_network_stays_as_it_is(base) -> None:
    members = """swap (n) = if n.name == 'h1' then Tanh (n.inputs[0]) else n
        other = BS.Network.Edit (old, swap, None)"""
    found = made(on(members, "if other.h1.operation == 'Tanh' then old else other"))
    assert lines(found) == lines(base)


def test_more_roots(base) -> None:
    found = made(on("p = Pass (Softmax (old.z), tag='output')", "BS.Network.Edit (old, [| |], p)"))
    assert "network.p = Pass(network.p._)" in lines(found)
    assert sorted(names(found, "output")) == ["network.p", "z"]


def test_loops(base) -> None:
    """The new node takes part in the loop; a network whose outputs all feed something stays whole."""
    program = """({ old = BS.Network.Load ("loop.dnn")
        swap (n) = if n.operation == 'Tanh' then Sigmoid (n.inputs[0], tag='output') else n
        r = BS.Network.Edit (old, swap, None) }.r)"""
    found = made(program)
    assert found["h"].operation == "Sigmoid"
    assert names(found, "output") == ["h"]
    (delay,) = [node for node in found.nodes.values() if node.kind.time.delay]
    assert delay.input(0) is found["h"]


def test_new_delays_take_what_is_there_afterwards(base) -> None:
    members = "f (n) = if n.name == 'h1' then Sigmoid (n.inputs[0] + BS.Loop.Previous (n)) else n"
    found = made(on(members, "BS.Network.Edit (old, f, None)"))
    (delay,) = [node for node in found.nodes.values() if node.kind.time.delay]
    assert delay.input(0) is found["h1"]


@pytest.mark.parametrize(
    ("edit", "message", "hint"),
    [
        ("BS.Network.Edit (old.z, (n => n), None)", "a network can be edited, not a node", "BS.Network.Load"),
        ("BS.Network.Edit (old, 3, None)", "editFunctions takes functions of a node, not the number 3", ""),
        ("BS.Network.Edit (old, (n => 1), None)", "an edit function must give a node, but gives the number 1", "n =>"),
        ("BS.Network.Edit (old, (n => n), 'z')", "additionalRoots takes nodes, not the text 'z'", ""),
        (
            "BS.Network.Edit (old, (n => if n.name == 'h1' then Tanh (n) else n), None)",
            "the replacement of 'h1' takes 'h1' as its input",
            "with n.inputs[0] a Sigmoid like the replaced one can be made",
        ),
        (
            "BS.Network.Edit (old, (n => if n.name == 'x' then old.l else if n.name == 'l' then old.x else n), None)",
            "the edits replace nodes in a circle: 'l' -> 'x' -> 'l'",
            "",
        ),
        ("BS.Network.Edit (old, (n => if n.name == 'h1' then Input {9} else n), None)", "'h2.x._.PlusArgs[0]'", ""),
    ],
)
def test_wrong_edits(base, edit, message, hint) -> None:
    with pytest.raises(ConfigError) as caught:
        made(on("", edit))
    found = caught.value.diagnostic
    assert message in found.message
    assert hint in (found.hint or "")
    assert str(found.span).startswith("test.bs:")


# ------------------------------------------------------------------------------------------------------------- cloning


def clone(arguments, rest="x = Input {3} ; h = f (x) ; outputNodes = (h)"):
    return f'{{ old = BS.Network.Load ("base.dnn") ; f = BS.Network.CloneFunction ({arguments})\n{rest} }}'


def test_a_clone_has_parameters_of_its_own(base) -> None:
    found = made(clone("old.x, old.h1"))
    assert lines(found) == {
        "x = InputValue",
        "h = Sigmoid(h.h1._)",
        "h.h1._ = Times(h.W1, x)",
        "h.W1 = LearnableParameter",
    }
    np.testing.assert_array_equal(found["h.W1"].value, base["W1"].value)
    assert found["h.W1"].learning_rate_multiplier == 0.5
    assert found["h.W1"].value is not base["W1"].value


def test_constant_clones_are_frozen(base) -> None:
    found = made(clone("old.x, old.h2, parameters='constant'"))
    assert found.parameters() == []
    (node,) = [node for node in found.nodes.values() if node.operation == "BatchNormalization"]
    assert node.options["normalizationTimeConstant"] == node.options["blendTimeConstant"] == math.inf
    assert node.samples == 77


def test_shared_parameters_are_the_same(base) -> None:
    rest = "x = Input {3} ; y = Input {3} ; a = f (x) ; b = f (y) ; outputNodes = (a : b)"
    found = made(clone("old.x, old.h1, parameters='shared'", rest))
    assert found["a"].input(0).input(0) is found["b"].input(0).input(0) is found["W1"]
    found = made(clone("old.x, old.h1", rest))
    assert {"a.W1", "b.W1"} <= set(found.nodes)
    assert "W1" not in found


def test_a_record_of_outputs(base) -> None:
    rest = """x = Input {3} ; l = Input {2} ; r = f (x, l) ; o = Pass (r.scores)
        criterionNodes = (r.loss) ; outputNodes = (o)"""
    found = made(clone("(old.x : old.l), { scores = old.z ; loss = old.ce }", rest))
    assert {"o = Pass(r.z)", "r.ce = CrossEntropyWithSoftmax(l, r.z)"} <= lines(found)
    assert names(found, "criterion") == ["r.ce"]
    assert "r.z" in names(found, "output")  # tags are copied


def test_an_output_that_is_an_input(base) -> None:
    found = made(
        clone(
            "old.x, { a = old.x ; b = old.h1 }",
            "x = Input {3} ; r = f (x) ; o = Splice (r.a : r.b) ; outputNodes = (o)",
        )
    )
    assert "o = RowStack(x, r.h1)" in lines(found)


def test_inputs_of_a_loop_that_nothing_uses_vanish_with_it(base) -> None:
    """A loop alone is no root, and no input is."""
    save_model("dead.dnn", made(LOOP.replace("outputNodes = (h)", "y = Input {3} ; outputNodes = (Pass (y))")))
    assert made('(BS.Network.Load ("dead.dnn"))').nodes.keys() >= {"h", "x"}
    swap = "(n => if n.operation == 'Pass' then Exp (n.inputs[0], tag='output') else n)"
    found = made(f'(BS.Network.Edit (BS.Network.Load ("dead.dnn"), {swap}, None))')
    assert lines(found) == {"y = InputValue", "outputNodes = Exp(y)"}


def test_a_node_under_construction_in_a_loop(base) -> None:
    found = made("""{
        x = Input {3} ; y = Input {3}
        R = ParameterTensor {(3:3)}
        h = Tanh (R * BS.Loop.Previous (h) + x)
        f = BS.Network.CloneFunction (x, h)
        o = f (y)
        outputNodes = (h : o)
    }""")
    assert "o = Tanh(o.h.z)" in lines(found)
    copies = [node for node in found.nodes.values() if node.kind.time.delay]
    assert {node.input(0).name for node in copies} == {"h", "o"}
    assert found["o.R"] is not found["R"]
    np.testing.assert_array_equal(found["o.R"].value, found["R"].value)


@pytest.mark.parametrize(
    ("arguments", "rest", "message", "hint"),
    [
        ("old.l, old.z", "", "the input node 'l' is not needed for 'z'", "needed are the inputs x"),
        ("old.x, old.z, parameters='frozen'", "", "must be 'learnable', 'constant' or 'shared', not 'frozen'", ""),
        ("3, old.z", "", "inputNodes takes nodes, not the number 3", ""),
        ("old.x, 3", "", "outputNodes takes a node or a record of nodes, not the number 3", ""),
        ("old.x, {}", "", "outputNodes takes a node or a record of nodes, not an empty record", ""),
        ("old.x, { a = 3 }", "", "the member 'a' of outputNodes must be a node, not the number 3", ""),
        ("old.x, old.z", "h = f (3)", "'input_0' of a cloned function must be a node, not the number 3", "a number"),
        ("old.x, old.z", "x = Input {3} ; h = f (x, x)", "takes 1 positional argument, 2 given", "usage"),
        ("old.x, old.z", "x = Input {5} ; h = f (x)", "'h.h1._'", ""),
    ],
)
def test_wrong_clones(base, arguments, rest, message, hint) -> None:
    with pytest.raises(ConfigError) as caught:
        made(clone(arguments, rest or "x = Input {3} ; h = f (x)"))
    found = caught.value.diagnostic
    assert message in found.message
    assert hint in (found.hint or "")
    assert str(found.span).startswith("test.bs:")


def test_the_log(base, caplog) -> None:
    caplog.set_level("INFO", "cntkpy.networks")
    made(
        on("", "BS.Network.Edit (old, (n => if n.name == 'h1' then Tanh (n.inputs[0]) else n), None)"), trace_level=1.0
    )
    assert "Load: Loading model file: base.dnn" in caplog.text
    assert "Edit: 1 of " in caplog.text


def test_an_edited_network_is_saved_and_loaded(base, tmp_path) -> None:
    swap = "swap (n) = if n.operation == 'Sigmoid' then Tanh (n.inputs[0]) else n"
    found = made(on(swap, "BS.Network.Edit (old, swap, None)"))
    save_model("new.dnn", found)
    assert lines(load_model("new.dnn")) == lines(found)


# ---------------------------------------------------------------------------------------------------------- time axes

AXES = """{
    t = DynamicAxis ()
    x = Input {3, dynamicAxis=t}
    y = Input {2}
    last = BS.Sequences.Last (Tanh (ParameterTensor {(2:3)} * x))
    z = ReconcileDynamicAxis (last, y) + y
    outputNodes = (z)
}"""


def test_time_axes_come_along(tmp_path, monkeypatch) -> None:
    """An axis is not an input of a node, but the new network has it, under whatever name."""
    monkeypatch.chdir(tmp_path)
    save_model("axes.dnn", made(AXES))
    whole = made('(BS.Network.Load ("axes.dnn"))')
    assert whole["x"].axis == "t"
    found = made('{ old = BS.Network.Load ("axes.dnn") ; h = Sigmoid (old.last) ; outputNodes = (h) }')
    assert found["x"].axis == "t"
    assert "t" in found
    found = made('{ old = BS.Network.Load ("axes.dnn") ; steps = old.t ; h = Sigmoid (old.last) ; outputNodes = (h) }')
    assert found["x"].options["dynamicAxis"] == "steps"
    save_model("new.dnn", found)
    assert load_model("new.dnn")["x"].axis == "steps"
    found = made("""{ old = BS.Network.Load ("axes.dnn") ; f = BS.Network.CloneFunction (old.x, old.last)
        u = DynamicAxis () ; x = Input {3, dynamicAxis=u} ; h = f (x) ; outputNodes = (h) }""")
    assert found["x"].axis == "u"
    assert "t" not in found
    found = made("""({ old = BS.Network.Load ("axes.dnn")
        r = BS.Network.Edit (old, (n => if n.operation == 'Tanh' then Sigmoid (n.inputs[0]) else n), None) }.r)""")
    assert found["x"].axis == "t"
