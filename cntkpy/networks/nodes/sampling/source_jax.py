"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "fold": '''\
def fold(key: Array | None, number: int | Array) -> Array | None:
    """Return another key of random numbers for each number; None for None."""
    return None if key is None else jax.random.fold_in(key, number)'''
}
