"""Delay nodes and loops (docs/specification/networks.md F.1 to F.3).

PastValue(k) at a cell is its input k steps earlier in the same sequence, or a constant where the sequence is not that
old; FutureValue looks ahead. A loop (strongly connected component through delay nodes) is one `lax.scan` over time.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import jax, jnp
from networks.arrays.products import dot
from networks.arrays.sparse import is_sparse
from networks.compile.apply import apply
from networks.compile.plan import Plan
from networks.graph import shapes
from networks.graph.axes import held
from networks.graph.network import Node, ValidatedNetwork
from networks.nodes.call import Context

if TYPE_CHECKING:
    from jaxtyping import Float

Array = Any

CARRIED = "/past"
"""How the state names the activations that truncated sequences carry; their axes are step, slot, ..."""


def _inside(node: Node, context: Context) -> Array:
    """Bool (T, S): whether the delayed cell belongs to the same sequence."""
    distance = context.to_start if node.kind.delay < 0 else context.to_end
    steps = int(node.options["timeStep"])
    if distance is None:
        return jnp.zeros((context.T, context.S), bool)
    return distance >= steps


def _select(node: Node, context: Context, delayed: Array, initial: Array | None = None) -> Array:
    """The delayed values, and where they leave the sequence, the initial state or the constant."""
    inside = _inside(node, context)
    if initial is None:
        default = jnp.asarray(node.options["defaultHiddenActivity"], delayed.dtype)
    else:
        rank = len(node.shape or ())
        default = initial.reshape(*(1,) * (rank - initial.ndim), *initial.shape)
        delayed = delayed.reshape(*delayed.shape[:2], *(1,) * (rank + 2 - delayed.ndim), *delayed.shape[2:])
    return jnp.where(inside.reshape(*inside.shape, *(1,) * (delayed.ndim - 2)), delayed, default)


def _carry_name(source: Node) -> str:
    return source.name + CARRIED


def shift(
    node: Node, source: Float[Array, "T S ..."], context: Context, initial: Float[Array, " *axes"] | None = None
) -> Float[Array, "T S ..."]:
    """A delay node outside of loops.

    Args:
        node: the delay node.
        source: its input, `(T, S, ...)`.
        context: for boundaries and the activations carried over from the last minibatch.
        initial: the state outside of the sequence, without T and S; None: the node's constant.
    """
    source = _dense(source, node.input(0), context)
    steps = int(node.options["timeStep"])
    length = source.shape[0]
    name = _carry_name(node.input(0))
    carried = context.state.get(name) if node.kind.delay < 0 else None
    pad = jnp.zeros((steps, *source.shape[1:]), source.dtype) if carried is None else carried[-steps:]
    if node.kind.delay < 0:
        delayed = jnp.concatenate([pad, source])[:length]
        if carried is not None:
            context.new_state[name] = _last_steps(carried, source, context)
    else:
        delayed = jnp.concatenate([source, pad])[steps:]
    return _select(node, context, delayed, initial)


def _last_steps(carried: Array, source: Array, context: Context) -> Array:
    """What the next minibatch needs: the last steps of `source`, before them those of `carried`, padding left out."""
    both = jax.lax.stop_gradient(jnp.concatenate([carried, source]))
    steps = context.T if context.mask is None else jnp.sum(jnp.any(context.mask, axis=1), dtype=jnp.int32)
    return jax.lax.dynamic_slice_in_dim(both, steps, carried.shape[0])


class _Product:
    """Several matrix products of a loop with the same right operand, as one matrix product per step."""

    def __init__(self, nodes: list[Node], constants: dict[Node, Array]) -> None:
        self.nodes = nodes
        self.widths = [shapes.matrix(node.input(0).shape or (1,))[0] for node in nodes]
        weights = [constants[node.input(0)].reshape(-1, width) for node, width in zip(nodes, self.widths, strict=True)]
        self.weights = jnp.concatenate(weights, axis=1)
        self.parts: dict[Node, Array] = {}
        self.operand: Array = None

    def part(self, node: Node, now: dict[Node, Array]) -> Array:
        """The node's value at this step."""
        x = now[node.input(1)]
        if x is not self.operand:
            self.operand = x
            product = dot(x.reshape(-1, self.weights.shape[0]), self.weights)
            ends = list(itertools.accumulate(self.widths[:-1]))
            parts = jnp.split(product, ends, axis=1)  # its gradient joins the parts; that of slices would add them up
            self.parts = dict(zip(self.nodes, parts, strict=True))
        return self.parts[node].reshape(*x.shape[:2], *reversed(node.shape or ()))


def _equal_delays(delays: list[Node]) -> dict[Node, Node]:
    """For each delay node the first one with the same input, steps and constant."""
    first: dict[tuple[tuple[Node, ...], int, float], Node] = {}
    result: dict[Node, Node] = {}
    for node in delays:
        key = (tuple(node.connected), int(node.options["timeStep"]), float(node.options["defaultHiddenActivity"]))
        result[node] = first.setdefault(key, node)
    return result


def _joined_products(loop: list[Node], constants: dict[Node, Array], same: dict[Node, Node]) -> dict[Node, _Product]:
    """The products of a loop that can be computed together."""
    groups: dict[tuple[Node, int], list[Node]] = {}
    for node in loop:
        if node.kind.product and node.options.get("outputRank", 1) == 1 and node.input(0) in constants:
            inner = shapes.matrix(node.input(0).shape or (1,))[1]
            groups.setdefault((same.get(node.input(1), node.input(1)), inner), []).append(node)
    result: dict[Node, _Product] = {}
    for nodes in groups.values():
        if len(nodes) > 1:
            product = _Product(nodes, constants)
            result.update(dict.fromkeys(nodes, product))
    return result


def run_loop(plan: Plan, loop: list[Node], values: dict[Node, Array], context: Context) -> dict[Node, Array]:
    """Evaluate a loop step by step.

    Args:
        plan: the evaluation it is part of.
        loop: its nodes in the order of one step, delay nodes first.
        values: values of all nodes before it.
        context: of the whole minibatch.

    Returns:
        Values of the nodes of the loop that others use, `(T, S, ...)`.
    """
    in_pieces = any(_carry_name(node.input(0)) in context.state for node in loop if node.kind.delay)
    if plan.own_slots and not in_pieces and (repeated := held(loop)) is not None:
        return _repeated(*repeated, values, context)
    members = set(loop)
    delays = [node for node in loop if node.kind.delay]
    direction = delays[0].kind.delay
    depth: dict[Node, int] = {}  # how many past values of a node are kept
    for node in delays:
        depth[node.input(0)] = max(depth.get(node.input(0), 0), int(node.options["timeStep"]))

    # a dict keeps the order of the loop: that of a set differs between processes, and with it the text of the program
    outside = dict.fromkeys(i for node in loop for i in node.connected if i not in members)
    sequences = {i: _dense(values[i], i, context) for i in outside if i.has_layout}
    constants = {i: values[i] for i in outside if not i.has_layout}
    wanted = [n for n in loop if n in plan.outputs or any(u not in members for u in plan.users[n])]
    kept = [source for source in depth if context.state.get(_carry_name(source)) is not None]
    emitted = list(dict.fromkeys([*wanted, *kept]))

    same = _equal_delays(delays)
    products = _joined_products(loop, constants, same)

    def start(source: Node) -> Array:
        carried = context.state.get(_carry_name(source)) if direction < 0 else None
        if carried is not None:
            return carried[-depth[source] :]
        assert source.shape is not None
        return jnp.zeros((depth[source], context.S, *reversed(source.shape)), context.dtype)

    def step(buffers: dict[str, Array], slices: Any) -> Any:
        inputs, mask, to_start, to_end, key = slices
        rows = [None if x is None else x[None] for x in (mask, to_start, to_end)]
        inner = context.step(rows[0], rows[1], rows[2], key)
        now: dict[Node, Array] = {**constants, **{i: inputs[i.name][None] for i in sequences}}
        for node in loop:
            if same.get(node, node) is not node:
                now[node] = now[same[node]]
            elif node.kind.delay:
                steps = int(node.options["timeStep"])
                past = buffers[node.input(0).name]
                initial = now[node.input(1)] if len(node.inputs) > 1 else None
                now[node] = _select(node, inner, past[past.shape[0] - steps][None], initial)
            elif node in products:
                now[node] = products[node].part(node, now)
            else:
                now[node] = apply(node, [now[i] for i in node.connected], inner, plan.order[node])
        buffers = {s.name: jnp.concatenate([buffers[s.name][1:], now[s]]) for s in depth}
        return buffers, {n.name: now[n][0] for n in emitted}

    keys = None
    if context.key is not None and any(node.kind.random for node in loop):
        keys = jax.random.split(context.key, context.T)
    slices = ({i.name: a for i, a in sequences.items()}, context.mask, context.to_start, context.to_end, keys)
    _, steps = jax.lax.scan(step, {s.name: start(s) for s in depth}, slices, reverse=direction > 0)
    for source in kept:
        name = _carry_name(source)
        context.new_state[name] = _last_steps(context.state[name], steps[source.name], context)
    return {node: steps[node.name] for node in wanted}


def _repeated(chosen: Node, past: Node, first: Node, values: dict[Node, Array], context: Context) -> dict[Node, Array]:
    """The loop of `networks.graph.axes.held`, where sequences begin at the first time step: no steps are needed."""
    assert chosen.shape is not None
    start = _dense(values[first], first, context)[:1]
    missing = len(chosen.shape) + 2 - start.ndim
    start = start.reshape(*start.shape[:2], *(1,) * missing, *start.shape[2:])
    every = jnp.broadcast_to(start, (context.T, context.S, *reversed(chosen.shape)))
    return {chosen: every, past: shift(past, every, context)}


def _dense(value: Any, node: Node, context: Context) -> Array:
    return value.dense(context.T, context.S, node.shape) if is_sparse(value) else value


def carried(network: ValidatedNetwork) -> dict[str, tuple[int, ...]]:
    """For truncated back-propagation: state name -> (steps kept, *array shape of one cell) of PastValue inputs."""
    result: dict[str, tuple[int, ...]] = {}
    for node in network.nodes.values():
        if node.kind.delay < 0:
            source = node.input(0)
            assert source.shape is not None
            name, steps = _carry_name(source), int(node.options["timeStep"])
            result[name] = (max(steps, result.get(name, (0,))[0]), *reversed(source.shape))
    return result


__all__ = ["CARRIED", "carried", "run_loop", "shift"]
