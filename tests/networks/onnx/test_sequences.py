"""Loops, delays and selected steps as ONNX: the values of onnxruntime are those computed here."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import check
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.files import as_bytes
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx.table import RULES

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

HEAD = """\
x = Input(3, tag=feature)
W = Parameter(2, 3)
R = Parameter(2, 2)
b = Parameter(2, 1, init=fixedValue, value=0.2)
a = Plus(Times(W, x), b)
"""

LOOPS = {
    "past": "p = PastValue(2, h)\nh = Tanh(Plus(a, Times(R, p)))",
    "future": "p = FutureValue(2, h, defaultHiddenActivity=0.5)\nh = Tanh(Plus(a, Times(R, p)))",
    "three_steps": "p = PastValue(2, h, timeStep=3)\nh = Tanh(Plus(a, Times(R, p)))",
    "two_delays": "p = PastValue(2, h)\nq = PastValue(2, h, timeStep=2)\nh = Tanh(Plus(a, Plus(Times(R, p), q)))",
    "two_states": (
        "p = PastValue(2, h)\nq = PastValue(2, c)\nc = Plus(ElementTimes(Sigmoid(Plus(a, Times(R, p))), q), Tanh(a))\n"
        "h = ElementTimes(Sigmoid(Plus(a, q)), Tanh(c))"
    ),
    "an_initial_state": "p = PastValue(2, 1, h, b)\nh = Tanh(Plus(a, Times(R, p)))",
    "both_ways": (
        "p = PastValue(2, f)\nf = Tanh(Plus(a, Times(R, p)))\nq = FutureValue(2, g)\ng = Tanh(Plus(a, Times(R, q)))\n"
        "h = RowStack(f, g)"
    ),
    "a_delay_that_leaves_the_loop": "p = PastValue(2, z)\nz = Tanh(Plus(a, Times(R, p)))\nh = Plus(p, a)",
    "a_windowed_input": "h = RowStack(PastValue(3, x), FutureValue(3, x, timeStep=2), x)",
    "attention": (
        "p = PastValue(2, h)\ns = AdditiveAttention(Parameter(1, 2), a, x, p)\nh = Tanh(Plus(a, Times(W, s)))"
    ),
    "attention_by_products": "p = PastValue(2, h)\ns = DotProductAttention(a, x, p)\nh = Tanh(Plus(a, Times(W, s)))",
    "a_sum_of_steps": "p = PastValue(2, h, defaultHiddenActivity=0)\nh = Plus(a, p)",
}


def exported_model(text, names=("h",), precision="float", **settings):
    network = parse_ndl(text, precision=precision, diagnostics=[]).validate()
    random = np.random.default_rng(3)
    for node in network.nodes.values():
        if node.trainable:
            node.value = random.normal(size=node.value.shape).astype(network.dtype)
    exported = export(network, ours.constants, Settings(tuple(names), **settings))
    model = to_model(exported, "0", {})
    onnx.checker.check_model(model, full_check=True)
    return exported, model


@pytest.mark.parametrize("batch_first", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.sampled
def test_values(name, batch_first):
    exported, model = exported_model(HEAD + LOOPS[name] + "\n", batch_first=batch_first)
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5
    assert exported.axes == (("batch", "sequence") if batch_first else ("sequence", "batch"))


ENDS = {
    **LOOPS,
    "the_last_step": "at = PackedIndex(a, Where(end))\nh = GatherPacked(at, a)\n"
    "end = FutureValue(1, zero, defaultHiddenActivity=1)\n"
    "zero = ElementTimes(Constant(0), SumColumnElements(x))",
    "the_last_three_steps": "at = PackedIndex(a, Where(end))\nh = GatherPacked(at, a)\n"
    "end = FutureValue(1, zero, timeStep=3, defaultHiddenActivity=1)\n"
    "zero = ElementTimes(Constant(0), SumColumnElements(x))",
    "all_but_the_last_step": "at = PackedIndex(a, Where(not))\nh = FutureValue(2, GatherPacked(at, a))\n"
    "not = Minus(Constant(1), FutureValue(1, zero, defaultHiddenActivity=1))\n"
    "zero = ElementTimes(Constant(0), SumColumnElements(x))",
    "a_stack_both_ways": "h = OptimizedRNNStack(Parameter(2, 0), x, hiddenDims=2, bidirectional=true, numLayers=2)",
    "scattered": "at = PackedIndex(a, Where(not))\nh = ScatterPacked(x, at, GatherPacked(at, a))\n"
    "not = Minus(Constant(1), PastValue(1, zero, defaultHiddenActivity=1))\n"
    "zero = ElementTimes(Constant(0), SumColumnElements(x))",
    "attention_outside_of_a_loop": "h = AdditiveAttention(Parameter(1, 2), a, x, a)",
    "attention_by_products": "h = DotProductAttention(a, x, Times(R, a))",
    "separate_attentions": "k = NewReshape(a, {1, 2})\nv = NewReshape(RowStack(x, RowSlice(0, 1, x)), {2, 2})\n"
    "h = DotProductAttention(k, v, k)",
    "repeated": "at = PackedIndex(a, RepeatSteps(x, factor=1.5))\nh = FutureValue(2, GatherPacked(at, a))",
}


@pytest.mark.parametrize("batch_first", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.sampled
def test_sequences_of_different_lengths(name, batch_first):
    """What is behind the ends of sequences is random, and changes nothing."""
    exported, model = exported_model(HEAD + ENDS[name] + "\n", batch_first=batch_first, lengths=True)
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5, found


@pytest.mark.parametrize("lengths", [pytest.param(False, marks=pytest.mark.thorough), True])
@pytest.mark.parametrize(
    "unit", ["lstm", *(pytest.param(unit, marks=pytest.mark.thorough) for unit in ("gru", "rnnTanh", "rnnReLU"))]
)
@pytest.mark.sampled
def test_a_stack_in_double_precision_is_a_loop(unit, lengths):
    layer = f"h = OptimizedRNNStack(Parameter(2, 0), x, hiddenDims=2, bidirectional=true, recurrentOp={unit})\n"
    exported, model = exported_model(HEAD + layer, precision="double", double=True, lengths=lengths)
    assert {"LSTM", "GRU", "RNN"}.isdisjoint(one.kind for one in exported.graph.operators)
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-12


def test_lengths_are_an_input_only_where_they_matter():
    for name, count in (("past", 1), ("future", 2)):
        exported, _ = exported_model(HEAD + LOOPS[name] + "\n", lengths=True)
        assert len(exported.graph.inputs) == count
    assert exported.graph.inputs[1] == ("lengths", ("batch",), "integer")


def test_products_of_the_data_are_outside_of_the_loop():
    exported, _ = exported_model(HEAD + LOOPS["two_states"] + "\n")
    assert [one.kind for one in exported.graph.operators][:3] == ["MatMul", "Reshape", "Add"]
    (scan,) = [one for one in exported.graph.operators if one.kind == "Scan"]
    assert [one.kind for one in scan.attributes["body"].operators].count("MatMul") == 1


def test_one_step_of_each_sequence():
    text = HEAD + "at = PackedIndex(a, Where(last))\nlast = PastValue(1, zero, defaultHiddenActivity=1)\n"
    text += "zero = ElementTimes(Constant(0), SumColumnElements(x))\nh = GatherPacked(at, a)\n"
    exported, model = exported_model(text)
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5
    assert exported.graph.outputs[0].dims == ("batch", 1, 2)
    assert [one.kind for one in exported.graph.operators] == ["MatMul", "Reshape", "Add", "Slice", "Squeeze"]


def test_steps_that_only_the_data_tell_are_refused():
    text = HEAD + "at = PackedIndex(a, Where(RowSlice(0, 1, x)))\nh = GatherPacked(at, a)\n"
    with pytest.raises(UserError, match="how many is known with the data only"):
        exported_model(text)


def test_two_time_axes():
    text = "t = DynamicAxis()\nx = Input(2, tag=feature)\nu = Input(3, dynamicAxis=t, tag=feature)\n"
    text += "p = PastValue(3, v)\nv = Tanh(Plus(u, p))\n"
    text += "w = Parameter(1, 2)\nh = AdditiveAttention(w, Times(Parameter(2, 3), v), v, x)\n"
    exported, model = exported_model(text)
    assert {port.name: port.dims for port in exported.graph.inputs} == {
        "x": ("sequence", "batch", 2),
        "u": ("sequence_t", "batch", 3),
    }
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5


def test_nodes_of_a_loop_without_a_rule_are_named(monkeypatch):
    monkeypatch.delitem(RULES, "Tanh")
    with pytest.raises(UserError, match="because of 1 node:\n  Tanh 'h': this operation has no equivalent"):
        exported_model(HEAD + LOOPS["past"] + "\n")
