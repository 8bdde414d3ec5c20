"""Matrix products in the precision of their operands."""

from __future__ import annotations

from typing import Any

from networks.arrays.lazy import jax

Array = Any


def dot(a: Array, b: Array, contract: tuple[int, int] = (-1, 0)) -> Array:
    """Matrix product of 2-D arrays in their own precision (never a shorter one)."""
    dimensions = (((contract[0] % 2,), (contract[1] % 2,)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, precision=jax.lax.Precision.HIGHEST)
