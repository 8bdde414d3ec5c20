"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "normalised": '''\
def normalised(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: float = 1e-5
) -> Array:
    """Return x with statistics taken out, channel by channel (the axis after the batch)."""
    weight, bias, mean, var = (
        v.reshape(-1, *[1] * (x.ndim - 2)) for v in (weight, bias, mean, var)
    )
    return (x - mean) * jax.lax.rsqrt(var + eps) * weight + bias''',
    "batch_norm": '''\
def batch_norm(
    params: Params,
    state: Params,
    x: Array,
    training: bool = False,
    time_constant: float = 0.0,
    eps: float = 1e-5,
) -> tuple[Array, Params]:
    """Return x normalised by the running statistics, in training by its own, and the new state.

    The running statistics move towards those of x; the time constant is in samples.
    """
    mean, var = state["mean"], state["var"]
    if training:
        axes = (0, *range(2, x.ndim))
        mean, var = x.mean(axes), x.var(axes)
        momentum = 1 - math.exp(-len(x) / time_constant) if time_constant else 1.0
        unbiased = var * x.size / max(1, x.size - x.shape[1])
        state = {
            "mean": state["mean"] + momentum * (mean - state["mean"]),
            "var": state["var"] + momentum * (unbiased - state["var"]),
        }
    return normalised(x, params["weight"], params["bias"], mean, var, eps), state''',
}
