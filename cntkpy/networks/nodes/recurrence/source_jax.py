"""Small functions that written functions of JAX have where JAX has none of that meaning."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "past_value": '''\
def past_value(x: Array, steps: int = 1, initial: float | Array = 0.0) -> Array:
    """Return the values `steps` earlier in the same sequence, `initial` before its start."""
    start = jnp.asarray(initial, x.dtype)
    if start.ndim == x.ndim - 1 and start.shape[:1] == x.shape[:1]:
        start = start[:, None]
    start = jnp.broadcast_to(start, (x.shape[0], steps, *x.shape[2:]))
    return jnp.concatenate([start, x], axis=1)[:, : x.shape[1]]''',
    "future_value": '''\
def future_value(x: Array, mask: Array, steps: int = 1, initial: float | Array = 0.0) -> Array:
    """Return the values `steps` later in the same sequence, `initial` behind its end."""
    after = jnp.asarray(initial, x.dtype)
    if after.ndim == x.ndim - 1 and after.shape[:1] == x.shape[:1]:
        after = after[:, None]
    x = jnp.where(mask.reshape(*mask.shape, *[1] * (x.ndim - 2)), x, after)
    after = jnp.broadcast_to(after, (x.shape[0], steps, *x.shape[2:]))
    return jnp.concatenate([x, after], axis=1)[:, steps:]''',
    "scan_steps": '''\
def scan_steps(
    step: Callable, start: Any, inputs: Any, mask: Array | None = None, reverse: bool = False
) -> Any:
    """Return what `step(state, inputs of a step)` gives at all steps, each (batch, steps, ...).

    With a mask (batch, steps) the state stays that of the start in the padding.
    """

    def masked(state: Any, values: tuple[Any, Array | None]) -> tuple[Any, Any]:
        x, inside = values
        new, y = step(state, x)
        if inside is not None:
            new = jax.tree.map(
                lambda v, s: jnp.where(inside.reshape(-1, *[1] * (v.ndim - 1)), v, s), new, start
            )
        return new, y

    by_step = jax.tree.map(lambda x: x.swapaxes(0, 1), (inputs, mask))
    _, outputs = jax.lax.scan(masked, start, by_step, reverse=reverse)
    return jax.tree.map(lambda y: y.swapaxes(0, 1), outputs)''',
    "lstm": '''\
def lstm(
    params: Params,
    x: Array,
    start: tuple[float, float] = (0.0, 0.0),
    mask: Array | None = None,
    reverse: bool = False,
) -> Array:
    """Return the outputs (batch, steps, features) of an LSTM whose h and c begin with `start`."""
    gates = x @ params["weight_ih"] + params["bias_ih"] + params["bias_hh"]

    def step(state: tuple[Array, Array], gates: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, g, o = jnp.split(gates + h @ params["weight_hh"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    size = params["weight_hh"].shape[0]
    h, c = (jnp.full((len(x), size), value, gates.dtype) for value in start)
    return scan_steps(step, (h, c), gates, mask, reverse)''',
    "gru": '''\
def gru(
    params: Params,
    x: Array,
    start: float = 0.0,
    mask: Array | None = None,
    reverse: bool = False,
) -> Array:
    """Return the outputs (batch, steps, features) of a GRU whose h begins with `start`."""
    gates = x @ params["weight_ih"] + params["bias_ih"]

    def step(h: Array, gates: Array) -> tuple[Array, Array]:
        r, z, n = jnp.split(gates, 3, axis=-1)
        r_h, z_h, n_h = jnp.split(h @ params["weight_hh"] + params["bias_hh"], 3, axis=-1)
        z = jax.nn.sigmoid(z + z_h)
        h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + r_h) * n_h) + z * h
        return h, h

    size = params["weight_hh"].shape[0]
    return scan_steps(step, jnp.full((len(x), size), start, gates.dtype), gates, mask, reverse)''',
    "rnn": '''\
def rnn(
    params: Params,
    x: Array,
    start: float = 0.0,
    mask: Array | None = None,
    reverse: bool = False,
    activation: Callable[[Array], Array] = jnp.tanh,
) -> Array:
    """Return the outputs (batch, steps, features) of plain units whose h begins with `start`."""
    total = x @ params["weight_ih"] + params["bias_ih"] + params["bias_hh"]

    def step(h: Array, total: Array) -> tuple[Array, Array]:
        h = activation(total + h @ params["weight_hh"])
        return h, h

    size = params["weight_hh"].shape[0]
    return scan_steps(step, jnp.full((len(x), size), start, total.dtype), total, mask, reverse)''',
    "rnn_relu": '''\
def rnn_relu(
    params: Params,
    x: Array,
    start: float = 0.0,
    mask: Array | None = None,
    reverse: bool = False,
) -> Array:
    """Return the outputs (batch, steps, features) of plain units with relu."""
    return rnn(params, x, start, mask, reverse, jax.nn.relu)''',
    "both_ways": '''\
def both_ways(
    layer: Callable[..., Array], params: Params, x: Array, mask: Array | None = None
) -> Array:
    """Return the outputs of a recurrent layer in both directions, one after the other."""
    back = layer(params["back"], x, mask=mask, reverse=True)
    return jnp.concatenate([layer(params["ahead"], x), back], axis=-1)''',
}
