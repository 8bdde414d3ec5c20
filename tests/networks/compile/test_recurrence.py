"""Delay nodes and loops against loops written out in numpy."""

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Batch, compile_network, network_parameters, network_state
from cntkpy.networks.compile.recurrence import CARRIED, carried


def values(network, names, batch, state=None):
    """Values by name, and the new state."""
    network.validate()
    function = jax.jit(compile_network(network, names))
    state = network_state(network) if state is None else state
    found, new = function(network_parameters(network), state, batch)
    return {name: np.asarray(value) for name, value in found.items()}, new


def delayed(x, mask, start, end, steps, default):
    """The definition: the cell `steps` earlier (negative: later) of the same sequence, or the default."""
    result = np.full_like(x, default)
    for t, s in zip(*np.nonzero(mask), strict=True):
        inside = start[t, s] >= steps if steps > 0 else end[t, s] >= -steps
        if inside:
            result[t, s] = x[t - steps, s]
    return result


@pytest.mark.parametrize("kind, sign", [("PastValue", 1), ("FutureValue", -1)])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_delay_outside_of_loops(sketch, helpers, kind, sign, steps):
    mask, start, end = helpers.grid([[4, 2], 5, 1])
    x = np.random.default_rng(1).normal(size=(*mask.shape, 2))
    node = sketch(kind, sketch.input("x", 2), name="d", rows=2, timeStep=steps, defaultHiddenActivity=0.5)
    found, _ = values(sketch.network, [node.name], Batch({"x": x}, mask, start, end))
    expected = delayed(x, mask, start, end, sign * steps, 0.5)
    np.testing.assert_array_equal(found["d"][mask], expected[mask])


def loop(sketch, kind, steps):
    """h = tanh(x + W delay(h)) of 2 elements."""
    x, w = sketch.input("x", 2), sketch.parameter("w", 2, 2)
    past = sketch(kind, w, name="p", rows=2, timeStep=steps, defaultHiddenActivity=0.25)
    h = sketch("Tanh", sketch("Plus", x, sketch("Times", w, past)), name="h")
    past.inputs = [h]
    return w


@pytest.mark.parametrize("kind, sign", [("PastValue", 1), ("FutureValue", -1)])
@pytest.mark.parametrize("steps", [1, 2])
def test_a_loop(sketch, helpers, kind, sign, steps):
    w = loop(sketch, kind, steps)
    mask, start, end = helpers.grid([[3, 2], 5])
    x = np.random.default_rng(2).normal(size=(*mask.shape, 2))
    found, _ = values(sketch.network, ["h"], Batch({"x": x}, mask, start, end))
    h = np.zeros_like(x)
    times = range(len(x)) if sign > 0 else reversed(range(len(x)))
    for t in times:
        for s in range(x.shape[1]):
            inside = (start if sign > 0 else end)[t, s] >= steps
            past = h[t - sign * steps, s] if inside else np.full(2, 0.25)
            h[t, s] = np.tanh(x[t, s] + w.matrix() @ past)
    np.testing.assert_allclose(found["h"][mask], h[mask], rtol=1e-12)


@pytest.mark.parametrize("kind", ["PastValue", "FutureValue"])
def test_a_step_copies_nothing_that_it_adds_to_its_products(sketch, helpers, kind):
    loop(sketch, kind, 1)
    mask, start, end = helpers.grid([[3, 2], 5, 4])
    sketch.network.validate()
    function = jax.jit(compile_network(sketch.network, ["h"]))
    batch = Batch({"x": np.ones((*mask.shape, 2))}, mask, start, end)
    lowered = function.lower(network_parameters(sketch.network), network_state(sketch.network), batch)
    program = lowered.compile().as_text()
    sums = f"f64[{mask.shape[1]},2]{{1,0}}"
    assert f" {sums} get-tuple-element(" in program  # the steps carry them
    assert f" {sums} copy(" not in program


def test_products_of_one_operand_are_joined_and_give_the_same(sketch, helpers):
    """Two products with the same delayed operand are one product per step; the sums do not change by it."""
    x = sketch.input("x", 2)
    a, b = sketch.parameter("a", 2, 2), sketch.parameter("b", 2, 2)
    past = sketch("PastValue", a, rows=2, defaultHiddenActivity=0.0)
    left, right = sketch("Times", a, past, name="left"), sketch("Times", b, past, name="right")
    h = sketch("Tanh", sketch("Plus", x, sketch("Plus", left, right)), name="h")
    past.inputs = [h]
    mask, start, end = helpers.grid([4, 4])
    data = np.random.default_rng(3).normal(size=(4, 2, 2))
    found, _ = values(sketch.network, ["h", "left", "right"], Batch({"x": data}, mask, start, end))
    previous = np.concatenate([np.zeros((1, 2, 2)), found["h"][:-1]])
    np.testing.assert_allclose(found["left"], previous @ a.matrix().T, rtol=1e-12)
    np.testing.assert_allclose(found["right"], previous @ b.matrix().T, rtol=1e-12)
    np.testing.assert_allclose(found["h"], np.tanh(data + found["left"] + found["right"]), rtol=1e-12)


def test_what_truncated_sequences_carry(sketch, helpers):
    """A sequence cut into two minibatches gives what the whole one gives, and the state holds the last steps."""
    loop(sketch, "PastValue", 2)
    network = sketch.network.validate()
    assert carried(network) == {f"h{CARRIED}": (2, 2)}
    mask, start, end = helpers.grid([6, 6])
    x = np.random.default_rng(4).normal(size=(6, 2, 2))
    whole, _ = values(network, ["h"], Batch({"x": x}, mask, start, end))
    state = network_state(network, truncated_slots=2)
    parts = []
    for part in (slice(0, 3), slice(3, 6)):
        found, state = values(network, ["h"], Batch({"x": x[part]}, mask[part], start[part], end[part]), state)
        parts.append(found["h"])
    np.testing.assert_allclose(np.concatenate(parts), whole["h"], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(state[f"h{CARRIED}"]), whole["h"][-2:], rtol=1e-12)
