"""Local response normalisation as networks write it: an average pooling, or a kernel that is not trained."""

import re

import jax
import numpy as np
import pytest

from cntkpy.networks.compile.evaluate import Batch, compile_network, network_parameters, network_state

CHANNELS, SCALE, POWER = 17, 0.5, -0.75  # of more than 16 maps CPUs compute a convolution by XLA


def normalised(s, x, form):
    """x times a power of 1 + SCALE times the mean of the squares of five channels around each."""
    squares = s("ElementTimes", x, x)
    if form == "pooling":
        around = s("Pooling", squares, kind="average", kernelShape=(1, 1, 5), autoPadding=(False, False, True))
    else:
        kernel = s.parameter("mean", 1, 1, 5, 1, value=np.full((1, 5, 1, 1), 0.2))
        kernel.learning_rate_multiplier = 0.0
        image = s("NewReshape", squares, dims=(5, 4, CHANNELS, 1))
        around = s("Convolution", kernel, image, kernelShape=(1, 1, 5), mapCount=1)
        around = s("NewReshape", around, dims=(5, 4, CHANNELS))
    one, scale, power = map(s.constant, (1.0, SCALE, POWER))
    return s("ElementTimes", x, s("ElementPower", s("Plus", one, s("ElementTimes", scale, around)), power))


def by_formula(h, form):
    """The same in NumPy, for channels in axis -3."""
    sums = np.stack([(h[..., max(c - 2, 0) : c + 3, :, :] ** 2).sum(-3) for c in range(CHANNELS)], axis=-3)
    inside = [min(c + 3, CHANNELS) - max(c - 2, 0) for c in range(CHANNELS)]
    count = np.array(inside if form == "pooling" else [5] * CHANNELS).reshape(-1, 1, 1)
    return h * (1 + SCALE * sums / count) ** POWER


def built(helpers, precision, form):
    """A convolution, normalised and summed with weights, and its data."""
    s = helpers.Sketch(precision)
    x = s.input("x", 5, 4, 2)
    shape = {"kernelShape": (3, 3, 2), "mapCount": CHANNELS, "autoPadding": (True, True, False)}
    h = s("Convolution", s.parameter("w", CHANNELS, 18), x, name="h", **shape)
    out = normalised(s, h, form)
    s("SumElements", s("ElementTimes", out, s.input("weight", 5, 4, CHANNELS)), name="total")
    random = np.random.default_rng(3)
    data = {"x": random.normal(size=(1, 3, 2, 4, 5)), "weight": random.normal(size=(1, 3, CHANNELS, 4, 5))}
    return s.network, out.name, Batch({name: array.astype(s.network.dtype) for name, array in data.items()})


@pytest.mark.parametrize("form", ["pooling", "kernel"])
def test_between_convolutions(form, helpers):
    network, out, batch = built(helpers, "double", form)
    values = helpers.run(network, ["h", out], batch)
    np.testing.assert_allclose(values[out], by_formula(values["h"], form), rtol=1e-12)
    _, found = helpers.gradients(network, "total", batch)
    chosen, slopes = helpers.central_differences(network, "total", batch)["w"]
    np.testing.assert_allclose(found["w"].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-8)
    network, out, batch = built(helpers, "float", form)
    single = helpers.run(network, ["h", out], batch)
    np.testing.assert_allclose(single[out], values[out], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(helpers.gradients(network, "total", batch)[1]["w"], found["w"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["pooling", "kernel"])
def test_no_convolution_and_no_transposition_of_its_own(form, helpers):
    """Only the convolution before is one; the windows of the pooling lie along the channels."""
    network, out, batch = built(helpers, "float", form)
    network.validate()
    function = compile_network(network, [out], False)
    arguments = network_parameters(network), network_state(network), batch, None
    program = jax.jit(function).lower(*arguments).as_text()
    assert program.count("stablehlo.convolution") == 1
    windows = re.findall("window_dimensions = array<i64: ([0-9, ]+)>", program)
    assert windows == (["1, 1, 1, 5"] if form == "pooling" else [])
