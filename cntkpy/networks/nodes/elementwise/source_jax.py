"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "hardmax": '''\
def hardmax(x: Array) -> Array:
    """Return one-hot vectors of the largest elements, the first one of equal ones."""
    return jax.nn.one_hot(jnp.argmax(x, axis=-1), x.shape[-1], dtype=x.dtype)''',
    "log": '''\
def log(x: Array) -> Array:
    """Return the natural logarithm, -85.1 where it would be below that."""
    return jnp.where(x < 1e-37, -85.1, jnp.log(jnp.maximum(x, 1e-37)))''',
    "reciprocal": '''\
def reciprocal(x: Array) -> Array:
    """Return 1 / x, and 0 where x is 0."""
    return jnp.where(x == 0, 0.0, 1 / jnp.where(x == 0, 1.0, x))''',
    "log_plus": '''\
def log_plus(x: Array, y: Array) -> Array:
    """Return log(exp(x) + exp(y)); the larger operand where the other one is 9.21 below it."""
    total = jnp.logaddexp(x, y)
    far = jnp.abs(x - y) > 9.2103404
    return total + jax.lax.stop_gradient(jnp.where(far, jnp.maximum(x, y) - total, 0.0))''',
    "clip": '''\
def clip(x: Array, lowest: Array | float, highest: Array | float) -> Array:
    """Return x within bounds, the lower one first; bounds have no gradient."""
    lowest, highest = jax.lax.stop_gradient((lowest, highest))
    return jnp.where(x < lowest, lowest, jnp.minimum(x, highest))''',
    "dropout": '''\
def dropout(x: Array, rate: float, key: Array | None) -> Array:
    """Return x with elements set to 0 at random and the others enlarged; without a key, x."""
    if key is None:
        return x
    kept = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(kept, x / (1 - rate), 0.0)''',
}
