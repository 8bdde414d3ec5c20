"""Means weighted by a softmax, and their gradients, against NumPy and finite differences."""

from typing import Any

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.step_blocks import in_blocks
from cntkpy.networks.arrays.weighted_means import weighted_means

RANDOM = np.random.default_rng(3)


def numbers(lead: tuple[int, ...], dtype: Any = np.float64) -> list[np.ndarray]:
    """Scores of 4 means of 6 rows, rows of 3 elements, and factors of the means."""
    shapes = [(*lead, 4, 6), (*lead, 6, 3), (*lead, 4, 3)]
    return [RANDOM.normal(size=shape).astype(dtype) for shape in shapes]


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def pulled_back(scores: Any, rows: Any, factors: Any) -> Any:
    """The means, and the gradients of the sum of factors times means."""
    means, back = jax.vjp(weighted_means, scores, rows)
    return means, *back(jnp.asarray(factors, means.dtype))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("lead", [(), (1, 1), (2, 3)])
@pytest.mark.sampled
def test_values_and_gradients(lead: tuple[int, ...], dtype: Any, tolerance: float) -> None:
    scores, rows, factors = numbers(lead, dtype)
    weights = softmax(scores)
    of_weights = factors @ np.swapaxes(rows, -1, -2)
    of_scores = weights * (of_weights - (weights * of_weights).sum(axis=-1, keepdims=True))
    expected = [weights @ rows, of_scores, np.swapaxes(weights, -1, -2) @ factors]
    for one, other in zip(pulled_back(scores, rows, factors), expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_finite_differences() -> None:
    scores, rows, factors = numbers((2,))
    operands = [scores, rows]
    _, *found = pulled_back(scores, rows, factors)
    step = 1e-6
    for index, gradient in enumerate(found):
        expected = np.zeros_like(operands[index])
        for place in np.ndindex(expected.shape):
            sums: list[float] = []
            for change in (step, -step):
                moved = [one.copy() for one in operands]
                moved[index][place] += change
                sums.append(float((softmax(moved[0]) @ moved[1] * factors).sum()))
            expected[place] = (sums[0] - sums[1]) / (2 * step)
        np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_scores_that_are_large_and_rows_that_are_masked() -> None:
    """Where all scores are that of a mask, all rows count as much; float, whose exponential overflows at 89."""
    scores, rows, factors = numbers((), np.float32)
    scores[0] = 1e4 * np.arange(6)
    scores[1], scores[2, 3:] = np.finfo(np.float32).min, -1e30
    means, of_scores, of_rows = pulled_back(scores, rows, factors)
    np.testing.assert_allclose(means[0], rows[5])
    np.testing.assert_allclose(means[1], rows.mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(of_scores[2, 3:], 0)
    np.testing.assert_allclose(of_rows, softmax(scores).T @ factors, rtol=1e-5)


@pytest.mark.parametrize("short", [np.float16, "bfloat16"])
@pytest.mark.sampled
def test_rows_of_a_shorter_type(short: Any) -> None:
    """Means are of the type of the rows; the softmax and its gradient are of that of the scores."""
    scores, rows, factors = numbers((2,), np.float32)
    found = pulled_back(scores, jnp.asarray(rows, short), jnp.asarray(factors, short))
    assert [one.dtype for one in found] == [jnp.dtype(short), np.float32, jnp.dtype(short)]
    for one, other in zip(found, pulled_back(scores, rows, factors), strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float32), other, atol=0.05)


@pytest.mark.thorough
def test_many_rows_do_not_leave_the_range_of_half_precision() -> None:
    """4,000 rows of 30 have a sum of 120,000; the largest number is 65,504."""
    means, _, of_rows = pulled_back(
        np.zeros((1, 4000), np.float32), np.full((4000, 2), 30, np.float16), np.ones((1, 2))
    )
    np.testing.assert_allclose(np.asarray(means, np.float32), 30, rtol=2e-3)
    np.testing.assert_allclose(np.asarray(of_rows, np.float32), 1 / 4000, rtol=2e-3)


@pytest.mark.thorough
def test_blocks_give_what_all_steps_at_once_give() -> None:
    """Five steps in blocks of two; what a block keeps is not computed again, its scores are."""
    scores, rows, _ = numbers((5,))

    def total(scores: Any, rows: Any, size: int) -> Any:
        return jnp.sum(in_blocks(lambda block, _: weighted_means(block, rows[: len(block)]), scores, size) ** 2)

    def at_once(scores: Any, rows: Any) -> Any:
        same = jnp.stack([rows[0], rows[1], rows[0], rows[1], rows[0]])
        return jnp.sum(weighted_means(scores, same) ** 2)

    found = jax.grad(total, (0, 1))(scores, rows, 2)
    for one, other in zip(found, jax.grad(at_once, (0, 1))(scores, rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    program = str(jax.make_jaxpr(jax.grad(total, (0, 1)), static_argnums=2)(scores, rows, 2))
    assert program.count("reduce_max[") == 1
