"""Model editing: every command, names and patterns, copies, properties, in-line NDL, several models."""

import re
from pathlib import Path

import numpy as np
import pytest
from mel_texts import edit_text

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.builders.ndl.text import Document
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.mel import commands as mel_commands
from cntkpy.networks.mel.parse import Command, parse_commands
from cntkpy.networks.mel.request import request

MACROS = """
Lin(x, o, i) { A = Parameter(o, i)
  c = Parameter(o, 1)
  m = Times(A, x)
  s = Plus(m, c) }
Act(x, o, i) { inner = Lin(x, o, i)
  h = Tanh(inner) }
"""
NET = """
x = Input(4, tag=feature)
l = Input(3, tag=label)
H1 = Act(x, 5, 4)
H2 = Act(H1, 5, 5)
top = Lin(H2, 3, 5)
ce = CrossEntropyWithSoftmax(l, top, tag=criterion)
err = ErrorPrediction(l, top, tag=eval)
OutputNodes = (top)
"""
ALL = """ce err H1.h H1.inner.A H1.inner.c H1.inner.m H1.inner.s H2.h H2.inner.A H2.inner.c H2.inner.m H2.inner.s
l top.A top.c top.m top.s x"""
NAMES = ALL.split()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the model base.dnn, which is the current one."""
    network = parse_ndl(MACROS + NET, precision="double")
    save_model(tmp_path / "base.dnn", network.validate())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(script, head="m = LoadModel(base.dnn, format=cntk)\nSetDefaultModel(m)\n", precision="double"):
    return edit_text(head + script, "edit.mel", precision, macros=[MACROS])


def network(editor, name="m"):
    model = editor.models.get(name)
    assert model is not None
    return model.network


def names(network):
    return sorted(network.nodes, key=str.lower)


def links(network, name):
    return [source.name if source is not None else None for source in network[name].inputs]


def test_loading_and_saving_changes_nothing(folder):
    edit("SaveModel(m, sub/new.dnn)")
    old, new = load_model("base.dnn"), load_model("sub/new.dnn")
    assert names(new) == names(old) == NAMES
    for name in NAMES:
        assert links(old, name) == links(new, name)
        if old[name].value is not None:
            np.testing.assert_array_equal(old[name].value, new[name].value)
    assert {g: [n.name for n in ns] for g, ns in new.groups.items()} == {
        "feature": ["x"],
        "label": ["l"],
        "criterion": ["ce"],
        "evaluation": ["err"],
        "output": ["top.s"],
    }


@pytest.mark.parametrize(
    "script",
    [
        "LoadModelWithName(q, base.dnn)\nSaveModel(q, new.dnn)",
        "LoadModel(base.dnn)\nSaveModel(default, new.dnn)",
        "m = LoadModel(base.dnn)\nSaveModelWithName(m, new.dnn)\nDumpNetwork(m, new.txt)\nDumpN(x, x.txt)",  # (D15)
        "m = LoadModel(base.dnn)\nSaveDefaultModel(new.dnn, format=cntk)",
        "m = loadmodel(base.dnn)\nSAVEMODEL(M, new.dnn)",
        'm = LoadModel("base.dnn", format="cntk")\nSaveModel("new.dnn")',
        "m = LoadModel(base.dnn) SaveModel(m, new.dnn)",
        "m=LoadModel(base.dnn, format=cntk_legacy_no_tensorlib); SaveModel(m,\n new.dnn\n)",
    ],
)
def test_ways_to_load_and_save(folder, script):
    edit(script, head="")
    assert names(load_model("new.dnn")) == NAMES


def test_a_path_may_contain_blanks(folder):
    edit("SaveModel(m, my new model.dnn)")
    assert (folder / "my new model.dnn").exists()


def test_the_first_model_is_the_default_until_another_is_chosen(folder):
    editor = edit("a = LoadModel(base.dnn)\nb = LoadModel(base.dnn)\nRemove(err)\nSetDefaultModel(b)\nRemove(ce)", "")
    assert "err" not in network(editor, "a")
    assert "ce" in network(editor, "a")
    assert "ce" not in network(editor, "b")
    editor = edit("a = CreateModel()\na = LoadModel(base.dnn)\nRemove(err)", "")
    assert "err" not in network(editor, "a")


def test_unloading(folder, caplog):
    editor = edit("k = LoadModel(base.dnn)\nUnloadModel(k, nothing)")
    assert editor.models.get("k") is None
    assert editor.models.default is not None
    assert "no model 'nothing'" in caplog.text
    assert edit("UnloadModel(m)").models.default is None


def test_a_model_that_takes_a_name_replaces_the_old_one(folder, caplog):
    editor = edit("m = CreateModel()")
    assert not network(editor).nodes
    assert editor.models.default is editor.models.get("m")
    assert "replaced" in caplog.text


# ---- names and patterns


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("top.A", ["top.A"]),
        ("TOP.a", ["top.A"]),
        ("m.top.A", ["top.A"]),
        ("M.top.A", ["top.A"]),
        ("H1.*", ["H1.inner.A", "H1.inner.c"]),
        ("H*.A", ["H1.inner.A", "H2.inner.A"]),
        ("*.A", ["H1.inner.A", "H2.inner.A", "top.A"]),
        ("m*.A", ["H1.inner.A", "H2.inner.A", "top.A"]),
        ("m.H*c", ["H1.inner.c", "H2.inner.c"]),
        ("m", ["H1.inner.A", "H1.inner.c", "H2.inner.A", "H2.inner.c", "top.A", "top.c"]),
        ("m.*", ["H1.inner.A", "H1.inner.c", "H2.inner.A", "H2.inner.c", "top.A", "top.c"]),
        ("*", ["H1.inner.A", "H1.inner.c", "H2.inner.A", "H2.inner.c", "top.A", "top.c"]),
    ],
)
def test_references(folder, reference, expected):
    editor = edit(f"SetProperty({reference}, learningRateMultiplier, 0.25)")
    found = [n.name for n in network(editor).nodes.values() if n.learning_rate_multiplier == 0.25]
    assert sorted(found, key=str.lower) == expected


def test_head_and_tail_of_a_pattern_do_not_overlap(folder):
    editor = edit("aba = Parameter(1)\nabba = Parameter(1)\nSetProperty(ab*ba, learningRateMultiplier, 3)")
    assert network(editor)["abba"].learning_rate_multiplier == 3
    assert network(editor)["aba"].learning_rate_multiplier == 1


def test_a_model_name_hides_nodes(folder):
    with pytest.raises(ConfigError, match=r"could not find a symbol for 'H1\.h' in the model 'H1'"):
        edit("H1 = LoadModel(base.dnn)\nSetProperty(H1.h, output, true)", "")


# ---- copying


def test_copying_a_layer_and_connecting_it(folder):
    editor = edit(
        "Copy(H2.*, H3.*, copy=all)\nSetInput(H3.inner.m, 1, H2.h)\nSetInput(top.m, 1, H3.h)\nSaveModel(m, new.dnn)"
    )
    new = load_model("new.dnn")
    assert links(new, "H3.inner.m") == ["H3.inner.A", "H2.h"]
    assert links(new, "H3.h") == ["H3.inner.s"]
    np.testing.assert_array_equal(new["H3.inner.A"].value, new["H2.inner.A"].value)
    assert network(editor)["H3.inner.A"].value is not network(editor)["H2.inner.A"].value


def test_links_out_of_the_copied_part_are_empty(folder):
    editor = edit("CopyNode(H2.*, H3.*)")
    assert links(network(editor), "H3.inner.m") == ["H3.inner.A", None]
    assert links(network(editor), "H2.inner.m") == ["H2.inner.A", "H1.h"]


def test_copies_are_not_in_groups(folder):
    editor = edit("Copy(ce, ce2)\nSetInputs(ce2, l, top.s)\nSaveModel(m, new.dnn)")
    assert [n.name for n in network(editor).groups["criterion"]] == ["ce"]


def test_copying_values_keeps_links(folder):
    editor = edit(
        "N = Parameter(5, 5, init=fixedValue, value=0.3, learningRateMultiplier=2)\nCopy(N, H2.inner.A, copyFlag=VALUE)"
    )
    target = network(editor)["H2.inner.A"]
    assert (target.value == 0.3).all()
    assert target.learning_rate_multiplier == 2
    assert links(network(editor), "H2.inner.m") == ["H2.inner.A", "H1.h"]
    editor = edit("Copy(H1.h, H2.h, copy=value)")
    assert links(network(editor), "H2.h") == ["H2.inner.s"]


def test_one_source_for_all_targets_of_a_pattern(folder):
    editor = edit("N = Parameter(5, 1, init=fixedValue, value=7)\nCopy(N, H*.c, copy=value)")
    assert (network(editor)["H1.inner.c"].value == 7).all()
    assert (network(editor)["H2.inner.c"].value == 7).all()


def test_copying_between_models(folder):
    editor = edit("k = CreateModel()\nCopy(m.*, k.*)\nCopy(m.H1.*, k.Z.*)\nSetInput(k.Z.inner.m, 1, k.x)")
    copied = network(editor, "k")
    assert names(copied)[:5] == NAMES[:5]
    assert links(copied, "Z.inner.m") == ["Z.inner.A", "x"]
    copied["Z.inner.A"].value[:] = 0
    assert network(editor)["H1.inner.A"].value.any()


def test_a_chain_of_copies_reads_before_it_writes(folder):
    editor = edit(
        "P1 = Parameter(1, init=fixedValue, value=1)\nP11 = Parameter(1, init=fixedValue, value=2)\nCopy(P1*, P11*)"
    )
    values = {n: float(network(editor)[n].value[0]) for n in ("P1", "P11", "P111")}
    assert values == {"P1": 1, "P11": 1, "P111": 2}


def test_copying_what_is_below(folder):
    editor = edit("k = CreateModel()\nCopySubTree(m.top.s, k, P., copy=all)\nSaveModel(m, new.dnn)")
    copied = network(editor, "k")
    assert len(copied.nodes) == 15
    assert links(copied, "P.H1.inner.m") == ["P.H1.inner.A", "P.x"]
    assert not any(copied.groups.values())
    editor = edit("CopySubTree(H1.h, m, Q_)\nSetInput(H2.inner.m, 1, Q_H1.h)\nSaveModel(m, new.dnn)")
    assert links(load_model("new.dnn"), "H2.inner.m") == ["H2.inner.A", "Q_H1.h"]
    editor = edit("k = CreateModel()\nCopySubTree(m.top.s, k, P.)\nRevise = 1\nCopySubTree(m.top.s, k, P., copy=value)")
    assert len(network(editor, "k").nodes) == 15


def test_what_was_computed_before_training_is_copied_with_what_it_is_linked_to(folder):
    script = "x = Input(2, tag=feature)\nW = Parameter(2, 2)\nt = Times(W, x)\np = Mean(t)\nz = Minus(x, p)"
    old = parse_ndl(script, precision="double").validate()
    old["p"].value, old["p"].computed = np.array([1.0, 2.0]), True
    save_model("pre.dnn", old)
    edit(
        "k = CreateModel()\nCopySubTree(n.z, k, c.)\nSaveModel(k, new.dnn)\n"
        "SetPropertyForSubTree(n.z, needGradient, false)\nSaveModel(n, frozen.dnn)",
        head="n = LoadModel(pre.dnn)\n",
    )
    new = load_model("new.dnn")
    assert links(new, "c.p") == ["c.t"]
    assert new["c.p"].computed
    assert not load_model("frozen.dnn")["W"].trainable


def test_loops_are_copied_as_loops(folder):
    script = "p = PastValue(5, r)\nW = Parameter(5, 5)\nt = Times(W, p)\nr = Tanh(t)\nCopySubTree(r, m, c.)"
    editor = edit(script)
    assert links(network(editor), "c.p") == ["c.r"]


def test_copying_inputs(folder):
    editor = edit("Copy(H2.*, H3.*)\nCopyInputs(H2.inner.*, H3.inner.*)")
    assert links(network(editor), "H3.inner.m") == ["H2.inner.A", "H1.h"]


# ---- removing, renaming, connecting


def test_names_of_nodes_that_brainscript_made(folder):
    editor = edit("Rename(l, z.x.PlusArgs[0])\nRename(err, e[1].c[12].s)\nDelete(z.x.PlusArgs[0], e[1].*)")
    assert not {"l", "err", "z.x.PlusArgs[0]", "e[1].c[12].s"} & set(names(network(editor)))
    made = edit("Rename(l, z.x.PlusArgs[0])\nm.y=[\nq = Input(2)\n]", head="m = LoadModel(base.dnn, format=cntk)\n")
    assert "z.x.PlusArgs[0]" in names(network(made))


def test_removing_empties_links_and_groups(folder):
    editor = edit("Remove(err, H1.inner.*)\nDelete(top.c)\nDeleteNode(l)\nRemoveNode(ce)")
    left = network(editor)
    assert links(left, "H1.h") == [None]
    assert links(left, "top.s") == ["top.m", None]
    assert not left.groups["evaluation"]
    assert not left.groups["label"]


def test_a_removed_node_can_be_defined_again(folder):
    edit(
        "SetProperty(ce, criterion, false)\nRemove(ce)\nce = SquareError(l, top.s)\nSetProperty(ce, criterion, true)\n"
        "Remove(ce)\nce = CrossEntropyWithSoftmax(l, top.s, tag=criterion)\nSaveModel(m, new.dnn)"
    )
    new = load_model("new.dnn")
    assert [n.operation for n in new.groups["criterion"]] == ["CrossEntropyWithSoftmax"]
    edit("H3 = Act(H2.h, 5, 5)\nRemove(H3.*)\nH3 = Act(H2.h, 6, 5)\nSaveModel(m, new.dnn)")
    assert load_model("new.dnn")["H3.h"].shape == (6, 1)
    edit("z = Tanh(x)\nRename(z, old)\nz = Sin(x)\nSaveModel(m, new.dnn)")
    assert load_model("new.dnn")["old"].operation == "Tanh"


def test_renaming(folder):
    edit("Rename(H1.*, L1.*)\nRename(top.s, result)\nRename(X, X)\nRename(l, L)\nSaveModel(m, new.dnn)")
    new = load_model("new.dnn")
    assert links(new, "H2.inner.m") == ["H2.inner.A", "L1.h"]
    assert [n.name for n in new.groups["output"]] == ["result"]
    assert {"X", "L", "L1.inner.A"} <= set(new.nodes)


def test_setting_inputs(folder):
    editor = edit(
        "SetNodeInputs(top.m, top.A, H1.h)\nSetNodeInput(H*.m, 0, top.A)\nSetInput(err, 2, Const1)",
        head=("m = LoadModel(base.dnn)\nConst1 = Constant(2)\n"),
    )
    assert links(network(editor), "top.m") == ["top.A", "H1.h"]
    assert links(network(editor), "H1.inner.m") == ["top.A", "x"]
    assert links(network(editor), "err") == ["l", "top.s", "Const1"]


def test_reading_values_from_a_file(folder, caplog):
    (folder / "v.txt").write_text("1 2 3 4\n5 6 7 8\n\n0 0 0 0\n0 0 0 0\n-1 -2 -3 -4\n")
    editor = edit("ReviseParameter(H1.inner.A, v.txt)\nReviseParameter(H1.h, v.txt)")
    np.testing.assert_array_equal(network(editor)["H1.inner.A"].matrix()[[1, 4]], [[5, 6, 7, 8], [-1, -2, -3, -4]])
    assert "is not a parameter" in caplog.text


# ---- properties


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("criterion", "criterion"),
        ("finalCriterion", "criterion"),
        ("Criteria", "criterion"),
        ("evaluation", "evaluation"),
        ("eval", "evaluation"),
        ("feature", "feature"),
        ("LABEL", "label"),
        ("output", "output"),
    ],
)
def test_groups(folder, name, group):
    node = "x" if group in ("feature", "label") else "H1.h"  # only an input is filled by a reader (A21)
    editor = edit(f"SetProperty({node}, {name}, true)\nSetProperty({node}, {name}, 1)")
    assert [n.name for n in network(editor).groups[group]].count(node) == 1
    editor = edit(f"SetProperty(m, {name}, F)")
    assert network(editor).groups[group] == []


def test_learning_rates(folder):
    editor = edit(
        "SetProperty(H1.inner.A, learningRateMultiplier, 0.5)\nSetProperty(H1.inner.c, needGradient, false)\n"
        "SetProperty(top.c, computeGradient, f)\nSetProperty(top.c, needsGradient, t)\n"
        "SetPropertyForSubTree(H2.h, learningRateMultiplier, 2)\nSetProperty(top.A, freezeParameters, true)\n"
        "SetProperty(m, recurrent, whatever)"
    )
    rates = {n.name: n.learning_rate_multiplier for n in network(editor).nodes.values() if n.is_parameter}
    assert rates == {"H1.inner.A": 2, "H1.inner.c": 2, "H2.inner.A": 2, "H2.inner.c": 2, "top.A": 0, "top.c": 1}


def test_freezing_batch_normalisation(folder):
    script = (
        "s = Parameter(5, 1)\nb = Parameter(5, 1)\nv = Parameter(5, 1)\nw = Parameter(5, 1)\n"
        "bn = BatchNormalization(H1.h, s, b, v, w)\nSetProperty(bn, freezeParameters, true)\nSaveModel(m, new.dnn)"
    )
    edit(script)
    options = load_model("new.dnn")["bn"].options
    assert options["normalizationTimeConstant"] == options["blendTimeConstant"] == float("inf")
    editor = edit(script.replace("freezeParameters, true", "freezeParameters, false"))
    assert network(editor)["bn"].options["blendTimeConstant"] == 0


def test_properties_without_effect(folder, caplog):
    edit("SetProperty(ce, MultiSeq, true)\nSetProperty(ce, needGradient, true)")
    assert "'MultiSeq' has no effect" in caplog.text
    assert "none of the nodes is a parameter" in caplog.text


# ---- in-line NDL


def test_in_line_ndl_with_macros_constants_and_forward_references(folder):
    edit(
        "w = 5\nH3 = Act(H2.h, w, w)   # macro\nSetInput(top.m, 1, H3)\n"
        "prev = PastValue(3, cur)\ncur = Plus(prev, top.s, tag=output)\n"
        "top2 = ErrorPrediction(l, top.s, Const(2), tag=eval)\nSaveModel(m, new.dnn)"
    )
    new = load_model("new.dnn")
    assert links(new, "top.m") == ["top.A", "H3.h"]
    assert links(new, "prev") == ["cur"]
    assert [n.name for n in new.groups["evaluation"]] == ["err", "top2"]
    assert [n.name for n in new.groups["output"]] == ["top.s", "cur"]


def test_full_names_of_the_model_count_beside_a_node_of_their_first_part(folder):
    found = network(edit("Remove(top.m)\ntop = Times(top.A, H2.inner.s)\nSetInput(top.s, 0, top)\nSaveModel(m, f)"))
    assert links(found, "top") == ["top.A", "H2.inner.s"] and links(found, "top.s") == ["top", "top.c"]


def test_a_property_does_not_connect_what_is_not_complete(folder):
    """Only commands about links look names up (docs/specification/networks.md E.6)."""
    script = "past = PastValue(5, G)\nSetProperty(past, output, true)\nG = Plus(past, H2.h)\n"
    found = network(edit(script + "SetInput(top.m, 1, G)\nSaveModel(m, new.dnn)"))
    assert links(found, "past") == ["G"] and links(found, "top.m") == ["top.A", "G"]


def test_an_input_of_another_size_is_told(folder, caplog):
    found = network(edit("x = Input(4)\nl = Input(7)\nq = Sin(l)\nSaveModel(m, new.dnn)"))
    assert links(found, "q") == ["l"] and found["l"].shape == (3,)
    (told,) = [one.getMessage() for one in caplog.records]
    assert told.startswith("edit.mel:4:5: warning: the model has an input 'l' [3]; [7] has no effect")


def test_seeds_go_on(folder):
    from cntkpy.networks.graph.initialize import SeedCounter

    seeds = SeedCounter()
    seeds.next()
    editor = edit_text("m = CreateModel()\nP = Parameter(2, 2)\nDumpModel(m, d.txt)", seeds=seeds)
    other = parse_ndl("W = Parameter(1, 1)\nP = Parameter(2, 2)", require_features=False)
    np.testing.assert_array_equal(network(editor)["P"].value, other["P"].value)
    assert seeds.count == 2


def test_a_number_as_an_input(folder):
    editor = edit("half = 0.5\nSetInput(top.s, 1, half)\nSetInput(H1.inner.s, 1, half)\nSaveModel(m, new.dnn)")
    node = network(editor)["half"]
    assert node.value is not None
    assert node.value.tolist() == [[0.5]]
    assert node.learning_rate_multiplier == 0
    assert links(load_model("new.dnn"), "H1.inner.s") == ["H1.inner.m", "half"]


def test_a_model_from_scratch(folder):
    edit(
        "n = CreateModel()\nx = Input(4)\nl = Input(3)\nQ = Lin(x, 3, 4)\nce = CrossEntropyWithSoftmax(l, Q.s)\n"
        "FeatureNodes = (x)\nSetProperty(l, label, true)\nSetProperty(ce, criterion, true)\nSaveModel(n, new.dnn)",
        head="",
    )
    new = load_model("new.dnn")
    assert [n.name for n in new.groups["feature"]] == ["x"]
    assert links(new, "ce") == ["l", "Q.s"]


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_snippets(folder, brackets):
    snippet = "n = [\n Two(a) { p = Sin(a)\n q = Sin(p) }\n x = Input(4)\n y = Two(x, tag=output)\n]\n"
    for old, new in zip("[]", brackets, strict=True):
        snippet = snippet.replace(old, new)
    editor = edit(snippet + "z = Two(H1.h)\nSetDefaultModel(n)\nz = Two(y)\nSaveModel(n, n.dnn)\nDumpModel(m, d.txt)")
    assert names(load_model("n.dnn")) == ["x", "y.p", "y.q", "z.p", "z.q"]
    assert links(network(editor), "z.p") == ["H1.h"]


def test_models_from_ndl_files(folder):
    (folder / "n.ndl").write_text(
        "load = macros\nrun = net\nmacros = [\nD(a) = Sin(a)\n]\nnet = [\nx = Input(2)\nF = D(x)\n]\n"
    )
    (folder / "p.ndl").write_text("x = Input(2)\nG = Cosine(x)\n")
    editor = edit(
        "LoadNDLSnippet(a, n.ndl)\nLoadNDLSnippet(b, n.ndl, section=net)\nLoadNDLSnippet(c, p.ndl)\nDumpModel(b, b.txt)"
    )
    assert [n.operation for n in network(editor, "a").nodes.values()] == ["InputValue", "Sin"]
    assert [n.operation for n in network(editor, "b").nodes.values()] == ["InputValue", "Sin"]
    assert "G" in network(editor, "c")


# ---- text


def test_dumps(folder):
    edit(
        'DumpModel(m, a.txt, includeData=true)\nDump(m, "b.txt")\nDumpNode(H1.*, c.txt, includeData=1)\n'
        "DumpNode(top.A, d.txt)\nDumpNode(*, e.txt)"
    )
    a, b, c, d, e = ((folder / f"{name}.txt").read_text() for name in "abcde")
    assert a.count("####") > 0
    assert "#" not in b
    assert [line.split("=")[0] for line in b.splitlines() if "=" in line] == NAMES
    assert c.count("LearnableParameter [5,") == 2
    assert d.strip() == "top.A=LearnableParameter [3,5]   learningRateMultiplier=1.000000  NeedsGradient=true"
    assert e == b
    rows = a.split("H1.inner.A=")[1].splitlines()[1:6]
    expected = load_model("base.dnn")["H1.inner.A"].matrix()
    np.testing.assert_array_equal([[float(word) for word in row.split()] for row in rows], expected)


def test_a_model_that_is_not_complete_can_be_dumped(folder, caplog):
    edit("Remove(H1.h)\nDumpModel(m, a.txt)")
    assert "H2.inner.m=Times ( H2.inner.A , NULL )" in (folder / "a.txt").read_text()
    assert "is not complete" in caplog.text


def test_every_command_is_described():
    all_names = [name for kind in mel_commands.COMMANDS for name in kind.names]
    assert len(all_names) == len({name.lower() for name in all_names})
    for kind in mel_commands.COMMANDS:
        assert kind.meaning.endswith(".")
        assert kind.name in kind.usage


def test_the_page_lists_every_command():
    page = (Path(__file__).resolve().parents[3] / "docs" / "mel.md").read_text(encoding="utf-8").split("## Commands")[1]
    for kind in mel_commands.COMMANDS:
        row = next(line for line in page.splitlines() if re.match(rf"\| `(m = )?{kind.name}\(", line))
        assert re.findall(r"`(\w+)`", row.split("|")[2]) == list(kind.aliases)


def test_the_script_of_the_page(tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[3] / "docs"
    script = (page / "mel.md").read_text(encoding="utf-8").split("```\n")[3]
    described = (page / "ndl.md").read_text(encoding="utf-8").split("net = [\n")[1].split("\n    ]\n")[0]
    monkeypatch.chdir(tmp_path)
    save_model("models/digits.dnn", parse_ndl(described).validate())
    macro = described[described.index("Layer") : described.index("features")]
    edit_text(script, macros=[macro])
    new = load_model("models/digits2.dnn")
    assert links(new, "ol.t") == ["ol.W", "act"]


def test_commands_and_properties_may_be_abbreviated_to_a_half(folder, caplog):
    script = "SetProp(top.A, learningRateMult, 0)\nRen(top.s, outp)\nRem(err)\nSetPropertyForS(H1.h, needGrad, false)"
    found = network(edit(script))
    assert found["top.A"].learning_rate_multiplier == found["H1.inner.A"].learning_rate_multiplier == 0
    assert "outp" in found and "err" not in found
    assert "'SetProp' is taken for SetProperty" in caplog.text
    with pytest.raises(ConfigError, match="unknown editor function 'SetPro_'"):
        edit("SetPro_(top.A, output, true)")


@pytest.mark.parametrize("kind", mel_commands.COMMANDS, ids=lambda kind: kind.name)
def test_the_example_of_a_command_is_a_call_of_it(kind):
    (statement,) = parse_commands(Document(kind.example, lambda _: None), mel_commands.makes_model)
    assert isinstance(statement, Command)
    assert mel_commands.find(statement.name.text) is kind
    request(statement, kind, mel_commands.COMMANDS)
