"""Learners compute what the formulas of the field say, step by step."""

import numpy as np
import pytest

from networks.builders.python import operators
from networks.builders.python.function import constant, input_variable, parameter
from readers.errors import ArgumentError
from trainers.session import learners, schedules
from trainers.session.trainer import Trainer

STEPS = 4
X = np.random.default_rng(1).normal(size=(STEPS, 3, 4)).astype(np.float32)


def train(make, lr=0.1):
    """The weight after every minibatch of 3 samples; the gradient of a sample is the sample."""
    x = input_variable(4, name="x")
    w = parameter(4, init=np.array([1.0, -2.0, 0.5, 3.0], np.float32))
    loss = operators.reduce_sum(operators.element_times(w, x))
    trainer = Trainer(loss, loss, make([w], lr))
    found = [w.value]
    for batch in X:
        trainer.train_minibatch({x: batch})
        found.append(w.value)
    return np.array(found)


def by_hand(step, start=(1.0, -2.0, 0.5, 3.0)):
    """`step(weight, mean gradient, state, number)` by numpy, in double precision."""
    weight, state = np.array(start), {}
    found = [weight]
    for number, batch in enumerate(X.astype(np.float64), 1):
        weight = step(weight, batch.mean(axis=0), state, number)
        found.append(weight)
    return np.array(found)


def sgd(w, g, s, t):
    return w - 0.1 * g


def momentum(w, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + g
    return w - 0.1 * s["v"]


def unit_gain(w, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g
    return w - 0.1 * s["v"]


def nesterov(w, g, s, t):
    s["v"] = 0.9 * s.get("v", 0) + g
    return w - 0.1 * (0.9 * s["v"] + g)


def adagrad(w, g, s, t):
    s["a"] = s.get("a", 0) + g**2
    return w - 0.1 * g / (np.sqrt(s["a"]) + 1e-8)


def rmsprop(w, g, s, t):
    s["a"] = 0.9 * s.get("a", 0) + 0.1 * g**2
    return w - 0.1 * g / (np.sqrt(s["a"]) + 1e-8)


def adam(w, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    return w - 0.1 * (s["m"] / (1 - 0.9**t)) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


def adamax(w, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0), abs(g))
    return w - 0.1 * (s["m"] / (1 - 0.9**t)) / (s["u"] + 1e-8)


def adadelta(w, g, s, t):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g**2
    d = g * np.sqrt(s.get("x", 0) + 1e-8) / np.sqrt(s["a"] + 1e-8)
    s["x"] = 0.95 * s.get("x", 0) + 0.05 * d**2
    return w - 0.1 * d


def fsadagrad(w, g, s, t):
    n = 3
    keep = np.exp(-n / 720000)
    s["c"] = keep * s.get("c", 0) + (1 - keep) * n
    s["a"] = keep * s.get("a", 0) + (1 - keep) * (n * g) ** 2
    scaled = np.minimum(10, np.sqrt(s["c"] / s["a"])) * n * g
    s["p"] = 0.9 * s.get("p", 0) + 0.1 * scaled
    return w - 0.1 / n * s["p"]


RULES = {
    "sgd": (learners.sgd, sgd),
    "momentum": (lambda p, lr: learners.momentum_sgd(p, lr, 0.9), momentum),
    "unit gain": (lambda p, lr: learners.momentum_sgd(p, lr, 0.9, unit_gain=True), unit_gain),
    "nesterov": (lambda p, lr: learners.nesterov(p, lr, 0.9), nesterov),
    "adagrad": (learners.adagrad, adagrad),
    "rmsprop": (learners.rmsprop, rmsprop),
    "adam": (learners.adam, adam),
    "adamax": (learners.adamax, adamax),
    "adadelta": (learners.adadelta, adadelta),
    "fsadagrad": (lambda p, lr: learners.fsadagrad(p, lr, 0.9), fsadagrad),
}


@pytest.mark.parametrize("name", RULES)
def test_formulas(name: str) -> None:
    make, step = RULES[name]
    np.testing.assert_allclose(train(make), by_hand(step), rtol=2e-5, atol=2e-6)


def test_a_rate_per_sample_is_that_of_the_sum() -> None:
    per_sample = train(lambda p, lr: learners.sgd(p, schedules.learning_rate_per_sample(lr)))
    np.testing.assert_allclose(per_sample, by_hand(lambda w, g, s, t: w - 0.1 * 3 * g), rtol=1e-5)
    of_six = train(lambda p, lr: learners.sgd(p, schedules.learning_rate(lr, minibatch_size=6)))
    np.testing.assert_allclose(of_six, by_hand(lambda w, g, s, t: w - 0.1 / 6 * 3 * g), rtol=1e-5)


def test_schedules() -> None:
    rate = schedules.learning_rate([0.1, 0.05, 0.01], epoch_size=100)
    assert [rate[n] for n in (0, 99, 100, 200, 10**9)] == [0.1, 0.1, 0.05, 0.01, 0.01]
    rate = schedules.learning_rate([(2, 0.1), (1, 0.05)])
    assert [rate.at(0, sweep) for sweep in range(4)] == [0.1, 0.1, 0.05, 0.05]
    assert schedules.momentum_as_time_constant(100)[0] == pytest.approx(np.exp(-0.01))
    with pytest.raises(ArgumentError, match="no schedule"):
        schedules.learning_rate("fast")


def test_a_rate_changes_with_the_samples_seen() -> None:
    found = train(lambda p, lr: learners.sgd(p, schedules.learning_rate([0.1, 0.0], epoch_size=6)))
    assert (found[2] != found[1]).all()
    np.testing.assert_array_equal(found[2], found[4])


def test_regularisation_and_clipping() -> None:
    l2 = train(lambda p, lr: learners.sgd(p, lr, l2_regularization_weight=0.5))
    np.testing.assert_allclose(l2, by_hand(lambda w, g, s, t: w - 0.1 * (g + 0.5 * w)), rtol=1e-5)

    def shrunk(w, g, s, t):
        w = w - 0.1 * g
        return np.sign(w) * np.maximum(abs(w) - 0.1 * 0.5, 0)

    l1 = train(lambda p, lr: learners.sgd(p, lr, l1_regularization_weight=0.5))
    np.testing.assert_allclose(l1, by_hand(shrunk), rtol=1e-5)
    clipped = train(lambda p, lr: learners.sgd(p, lr, gradient_clipping_threshold_per_sample=0.1))
    np.testing.assert_allclose(clipped, by_hand(lambda w, g, s, t: w - 0.1 * np.clip(g, -0.1, 0.1)), rtol=1e-5)


def test_wrong_learners() -> None:
    w = parameter(4, init=0.0)
    with pytest.raises(ArgumentError, match="no argument 'l3'"):
        learners.sgd([w], 0.1, l3=1)
    with pytest.raises(ArgumentError, match="trains parameters"):
        learners.sgd([constant(1.0)], 0.1)
    with pytest.raises(ArgumentError, match="given no parameters"):
        learners.sgd([], 0.1)
