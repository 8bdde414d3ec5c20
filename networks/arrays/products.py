"""Matrix products in the precision of their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import jax

if TYPE_CHECKING:
    from jaxtyping import Float

Array = Any


def dot(
    a: Float[Array, "_ _"], b: Float[Array, "_ _"], contract: tuple[int, int] = (-1, 0)
) -> Float[Array, "rows columns"]:
    """Matrix product of 2-D arrays in their own precision (never a shorter one)."""
    dimensions = (((contract[0] % 2,), (contract[1] % 2,)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, precision=jax.lax.Precision.HIGHEST)
