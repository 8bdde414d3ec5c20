"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "last_step": '''\
def last_step(x: Array, mask: Array) -> Array:
    """Return the value at the last step of each sequence."""
    return x[jnp.arange(len(x)), mask.sum(1) - 1]''',
    "last_steps": '''\
def last_steps(x: Array, mask: Array, count: int, initial: float = 0.0) -> Array:
    """Return the last steps of each sequence (batch, count, ...), the last one first.

    Before the start of a sequence stands `initial`.
    """
    step = mask.sum(1, keepdims=True) - 1 - jnp.arange(count)
    values = x[jnp.arange(len(x))[:, None], jnp.maximum(step, 0)]
    inside = (step >= 0).reshape(*step.shape, *[1] * (x.ndim - 2))
    return jnp.where(inside, values, initial)''',
    "kept_steps": '''\
def kept_steps(flags: Array, mask: Array) -> tuple[Array, Array]:
    """Return the numbers of the steps that flags mark, and which of these there are."""
    flags = flags & mask
    index = jnp.argsort(~flags, axis=1, stable=True)
    kept = jnp.arange(flags.shape[1]) < flags.sum(1, keepdims=True)
    return jnp.where(kept, index, 0), kept''',
    "repeated_steps": '''\
def repeated_steps(mask: Array, factor: float) -> tuple[Array, Array]:
    """Return the numbers of steps so that there are `factor` times as many, and which there are."""
    steps = mask.shape[1]
    lengths = jnp.ceil(mask.sum(1) * (factor * (1 - 1e-6)))
    step = jnp.arange(math.ceil(steps * factor * (1 - 1e-6)))
    kept = step < lengths[:, None]
    return jnp.minimum(jnp.floor(step / factor * (1 + 1e-6)), steps - 1).astype(int) * kept, kept''',
    "gather_steps": '''\
def gather_steps(x: Array, index: Array) -> Array:
    """Return the steps of x (batch, steps, ...) that have the numbers (batch, kept steps)."""
    return x[jnp.arange(len(x))[:, None], index.astype(int)]''',
    "scatter_steps": '''\
def scatter_steps(x: Array, index: Array, steps: int, kept: Array | None = None) -> Array:
    """Return zeros (batch, steps, ...) with the steps of x added at the numbers (batch, kept)."""
    if kept is not None:
        x = x * kept.reshape(*kept.shape, *[1] * (x.ndim - 2))
    zeros = jnp.zeros((x.shape[0], steps, *x.shape[2:]), x.dtype)
    return zeros.at[jnp.arange(len(x))[:, None], index.astype(int)].add(x)''',
    "with_steps": '''\
def with_steps(x: Array, steps: int, padding: float = 0.0) -> Array:
    """Return a value with another number of steps: some are cut off, or padding is added."""
    x = x[:, :steps]
    ends = [(0, 0), (0, steps - x.shape[1]), *[(0, 0)] * (x.ndim - 2)]
    return jnp.pad(x, ends, constant_values=padding)''',
}
