"""Images of ONNX models of other programs: transposed convolutions, windows with gaps, other sizes, statistics."""

import numpy as np
import pytest

from cntkpy.networks.compile.evaluate import Batch
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import run
from cntkpy.networks.onnx.files import as_bytes

from .test_reading import loaded, model_of, real

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

IMAGE = (2, 4, 9, 8)
SCALES = np.array([1, 1, 2, 1.5], np.float32)
NONE = np.zeros(0, np.float32)

CASES = {
    "a transposed convolution of groups": (
        ("ConvTranspose", ["x", "t", "b"], {"group": 2, "strides": [2, 1], "output_padding": [1, 0]}),
        {"t": real(np.random.default_rng(1), 4, 3, 3, 2), "b": real(np.random.default_rng(2), 6)},
    ),
    "a transposed convolution of a given size": (
        ("ConvTranspose", ["x", "t"], {"output_shape": [19, 16], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        {"t": real(np.random.default_rng(1), 4, 3, 3, 2)},
    ),
    "the largest of windows with gaps": (
        ("MaxPool", ["x"], {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 2, 0, 1], "strides": [1, 2]}),
        {},
    ),
    "means of windows with gaps": (
        ("AveragePool", ["x"], {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 2, 0, 1]}),
        {},
    ),
    "nearest elements": (("Resize", ["x", "", "s"], {"mode": "nearest", "nearest_mode": "floor"}), {"s": SCALES}),
    "elements between": (
        ("Resize", ["x", "", "s"], {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}),
        {"s": SCALES},
    ),
    "elements between corners": (
        ("Resize", ["x", "", "", "n"], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        {"n": np.array([2, 4, 5, 11])},
    ),
    "cubic": (
        ("Resize", ["x", "", "s"], {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}),
        {"s": SCALES},
    ),
    "statistics of each image": (
        ("InstanceNormalization", ["x", "g", "b"], {"epsilon": 1e-3}),
        {"g": real(np.random.default_rng(1), 4), "b": real(np.random.default_rng(2), 4)},
    ),
    "a mirror around": (("Pad", ["x", "p"], {"mode": "reflect"}), {"p": np.array([0, 0, 2, 1, 0, 0, 0, 3])}),
    "an edge around": (("Pad", ["x", "p"], {"mode": "edge"}), {"p": np.array([0, 0, 2, 1, 0, 0, 0, 3])}),
    "every other element, backwards": (
        ("Slice", ["x", "begin", "end", "axis", "step"], {}),
        {"begin": np.array([-1]), "end": np.array([-100]), "axis": np.array([3]), "step": np.array([-2])},
    ),
    "the first largest of channels": (("Hardmax", ["x"], {"axis": 1}), {}),
}


QUICK = {"a transposed convolution of groups", "means of windows with gaps", "cubic", "a mirror around"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.thorough) for one in CASES]
)
def test_values(name, tmp_path):
    (kind, inputs, attributes), arrays = CASES[name]
    if kind == "AveragePool":
        pytest.importorskip("onnxruntime", "1.20")  # the first with means over windows with gaps
    opset = 19 if kind in ("AveragePool", "Resize") else 13
    model = model_of(
        [(kind, inputs, ["y"], attributes), ("Tanh", ["y"], ["z"], {})], {"x": ["n", 4, 9, 8]}, ["z"], arrays, opset
    )
    data = {"x": real(np.random.default_rng(0), *IMAGE)}
    expected = run(as_bytes(model), data)["z"]
    network = loaded(model, tmp_path)
    found = ours.values(network, ["z"], Batch({"x": data["x"][None]}))["z"]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


def test_an_exact_gelu(tmp_path):
    """As PyTorch writes it."""
    operators = [
        ("Div", ["x", "root"], ["a"], {}),
        ("Erf", ["a"], ["b"], {}),
        ("Add", ["b", "one"], ["c"], {}),
        ("Mul", ["x", "c"], ["d"], {}),
        ("Mul", ["d", "half"], ["z"], {}),
    ]
    arrays = {"root": np.array(2**0.5, np.float32), "one": np.array(1, np.float32), "half": np.array(0.5, np.float32)}
    model, data = model_of(operators, {"x": ["n", 5]}, ["z"], arrays), {"x": real(np.random.default_rng(0), 3, 5)}
    found = ours.values(loaded(model, tmp_path), ["z"], Batch({"x": data["x"][None]}))["z"]
    np.testing.assert_allclose(found[0], run(as_bytes(model), data)["z"], rtol=1e-5, atol=1e-6)


def test_the_bytes_of_an_image(tmp_path):
    operators = [("Cast", ["x"], ["r"], {"to": 1}), ("Mul", ["r", "s"], ["z"], {})]
    model = model_of(operators, {"x": ["n", 3, 4, 5]}, ["z"], {"s": np.array(1 / 255, np.float32)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    data = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 5), np.uint8)
    found = ours.values(loaded(model, tmp_path), ["z"], Batch({"x": data[None].astype(np.float32)}))["z"]
    np.testing.assert_allclose(found[0], run(as_bytes(model), {"x": data})["z"], rtol=1e-6)
