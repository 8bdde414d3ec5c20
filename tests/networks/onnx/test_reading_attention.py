"""Models with attention over the steps of sequences become networks that compute what onnxruntime computes."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import compile_gradient, network_parameters, network_state
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.reading.load import build
from cntkpy.networks.onnx.reading.parse import read_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
SMALL = np.random.default_rng(3)
MATRICES = {name: SMALL.normal(size=(4, 4)).astype(np.float32) for name in ("Q", "K", "V")}

ONE_AXIS = """
agraph (float[batch,time,4] x) => (float[batch,time,4] y) {
  q = MatMul (x, Q)
  k = MatMul (x, K)
  v = MatMul (x, V)
  t = Transpose <perm = [0, 2, 1]> (k)
  scores = MatMul (q, t)
  two = Constant <value = float {2.0}> ()
  scaled = Div (scores, two)
  shares = Softmax <axis = -1> (scaled)
  y = MatMul (shares, v)
}"""

TWO_AXES = """
agraph (float[batch,time,4] x, float[batch,source_len,4] s) => (float[batch,time,4] y) {
  q = MatMul (x, Q)
  k = MatMul (s, K)
  v = MatMul (s, V)
  t = Transpose <perm = [0, 2, 1]> (k)
  scores = MatMul (q, t)
  shares = Softmax <axis = 2> (scores)
  y = MatMul (shares, v)
}"""

HEADS = """
agraph (float[time,batch,4] x) => (float[time,batch,4] y) {
  steps = Shape <start = 0, end = 1> (x)
  samples = Shape <start = 1, end = 2> (x)
  two = Constant <value = int64[1] {2}> ()
  four = Constant <value = int64[1] {4}> ()
  rest = Constant <value = int64[1] {-1}> ()
  both = Mul (samples, two)
  many = Concat <axis = 0> (steps, both, two)
  q = MatMul (x, Q)
  k = MatMul (x, K)
  v = MatMul (x, V)
  qs = Reshape (q, many)
  ks = Reshape (k, many)
  vs = Reshape (v, many)
  qt = Transpose <perm = [1, 0, 2]> (qs)
  kt = Transpose <perm = [1, 2, 0]> (ks)
  vt = Transpose <perm = [1, 0, 2]> (vs)
  scores = MatMul (qt, kt)
  half = Constant <value = float {0.5}> ()
  scaled = Mul (half, scores)
  shares = Softmax <axis = -1> (scaled)
  seen = MatMul (shares, vt)
  turned = Transpose <perm = [1, 0, 2]> (seen)
  flat = Concat <axis = 0> (rest, four)
  rows = Reshape (turned, flat)
  out = Gemm (rows, V)
  whole = Concat <axis = 0> (steps, samples, four)
  y = Reshape (out, whole)
}"""


def written(text, folder):
    model = onnx.parser.parse_model(HEADER + text)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in MATRICES.items() if f" {name})" in text
    )
    onnx.checker.check_model(model)
    path = folder / "m.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("text", "time_first"), [(ONE_AXIS, False), (TWO_AXES, False), (HEADS, True)], ids=["one axis", "two axes", "heads"]
)
def test_values(text, time_first, tmp_path):
    path = written(text, tmp_path)
    network, _ = build(read_model(path), "m")
    assert [node.operation for node in network.nodes.values()].count("DotProductAttention") == 1
    session = onnxruntime.InferenceSession(path.read_bytes())
    for steps, batch in ((5, 3), (2, 4)):
        sizes = {"x": (steps, batch, 4), "s": (steps + 2, batch, 4)}
        data = {one.name: SMALL.normal(size=sizes[one.name]).astype(np.float32) for one in session.get_inputs()}
        given = {name: one if time_first else one.swapaxes(0, 1) for name, one in data.items()}
        (expected,) = session.run(["y"], given)
        found = ours.values(network, ["y"], ours.minibatch(network, ["y"], data))["y"]
        np.testing.assert_allclose(found, expected if time_first else expected.swapaxes(0, 1), rtol=1e-4, atol=1e-5)


def test_sequences_of_different_lengths_do_not_see_what_is_behind_their_ends(tmp_path):
    """Values are those of each sequence alone, whose gradients flow to the matrices."""
    path = written(HEADS, tmp_path)
    network, _ = build(read_model(path), "m")
    session, lengths = onnxruntime.InferenceSession(path.read_bytes()), [4, 1, 3]
    data = SMALL.normal(size=(4, 3, 4)).astype(np.float32)
    batch = ours.minibatch(network, ["y"], {"x": data}, {network["x"].axis: np.array(lengths)})
    found = ours.values(network, ["y"], batch)["y"]
    for slot, length in enumerate(lengths):
        (expected,) = session.run(["y"], {"x": data[:length, slot : slot + 1]})
        np.testing.assert_allclose(found[:length, slot], expected[:, 0], rtol=1e-4, atol=1e-5)
    gradients = jax.jit(compile_gradient(network, "y"))(network_parameters(network), network_state(network), batch)[0]
    assert len(gradients) == 3 and all(np.abs(one).max() > 1e-3 for one in gradients.values())


WRONG = {
    "the softmax of products of two values along time must be over the steps of the keys": ("axis = -1", "axis = 1"),
    "can be multiplied by a number only, before the softmax": ("Div (scores, two)", "Mul (scores, scores)"),
    "multiplied with values only, after their softmax": ("MatMul (shares, v)", "MatMul (scaled, v)"),
    "sequences of different lengths need no mask here": ("Div (scores, two)", "Add (scores, two)"),
    "do not fit those of the values": ("MatMul (shares, v)", "MatMul (shares, t)"),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_attention_is_refused(message, tmp_path):
    before, behind = WRONG[message]
    assert before in ONE_AXIS
    text = ONE_AXIS.replace(before, behind)
    if "shares, t" in behind:
        text = text.replace("[batch,time,4] y", "[batch,time,time] y")
    with pytest.raises(UserError, match=message):
        build(read_model(written(text, tmp_path)), "m")


@pytest.mark.parametrize(
    ("before", "behind", "message"),
    [
        ("scores = MatMul (qt, kt)", "odd = Relu (qt)\n  scores = MatMul (odd, kt)", "one joins samples and elements"),
        ("y = Reshape (out, whole)", "y = Identity (out)", "its output 'y' joins axes of the minibatch"),
        ("(rest, four)", "(rest, samples)", "cannot have the shape|would mix|do not keep|does not keep"),
    ],
)
def test_samples_and_elements_on_one_axis_are_refused_elsewhere(before, behind, message, tmp_path):
    text = HEADS.replace(before, behind)
    if "Identity" in behind:
        text = text.replace("float[time,batch,4] y", "float[rows,4] y")
    with pytest.raises(UserError, match=message):
        build(read_model(written(text, tmp_path)), "m")


SUMS = """
agraph (float[time,batch,4] x, float[source_len,batch,4] s) => (float[time,batch,4] y) {
  zero = Constant <value = int64[1] {0}> ()
  one = Constant <value = int64[1] {1}> ()
  k = Unsqueeze (s, zero)
  q = Unsqueeze (x, one)
  sums = Add (q, k)
  bent = Tanh (sums)
  scores = MatMul (bent, Vector)
  shares = Softmax <axis = 1> (scores)
  weighted = Mul (shares, k)
  y = ReduceSum <keepdims = 0> (weighted, one)
}"""


@pytest.mark.parametrize(
    "there, instead",
    [
        ("Tanh (sums)", "Sigmoid (sums)"),
        ("Softmax <axis = 1>", "Softmax <axis = 3>"),
        ("MatMul (bent, Vector)", "MatMul (sums, Vector)"),
        ("MatMul (bent, Vector)", "MatMul (bent, Q)"),
        ("Mul (shares, k)", "Mul (shares, zero)"),
        ("Mul (shares, k)", "Mul (k, shares)"),
        ("<keepdims = 0> (weighted, one)", "<keepdims = 0> (weighted, zero)"),
        ("<keepdims = 0> (weighted, one)", "<keepdims = 0> (shares, one)"),
    ],
)
def test_additive_attention_in_another_order_is_refused(there, instead, tmp_path):
    assert there in SUMS
    for text, refused in ((SUMS, False), (SUMS.replace(there, instead), True)):
        model = onnx.parser.parse_model(HEADER + text)
        arrays = MATRICES | {"Vector": MATRICES["Q"][:, :1]}
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
        onnx.save(model, tmp_path / "f.onnx")
        if refused:
            with pytest.raises(UserError, match="of sums of two values along time only their tanh"):
                build(read_model(tmp_path / "f.onnx"), "f.onnx")
        else:
            network = build(read_model(tmp_path / "f.onnx"), "f.onnx")[0]
            assert "AdditiveAttention" in [node.operation for node in network.nodes.values()]
