"""Update rules against the two-step numbers of the specification and against formulas written again here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays import blocks
from cntkpy.networks.arrays.lazy import jnp, prepare
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.trainers.rules import updates
from cntkpy.trainers.rules.updates import Rule, StepScalars, clip, shrink, update_rows

prepare()

RULES = {
    "momentum": updates.momentum(),
    "nesterov": updates.nesterov(),
    "adagrad": updates.adagrad(True),
    "adagrad_plain": updates.adagrad(False),
    "rmsprop": updates.rmsprop(True, 0.99, 1.2, 0.75, 10.0, 0.1),
    "rmsprop_plain": updates.rmsprop(False, 0.99, 1.2, 0.75, 10.0, 0.1),
    "fsadagrad": updates.fsadagrad(720000, 1.0),
}

# W = [1, -2]; momentum 0.9 per minibatch of 4, rate 0.1; gradients [0.5, -0.25] (n = 4), then [-0.2, 0.4] (n = 2)
TWO_STEPS = {
    "momentum": ([0.995, -1.9975], [0.9912829175, -1.99718096]),
    "nesterov": ([0.9905, -1.99525], [0.988, -1.997]),
    "adagrad": ([0.9666666667, -1.966666667], [0.9853438317, -2.009312337]),
    "adagrad_plain": ([0.9, -1.9], [0.9371390676, -1.98479983]),
    "rmsprop": ([0.9666665333, -1.966666733], [0.9801064191, -2.019786962]),
    "rmsprop_plain": ([0.99000002, -1.99000008], [0.9940169185, -2.005876596]),
    "fsadagrad": ([0.98, -1.98], [0.9654429737, -1.973185281]),
}


def moment(n: int, rate: float = 0.1, per_minibatch: float = 0.9, nominal: int = 4) -> StepScalars:
    per_sample = per_minibatch ** (1 / nominal) if per_minibatch else 0.0
    return StepScalars(jnp.float64(rate), jnp.float64(per_sample**n), jnp.float64(n))


@pytest.mark.parametrize("name", TWO_STEPS)
def test_two_updates_as_in_the_specification(name: str) -> None:
    rule = RULES[name]
    weight = jnp.array([1.0, -2.0])
    state = rule.start(weight)
    for gradient, n, expected in zip(([0.5, -0.25], [-0.2, 0.4]), (4, 2), TWO_STEPS[name], strict=True):
        weight, state = rule.apply(weight, jnp.array(gradient), state, moment(n))
        np.testing.assert_allclose(weight, expected, rtol=5e-10)


def test_fsadagrad_in_single_precision() -> None:
    """`1-b` is exact in the count, and that of single precision in the mean square: here 0.14 % more."""
    n, gradient, rule = 15, np.float32(0.5), updates.fsadagrad(720000, 1.0)
    weight = jnp.zeros(1, jnp.float32)
    scalars = StepScalars(jnp.float32(1), jnp.float32(0), jnp.float32(n))
    after, state = rule.apply(weight, jnp.array([gradient]), rule.start(weight), scalars)
    exact = -np.expm1(-n / 720000)
    kept = 1 - np.float32(1 - exact)
    assert kept / exact == pytest.approx(1.0014, abs=1e-4)
    np.testing.assert_allclose(state["a"], kept * gradient**2, rtol=1e-6)
    np.testing.assert_allclose(state["c"], exact * n, rtol=1e-9)
    np.testing.assert_allclose(after, -np.sqrt(exact * n / kept), rtol=1e-6)
    assert after.dtype == state["a"].dtype == np.float32


def test_clip_l2_l1_together() -> None:
    weight, gradient, n, rate = jnp.array([1.0, -2.0]), jnp.array([0.5, -0.25]), 4, 0.1
    clipped = clip(gradient, 0.1 * n, True)
    np.testing.assert_allclose(clipped + 0.01 * n * weight, [0.44, -0.33])
    stepped = weight - rate * (clipped + 0.01 * n * weight)
    np.testing.assert_allclose(shrink(stepped, rate * 0.05 * n), [0.936, -1.947])


def test_clip_by_norm() -> None:
    np.testing.assert_allclose(clip(jnp.array([0.5, -0.25]), 0.4, False), [0.3577708764, -0.1788854382], rtol=1e-9)
    np.testing.assert_array_equal(clip(jnp.array([0.1, 0.2]), 0.4, False), [0.1, 0.2])
    np.testing.assert_array_equal(clip(jnp.zeros(2), 0.4, False), [0.0, 0.0])


@settings(max_examples=25)
@given(st.sampled_from(sorted(RULES)), st.floats(0, 0.99), st.integers(1, 50), st.integers(0, 2**31))
def test_a_zero_rate_changes_nothing_at_the_first_update(name: str, per_minibatch: float, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    weight = jnp.array(random.normal(size=(3, 2)))
    rule = RULES[name]
    after, _ = rule.apply(
        weight, jnp.array(random.normal(size=(3, 2))), rule.start(weight), moment(n, 0.0, per_minibatch)
    )
    np.testing.assert_array_equal(after, weight)


def row_update(rule: Rule, weight: np.ndarray, rows: list[int], values: np.ndarray, m: StepScalars, state=None):
    weight = jnp.array(weight)
    state = rule.start(weight) if state is None else state
    return update_rows(rule, weight, RowGradient(jnp.array(rows), jnp.array(values)), state, m)


@pytest.mark.parametrize("name", RULES)
def test_rows_that_are_not_touched_stay(name: str) -> None:
    weight = np.arange(10.0).reshape(5, 2)
    after, state = row_update(RULES[name], weight, [3, 0, 5], np.array([[1.0, -1], [2, 2], [9, 9]]), moment(4))
    np.testing.assert_array_equal(np.asarray(after)[[1, 2, 4]], weight[[1, 2, 4]])
    assert (np.asarray(after)[[0, 3]] != weight[[0, 3]]).all()
    for array in state.values():
        if array.shape == weight.shape and name not in ("rmsprop", "rmsprop_plain"):
            assert not np.asarray(array)[[1, 2, 4]].any()


def test_sparse_momentum_keeps_the_rate_out_of_its_state() -> None:
    rule, weight = updates.momentum(), np.zeros((3, 1))
    first, second = moment(4, rate=0.5), moment(2, rate=0.1)
    after, state = row_update(rule, weight, [1], np.array([[2.0]]), first)
    smoothed = (1 - float(first.momentum)) * 2.0
    np.testing.assert_allclose(after[1, 0], -0.5 * smoothed)
    after, state = row_update(rule, np.asarray(after), [1], np.array([[1.0]]), second, state)
    again = float(second.momentum) * smoothed + (1 - float(second.momentum)) * 1.0
    np.testing.assert_allclose(after[1, 0], -0.5 * smoothed - 0.1 * again)


def test_sparse_adagrad_averages_over_stored_elements_only() -> None:
    gradient = np.array([[1.0, 2.0], [4.0, 8.0], [0.0, 0.0]])  # the last row is padding
    after, _ = row_update(updates.adagrad(True), np.zeros((6, 2)), [2, 4, 6], gradient, moment(1, rate=1.0))
    scale = 1 / np.sqrt(gradient[:2] ** 2 + 1e-16)
    np.testing.assert_allclose(np.asarray(after)[[2, 4]], -gradient[:2] * scale / scale.mean())


@pytest.mark.parametrize("name", RULES)
def test_many_rows_are_updated_block_by_block(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a rule looks at all of them, in one piece; padding stays outside."""
    rule, random = RULES[name], np.random.default_rng(0)
    weight, values = jnp.array(random.normal(size=(90, 3))), random.normal(size=(64, 3))
    rows = [*random.permutation(90)[:61].tolist(), 90, 90, 90]
    values[61:] = 0
    state = {key: array + 1 if array.ndim else array for key, array in rule.start(weight).items()}
    expected = row_update(rule, weight, rows, values, moment(4), state)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 40)
    found = row_update(rule, weight, rows, values, moment(4), state)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13, atol=1e-16)
    for key, array in expected[1].items():
        np.testing.assert_allclose(found[1][key], array, rtol=1e-13, atol=1e-16)
