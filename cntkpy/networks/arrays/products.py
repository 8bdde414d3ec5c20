"""Matrix products in the precision of their operands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, jax, jnp

if TYPE_CHECKING:
    from jaxtyping import Float


def dot(
    a: Float[Array, "_ _"], b: Float[Array, "_ _"], contract: tuple[int, int] = (-1, 0)
) -> Float[Array, "rows columns"]:
    """Matrix product of 2-D arrays in their own precision (never a shorter one)."""
    dimensions = (((contract[0] % 2,), (contract[1] % 2,)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, precision=jax.lax.Precision.HIGHEST)


def product(
    a: Float[Array, "*b _ _"], b: Float[Array, "*b _ _"], contract: tuple[int, int] = (-1, -2)
) -> Float[Array, "*b rows columns"]:
    """Products of matrices in the last two axes, one for each position of the axes before, in their own precision.

    Args:
        a: the left matrices.
        b: the right matrices; the axes before the last two are those of `a`.
        contract: the axes that are summed over, -1 or -2.
    """
    lead = a.shape[:-2]
    if math.prod(lead) == 1:  # XLA turns matrices of products that have other axes before
        result = dot(a.reshape(a.shape[-2:]), b.reshape(b.shape[-2:]), contract)
        return result.reshape(*lead, *result.shape)
    lead_axes = tuple(range(len(lead)))
    axes = tuple((axis % a.ndim,) for axis in contract)
    return jax.lax.dot_general(a, b, (axes, (lead_axes, lead_axes)), precision=jax.lax.Precision.HIGHEST)


def by_slot(a: Float[Array, "T S ..."]) -> Float[Array, "S T ..."]:
    """Swap the first two axes; with one slot, reshape, because XLA's CPU loops would materialise the transpose."""
    if 1 in a.shape[:2]:
        return a.reshape(a.shape[1], a.shape[0], *a.shape[2:])
    return jnp.swapaxes(a, 0, 1)
