"""Values whose channels lie last are those that they would be with channels first."""

import numpy as np
import pytest

from cntkpy.networks.arrays.images import ChannelsLast, OneChannel
from cntkpy.networks.compile import apply, evaluate

LAST = {"c", "b", "r", "p", "n", "d", "e", "q", "s", "o"}
"""The nodes of `_network` that pass their value on with channels last."""


def _network(helpers):
    """Both forms of convolution and what may be between them, with gradients to all of it; images of 2 channels."""
    s = helpers.Sketch()
    x, y = s.input("x", 6, 5, 2), s.input("y", 7)
    two = {"zeroPadding": True, "imageLayout": "CHW", "kernelWidth": 3, "kernelHeight": 3, "maps": 3}
    c = s("Convolution", s.parameter("flat", 3, 18), x, strideWidth=1, strideHeight=1, name="c", **two)
    b = s("Plus", c, s.parameter("shift", 1, 1, 3), name="b")
    r = s("RectifiedLinear", b, name="r")
    p = s("MaxPooling", r, windowWidth=2, windowHeight=2, strideWidth=2, strideHeight=1, imageLayout="CHW", name="p")
    statistics = [s.parameter(name, 3, 1) for name in ("scale", "bias")]
    statistics += [s.parameter(name, 3, 1, value=np.ones((3, 1)), needGradient=False) for name in ("mean", "variance")]
    n = s("BatchNormalization", p, *statistics, spatial=True, name="n")
    kernel = {"kernelShape": (2, 2, 3), "mapCount": 4, "stride": (1, 1, 3), "autoPadding": (True, True, False)}
    d = s("Convolution", s.parameter("cube", 2, 2, 3, 4), n, name="d", **kernel)
    exponential = s("Exp", s("ElementTimes", d, s.constant(0.1)), name="e")  # has a value of its own for gaps
    q = s("Pooling", exponential, kind="average", kernelShape=(3, 2), stride=(1, 1), name="q")
    s1 = s("Minus", q, s("ElementTimes", q, s.parameter("f", 3, 4, 4), name="o"), name="s")
    whole = s("Pooling", s1, kind="max", kernelShape=(1, 1, 2), stride=(1, 1, 2), name="whole")  # over channels, too
    z = s("Times", s.parameter("dense", 7, 3, 4, 2), s("Tanh", whole, name="t"), outputRank=1, name="z")
    s("SquareError", y, z, name="se")
    return s


def _batch(helpers, s):
    mask, start, end = helpers.grid((2, 1))
    random = np.random.default_rng(3)
    data = {name: random.normal(size=(*mask.shape, *reversed(s.network[name].shape))) for name in "xy"}
    return helpers.Batch(data, mask, start, end)


@pytest.mark.thorough
def test_channels_last_and_first_agree(helpers, monkeypatch: pytest.MonkeyPatch) -> None:
    s = _network(helpers)
    batch = _batch(helpers, s)
    names = [name for name, node in s.network.nodes.items() if node.inputs]
    seen: set[str] = set()

    def spied(node, *more):
        value = apply.apply_to_images(node, *more)
        seen.update([node.name] if apply.is_image(value) else [])
        return value

    monkeypatch.setattr(evaluate, "apply_to_images", spied)
    found = helpers.run(s.network, names, batch, training=True)
    total, gradients = helpers.gradients(s.network, "se", batch)
    assert seen > LAST and "z" not in seen
    monkeypatch.setattr(evaluate, "apply_to_images", apply.apply)
    expected = helpers.run(s.network, names, batch, training=True)
    expected_total, expected_gradients = helpers.gradients(s.network, "se", batch)
    np.testing.assert_allclose(total, expected_total, rtol=1e-12)
    for name in names:
        assert name == "se" or found[name].shape[2:] == tuple(reversed(s.network[name].shape))
        real = ... if name == "se" else batch.mask
        np.testing.assert_allclose(found[name][real], expected[name][real], rtol=1e-11, atol=1e-12, err_msg=name)
    assert gradients.keys() == expected_gradients.keys() >= {"flat", "shift", "cube", "f", "dense", "scale"}
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected_gradients[name], rtol=1e-9, atol=1e-11, err_msg=name)


def _normalised(helpers):
    """Local response normalisation as BrainScript writes it: a kernel slides along the channels."""
    s = helpers.Sketch()
    x, y = s.input("x", 6, 5, 2), s.input("y", 6, 5, 4)
    same = {"mapCount": 4, "stride": (1, 1, 2), "autoPadding": (True, True, False)}
    c = s("Convolution", s.parameter("cube", 3, 3, 2, 4), x, kernelShape=(3, 3, 2), name="c", **same)
    split = s("NewReshape", s("ElementTimes", c, c), dims=(4, 1), beginAxis=3, endAxis=4, name="split")
    kernel = s.parameter("band", 1, 1, 3, 1)
    found = s("Convolution", kernel, split, kernelShape=(1, 1, 3), mapCount=1, name="window")
    join = s("NewReshape", found, dims=(4,), beginAxis=3, endAxis=5, name="join")
    slid = s("Convolution", s.parameter("along", 1, 3, 1, 1), split, kernelShape=(1, 3, 1), mapCount=1, name="other")
    more = s("NewReshape", s("Tanh", slid), dims=(4,), beginAxis=3, endAxis=5)
    s("SquareError", y, s("Plus", s("ElementTimes", c, s("Exp", join)), more), name="se")
    return s


def test_a_kernel_along_the_channels_leaves_them_last(helpers, monkeypatch: pytest.MonkeyPatch) -> None:
    s = _normalised(helpers)
    batch, names, kinds = _batch(helpers, s), ["window", "join", "other", "se"], dict[str, type]()

    def spied(node, *more):
        value = apply.apply_to_images(node, *more)
        kinds[node.name] = type(value)
        return value

    monkeypatch.setattr(evaluate, "apply_to_images", spied)
    found = helpers.run(s.network, names, batch, training=True)
    total, gradients = helpers.gradients(s.network, "se", batch)
    assert kinds["split"] is kinds["window"] is OneChannel and kinds["join"] is ChannelsLast
    assert kinds["other"] is not OneChannel  # it slides along another axis
    monkeypatch.setattr(evaluate, "apply_to_images", apply.apply)
    expected = helpers.run(s.network, names, batch, training=True)
    expected_total, expected_gradients = helpers.gradients(s.network, "se", batch)
    np.testing.assert_allclose(total, expected_total, rtol=1e-12)
    for name in names[:-1]:
        assert found[name].shape == expected[name].shape
        np.testing.assert_allclose(found[name][batch.mask], expected[name][batch.mask], rtol=1e-11, err_msg=name)
    assert gradients.keys() == expected_gradients.keys() == {"cube", "band", "along"}
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected_gradients[name], rtol=1e-9, atol=1e-11, err_msg=name)
