"""Operations that look at the run or draw random numbers, and windows whose place is found."""

import jax
import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, compile_network, network_parameters, network_state

IMAGE = {"imageLayout": "CHW"}


def minibatches(network, names, batches, training=False, key=None):
    """Values after each minibatch, with the state handed on."""
    network.validate()
    function = compile_network(network, names, training)
    parameters, state = network_parameters(network), network_state(network)
    for number, batch in enumerate(batches):
        own = None if key is None else jax.random.fold_in(key, number)
        values, state = function(parameters, state, batch, own)
        yield [np.asarray(values[name]) for name in names]


def test_whether_the_network_is_trained(helpers):
    s = helpers.Sketch()
    flag = s("EnvironmentInput", propertyName="isTraining", name="flag")
    p = s.parameter("p", 2)
    s("SumElements", s("ElementTimes", flag, p), name="total")
    assert helpers.run(s.network, ["flag"], Batch({}))["flag"].tolist() == [0]
    assert helpers.run(s.network, ["flag"], Batch({}), training=True)["flag"].tolist() == [1]
    assert helpers.gradients(s.network, "total", Batch({}))[1]["p"].tolist() == [1, 1]
    with pytest.raises(UserError, match="there is no property 'weather'"):
        s("EnvironmentInput", propertyName="weather")


def test_mean_since_the_start_of_the_epoch(helpers):
    s = helpers.Sketch()
    x = s.input("x", 2)
    mean = s("EpochAccumulator", x, name="mean")
    mask, start, end = helpers.grid([3, 1])
    data = np.arange(12.0).reshape(3, 2, 2)
    batch = Batch({"x": data}, mask, start, end)
    (first,), (second,) = minibatches(s.network, ["mean"], [batch, batch._replace(inputs={"x": data + 1})])
    cells = data[mask]
    np.testing.assert_allclose(first, cells.mean(axis=0))
    np.testing.assert_allclose(second, np.concatenate([cells, cells + 1]).mean(axis=0))
    assert mean.shape == (2,)
    assert not mean.has_layout


def test_a_value_is_assigned_after_the_minibatch(helpers):
    s = helpers.Sketch()
    count = s.parameter("count", 2, value=np.array([0.0, 5.0]))
    count.learning_rate_multiplier = 0.0
    s("Assign", count, s("Plus", count, s.parameter("step", 2, value=np.array([1.0, 2.0]))), name="next")
    first, second = minibatches(s.network, ["next"], [Batch({})] * 2)
    assert (first[0].tolist(), second[0].tolist()) == ([1, 7], [2, 9])


def test_a_traced_value_passes_its_gradient(helpers):
    s = helpers.Sketch()
    p = s.parameter("p", 3)
    s("SumElements", s("Sin", s("Trace", p, say="p")), name="total")
    _, found = helpers.gradients(s.network, "total", Batch({}))
    np.testing.assert_allclose(found["p"], np.cos(p.value))


WEIGHTS = np.array([1.0, 2.0, 0.0, 4.0, 1.0])


def sample(helpers, kind="RandomSample", count=3, replace=True):
    s = helpers.Sketch()
    weights = s.parameter("w", 5, value=WEIGHTS)
    return s, s(kind, weights, numSamples=count, sampleWithReplacement=replace, name="sample")


@pytest.mark.parametrize("training", [False, True])
def test_drawing_with_replacement(helpers, training):
    s, node = sample(helpers, count=400)
    key = jax.random.key(5) if training else None
    first, second = (one for (one,) in minibatches(s.network, ["sample"], [Batch({})] * 2, training=training, key=key))
    assert node.shape == (5, 400)
    assert first.shape == (400, 5)
    assert (first.sum(axis=1) == 1).all()
    assert (first != second).any()
    np.testing.assert_allclose(first.mean(axis=0), WEIGHTS / 8, atol=0.1)
    assert not first[:, 2].any()


def test_drawing_without_replacement(helpers):
    s, _ = sample(helpers, replace=False)
    found = [one for (one,) in minibatches(s.network, ["sample"], [Batch({})] * 200)]
    assert all(one.sum(axis=0).max() == 1 and one.sum() == 3 for one in found)
    # the chance that class 3 is not among three of 1, 2, 4, 1, in whatever order
    missing = np.mean([not one[:, 3].any() for one in found])
    assert 0 < missing < 0.2
    with pytest.raises(UserError, match="5 different classes cannot be drawn from 5"):
        sample(helpers, count=5, replace=False)[0].network.validate()


def test_how_often_a_class_is_expected(helpers):
    chances = WEIGHTS / 8
    s, node = sample(helpers, "RandomSampleInclusionFrequency")
    np.testing.assert_allclose(helpers.run(s.network, ["sample"], Batch({}))["sample"], [3 * chances])
    assert node.shape == (5, 1)
    s, _ = sample(helpers, "RandomSampleInclusionFrequency", replace=False)
    (found,) = helpers.run(s.network, ["sample"], Batch({}))["sample"]
    # as often as sampling finds each class, but for the estimate of the number of draws
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(4000):
        seen = []
        number = 0
        while len(set(seen)) < 3:
            seen.append(random.choice(5, p=chances))
            number += 1
        drawn.append(number)
    np.testing.assert_allclose(found, 1 - (1 - chances) ** np.mean(drawn), atol=0.05)
    assert found[2] == 0


def test_samples_have_no_gradient(helpers):
    s, node = sample(helpers, "RandomSampleInclusionFrequency")
    s("SumElements", node, name="total")
    _, found = helpers.gradients(s.network, "total", Batch({}))
    assert not found["w"].any()
    network = s.network
    network.validate()
    assert compile_gradient(network, "total")


# ---- windows


def picture(s, name="x", width=12):
    return s.input(name, width, width, 1)


def convolved(s, x, size, stride=1, pad=False):
    kernel = s.parameter(f"k{len(s.network.nodes)}", 1, size * size, value=np.ones((1, size * size)))
    options = {"kernelShape": (size, size, 1), "mapCount": 1, "stride": (stride, stride, 1)}
    return s("Convolution", kernel, x, autoPadding=(pad, pad, False), **options)


def test_a_window_above_the_same_part_of_the_picture(helpers):
    """Two convolutions without padding lose two elements on each side; the padded ones lose none."""
    s = helpers.Sketch()
    x = picture(s)
    wide = convolved(s, x, 3, pad=True)
    narrow = convolved(s, s("Sigmoid", convolved(s, x, 3)), 3)
    cropped = s("Crop", wide, narrow, name="cropped")
    data = np.random.default_rng(0).normal(size=(1, 1, 1, 12, 12))
    values = helpers.run(s.network, ["cropped", wide.name], Batch({"x": data}))
    assert cropped.shape == (8, 8, 1)
    assert (values["cropped"] == values[wide.name][..., 2:10, 2:10]).all()


def test_strides_change_the_resolution(helpers):
    s = helpers.Sketch()
    x = picture(s)
    coarse = s("MaxPooling", x, windowWidth=2, windowHeight=2, strideWidth=2, strideHeight=2, **IMAGE)
    with pytest.raises(UserError, match="do not have the same resolution"):
        s("Crop", x, coarse)
        s.network.validate()
    s = helpers.Sketch()
    x = picture(s)
    first = s("MaxPooling", x, windowWidth=2, windowHeight=2, strideWidth=2, strideHeight=2, **IMAGE)
    second = s(
        "MaxPooling",
        convolved(s, x, 3, pad=True),
        windowWidth=2,
        windowHeight=2,
        strideWidth=2,
        strideHeight=2,
        **IMAGE,
    )
    third = convolved(s, second, 3)
    s("Crop", first, third, name="cropped")
    data = np.random.default_rng(0).normal(size=(1, 1, 1, 12, 12))
    values = helpers.run(s.network, ["cropped", first.name], Batch({"x": data}))
    assert (values["cropped"] == values[first.name][..., 1:5, 1:5]).all()


def test_pictures_without_a_common_one(helpers):
    s = helpers.Sketch()
    x, y = picture(s), picture(s, "y", 6)
    a, b = convolved(s, x, 3), convolved(s, y, 3)
    with pytest.raises(UserError, match="do not depend on a common image"):
        s("Crop", a, b)
        s.network.validate()
    s.network.remove(list(s.network.nodes)[-1])
    cropped = s("Crop", a, b, x, y)
    s.network.validate()
    assert cropped.shape == (4, 4, 1)
    assert helpers.run(
        s.network, [cropped.name], Batch({"x": np.ones((1, 1, 1, 12, 12)), "y": np.ones((1, 1, 1, 6, 6))})
    )


def test_a_window_between_two_elements(helpers):
    s = helpers.Sketch()
    x = picture(s)
    cropped = s("Crop", x, convolved(s, x, 4))  # their middles are at 1.5
    s.network.validate()
    data = np.random.default_rng(0).normal(size=(1, 1, 1, 12, 12))
    values = helpers.run(s.network, [cropped.name], Batch({"x": data}))
    assert (values[cropped.name] == data[..., 1:10, 1:10]).all()
