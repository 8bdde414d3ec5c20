"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "largest": '''\
def largest(x: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the largest element; each of several equal ones has the whole gradient."""
    value = jax.lax.stop_gradient(x.max(axis, keepdims=True))
    slope = jnp.where(x == value, x - jax.lax.stop_gradient(x), 0.0)
    return value + slope.sum(axis, keepdims=True)''',
    "smallest": '''\
def smallest(x: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the smallest element; each of several equal ones has the whole gradient."""
    value = jax.lax.stop_gradient(x.min(axis, keepdims=True))
    slope = jnp.where(x == value, x - jax.lax.stop_gradient(x), 0.0)
    return value + slope.sum(axis, keepdims=True)''',
    "top": '''\
def top(x: Array, count: int, axis: int) -> tuple[Array, Array]:
    """Return the largest elements along an axis, and their places."""
    values, places = jax.lax.top_k(jnp.moveaxis(x, axis, -1), count)
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis)''',
}
