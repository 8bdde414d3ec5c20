"""Functions and options of BrainScript that versions 2.x have, against formulas written independently (W3)."""

import itertools

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.builders.brainscript.graph import graph_of
from cntkpy.networks.builders.brainscript.program import evaluator_with
from cntkpy.networks.graph.initialize import SeedCounter
from tests.networks.conftest import gradients, run

RANDOM = np.random.default_rng(7)


@pytest.fixture
def made(network):
    """A validated network of these members, with random values of its parameters."""

    def make(text):
        found = graph_of(network(text), evaluator_with(SeedCounter()), "double").network
        found.validate()
        for node in found.nodes.values():
            if node.is_parameter and node.trainable and node.value is not None:
                node.value = RANDOM.normal(size=node.value.shape)
        return found

    return make


def values(network, x):
    """Values of `z` for samples x (N, ...), whose axes are those of arrays: the reverse of BrainScript's."""
    return run(network, ["z"], Batch({"x": x.reshape(1, len(x), -1)}))["z"][0]


def correlate(x, kernels, *, stride=1, dilation=1, padding=((0, 0), (0, 0))):
    """x (C, H, W), kernels (M, C, h, w): (M, H', W'), element by element."""
    x = np.pad(x, ((0, 0), *padding))
    maps, _, h, w = kernels.shape
    rows = (x.shape[1] - (h - 1) * dilation - 1) // stride + 1
    columns = (x.shape[2] - (w - 1) * dilation - 1) // stride + 1
    out = np.zeros((maps, rows, columns))
    for m, r, c, i, j in itertools.product(*map(range, (maps, rows, columns, h, w))):
        out[m, r, c] += kernels[m, :, i, j] @ x[:, r * stride + i * dilation, c * stride + j * dilation]
    return out


def spread(x, kernels, *, stride=1, dilation=1):
    """The way back: x (C, H, W), kernels (C, M, h, w), without padding."""
    _, maps, h, w = kernels.shape
    rows = (x.shape[1] - 1) * stride + (h - 1) * dilation + 1
    columns = (x.shape[2] - 1) * stride + (w - 1) * dilation + 1
    out = np.zeros((maps, rows, columns))
    for r, c, i, j in itertools.product(*map(range, (x.shape[1], x.shape[2], h, w))):
        out[:, r * stride + i * dilation, c * stride + j * dilation] += x[:, r, c] @ kernels[:, :, i, j]
    return out


def parameter(network, end):
    """The value of the parameter whose name ends so."""
    (node,) = [node for name, node in network.nodes.items() if name.endswith(end) and node.is_parameter]
    return np.asarray(node.value)


@pytest.mark.parametrize("dilation", ["2", "(2:2)"])
def test_dilated_convolution(made, dilation):
    network = made(f"x = Input {{(7:6:2)}}\nz = ConvolutionalLayer {{3, (3:2), bias=false, dilation={dilation}}} (x)")
    x = RANDOM.normal(size=(2, 2, 6, 7))
    kernels = parameter(network, "W").reshape(3, 2, 2, 3)
    np.testing.assert_allclose(values(network, x), [correlate(one, kernels, dilation=2) for one in x], rtol=1e-12)


def test_dilation_of_the_function(made):
    text = "x = Input {(5:5:1)}\nW = ParameterTensor {(2:2:1:1)}\n"
    network = made(text + "z = Convolution (W, x, (2:2), mapDims=1, autoPadding=false, dilation=(3:3))")
    x = RANDOM.normal(size=(1, 1, 5, 5))
    kernels = parameter(network, "W").reshape(1, 1, 2, 2)
    np.testing.assert_allclose(values(network, x), [correlate(x[0], kernels, dilation=3)], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "stride", "dilation"),
    [("stride=2", 2, 1), ("dilation=2", 1, 2), ("stride=(2:2), dilation=(2:2)", 2, 2)],
)
@pytest.mark.parametrize("maps", [1, 3])
def test_transposed_convolution(made, options, stride, dilation, maps):
    text = f"x = Input {{(3:4:2)}}\nz = ConvolutionTransposeLayer {{{maps}, (3:3), 2, bias=false, {options}}} (x)"
    network = made(text)
    x = RANDOM.normal(size=(2, 2, 4, 3))
    kernels = parameter(network, "W").reshape(2, maps, 3, 3)
    expected = [spread(one, kernels, stride=stride, dilation=dilation) for one in x]
    np.testing.assert_allclose(values(network, x), expected, rtol=1e-12)


@pytest.mark.parametrize("pad", ["true", "(true:true)", "(true:true:false)"])
@pytest.mark.parametrize("maps", [1, 3])
def test_padded_transposed_convolution(made, pad, maps):
    """With pad, an image keeps its size where the stride is 1: half a window is cut at each end."""
    network = made(
        f"x = Input {{(3:4:2)}}\nz = ConvolutionTransposeLayer {{{maps}, (3:3), 2, bias=false, pad={pad}}} (x)"
    )
    x = RANDOM.normal(size=(2, 2, 4, 3))
    kernels = parameter(network, "W").reshape(2, maps, 3, 3)
    np.testing.assert_allclose(values(network, x), [spread(one, kernels)[:, 1:-1, 1:-1] for one in x], rtol=1e-12)


def test_the_shape_of_a_transposed_convolution(made):
    """Of the sizes that a convolution makes 3 x 4 of, the larger: the last row and column are 0."""
    layer = "ConvolutionTransposeLayer {1, (3:3), 2, bias=false, stride=2, outputShape=(8:10)}"
    network = made(f"x = Input {{(3:4:2)}}\nz = {layer} (x)")
    x = RANDOM.normal(size=(1, 2, 4, 3))
    kernels = parameter(network, "W").reshape(2, 1, 3, 3)
    expected = np.pad(spread(x[0], kernels, stride=2), ((0, 0), (0, 1), (0, 1)))
    np.testing.assert_allclose(values(network, x), [expected], rtol=1e-12, atol=1e-15)


def test_the_function_of_a_transposed_convolution(made):
    text = "x = Input {(3:4:2)}\nW = ParameterTensor {(3:3:1:2)}\n"
    network = made(text + "z = ConvolutionTranspose (W, x, (3:3:1), mapDims=2, stride=2, autoPadding=false)")
    x = RANDOM.normal(size=(1, 2, 4, 3))
    kernels = parameter(network, "W").reshape(2, 1, 3, 3)
    np.testing.assert_allclose(values(network, x), [spread(x[0], kernels, stride=2)], rtol=1e-12)


def windows_of(x, size, stride, ceiling, padding=0):
    """The windows of a picture (H, W) with the cells that are there, by their row and column."""
    found = {}
    reach = x.shape[0] + 2 * padding - size
    count = (-(-reach // stride) if ceiling else reach // stride) + 1
    for r, c in itertools.product(range(count), range(count)):
        top, left = r * stride - padding, c * stride - padding
        found[r, c] = x[max(top, 0) : top + size, max(left, 0) : left + size]
    return found, count


@pytest.mark.parametrize("ceiling", [True, False])
@pytest.mark.parametrize("layer", ["MaxPoolingLayer", "AveragePoolingLayer"])
def test_a_last_window_that_is_partly_there(made, layer, ceiling):
    options = f"(3:3), stride=(2:2), ceilOutDim={str(ceiling).lower()}"
    network = made(f"x = Input {{(6:6:1)}}\nz = {layer} {{{options}}} (x)")
    x = RANDOM.normal(size=(1, 1, 6, 6))
    cells, count = windows_of(x[0, 0], 3, 2, ceiling)
    reduce = np.max if layer == "MaxPoolingLayer" else np.mean
    expected = np.array([[reduce(cells[r, c]) for c in range(count)] for r in range(count)])
    assert count == (3 if ceiling else 2)
    np.testing.assert_allclose(values(network, x)[0, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("include", [True, False])
def test_means_with_the_padding(made, include):
    options = f"(3:3), pad=true, includePad={str(include).lower()}"
    network = made(f"x = Input {{(4:4:1)}}\nz = AveragePoolingLayer {{{options}}} (x)")
    x = RANDOM.normal(size=(1, 1, 4, 4))
    cells, _ = windows_of(x[0, 0], 3, 1, False, padding=1)
    expected = np.array(
        [[cells[r, c].sum() / (9 if include else cells[r, c].size) for c in range(4)] for r in range(4)]
    )
    np.testing.assert_allclose(values(network, x)[0, 0], expected, rtol=1e-12)


FUNCTIONS = {
    "Acos": lambda x: np.pi / 2 - np.arctan2(x, np.sqrt(1 - x * x)),
    "Asin": lambda x: np.arctan2(x, np.sqrt(1 - x * x)),
    "Sinh": lambda x: (np.exp(x) - np.exp(-x)) / 2,
    "Cosh": lambda x: (np.exp(x) + np.exp(-x)) / 2,
    "Asinh": lambda x: np.log(x + np.sqrt(x * x + 1)),
    "Atanh": lambda x: np.log((1 + x) / (1 - x)) / 2,
    "StopGradient": lambda x: x,
    "StraightThrough": lambda x: np.where(x > 0, 1.0, -1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_elements(made, name):
    network = made(f"x = Input {{3}}\nz = {name} (x)")
    x = np.array([[-0.9, -0.25, 0.0], [0.125, 0.5, 0.99]])
    np.testing.assert_allclose(values(network, x), FUNCTIONS[name](x), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "gradient"), [("StopGradient", [0, 0, 0, 0]), ("StraightThrough", [0, 1, 1, 0]), ("Tanh", None)]
)
def test_gradients(made, name, gradient):
    network = made(f"x = Input {{4}}\nw = ParameterTensor {{4}}\nz = SumElements ({name} (w .* x))")
    weights = np.array([-1.5, -0.5, 0.5, 1.5])
    network.nodes["w"].value = weights
    _, found = gradients(network, "z", Batch({"x": np.ones((1, 1, 4))}))
    expected = 1 - np.tanh(weights) ** 2 if gradient is None else gradient
    np.testing.assert_allclose(found["w"], expected, rtol=1e-12)


def test_scale_and_bias_without_regularisation(made):
    from cntkpy.cntk_config.parameters import parse
    from cntkpy.trainers.parameters.sgd import SGDParameters
    from cntkpy.trainers.rules.rules import regularisation

    text = "x = Input {3}\na = BatchNormalizationLayer {disableRegularization=true} (x)\n"
    network = made(text + "z = BatchNormalizationLayer {} (LinearLayer {2} (a))")
    found = regularisation(SGDParameters(parse("L2RegWeight=0.1")), network)
    of_first = {node.name for node in network.nodes["a"].connected if node.is_parameter}
    assert found.unregularised == of_first
    assert len(of_first) == 4


@pytest.mark.parametrize(
    "layer", ["ConvolutionalLayer {2, 3}", "ConvolutionalLayer {2, (3)}", "ConvolutionTransposeLayer {2, 3, 1}"]
)
def test_a_filter_of_one_number(network, layer):
    with pytest.raises(
        ConfigError, match=r"filterShape is an array of the sizes along the axes, such as \(3:3\)"
    ) as caught:
        network(f"x = Input {{(8:8:1)}}\nz = {layer} (x)")
    assert str(caught.value.span).startswith("test.bs:3:")
