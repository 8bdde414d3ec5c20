"""Products in loops: joined, with what is added to them, and their gradients."""

import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, compile_network, network_parameters, network_state
from tests.networks.compile.test_recurrence import values

GATES = "ifog"


def lstm(sketch, peepholes):
    """An LSTM of 3 cells on 2 inputs, with a projection to 2; gates are written in several ways."""
    x, wp = sketch.input("x", 2), sketch.parameter("wp", 2, 3)
    hp = sketch("PastValue", wp, name="hp", rows=2, defaultHiddenActivity=0.125)
    cp = sketch("PastValue", wp, name="cp", rows=3, defaultHiddenActivity=0.0)
    gates = {}
    for gate in GATES:
        into = sketch("Times", sketch.parameter("w" + gate, 3, 2), x)
        past = sketch("Times", sketch.parameter("r" + gate, 3, 2), hp, name="p" + gate)
        bias = sketch.parameter("b" + gate, 3, 1) if gate != "o" else sketch.parameter("bo", 1, 1)
        if gate == "f":
            total = sketch("Plus", bias, sketch("Plus", past, into))
        elif gate == "o":
            total = sketch("Plus", sketch("Plus", into, bias), past)
        else:
            total = sketch("Plus", sketch("Plus", into, past), bias)
        if peepholes and gate in "if":
            total = sketch("Plus", total, sketch("DiagTimes", sketch.parameter("d" + gate, 3, 1), cp))
        gates[gate] = sketch("Tanh" if gate == "g" else "Sigmoid", total, name="gate" + gate)
    fresh = sketch("ElementTimes", gates["i"], gates["g"])
    c = sketch("Plus", fresh, sketch("ElementTimes", gates["f"], cp), name="c")
    h = sketch("Times", wp, sketch("ElementTimes", gates["o"], sketch("Tanh", c)), name="h")
    hp.inputs, cp.inputs = [h], [c]
    return h


def by_hand(weight, x, mask, start):
    """The same, sequence by sequence."""

    def logistic(a):
        return 1 / (1 + np.exp(-a))

    hs, h, c = np.zeros((*mask.shape, 2)), np.zeros(2), np.zeros(3)
    for s in range(mask.shape[1]):
        for t in np.flatnonzero(mask[:, s]):
            if start[t, s] == 0:
                h, c = np.full(2, 0.125), np.zeros(3)
            z = {g: weight["w" + g] @ x[t, s] + weight["r" + g] @ h + weight["b" + g].reshape(-1) for g in GATES}
            z = {g: z[g] + (weight["d" + g].reshape(-1) * c if g in "if" else 0) for g in GATES}
            c = logistic(z["i"]) * np.tanh(z["g"]) + logistic(z["f"]) * c
            h = hs[t, s] = weight["wp"] @ (logistic(z["o"]) * np.tanh(c))
    return hs


def test_what_is_added_to_products_is_added_once(sketch, helpers):
    lstm(sketch, True)
    mask, start, end = helpers.grid([[3, 2], 5, 4])
    x = np.random.default_rng(2).normal(size=(*mask.shape, 2))
    found, _ = values(sketch.network, ["h"], Batch({"x": x}, mask, start, end))
    weight = {node.name: node.matrix() for node in sketch.network.parameters()}
    expected = by_hand(weight, x, mask, start)
    np.testing.assert_allclose(found["h"][mask].reshape(-1, 2), expected[mask], rtol=1e-12)


def test_a_product_that_is_smaller_is_added_to_each_column(sketch, helpers):
    """As in a beam search: the state has several columns, what comes from outside has one."""
    x, w, r = sketch.input("x", 2), sketch.parameter("w", 4, 2), sketch.parameter("r", 4, 4)
    hp = sketch("PastValue", r, name="hp", dims=(4, 3), defaultHiddenActivity=0.5)
    h = sketch("Tanh", sketch("Plus", sketch("Times", r, hp), sketch("Times", w, x)), name="h")
    hp.inputs = [h]
    mask, start, end = helpers.grid([[3, 2], 5])
    data = np.random.default_rng(2).normal(size=(*mask.shape, 2))
    found, _ = values(sketch.network, ["h"], Batch({"x": data}, mask, start, end))
    weight = {node.name: node.matrix() for node in sketch.network.parameters()}
    for s in range(mask.shape[1]):
        state = np.full((4, 3), 0.5)
        for t in np.flatnonzero(mask[:, s]):
            state = np.full((4, 3), 0.5) if start[t, s] == 0 else state
            state = np.tanh(weight["r"] @ state + (weight["w"] @ data[t, s])[:, None])
            np.testing.assert_allclose(found["h"][t, s].reshape(3, 4).T, state, rtol=1e-12)


@pytest.mark.parametrize("asked", [["pf", "h"], ["gatef", "pg"]])
def test_products_that_are_asked_for_are_without_what_is_added(sketch, helpers, asked):
    """The value of a node does not depend on what else is asked for."""
    lstm(sketch, True)
    mask, start, end = helpers.grid([[3, 2], 5])
    batch = Batch({"x": np.random.default_rng(2).normal(size=(*mask.shape, 2))}, mask, start, end)
    found, _ = values(sketch.network, asked, batch)
    h = values(sketch.network, ["h"], batch)[0]["h"].reshape(*mask.shape, 2)
    past = np.where((start > 0)[..., None], np.concatenate([h[:1], h[:-1]]), 0.125)
    for name in asked:
        if name.startswith("p"):
            expected = past @ sketch.network["r" + name[1]].matrix().T
            np.testing.assert_allclose(found[name][mask].reshape(-1, 3), expected[mask], rtol=1e-12)


def criterion(sketch, node):
    """The sum of the squares of a node."""
    return sketch("SquareError", node, sketch.input("y", 2), name="cost")


def check_gradients(helpers, network, batch):
    """Compare all gradients with differences."""
    _, found = helpers.gradients(network, "cost", batch)
    for name, (chosen, slopes) in helpers.central_differences(network, "cost", batch).items():
        np.testing.assert_allclose(found[name].reshape(-1)[chosen], slopes, rtol=1e-6, atol=1e-8, err_msg=name)


def test_gradients(sketch, helpers):
    criterion(sketch, lstm(sketch, True))
    mask, start, end = helpers.grid([[3, 2], 5, 1])
    random = np.random.default_rng(2)
    data = {name: random.normal(size=(*mask.shape, 2)) for name in "xy"}
    check_gradients(helpers, sketch.network, Batch(data, mask, start, end))


@pytest.mark.parametrize("kind", ["PastValue", "FutureValue"])
def test_gradients_of_a_product_that_nothing_is_added_to(sketch, helpers, kind):
    """What is added comes from inside of the loop, or is a product too, or is used twice."""
    x, w, v = sketch.input("x", 2), sketch.parameter("w", 2, 2), sketch.parameter("v", 2, 2)
    past = sketch(kind, w, rows=2, defaultHiddenActivity=0.25)
    a = sketch("Times", w, past)
    b = sketch("Plus", a, x)  # used twice
    c = sketch("Times", v, sketch("Tanh", b))
    h = sketch("Tanh", sketch("Plus", sketch("Plus", c, b), sketch("Times", w, sketch("Sigmoid", past))), name="h")
    past.inputs = [h]
    criterion(sketch, h)
    mask, start, end = helpers.grid([[3, 2], 5])
    random = np.random.default_rng(3)
    data = {name: random.normal(size=(*mask.shape, 2)) for name in "xy"}
    check_gradients(helpers, sketch.network, Batch(data, mask, start, end))


def loops(jaxpr):
    """The bodies of all loops in a program."""
    for equation in jaxpr.eqns:
        inner = [*jaxprs_in_params(equation.params)] if equation.primitive.name != "scan" else []
        if equation.primitive.name == "scan":
            yield equation.params["jaxpr"].jaxpr
            inner = [equation.params["jaxpr"].jaxpr]
        for one in inner:
            yield from loops(one)


def products(jaxpr):
    """How many matrix products a program has, those of what it calls included."""
    inner = [one for equation in jaxpr.eqns for one in jaxprs_in_params(equation.params)]
    return sum(equation.primitive.name == "dot_general" for equation in jaxpr.eqns) + sum(map(products, inner))


def test_a_step_has_no_product_for_the_gradient_of_weights(sketch, helpers):
    """Four gates and a projection: two products of each step forward, and two backward."""
    criterion(sketch, lstm(sketch, False))
    network = sketch.network.validate()
    mask, start, end = helpers.grid([5, 5])
    batch = Batch(dict.fromkeys("xy", np.zeros((5, 2, 2))), mask, start, end)
    function = compile_gradient(network, "cost")
    program = jax.make_jaxpr(function)(network_parameters(network), network_state(network), batch)
    assert [products(body) for body in loops(program.jaxpr)] == [2, 2]


def test_a_step_reads_the_sums_of_the_next_one_where_there_is_no_gradient(sketch, helpers):
    """The past of two delays, and sums for the gates (12) and the projection: the step before has read them."""
    criterion(sketch, lstm(sketch, False))
    network = sketch.network.validate()
    mask, start, end = helpers.grid([5, 5])
    batch = Batch(dict.fromkeys("xy", np.zeros((5, 2, 2))), mask, start, end)
    arguments = network_parameters(network), network_state(network), batch

    def widths(function):
        (body, *_) = loops(jax.make_jaxpr(function)(*arguments).jaxpr)
        return sorted(variable.aval.shape[-1] for variable in body.outvars if variable.aval.shape[0] == 2)

    assert widths(compile_network(network, ["cost"])).count(12) == 1
    assert widths(compile_gradient(network, "cost")).count(12) == 0
