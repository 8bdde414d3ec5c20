"""Quantised models, as onnxruntime's own quantisation writes them, compared with onnxruntime."""

import numpy as np
import pytest

from cntkpy.networks.onnx import ours

from .test_reading import loaded, model_of, real

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")

RANDOM = np.random.default_rng(1)

MODELS = {
    "dense": (
        [
            ("MatMul", ["x", "w"], ["a"], {}),
            ("Add", ["a", "b"], ["c"], {}),
            ("Relu", ["c"], ["d"], {}),
            ("MatMul", ["d", "v"], ["e"], {}),
            ("Sigmoid", ["e"], ["f"], {}),
            ("Add", ["f", "e"], ["g"], {}),
            ("Mul", ["g", "f"], ["y"], {}),
        ],
        [6],
        {"w": real(RANDOM, 6, 8), "b": real(RANDOM, 8), "v": real(RANDOM, 8, 3)},
    ),
    "softmax": (
        [
            ("Gemm", ["x", "w", "b"], ["a"], {"transB": 1}),
            ("LeakyRelu", ["a"], ["d"], {}),
            ("Gemm", ["d", "v", "c"], ["e"], {}),
            ("Softmax", ["e"], ["y"], {"axis": -1}),
        ],
        [6],
        {"w": real(RANDOM, 8, 6), "b": real(RANDOM, 8), "v": real(RANDOM, 8, 3), "c": real(RANDOM, 3)},
    ),
    "images": (
        [
            ("Conv", ["x", "k", "kb"], ["a"], {"pads": [1, 1, 1, 1]}),
            ("Relu", ["a"], ["r"], {}),
            ("MaxPool", ["r"], ["m"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("Conv", ["m", "l"], ["d"], {"pads": [1, 1, 1, 1], "group": 2}),
            ("AveragePool", ["d"], ["e"], {"kernel_shape": [2, 2]}),
            ("Concat", ["e", "e"], ["ee"], {"axis": 1}),
            ("GlobalAveragePool", ["ee"], ["g"], {}),
            ("Flatten", ["g"], ["f"], {}),
            ("Gemm", ["f", "w", "b"], ["y"], {}),
        ],
        [3, 8, 8],
        {
            "k": real(RANDOM, 4, 3, 3, 3),
            "kb": real(RANDOM, 4),
            "l": real(RANDOM, 4, 2, 3, 3),
            "w": real(RANDOM, 8, 3),
            "b": real(RANDOM, 3),
        },
    ),
}


class Samples(quantization.CalibrationDataReader):
    """Data by which ranges are chosen."""

    def __init__(self, dims):
        random = np.random.default_rng(2)
        self._data = iter([{"x": real(random, 4, *dims)} for _ in range(4)])

    def get_next(self):
        return next(self._data, None)


def quantised(name, way, folder, per_channel=False):
    """A quantised model: with scales found for each minibatch, or fixed ones, as pairs of operators or as operators."""
    operators, dims, arrays = MODELS[name]
    model = onnx.shape_inference.infer_shapes(model_of(operators, {"x": ["n", *dims]}, ["y"], arrays, opset=17))
    model.ir_version = 8
    source, target = folder / f"{name}.onnx", folder / f"{name}.{way}.onnx"
    onnx.save(model, source)
    if way == "dynamic":
        quantization.quantize_dynamic(source, target, per_channel=per_channel)
    else:
        kinds = {"activation_type": quantization.QuantType.QUInt8, "weight_type": quantization.QuantType.QInt8}
        form = getattr(quantization.QuantFormat, way)
        quantization.quantize_static(source, target, Samples(dims), quant_format=form, per_channel=per_channel, **kinds)
    return onnx.load(target)


def by_onnxruntime(path, data):
    """What onnxruntime computes, each operator as it is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, data)[0]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("way", ["dynamic", "QDQ", "QOperator"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sampled
def test_quantised_models(name, way, per_channel, tmp_path):
    model = quantised(name, way, tmp_path, per_channel)
    data = real(np.random.default_rng(3), 4, *MODELS[name][1])
    expected = by_onnxruntime(tmp_path / f"{name}.{way}.onnx", {"x": data})
    network = loaded(model, tmp_path)
    found = ours.values(network, ["y"], ours.minibatch(network, ["y"], {"x": data[None]}))["y"]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_operators_by_themselves(tmp_path):
    """DynamicQuantizeLinear, MatMulInteger with a zero point of each column, and what is made of them."""
    random = np.random.default_rng(4)
    operators = [
        ("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], {}),
        ("MatMulInteger", ["q", "w", "z", "wz"], ["i"], {}),
        ("Cast", ["i"], ["f"], {"to": 1}),
        ("Mul", ["f", "s"], ["y"], {}),
    ]
    arrays = {"w": random.integers(0, 255, (4, 3)).astype(np.uint8), "wz": np.array([3, 100, 250], np.uint8)}
    model = model_of(operators, {"x": ["n", 4]}, ["y"], arrays, opset=20)
    network, data = loaded(model, tmp_path), real(random, 5, 4)
    expected = by_onnxruntime(tmp_path / "other.onnx", {"x": data})
    found = ours.values(network, ["y"], ours.minibatch(network, ["y"], {"x": data[None]}))["y"][0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind, numbers", [(np.int8, [-128, 127]), (np.uint8, [0, 255]), (np.int16, [-32768, 32767])])
def test_numbers_are_limited_to_their_type_and_rounded_to_even(kind, numbers, tmp_path):
    operators = [("QuantizeLinear", ["x", "s", "z"], ["q"], {}), ("Cast", ["q"], ["y"], {"to": 1})]
    arrays = {"s": np.array(2, np.float32), "z": np.array(1, kind)}
    network = loaded(model_of(operators, {"x": ["n", 6]}, ["y"], arrays, opset=21), tmp_path)
    data = np.array([[-1e6, 1e6, 1, 3, 5, 7]], np.float32)  # half of them: 0.5, 1.5, 2.5, 3.5
    found = ours.values(network, ["y"], ours.minibatch(network, ["y"], {"x": data[None]}))["y"].reshape(-1)
    assert found.tolist() == [*numbers, 1, 3, 3, 5]


def test_weights_in_blocks_become_constants(tmp_path):
    operators = [
        ("DequantizeLinear", ["w", "s", "z"], ["r"], {"axis": 0, "block_size": 2}),
        ("MatMul", ["x", "r"], ["y"], {}),
    ]
    w, s = np.arange(8, dtype=np.int8).reshape(4, 2), np.array([[1, 2], [3, 4]], np.float32)
    arrays = {"w": w, "s": s, "z": np.array([[1, 0], [0, 2]], np.int8)}
    network = loaded(model_of(operators, {"x": ["n", 4]}, ["y"], arrays, opset=21), tmp_path)
    data = real(np.random.default_rng(5), 3, 4)
    weights = (w - np.repeat(arrays["z"], 2, 0)) * np.repeat(s, 2, 0)
    found = ours.values(network, ["y"], ours.minibatch(network, ["y"], {"x": data[None]}))["y"][0]
    np.testing.assert_allclose(found, data @ weights, rtol=1e-5)
    assert not network.parameters()  # training changes no quantised weights
