"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "attention_weights": '''\
def attention_weights(weights: Array, keys: Array, query: Array, mask: Array) -> Array:
    """Return, for each step of the query, shares of the steps of the keys that sum to 1."""
    scores = jnp.tanh(keys[:, None] + query[:, :, None]) @ weights
    return jax.nn.softmax(jnp.where(mask[:, None], scores, -jnp.inf))[..., None]''',
    "additive_attention": '''\
def additive_attention(
    weights: Array, keys: Array, values: Array, query: Array, mask: Array
) -> Array:
    """Return means of the values of all steps, weighted by how well keys go with the query."""
    shares = attention_weights(weights, keys, query, mask)[..., 0]
    return shares @ jnp.where(mask[..., None], values, 0.0)''',
    "dot_product_attention": '''\
def dot_product_attention(query: Array, keys: Array, values: Array, mask: Array) -> Array:
    """Return means of the values of all steps (batch, steps, heads, elements) by attention."""
    scores = jnp.einsum("bqhe,bkhe->bhqk", query, keys)
    shares = jax.nn.softmax(jnp.where(mask[:, None, None], scores, -jnp.inf))
    values = jnp.where(mask[:, :, None, None], values, 0.0)
    return jnp.einsum("bhqk,bkhe->bqhe", shares, values)''',
}
