"""Hand-written LSTM and GRU cells as the ONNX operators of these names, where others use their result alone."""

import numpy as np
import pytest

from cntkpy.networks import nodes
from cntkpy.networks.compile.evaluate import compile_gradient, network_parameters, network_state
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import check
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.files import as_bytes, write
from cntkpy.networks.onnx.model import to_model

from .test_sequences import exported_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

INPUTS = "x = Input(3, tag=feature)\ny = Input(2, tag=feature)\n"


def gate(name: str, state: str, more: str = "") -> str:
    """A gate with matrices of its own; more: what is added."""
    text = f"{name}W = Parameter(2, 3)\n{name}R = Parameter(2, 2)\n{name}b = Parameter(2)\n"
    total = f"Plus(Times({name}W, x), Plus(Times({name}R, {state}), {name}b))"
    return text + f"{name}s = {f'Plus({total}, {more})' if more else total}\n"


def lstm(delay: str = "PastValue", looking: bool = False, **options: object) -> str:
    """An LSTM layer in NDL, whose gates may see the memory."""
    given = "".join(f", {key}={value}" for key, value in options.items())
    text = f"p = {delay}(2, h{given})\nq = {delay}(2, c{given})\n"
    for name, memory in (("i", "q"), ("f", "q"), ("o", "c")):
        text += f"{name}P = Parameter(2)\n" if looking else ""
        text += gate(name, "p", f"DiagTimes({name}P, {memory})" if looking else "")
    text += gate("g", "p")
    text += "c = Plus(ElementTimes(q, Sigmoid(fs)), ElementTimes(Sigmoid(is), Tanh(gs)))\n"
    return INPUTS + text + "h = ElementTimes(Tanh(c), Sigmoid(os))\n"


PACKED = f"""{INPUTS}
p = PastValue(2, h)
q = PastValue(2, c)
W = Parameter(8, 3)
R = Parameter(8, 2)
b = Parameter(8)
V = Parameter(8, 2)
s = Plus(Plus(Times(W, x), Times(V, y)), Plus(Times(R, ElementTimes(Constant(0.7), p)), b))
i = Sigmoid(RowSlice(0, 2, s))
f = Sigmoid(RowSlice(2, 2, s))
o = Sigmoid(RowSlice(6, 2, s))
c = Plus(ElementTimes(f, q), ElementTimes(i, Tanh(RowSlice(4, 2, s))))
h = ElementTimes(o, Tanh(c))
"""

GRU = INPUTS + "p = PastValue(2, h)\n" + gate("z", "p") + gate("r", "p") + "z = Sigmoid(zs)\nr = Sigmoid(rs)\n"
BEFORE = GRU + gate("n", "ElementTimes(r, p)")
AFTER = GRU + (
    "nW = Parameter(2, 3)\nnR = Parameter(2, 2)\nnb = Parameter(2)\nmb = Parameter(2)\n"
    "ns = Plus(Plus(Times(nW, x), nb), ElementTimes(r, Plus(Times(nR, p), mb)))\n"
)
MIXED = "n = Tanh(ns)\nh = Plus(ElementTimes(Minus(Constant(1), z), n), ElementTimes(z, p))\n"

CELLS = {
    "lstm": lstm(),
    "lstm with zeros before the first step": lstm(defaultHiddenActivity=0),
    "lstm backwards with peepholes": lstm("FutureValue", True),
    "lstm of joined matrices and two inputs": PACKED,
    "gru": BEFORE + MIXED,
    "gru as a step from the state": BEFORE + "n = Tanh(ns)\nh = Plus(n, ElementTimes(z, Minus(p, n)))\n",
    "gru with the reset gate behind the product": AFTER + MIXED,
}
QUICK = {
    "lstm backwards with peepholes",
    "lstm of joined matrices and two inputs",
    "gru with the reset gate behind the product",
}
EVERY = [pytest.param(one, marks=() if one in QUICK else pytest.mark.thorough) for one in CELLS]


def kinds(exported):
    return {one.kind for one in exported.graph.operators}


@pytest.mark.parametrize("name", EVERY)
def test_values(name):
    exported, model = exported_model(CELLS[name])
    assert name.split()[0].upper() in kinds(exported) and "Scan" not in kinds(exported)
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5


def test_sequences_of_different_lengths():
    exported, model = exported_model(CELLS["lstm backwards with peepholes"], lengths=True)
    assert "LSTM" in kinds(exported) and exported.lengths
    (found,) = check(exported, as_bytes(model))
    assert found.largest < 1e-5


OTHERS = {
    "two steps": lstm(timeStep=2),
    "another function": lstm().replace("Tanh(c)", "Sigmoid(c)"),
    "a gate that sees all of the memory": lstm().replace("Times(iR, p)", "Times(iR, q)"),
    "another share": BEFORE + MIXED.replace("Constant(1)", "Constant(2)"),
    "two reset gates": BEFORE.replace("ElementTimes(r, p)", "ElementTimes(r, ElementTimes(r, p))") + MIXED,
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.sampled
def test_other_loops_stay_loops(name):
    exported, model = exported_model(OTHERS[name])
    assert "Scan" in kinds(exported) and not kinds(exported) & {"LSTM", "GRU"}
    assert all(one.largest < 1e-5 for one in check(exported, as_bytes(model)))


def test_a_loop_of_which_others_use_more_stays_one():
    exported, _ = exported_model(lstm(), ("h", "c"))
    assert "Scan" in kinds(exported) and "LSTM" not in kinds(exported)


def gradient(network):
    """Of the squares of `h`, on the same data each time."""
    nodes.create(network, "SumElements", "total", (nodes.create(network, "ElementTimes", "hh", [network["h"]] * 2),))
    network = network.validate()
    random = np.random.default_rng(1)
    data = {name: random.normal(size=(5, 4, size)) for name, size in (("x", 3), ("y", 2)) if name in network}
    batch = ours.minibatch(network, ["total"], data)
    found, totals, _ = compile_gradient(network, "total")(network_parameters(network), network_state(network), batch)
    return {name: np.asarray(one).reshape(network[name].value.shape) for name, one in found.items()}, float(
        totals["total"]
    )


@pytest.mark.thorough
def test_a_cell_that_went_out_and_in_trains_on_with_the_same_numbers(tmp_path):
    exported, model = exported_model(PACKED)
    write(tmp_path / "m.onnx", model)
    first, total = gradient(exported.network)
    second, again = gradient(load_model(tmp_path / "m.onnx"))
    assert again == pytest.approx(total, rel=1e-5)
    order = np.arange(8).reshape(4, 2)[[0, 3, 1, 2]].reshape(-1)  # in ONNX: input, output, forget, candidate
    both = np.concatenate([first["W"], first["V"]])[:, order]
    second = {name.split(".")[-1]: one for name, one in second.items()}
    assert set(second) == {"W", "R", "b"}
    np.testing.assert_allclose(second["W"], both, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(0.7 * second["R"], first["R"][:, order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second["b"].reshape(-1), first["b"].reshape(-1)[order], rtol=1e-4, atol=1e-5)


def test_parameters_that_were_not_trained_are_not(tmp_path):
    exported, _ = exported_model(PACKED)
    for node in exported.network.nodes.values():
        node.learning_rate_multiplier = 0.0
    write(tmp_path / "m.onnx", to_model(export(exported.network, ours.constants, Settings(("h",))), "0", {}))
    assert not any(node.trainable for node in load_model(tmp_path / "m.onnx").nodes.values())
