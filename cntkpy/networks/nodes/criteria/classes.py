"""Softmax within the class of a word: only the columns of that class are touched, cell by cell.

The size of the largest class is known while computing only, so there is one variant for each of a few sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.arrays.products import dot

if TYPE_CHECKING:
    from jaxtyping import Float, Int32


def words_in_classes(
    h: Float[Array, "N hidden"],
    weights: Float[Array, "words hidden"],
    word: Int32[Array, " N"],
    first: Int32[Array, " N"],
    last: Int32[Array, " N"],
    use: Float[Array, " N"],
    classes: int = 1,
) -> Float[Array, ""]:
    """Sum of log probabilities of words among those of their classes.

    Args:
        h: hidden layer.
        weights: those of the words.
        word, first, last: the word, the first of its class, one past the last; within bounds.
        use: 0 for cells that do not count, else 1.
        classes: how many there are. The largest is not smaller than all words divided by them.
    """
    sizes = _sizes(len(weights), classes)
    operands = (h, weights, word, first, last, use)
    if not sizes:
        return _among_all(*operands)
    variant = jnp.searchsorted(jnp.asarray(sizes), jnp.max(last - first))
    return jax.lax.switch(variant, [*map(_among, sizes), _among_all], *operands)


def _sizes(words: int, classes: int) -> list[int]:
    """Return the sizes of classes for which there are variants, so few because each takes as long to compile as a
    layer.

    Beyond a quarter of the words, all at once take less time.
    """
    largest = min(words.bit_length() - 3, 13)
    return sorted(1 << power for power in range(largest, 4, -2) if words <= classes << power)


def _among_all(h: Array, weights: Array, word: Array, first: Array, last: Array, use: Array) -> Array:
    """Return all words at once."""
    position = jnp.arange(len(weights))
    inside = (position >= first[:, None]) & (position < last[:, None])
    return jnp.sum(use * _log_softmax(dot(h, weights, (-1, -1)), inside, word))


def _log_softmax(logits: Array, inside: Array, place: Array) -> Array:
    """Per row: log softmax over the elements `inside`, at one of them."""
    logits = jnp.where(inside, logits, jnp.asarray(jnp.finfo(logits.dtype).min, logits.dtype))
    shifted = logits - jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    normaliser = jnp.log(jnp.sum(jnp.where(inside, jnp.exp(shifted), 0), axis=-1))
    return jnp.take_along_axis(shifted, place[:, None], axis=-1, mode="clip")[:, 0] - normaliser


@functools.cache
def _among(size: int) -> Callable[..., Array]:
    """Cell after cell, `size` consecutive words each; the gradient is found in the same pass."""

    def one(
        h: Array, weights: Array, word: Array, first: Array, last: Array, n: Array
    ) -> tuple[Array, Array, Array, Array]:
        start = jnp.minimum(first[n], len(weights) - size)
        rows = jax.lax.dynamic_slice_in_dim(weights, start, size)
        columns = start + jnp.arange(size)
        inside = (columns >= first[n]) & (columns < last[n])
        logits = dot(rows, h[n][:, None])[:, 0]
        logits = jnp.where(inside, logits, jnp.asarray(jnp.finfo(h.dtype).min, h.dtype))
        powers = jnp.where(inside, jnp.exp(logits - jnp.max(logits)), 0)
        sum_ = jnp.sum(powers)
        log_probability = logits[word[n] - start] - jnp.max(logits) - jnp.log(sum_)
        return start, rows, log_probability, (columns == word[n]) - powers / sum_

    def primal(h: Array, weights: Array, word: Array, first: Array, last: Array, use: Array) -> Array:
        def add(n: Array, total: Array) -> Array:
            return total + use[n] * one(h, weights, word, first, last, n)[2]

        return jax.lax.fori_loop(0, len(h), add, jnp.zeros((), h.dtype))

    def forward(
        h: Array, weights: Array, word: Array, first: Array, last: Array, use: Array
    ) -> tuple[Array, Residuals]:
        def add(n: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            total, to_h, to_weights = carry
            start, rows, value, slope = one(h, weights, word, first, last, n)
            slope = use[n] * slope.astype(h.dtype)
            part = jax.lax.dynamic_slice_in_dim(to_weights, start, size) + slope[:, None] * h[n]
            to_weights = jax.lax.dynamic_update_slice_in_dim(to_weights, part, start, 0)
            return total + use[n] * value, to_h.at[n].set(dot(slope[None], rows)[0]), to_weights

        nothing = (jnp.zeros((), h.dtype), jnp.zeros_like(h), jnp.zeros_like(weights))
        total, to_h, to_weights = jax.lax.fori_loop(0, len(h), add, nothing)
        return total, (to_h, to_weights)

    def backward(residuals: Residuals, g: Array) -> Gradients:
        to_h, to_weights = residuals
        return g * to_h, g * to_weights, None, None, None, None

    return custom_gradient(forward, backward, primal)
