"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "linear": '''\
def linear(params: Params, x: Array) -> Array:
    """Return x @ weight + bias."""
    y = x @ params["weight"]
    return y + params["bias"] if "bias" in params else y''',
    "cosine": '''\
def cosine(x: Array, y: Array) -> Array:
    """Return the cosine of the angle between vectors."""
    x, y = (v / jnp.maximum(jnp.linalg.norm(v, axis=-1, keepdims=True), 1e-30) for v in (x, y))
    return (x * y).sum(-1, keepdims=True)''',
    "cosine_with_negatives": '''\
def cosine_with_negatives(x: Array, y: Array, shift: int, count: int) -> Array:
    """Return the cosines with the same sample of y, then with others of the minibatch."""
    shifted = [jnp.roll(y, -(shift + number), 0) for number in range(count)]
    return jnp.concatenate([cosine(x, operand) for operand in (y, *shifted)], axis=-1)''',
}
