"""Means of rows weighted by a softmax, with a gradient that needs little of the forward pass.

In a block that is computed again for the gradient, two numbers of each softmax are kept, the largest score and the
inverse of the sum; the weights are computed again from the scores (T. Dao et al., "FlashAttention: fast and
memory-efficient exact attention with IO-awareness", NeurIPS 2022, section 3 and appendix B). Elsewhere the exponentials
are kept. The sum over the weights in the derivative of a softmax is the product of the mean with its gradient, which is
short.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, Residuals, checkpoint_name, custom_gradient, jnp
from cntkpy.networks.arrays.products import product

if TYPE_CHECKING:
    from jaxtyping import Float


KEPT = "weighted_means"
"""The name of what a block that is computed again need not compute again, see `jax.checkpoint_policies`."""


def weighted_means(scores: Float[Array, "*b n m"], rows: Float[Array, "*b m k"]) -> Float[Array, "*b n k"]:
    """Return the softmax of the scores along their last axis times the rows, in the type of the rows.

    Where the scores are of a longer type, their softmax is computed in it, and products in that of the rows.
    """
    lead = scores.shape[:-2]
    if math.prod(lead) != 1:
        return _means(scores, rows)
    means = _means(scores.reshape(scores.shape[-2:]), rows.reshape(rows.shape[-2:]))
    return means.reshape(*lead, *means.shape)


def _parts(scores: Array, rows: Array) -> tuple[Array, Array, Array]:
    """Return the means, the exponentials of the scores, and 1 / the sum of the exponentials."""
    largest = _kept(jnp.max(scores, axis=-1, keepdims=True))
    exponentials = jnp.exp(scores - largest)
    scale = _kept(1 / jnp.sum(exponentials, axis=-1, keepdims=True))
    weights, factor = _scaled(exponentials, scale, rows)
    return _kept((product(weights, rows) * factor).astype(rows.dtype)), exponentials, scale


def _kept(array: Array) -> Array:
    return checkpoint_name(array, KEPT)


def _scaled(weights: Array, scale: Array, rows: Array) -> tuple[Array, Array]:
    """Weights as an operand of products, and what the other operand, or the product, is to be multiplied by.

    To multiply the weights themselves takes a pass over them; numbers of 16 bits have too small a range to do without.
    """
    if rows.dtype == weights.dtype:
        return weights, scale
    return (weights * scale).astype(rows.dtype), jnp.ones_like(scale)


def _forward(scores: Array, rows: Array) -> tuple[Array, Residuals]:
    means, exponentials, scale = _parts(scores, rows)
    return means, (exponentials, rows, means, scale)


def _backward(kept: tuple[Array, ...], g: Array) -> tuple[Array, Array]:
    exponentials, rows, means, scale = kept
    weights, factor = _scaled(exponentials, scale, rows)
    g = (g * factor).astype(rows.dtype)
    along = jnp.sum(g.astype(scale.dtype) * means, axis=-1, keepdims=True)
    of_scores = weights * (product(g, rows, (-1, -1)) - along)
    return of_scores.astype(scale.dtype), product(weights, g, (-2, -2))


_means = custom_gradient(_forward, _backward)
