"""Batch normalisation and nodes that use pre-computed statistics."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import (
    Settings,
    compile_gradient,
    compile_network,
    network_parameters,
    network_state,
    store,
)

EPSILON = 1e-5


def _network(helpers, spatial, **options):
    s = helpers.Sketch()
    dims = (3, 2, 4) if spatial else (4,)
    count = 4
    x, y = s.input("x", *dims), s.input("y", *dims)
    z = s("Plus", x, s.parameter("b", *dims))
    scale, bias = s.parameter("scale", count, 1), s.parameter("bias", count, 1)
    mean = s.parameter("mean", count, 1, learningRateMultiplier=0.0, value=np.zeros((count, 1)))
    variance = s.parameter("variance", 0, 1, learningRateMultiplier=0.0)
    bn = s("BatchNormalization", z, scale, bias, mean, variance, spatial=spatial, name="bn", **options)
    s("SquareError", y, bn, name="se")
    return s


def _batch(helpers, s, lengths=(4, 2, 3), seed=0):
    random = np.random.default_rng(seed)
    mask, start, end = helpers.grid(lengths)
    shape = (*mask.shape, *reversed(s.network["x"].shape))
    data = {
        name: np.where(mask.reshape(*mask.shape, *(1,) * (len(shape) - 2)), random.normal(size=shape), 7.0)
        for name in "xy"
    }
    return helpers.Batch(data, mask, start, end)


def _cells(s, batch, spatial):
    """Real values as (count, channels)."""
    z = batch.inputs["x"] + s.network["b"].value
    z = z[batch.mask]
    return z.swapaxes(0, 1).reshape(4, -1).T if spatial else z.reshape(-1, 4)


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("blend", [0.0, 5.0])
@pytest.mark.sampled
def test_training_statistics(helpers, spatial, blend):
    s = _network(helpers, spatial, normalizationTimeConstant=100.0, blendTimeConstant=blend)
    function = jax.jit(compile_gradient(s.network.validate(), "se", ["bn"]))
    parameters, state = network_parameters(s.network), network_state(s.network)
    run_mean, run_variance, seen = np.zeros(4), np.zeros(4), 0
    assert "mean" in state and "mean" not in parameters and s.network["variance"].shape == (4, 1)
    for seed in range(3):
        batch = _batch(helpers, s, seed=seed)
        cells = _cells(s, batch, spatial)
        _, values, state = function(parameters, state, batch)
        N, n = len(cells), batch.mask.sum()
        mu, variance = cells.mean(0), cells.var(0)
        a = 1.0 if seen == 0 else 1 - np.exp(-n / 100)
        b = 0.0 if seen == 0 or blend == 0 else blend / (blend + n)
        centre = b * run_mean + (1 - b) * mu
        inverse = (1 - b) / np.sqrt(variance + EPSILON) + (b / np.sqrt(run_variance + EPSILON) if b else 0)
        out = (cells - centre) * inverse * parameters["scale"].reshape(-1) + parameters["bias"].reshape(-1)
        np.testing.assert_allclose(values["bn"], out.sum(), rtol=1e-9)
        run_mean = a * mu + (1 - a) * run_mean
        run_variance = a * variance * N / (N - 1) + (1 - a) * run_variance
        seen += n
        np.testing.assert_allclose(np.reshape(state["mean"], -1), run_mean, rtol=1e-9)
        np.testing.assert_allclose(np.reshape(state["variance"], -1), run_variance, rtol=1e-9)
        assert state["bn/samples"] == seen
    store(s.network, {**state, **parameters})
    assert s.network["bn"].samples == seen
    inferred = helpers.run(s.network, ["bn"], batch)["bn"][batch.mask]
    expected = (cells - run_mean) / np.sqrt(run_variance + EPSILON) * parameters["scale"].reshape(-1)
    expected += parameters["bias"].reshape(-1)
    got = inferred.swapaxes(0, 1).reshape(4, -1).T if spatial else inferred.reshape(-1, 4)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spatial", [False, True])
def test_gradients(helpers, spatial):
    s = _network(helpers, spatial, normalizationTimeConstant=100.0)
    batch = _batch(helpers, s)
    _, found = helpers.gradients(s.network, "se", batch)
    assert sorted(found) == ["b", "bias", "scale"]
    for name, (chosen, slopes) in helpers.central_differences(s.network, "se", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("constant", "share"), [(0.0, 1.0), (np.inf, 0.0), (-1.0, 0.5)])
def test_time_constants_can_be_overridden(helpers, constant, share):
    s = _network(helpers, False, normalizationTimeConstant=3.0)
    function = jax.jit(compile_gradient(s.network.validate(), "se"))
    parameters, state = network_parameters(s.network), network_state(s.network)
    batch, other = _batch(helpers, s), _batch(helpers, s, seed=1)
    _, _, state = function(parameters, state, batch)
    _, _, state = function(parameters, state, other, None, Settings(bn_time_constant=constant))
    expected = share * _cells(s, other, False).mean(0) + (1 - share) * _cells(s, batch, False).mean(0)
    np.testing.assert_allclose(np.reshape(state["mean"], -1), expected, rtol=1e-9)


def test_precomputed_statistics_are_constants(helpers):
    s = helpers.Sketch()
    x = s.input("x", 3)
    mean, scale = s("Mean", x, name="m"), s("InvStdDev", x, name="v")
    n = s("PerDimMVNorm", x, mean, scale, name="n")
    s("PerDimMVDeNorm", n, mean, scale, name="d")
    assert s.network.precompute_nodes() == [mean, scale]
    mean.value, scale.value, mean.computed = np.array([1.0, 2, 3]), np.array([2.0, 0.5, 1]), True
    assert s.network.precompute_nodes() == [scale]
    data = np.arange(6.0).reshape(1, 2, 3)
    values = helpers.run(s.network, ["n", "d"], helpers.Batch({"x": data}))
    np.testing.assert_allclose(values["n"], (data - mean.value) * scale.value)
    np.testing.assert_allclose(values["d"], data)


def test_statistics_that_are_missing_say_what_computes_them(helpers):
    s = helpers.Sketch()
    x = s.input("x", 2)
    s("Minus", x, s("Mean", x, name="mean"), name="z")
    batch = helpers.Batch({"x": np.zeros((1, 1, 2))})
    with pytest.raises(UserError, match="Mean 'mean' was not computed yet") as caught:
        helpers.run(s.network, ["z"], batch)
    assert "a training computes it" in (caught.value.hint or "")


def test_dropout_scales_what_it_keeps(helpers):
    s = helpers.Sketch()
    b = s.parameter("b", 1000, value=np.zeros(1000))
    s("SumElements", s("Dropout", s("Plus", s.input("x", 1000), b), name="d"), name="total")
    function = jax.jit(compile_network(s.network.validate(), ["d"], training=True))
    batch, zeros = helpers.Batch({"x": np.ones((1, 4, 1000))}), network_parameters(s.network)
    values, _ = function(zeros, {}, batch, jax.random.key(1), Settings(dropout_rate=0.25))
    d = np.asarray(values["d"])
    gradient = jax.jit(compile_gradient(s.network.validate(), "total"))
    found, *_ = gradient(zeros, {}, batch, jax.random.key(1), Settings(dropout_rate=0.25))
    np.testing.assert_allclose(found["b"], d.sum(axis=(0, 1)))  # by the same mask
    assert set(np.unique(d)) == {0.0, 1 / 0.75} and abs((d == 0).mean() - 0.25) < 0.03
    again, _ = function(zeros, {}, batch, jax.random.key(2), Settings(dropout_rate=0.25))
    assert (np.asarray(again["d"]) != d).any()
    kept, _ = function(zeros, {}, batch, jax.random.key(1), Settings())
    assert (np.asarray(kept["d"]) == 1).all()
