"""Learners compute what the formulas of the field say, step by step."""

import numpy as np
import pytest

from cntkpy.networks.builders.python.functions.variables import constant, input_variable, parameter
from cntkpy.networks.builders.python.operations import operators, reductions
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2 import learners, schedules
from cntkpy.trainers.fronts.cntk2.trainer import Trainer

STEPS = 4
X = np.random.default_rng(1).normal(size=(STEPS, 3, 4)).astype(np.float32)


def train(make, lr=0.1, dtype=np.float32):
    """The weight after every minibatch of 3 samples; the gradient of a sample is the sample."""
    x = input_variable(4, dtype=dtype, name="x")
    w = parameter(4, init=np.array([1.0, -2.0, 0.5, 3.0], dtype))
    loss = reductions.reduce_sum(operators.element_times(w, x))
    trainer = Trainer(loss, loss, make([w], lr))
    found = [w.value]
    for batch in X:
        trainer.train_minibatch({x: batch})
        found.append(w.value)
    return np.array(found)


def by_hand(step, start=(1.0, -2.0, 0.5, 3.0), dtype=np.float32):
    """`step(weight, mean gradient, state, number)` by numpy, in double precision; `dtype` is that of the weight."""
    weight, state = np.array(start), {"dtype": dtype}
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
    keep = float(s["dtype"](keep))  # the mean square has that of the element type
    s["a"] = keep * s.get("a", 0) + (1 - keep) * (n * g) ** 2
    scaled = np.minimum(10, np.sqrt(s["c"] / s["a"])) * n * g
    s["p"] = 0.9 * s.get("p", 0) + s.get("gain", 0.1) * scaled
    return w - 0.1 / n * s["p"]


def fsadagrad_without_gain(w, g, s, t):
    s["gain"] = 1.0
    return fsadagrad(w, g, s, t)


def adam_without_gain(w, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    return w - 0.1 * s["m"] / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


def adamax_without_gain(w, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + g
    s["u"] = np.maximum(0.999 * s.get("u", 0), abs(g))
    return w - 0.1 * s["m"] / (s["u"] + 1e-8)


def nesterov_with_gain(w, g, s, t):
    return nesterov(w, 0.1 * g, s, t)


def growing(w, g, s, t):
    """RMSProp of configurations, whose factor grows without a bound while the sign of the gradient stays."""
    s["a"] = 0.9 * s.get("a", (3 * g) ** 2) + 0.1 * (3 * g) ** 2
    same = s.get("sign", 0 * g) * np.sign(g) > 0
    s["t"] = s.get("t", 0.02 + 0 * g) * np.where(same, 1e4, 0.5)
    s["sign"] = np.sign(g)
    return w - 0.1 / 3 * 3 * g * s["t"] / np.sqrt(s["a"] + 1e-6)


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
    "fsadagrad without unit gain": (
        lambda p, lr: learners.fsadagrad(p, lr, 0.9, unit_gain=False),
        fsadagrad_without_gain,
    ),
    "adam without unit gain": (lambda p, lr: learners.adam(p, lr, unit_gain=False), adam_without_gain),
    "adamax without unit gain": (lambda p, lr: learners.adamax(p, lr, unit_gain=False), adamax_without_gain),
    "nesterov with unit gain": (lambda p, lr: learners.nesterov(p, lr, 0.9, unit_gain=True), nesterov_with_gain),
    "a factor without bounds": (
        lambda p, lr: learners.rmsprop_with_steps(p, lr, 0.9, 1e4, 0.5, np.inf, 0, need_ave_multiplier=False),
        growing,
    ),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.sampled
def test_formulas(name: str) -> None:
    make, step = RULES[name]
    np.testing.assert_allclose(train(make), by_hand(step), rtol=2e-5, atol=2e-6)
    found = train(make, dtype=np.float64)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, by_hand(step, dtype=np.float64), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rule", [learners.adam, learners.adamax])
def test_a_variance_that_keeps_nearly_everything(rule) -> None:
    """A time constant of 720000 samples: in single precision little is left of 1 - b."""
    start, steps = np.array([1.0, -2.0]), np.random.default_rng(2).normal(size=(120, 2, 2)).astype(np.float32)
    x, weight = input_variable(2), parameter(2, init=start, dtype=np.float32)
    loss = reductions.reduce_sum(operators.element_times(weight, x))
    variance = schedules.momentum_as_time_constant(720000)
    trainer = Trainer(loss, loss, rule([weight], 0.1, 0.99, variance_momentum=variance))
    b, found, first, second = np.exp(-2 / 720000), start, 0.0, 0.0
    for number, batch in enumerate(steps, 1):
        trainer.train_minibatch({x: batch})
        g = batch.astype(np.float64).mean(axis=0)
        first = 0.99 * first + 0.01 * g
        second = np.maximum(b * second, abs(g)) if rule is learners.adamax else b * second + (1 - b) * g**2
        root = second if rule is learners.adamax else np.sqrt(second / (1 - b**number))
        found = found - 0.1 * first / (1 - 0.99**number) / (root + 1e-8)
    np.testing.assert_allclose(weight.value - start, found - start, rtol=4e-6)


def test_a_rate_per_sample_is_that_of_the_sum() -> None:
    per_sample = train(lambda p, lr: learners.sgd(p, schedules.learning_rate_per_sample(lr)))
    np.testing.assert_allclose(per_sample, by_hand(lambda w, g, s, t: w - 0.1 * 3 * g), rtol=1e-5)
    of_six = train(lambda p, lr: learners.sgd(p, schedules.learning_rate(lr, minibatch_size=6)))
    np.testing.assert_allclose(of_six, by_hand(lambda w, g, s, t: w - 0.1 / 6 * 3 * g), rtol=1e-5)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.sampled
def test_gradients_that_a_program_computes(name: str) -> None:
    make, step = RULES[name]
    w = parameter(4, init=np.array([1.0, -2.0, 0.5, 3.0], np.float32))
    learner = make([w], 0.1)
    found = [w.value]
    for batch in X:
        assert learner.update({w: batch.sum(axis=0)}, len(batch))
        found.append(w.value)
    np.testing.assert_allclose(found, by_hand(step), rtol=2e-5, atol=2e-6)
    assert learner.total_number_of_samples_seen == X.size // 4
    with pytest.raises(ArgumentError, match="there is no gradient for Parameter"):
        learner.update({}, 3)
    with pytest.raises(ArgumentError, match=r"has the shape \(3,\), not \(4,\)"):
        learner.update({w: np.ones(3)}, 3)


def test_schedules() -> None:
    rate = schedules.learning_rate([0.1, 0.05, 0.01], epoch_size=100)
    assert [rate[n] for n in (0, 99, 100, 200, 10**9)] == [0.1, 0.1, 0.05, 0.01, 0.01]
    rate = schedules.learning_rate([(2, 0.1), (1, 0.05)])
    assert [rate.at(0, sweep) for sweep in range(4)] == [0.1, 0.1, 0.05, 0.05]
    assert schedules.momentum_as_time_constant(100)[0] == pytest.approx(np.exp(-0.01))
    assert schedules.learning_rate(np.array([0.5, 0.25]), epoch_size=np.int64(2))[2] == 0.25


WRONG_SCHEDULES = {
    "'fast' is not a schedule": lambda: schedules.learning_rate("fast"),
    "True is not a schedule": lambda: schedules.learning_rate(True),
    "is not a schedule": lambda: schedules.learning_rate([(1, 2, 3)]),
    r"\(0.1, 2\)\] is not a schedule": lambda: schedules.learning_rate([(0.1, 2)]),
    "a schedule needs a value": lambda: schedules.learning_rate([]),
    "minibatch_size is a number of samples, not '32'": lambda: schedules.learning_rate(0.1, "32"),
    "epoch_size is a number of samples, not '100'": lambda: schedules.learning_rate([0.1, 0.2], epoch_size="100"),
    "epoch_size is a number of samples, not -100": lambda: schedules.learning_rate([0.1, 0.2], epoch_size=-100),
    "a time constant is a number of samples from 0 on, not -5": lambda: schedules.momentum_as_time_constant(-5),
}


@pytest.mark.parametrize("message", WRONG_SCHEDULES)
def test_wrong_schedules(message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        WRONG_SCHEDULES[message]()


def test_a_rate_that_is_set_begins_then(tmp_path) -> None:
    x, w = input_variable(4, name="x"), parameter(4, init=np.zeros(4, np.float32))
    loss = reductions.reduce_sum(operators.element_times(w, x))

    def fresh():
        w.value = np.zeros(4)
        learner = learners.sgd([w], 0.5)
        return learner, Trainer(loss, loss, learner)

    learner, trainer = fresh()
    seen = []
    for step in range(5):
        if step == 2:
            learner.reset_learning_rate(schedules.learning_rate([0.25, 0.125], epoch_size=4))
        if step == 4:
            trainer.save_checkpoint(tmp_path / "m")
            learner, trainer = fresh()
            learner.reset_learning_rate(schedules.learning_rate([0.25, 0.125], epoch_size=4))
            trainer.restore_from_checkpoint(tmp_path / "m")
        before = w.value
        trainer.train_minibatch({x: np.ones((2, 4), np.float32)})
        seen.append(float((before - w.value)[0]))
    assert seen == [0.5, 0.5, 0.25, 0.25, 0.125]


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


def w():
    return [parameter(4, init=0.0)]


WRONG_LEARNERS = {
    "no argument 'l3'": lambda: learners.sgd(w(), 0.1, l3=1),
    "trains parameters": lambda: learners.sgd([constant(1.0)], 0.1),
    "given no parameters": lambda: learners.sgd([], 0.1),
    "trains parameters, not None": lambda: learners.sgd(None, 0.1),
    "was given Parameter twice": lambda: learners.sgd(w() * 2, 0.1),
    "momentum is a number from 0 to 1 .exclusive., not -1": lambda: learners.momentum_sgd(w(), 0.1, -1),
    "momentum is a number from 0 to 1 .exclusive., not 1.5": lambda: learners.nesterov(w(), 0.1, [0.5, 1.5]),
    "unit_gain is True or False, not 'no'": lambda: learners.momentum_sgd(w(), 0.1, 0.9, unit_gain="no"),
    "a number above 0, not -1": lambda: learners.sgd(w(), 0.1, gradient_clipping_threshold_per_sample=-1),
    "a number above 0, not '5'": lambda: learners.sgd(w(), 0.1, gradient_clipping_threshold_per_sample="5"),
    "truncation is True or False": lambda: learners.sgd(w(), 0.1, gradient_clipping_with_truncation="no"),
    "from 0 on, not 'a'": lambda: learners.sgd(w(), 0.1, l2_regularization_weight="a"),
    "from 0 on, not -1": lambda: learners.sgd(w(), 0.1, l1_regularization_weight=-1),
    "epsilon is a number from 0 on, not 'x'": lambda: learners.adam(w(), 0.1, epsilon="x"),
    "rho is a number from 0 to 1 .exclusive., not 2": lambda: learners.adadelta(w(), rho=2),
    "gamma is a number from 0": lambda: learners.rmsprop_with_steps(w(), 0.1, -1, 1.2, 0.7, 10, 0.1),
    "max is a number from 0 on, not -inf": lambda: learners.rmsprop_with_steps(w(), 0.1, 0.9, 1.2, 0.7, -np.inf, 0),
    "max is a number from 0 on, not nan": lambda: learners.rmsprop_with_steps(w(), 0.1, 0.9, 1.2, 0.7, np.nan, 0),
    "min is a number from 0 on, not inf": lambda: learners.rmsprop_with_steps(w(), 0.1, 0.9, 1.2, 0.7, np.inf, np.inf),
    "min, 3, is larger than max, 1": lambda: learners.rmsprop_with_steps(w(), 0.1, 0.9, 1.2, 0.7, 1, 3),
    "block_size is a number from 1 on": lambda: learners.BlockMomentumOptions(0),
    "float is not a learner": lambda: learners.data_parallel(0.1),  # pyright: ignore[reportArgumentType]
    "a number from 0 on, not 'x'": lambda: learners.data_parallel(learners.sgd(w(), 0.1), "x"),  # pyright: ignore
}


@pytest.mark.parametrize("message", WRONG_LEARNERS)
def test_wrong_learners(message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        WRONG_LEARNERS[message]()


BATCHES = [np.random.default_rng(5).normal(size=(n, 4)).astype(np.float32) for n in (5, 2, 7, 1)]
"""Minibatches of different sizes."""


def of_sums(make, step) -> None:
    """Compare the weights after minibatches of different sizes with a rule of the gradient summed over samples.

    Args:
        make: the learner of a parameter, with rates and momenta per sample.
        step: `step(weight, sum of gradients, samples, state)` by NumPy.
    """
    w = parameter(4, init=np.array([1.0, -2.0, 0.5, 3.0]), dtype=np.float64)
    learner, weight, state = make([w]), np.array([1.0, -2.0, 0.5, 3.0]), {}
    for number, batch in enumerate(BATCHES, 1):
        learner.update({w: batch.sum(axis=0)}, len(batch))
        weight = step(weight, batch.sum(axis=0).astype(np.float64), len(batch), {"t": number}, state)
        np.testing.assert_allclose(w.value, weight, rtol=1e-6)


RATE, KEPT = schedules.learning_rate_per_sample(0.1), schedules.momentum_per_sample(0.9)


def _momentum(w, g, n, t, s):
    s["v"] = 0.9**n * s.get("v", 0) + 0.1 * g
    return w - s["v"]


def _momentum_with_gain(w, g, n, t, s):
    s["v"] = 0.9**n * s.get("v", 0) + (1 - 0.9**n) * 0.1 * g
    return w - s["v"]


def _nesterov(w, g, n, t, s):
    step = 0.1 * g
    s["v"] = 0.9**n * s.get("v", 0) + step
    return w - 0.9**n * s["v"] - step


def _adagrad(w, g, n, t, s):
    s["a"] = s.get("a", 0) + g**2
    return w - 0.1 * g / (np.sqrt(s["a"]) + 1e-8)


def _rmsprop(w, g, n, t, s):
    s["a"] = 0.9 * s.get("a", 0) + 0.1 * g**2
    return w - 0.1 * g / (np.sqrt(s["a"]) + 1e-8)


def _adam(w, g, n, t, s):
    s["m"], s["one"] = 0.9**n * s.get("m", 0) + (1 - 0.9**n) * g, 0.9**n * s.get("one", 0) + (1 - 0.9**n)
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g**2
    return w - 0.1 * (s["m"] / s["one"]) / (np.sqrt(s["v"] / (1 - 0.999 ** t["t"])) + 1e-8)


def _adamax(w, g, n, t, s):
    s["m"], s["one"] = 0.9**n * s.get("m", 0) + (1 - 0.9**n) * g, 0.9**n * s.get("one", 0) + (1 - 0.9**n)
    s["u"] = np.maximum(0.999 * s.get("u", 0), abs(g))
    return w - 0.1 * (s["m"] / s["one"]) / (s["u"] + 1e-8)


def _adadelta(w, g, n, t, s):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g**2
    d = g * np.sqrt(s.get("x", 0) + 1e-8) / np.sqrt(s["a"] + 1e-8)
    s["x"] = 0.95 * s.get("x", 0) + 0.05 * d**2
    return w - 0.1 * d


def _fsadagrad(w, g, n, t, s):
    keep = np.exp(-n / 720000)
    s["c"] = keep * s.get("c", 0) + (1 - keep) * n
    s["a"] = keep * s.get("a", 0) + (1 - keep) * g**2
    s["p"] = 0.9**n * s.get("p", 0) + (1 - 0.9**n) * np.minimum(10, np.sqrt(s["c"] / s["a"])) * g
    return w - 0.1 * s["p"]


SUMS = {
    "sgd": (lambda p: learners.sgd(p, RATE), lambda w, g, n, t, s: w - 0.1 * g),
    "momentum": (lambda p: learners.momentum_sgd(p, RATE, KEPT), _momentum),
    "momentum with unit gain": (lambda p: learners.momentum_sgd(p, RATE, KEPT, unit_gain=True), _momentum_with_gain),
    "nesterov": (lambda p: learners.nesterov(p, RATE, KEPT), _nesterov),
    "adagrad": (lambda p: learners.adagrad(p, RATE), _adagrad),
    "rmsprop": (lambda p: learners.rmsprop(p, RATE), _rmsprop),
    "adam": (lambda p: learners.adam(p, RATE, KEPT), _adam),
    "adamax": (lambda p: learners.adamax(p, RATE, KEPT), _adamax),
    "adadelta": (lambda p: learners.adadelta(p, RATE), _adadelta),
    "fsadagrad": (lambda p: learners.fsadagrad(p, RATE, KEPT), _fsadagrad),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_rate_per_sample_keeps_sums_of_minibatches_of_different_sizes(name: str) -> None:
    of_sums(*SUMS[name])


@pytest.mark.parametrize("rule", [learners.momentum_sgd, learners.nesterov])
def test_momentum_after_a_large_minibatch_is_that_of_its_samples(rule) -> None:
    """256 samples and then 16 without a gradient: the second step is exp(-16 / 1024) of the first (D14)."""
    x, w = input_variable(1), parameter(1, init=np.zeros(1), dtype=np.float32)
    loss = reductions.reduce_sum(operators.element_times(w, x))
    kept = schedules.momentum_as_time_constant(1024)
    trainer = Trainer(loss, loss, rule([w], schedules.learning_rate_per_sample(1.0), kept, unit_gain=True))
    trainer.train_minibatch({x: np.full((256, 1), 1 / 256, np.float32)})
    first = float(w.value[0])
    trainer.train_minibatch({x: np.zeros((16, 1), np.float32)})
    second = float(w.value[0]) - first
    gain, m = 1 - np.exp(-256 / 1024), np.exp(-16 / 1024)
    expected = m if rule is learners.momentum_sgd else m * m * gain / (np.exp(-256 / 1024) * gain + gain)
    assert second / first == pytest.approx(expected, rel=1e-4)


def test_a_rate_that_changes_does_not_change_what_momentum_keeps() -> None:
    w = parameter(1, init=np.zeros(1), dtype=np.float64)
    learner = learners.momentum_sgd([w], 1.0, 0.5)
    learner.update({w: np.ones(1)}, 1)
    learner.reset_learning_rate(0.1)
    learner.update({w: np.ones(1)}, 1)
    assert w.value == pytest.approx([-1 - (0.5 + 0.1)])
