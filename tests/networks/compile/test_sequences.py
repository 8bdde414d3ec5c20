"""Delay nodes, loops, gaps, carried state: independent loops in numpy, and properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, compile_network, network_parameters, network_state


def _rnn(s, direction="PastValue", steps=1, default=0.1):
    """h(t) = tanh(U x(t) + W h(t - steps) + b), ce on V h."""
    x, y = s.input("x", 3), s.input("y", 2)
    u, w, b, v = s.parameter("U", 4, 3), s.parameter("W", 4, 4), s.parameter("b", 4), s.parameter("V", 2, 4)
    past = s(direction, b, name="past", rows=4, timeStep=steps, defaultHiddenActivity=default)
    total = s("Plus", s("Plus", s("Times", u, x), s("Times", w, past)), b)
    h = s("Tanh", total, name="h")
    past.inputs = [h]
    s("CrossEntropyWithSoftmax", y, s("Times", v, h, name="z"), name="ce")
    return s.network


def _sequences(random, lengths):
    return [(random.normal(size=(n, 3)), np.eye(2)[random.integers(0, 2, n)]) for n in lengths]


def _place(sequences, slots, T=None):
    """Put sequences (by index) into slots one after another; garbage-free gaps."""
    T = T or max(sum(len(sequences[i][0]) for i in slot) for slot in slots)
    S = len(slots)
    x, y, mask = np.zeros((T, S, 3)), np.zeros((T, S, 2)), np.zeros((T, S), bool)
    start, end = np.full((T, S), -1, np.int32), np.full((T, S), -1, np.int32)
    for s, slot in enumerate(slots):
        t = 0
        for i in slot:
            n = len(sequences[i][0])
            x[t : t + n, s], y[t : t + n, s] = sequences[i]
            mask[t : t + n, s] = True
            start[t : t + n, s], end[t : t + n, s] = np.arange(n), np.arange(n)[::-1]
            t += n
    return Batch({"x": x, "y": y}, mask, start, end)


@pytest.mark.parametrize(
    ("direction", "steps"), [("PastValue", 1), ("PastValue", 2), ("FutureValue", 1), ("FutureValue", 3)]
)
def test_loop_against_numpy(helpers, direction, steps):
    network = _rnn(helpers.Sketch(), direction, steps, default=0.25)
    sequences = _sequences(np.random.default_rng(2), [5, 2, 3, 4])
    batch = _place(sequences, [[0], [1, 2], [3]], T=7)
    h = helpers.run(network, ["h"], batch)["h"]
    u, w, b = (network[name].matrix() for name in "UWb")
    for s, slot in enumerate([[0], [1, 2], [3]]):
        begin = 0
        for i in slot:
            x = sequences[i][0]
            states = {}
            order = range(len(x)) if direction == "PastValue" else reversed(range(len(x)))
            for t in order:
                past = states.get(t - steps if direction == "PastValue" else t + steps, np.full(4, 0.25))
                states[t] = np.tanh(u @ x[t] + w @ past + b)
            for t, state in states.items():
                np.testing.assert_allclose(h[begin + t, s], state, rtol=1e-12)
            begin += len(x)


def test_forward_reference_example(helpers):
    s = helpers.Sketch()
    x = s.input("x", 1)
    p = s("Delay", x, name="p", rows=1)
    y = s("Plus", x, p, name="y")
    p.inputs = [y]
    mask, start, end = helpers.grid([[3], [2, 1]])
    data = np.array([[1, 1], [2, 2], [3, 5]], float)[..., None]
    value = helpers.run(s.network, ["y"], Batch({"x": data}, mask, start, end))["y"][..., 0]
    np.testing.assert_allclose(value, [[1.1, 1.1], [3.1, 3.1], [6.1, 5.1]], rtol=1e-8)
    assert s.network["p"].options["defaultHiddenActivity"] == float(np.float32(0.1))


def test_shift_outside_of_loops(helpers):
    s = helpers.Sketch()
    x = s.input("x", 1)
    names = [s(kind, x, rows=1, timeStep=2, defaultHiddenActivity=-1.0).name for kind in ("PastValue", "FutureValue")]
    mask, start, end = helpers.grid([[4], [1, 3]])
    data = np.arange(1.0, 9).reshape(4, 2, 1)
    past, future = helpers.run(s.network, names, Batch({"x": data}, mask, start, end)).values()
    assert past[..., 0].tolist() == [[-1, -1], [-1, -1], [1, -1], [3, 4]]
    assert future[..., 0].tolist() == [[5, -1], [7, 8], [-1, -1], [-1, -1]]


def test_frames_have_no_past(helpers):
    s = helpers.Sketch()
    x = s.input("x", 1)
    past = s("PastValue", x, rows=1, defaultHiddenActivity=0.5)
    value = helpers.run(s.network, [past.name], Batch({"x": np.ones((1, 4, 1))}))[past.name]
    assert (value == 0.5).all()


@pytest.mark.optimised
@pytest.mark.parametrize("direction", ["PastValue", "FutureValue"])
def test_gradients_of_loops(helpers, direction):
    network = _rnn(helpers.Sketch(), direction)
    batch = _place(_sequences(np.random.default_rng(3), [4, 1, 2]), [[0], [1, 2]], T=5)
    _, found = helpers.gradients(network, "ce", batch)
    for name, (chosen, slopes) in helpers.central_differences(network, "ce", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-8, err_msg=name)


def test_bidirectional_and_several_delays(helpers):
    s = helpers.Sketch()
    x, y = s.input("x", 3), s.input("y", 2)
    forward, backward = s.parameter("F", 3, 3), s.parameter("B", 3, 3)
    p1, p2 = (s("PastValue", x, rows=3, timeStep=k) for k in (1, 2))
    h = s("Tanh", s("Plus", s("Plus", s("Times", forward, p1), p2), x))
    p1.inputs = p2.inputs = [h]
    f = s("FutureValue", x, rows=3)
    g = s("Sigmoid", s("Plus", s("Times", backward, f), h))
    f.inputs = [g]
    s("SquareError", y, s("Times", s.parameter("V", 2, 3), s("Plus", h, g)), name="se")
    batch = _place(_sequences(np.random.default_rng(5), [5, 3, 1]), [[0], [1, 2]])
    _, found = helpers.gradients(s.network, "se", batch)
    for name, (chosen, slopes) in helpers.central_differences(s.network, "se", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-7, err_msg=name)


def test_truncation_carries_values_but_no_gradient(helpers):
    network = _rnn(helpers.Sketch())
    sequences = _sequences(np.random.default_rng(4), [6, 6])
    whole = _place(sequences, [[0], [1]])
    expected = helpers.run(network, ["h"], whole)["h"]
    function = jax.jit(compile_network(network.validate(), ["h"]))
    gradient = jax.jit(compile_gradient(network.validate(), "ce"))
    parameters, state = network_parameters(network), network_state(network, truncated_slots=2)
    for begin in (0, 2, 4):
        part = slice(begin, begin + 2)
        inputs = {name: array[part] for name, array in whole.inputs.items()}
        batch = Batch(inputs, whole.mask[part], whole.to_start[part], whole.to_end[part])
        grown, _, _ = gradient(parameters, state, batch)
        values, state = function(parameters, state, batch)
        np.testing.assert_allclose(values["h"], expected[part], rtol=1e-12)
        assert np.isfinite(grown["W"]).all()
    assert state["h/past"].shape == (1, 2, 4)


@pytest.mark.parametrize("steps", [1, 3])
def test_padding_at_the_end_is_not_carried_on(helpers, steps):
    """Pieces of 2 steps, padded to 5: the same activations as in one piece, in a loop and outside of it."""
    network = _rnn(helpers.Sketch(), steps=steps)
    shifted = nodes.create(network, "PastValue", "shifted", [network["x"]], {"rows": 3, "timeStep": 2})
    whole = _place(_sequences(np.random.default_rng(4), [6, 5]), [[0], [1]])
    expected = helpers.run(network, ["h", shifted.name], whole)
    function = jax.jit(compile_network(network.validate(), ["h", shifted.name]))
    parameters, state = network_parameters(network), network_state(network, truncated_slots=2)
    for begin in (0, 2, 4):
        part = slice(begin, begin + 2)
        inputs = {name: np.pad(array[part], [(0, 3), (0, 0), (0, 0)]) for name, array in whole.inputs.items()}
        layout = [
            np.pad(array[part], [(0, 3), (0, 0)], constant_values=fill)
            for array, fill in ((whole.mask, False), (whole.to_start, -1), (whole.to_end, -1))
        ]
        values, state = function(parameters, state, Batch(inputs, *layout))
        real = whole.mask[part]
        for name, value in values.items():
            np.testing.assert_allclose(np.asarray(value)[:2][real], expected[name][part][real], rtol=1e-12)


@pytest.fixture(scope="module")
def totals_and_gradients():
    """Of a recurrent network with functions that overflow or divide, so that garbage in gaps would show."""
    from tests.networks.conftest import Sketch

    s = Sketch()
    network = _rnn(s)
    h, y = network["h"], network["y"]
    wild = s("Log", s("Sqrt", s("Exp", s("Times", s.parameter("K", 4, 4), h))))
    wild = s("Plus", wild, s("Reciprocal", s("Exp", h)))
    z = s("Plus", network["z"], s("Times", s.parameter("Q", 2, 4), wild), name="z2")
    network["ce"].inputs = [y, z]
    s("ClassificationError", y, z, name="err")
    function = jax.jit(compile_gradient(network.validate(), "ce", ["err"]))

    def evaluated(batch):
        grads, totals, _ = function(network_parameters(network), network_state(network), batch)
        return {k: float(v) for k, v in totals.items()}, {k: np.asarray(v) for k, v in grads.items()}

    return evaluated


@pytest.mark.optimised
@given(st.data())
@settings(max_examples=8)
def test_layout_changes_nothing(totals_and_gradients, data):
    """Gaps, order of sequences, their places in slots: neither sums nor gradients change.

    All minibatches have 3 slots of 16 steps, so that one compilation serves them.
    """
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    sequences = _sequences(np.random.default_rng(len(lengths)), lengths)
    order = data.draw(st.permutations(range(len(lengths))))
    slots = [[] for _ in range(3)]
    for index in order:
        slots[data.draw(st.integers(0, 2))].append(index)
    expected, expected_gradients = {"ce": 0.0, "err": 0.0}, {}
    for index in range(len(lengths)):
        totals, grads = totals_and_gradients(_place(sequences, [[index], [], []], T=16))
        expected = {k: expected[k] + v for k, v in totals.items()}
        expected_gradients = {k: expected_gradients.get(k, 0) + v for k, v in grads.items()}
    totals, grads = totals_and_gradients(_place(sequences, slots, T=16))
    assert totals == pytest.approx(expected, rel=1e-9)
    for name, gradient in grads.items():
        np.testing.assert_allclose(gradient, expected_gradients[name], rtol=1e-8, atol=1e-10, err_msg=name)


def test_loops_that_cannot_be(helpers):
    s = helpers.Sketch()
    x = s.input("x", 2)
    a = s("Plus", x, x, name="a")
    b = s("Tanh", a, name="b")
    a.inputs = [x, b]
    with pytest.raises(UserError, match="no PastValue or FutureValue"):
        s.network.validate()
    p = s("PastValue", b, rows=2, name="p")
    f = s("FutureValue", b, rows=2, name="f")
    a.inputs = [p, f]
    with pytest.raises(UserError, match="both PastValue and FutureValue"):
        s.network.validate()
    a.inputs = [p, s("SumElements", p, name="sum")]
    with pytest.raises(UserError, match="reduces over time"):
        s.network.validate()
