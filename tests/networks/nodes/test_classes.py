"""Softmax within classes of words: every variant against the formula."""

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.criteria.classes import _sizes, words_in_classes


@pytest.mark.parametrize(
    ("words", "classes", "sizes"),
    [
        (70, 8, []),
        (600, 40, [32, 128]),
        (600, 5, [128]),
        (600, 3, []),
        (3000, 50, [128, 512]),
        (100_000, 300, [512, 2048, 8192]),
    ],
)
def test_variants(words, classes, sizes):
    """None for less than a class has on average, none for more than a quarter of the words."""
    assert _sizes(words, classes) == sizes


def test_classes_of_all_sizes():
    random = np.random.default_rng(1)
    h, weights = random.normal(size=(5, 3)), random.normal(size=(600, 3))
    use = np.array([1.0, 1, 0, 1, 1])

    @jax.jit
    def program(h, weights, word, first, last):
        def total(h, weights):
            return words_in_classes(h, weights, word, first, last, jnp.asarray(use), 40)

        return jax.value_and_grad(total, (0, 1))(h, weights)

    for largest in (1, 32, 33, 128, 129, 600):
        first = random.integers(0, 601 - largest, 5)
        first[0], last = 600 - largest, first + np.minimum(random.integers(1, largest + 1, 5), largest)
        last[0] = 600
        word = random.integers(first, last)
        value, (to_h, to_weights) = program(h, weights, *(jnp.asarray(one, jnp.int32) for one in (word, first, last)))
        expected, slopes_h, slopes_weights = 0.0, np.zeros_like(h), np.zeros_like(weights)
        for n in np.flatnonzero(use):
            rows = weights[first[n] : last[n]]
            p = np.exp(rows @ h[n])
            p /= p.sum()
            expected += np.log(p[word[n] - first[n]])
            slope = (np.arange(first[n], last[n]) == word[n]) - p
            slopes_h[n] = slope @ rows
            slopes_weights[first[n] : last[n]] += np.outer(slope, h[n])
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(to_h, slopes_h, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(to_weights, slopes_weights, rtol=1e-9, atol=1e-12)
