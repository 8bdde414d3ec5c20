"""Recurrent layers of ONNX models with an input for the lengths of sequences, and with peepholes."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import run
from cntkpy.networks.onnx.files import as_bytes

from .test_reading import helper, loaded, model_of, real

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

STEPS, BATCH, SIZE = 5, 3, 4
LENGTHS = np.array([5, 2, 4])
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(kind, direction="forward", peepholes=False, more=()):
    """As PyTorch writes packed sequences: the lengths are cast, and the last state of each is an output."""
    random, ways = np.random.default_rng(4), 1 + (direction == "bidirectional")
    inputs = ["x", "w", "r", "b", "ends", *(["", "", "p"] if peepholes else [])]
    operators = [
        ("Cast", ["lengths"], ["ends"], {"to": 6}),
        (kind, inputs, ["y", "h"], {"hidden_size": SIZE, "direction": direction}),
        ("Transpose", ["y"], ["u"], {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["u", "dims"], ["all"], {}),
        ("Transpose", ["h"], ["v"], {"perm": [1, 0, 2]}),
        ("Flatten", ["v"], ["last"], {}),
        *more,
    ]
    arrays = {
        "w": real(random, ways, GATES[kind] * SIZE, 3),
        "r": real(random, ways, GATES[kind] * SIZE, SIZE),
        "b": real(random, ways, 2 * GATES[kind] * SIZE),
        "dims": np.array([0, 0, -1]),
    }
    if peepholes:
        arrays["p"] = real(random, ways, 3 * SIZE)
    model = model_of(operators, {"x": ["time", "batch", 3]}, ["all", "last"], arrays, opset=14)
    model.graph.input.append(helper.make_tensor_value_info("lengths", onnx.TensorProto.INT64, ["batch"]))
    return model


WAYS = ("forward", "reverse", "bidirectional")
LAYERS = [(kind, holes, way) for kind, holes in (("LSTM", 0), ("LSTM", 1), ("GRU", 0), ("RNN", 0)) for way in WAYS]
QUICK = [("LSTM", 1, "bidirectional"), ("GRU", 0, "reverse")]


@pytest.mark.parametrize(
    "kind, peepholes, direction",
    [*QUICK, *(pytest.param(*one, marks=pytest.mark.thorough) for one in LAYERS if one not in QUICK)],
)
def test_a_network_knows_the_lengths_of_its_sequences(kind, peepholes, direction, tmp_path):
    model = layer(kind, direction, peepholes)
    network, data = loaded(model, tmp_path), real(np.random.default_rng(0), STEPS, BATCH, 3)
    assert [node.name for node in network.nodes.values() if node.kind.layout == "always"] == ["x"]
    names = ["all", "last"]
    batch = ours.minibatch(network, names, {"x": data}, {network["x"].axis: LENGTHS})
    found = ours.values(network, names, batch)
    expected = run(as_bytes(model), {"x": data, "lengths": LENGTHS})
    there = np.arange(STEPS)[:, None] < LENGTHS
    np.testing.assert_allclose(found["all"][there], expected["all"][there], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["last"][0].reshape(BATCH, -1), expected["last"], rtol=1e-4, atol=1e-5)


def test_lengths_that_something_else_looks_at(tmp_path):
    more = [("Cast", ["lengths"], ["f"], {"to": 1}), ("Tanh", ["f"], ["z"], {})]
    with pytest.raises(UserError, match="its input 'lengths' has integers"):
        loaded(layer("GRU", more=more), tmp_path)


def test_lengths_that_are_known(tmp_path):
    model = layer("GRU")
    del model.graph.input[1], model.graph.node[0]
    model.graph.initializer.append(onnx.numpy_helper.from_array(LENGTHS.astype(np.int32), "ends"))
    with pytest.raises(UserError, match=r"sequences of \[2, 4, 5\] steps; lengths that are known must be those"):
        loaded(model, tmp_path)
