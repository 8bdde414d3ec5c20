"""Small parameters in one vector: which, and that values and gradients stay the same."""

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile import flat
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, network_parameters, network_state
from cntkpy.networks.compile.flat import flat_parameters
from tests.networks.compile.test_loop_products import lstm


def network_of(sketch, peepholes):
    h = lstm(sketch, peepholes)
    sketch("SumElements", sketch("ElementTimes", h, sketch.input("y", 2)), name="cost")
    return sketch.network.validate()


@pytest.mark.thorough
def test_gradients_are_the_same_in_a_vector(sketch, helpers) -> None:
    network = network_of(sketch, True)
    weights, state = network_parameters(network), network_state(network)
    (vector,) = flat_parameters(network, ["cost"], dict.fromkeys(weights, 0))
    assert sorted(vector.names) == sorted(weights)
    mask, start, end = helpers.grid([[3, 2], 5, 4])
    random = np.random.default_rng(2)
    data = {name: random.normal(size=(*mask.shape, 2)) for name in "xy"}
    batch = Batch(data, mask, start, end)
    expected, totals, _ = jax.jit(compile_gradient(network, "cost"))(weights, state, batch)
    together = jax.jit(compile_gradient(network, "cost", (), [vector]))
    found, sums, _ = together({vector.key: vector.join(weights)}, state, batch)
    assert set(found) == {vector.key} and float(sums["cost"]) == pytest.approx(float(totals["cost"]), rel=1e-14)
    parts = vector.split(np.asarray(found[vector.key]))
    for name, gradient in expected.items():
        np.testing.assert_allclose(parts[name], gradient, rtol=1e-12, err_msg=name)


def test_gates_lie_side_by_side(sketch) -> None:
    network = network_of(sketch, False)
    (vector,) = flat_parameters(network, ["cost"], dict.fromkeys(network_parameters(network), 0))
    several = {matrix.names for matrix in vector.matrices if len(matrix.names) > 1}
    assert {tuple(sorted(one)) for one in several} == {("rf", "rg", "ri", "ro")}
    weights = {
        name: np.arange(w.size, dtype=np.float64).reshape(w.shape) for name, w in network_parameters(network).items()
    }
    parts = vector.split(vector.join(weights))
    assert all((parts[name] == one).all() and parts[name].shape == one.shape for name, one in weights.items())


def test_parameters_stay_alone_that_have_nothing_in_common_or_are_large(sketch, monkeypatch) -> None:
    network = network_of(sketch, False)
    names = sorted(network_parameters(network))
    kinds = {name: None if name == "wp" else int(name == "ri") for name in names}
    vectors = flat_parameters(network, ["cost"], kinds)
    assert [sorted(vector.names) for vector in vectors] == [[name for name in names if name not in ("wp", "ri")]]
    assert not any("rf" in one.names and len(one.names) > 1 for one in vectors[0].matrices), "one gate is elsewhere"
    monkeypatch.setattr(flat, "MOST_ELEMENTS", 7)
    found = flat_parameters(network, ["cost"], dict.fromkeys(names, 0))
    assert {("rf", "rg", "ri", "ro"), tuple(n for n in names if n[0] != "r")} == {tuple(sorted(v.names)) for v in found}
    monkeypatch.setattr(flat, "MOST_ELEMENTS", 6)
    found = flat_parameters(network, ["cost"], dict.fromkeys(names, 0))
    assert {name for vector in found for name in vector.names} == {name for name in names if name[0] == "b"}


def test_networks_without_loops_have_no_vector(sketch) -> None:
    x = sketch.input("x", 2)
    h = sketch("Plus", sketch("Times", sketch.parameter("w", 3, 2), x), sketch.parameter("b", 3, 1))
    sketch("SumElements", h, name="cost")
    assert flat_parameters(sketch.network.validate(), ["cost"], {"w": 0, "b": 0}) == []


def test_loops_whose_gates_are_one_matrix_have_a_vector_of_matrices(sketch) -> None:
    """Biases stay arrays of their own: their gradients are sums, which XLA rounds otherwise outside of the update."""
    x = sketch.input("x", 2)
    past = sketch("PastValue", x, name="past", dims=(3,), timeStep=1)
    total = sketch("Plus", sketch("Times", sketch.parameter("w", 3, 2), x), sketch.parameter("b", 3, 1))
    h = sketch("Tanh", sketch("Plus", total, sketch("Times", sketch.parameter("r", 3, 3), past)), name="h")
    past.inputs = [h]
    sketch("SumElements", sketch("Times", sketch.parameter("o", 1, 3), h), name="cost")
    names = ("w", "b", "r", "o")
    (vector,) = flat_parameters(sketch.network.validate(), ["cost"], dict.fromkeys(names, 0))
    assert sorted(vector.names) == ["r", "w"]
