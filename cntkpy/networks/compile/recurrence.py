"""Delay nodes and loops (docs/specification/networks.md F.1 to F.3).

PastValue(k) at a cell is its input k steps earlier in the same sequence, or a constant where the sequence is not that
old; FutureValue looks ahead. A loop (strongly connected component through delay nodes) is one `lax.scan` over time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.arrays.packing import at_every_step, together
from cntkpy.networks.compile.apply import apply
from cntkpy.networks.compile.loop_products import JoinedProduct, dense, differentiable_loop, joined_products
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph.axes import ONE, held
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.call import Context

if TYPE_CHECKING:
    from jax.extend.core import Primitive
    from jaxtyping import Float


CARRIED = "/past"
"""Key in the state of activations that truncated sequences carry; their axes are step, slot, ..."""


def _inside(node: Node, context: Context) -> Array:
    """Bool (T, S): whether the delayed cell belongs to the same sequence."""
    distance = context.to_start if node.kind.time.delay < 0 else context.to_end
    steps = int(node.options["timeStep"])
    if distance is None:
        return jnp.zeros((context.T, context.S), bool)
    return distance >= steps


def _select(node: Node, context: Context, delayed: Array, initial: Array | None = None) -> Array:
    """Return the delayed values, and where they leave the sequence, the initial state or the constant."""
    inside = _inside(node, context)
    if initial is None:
        default = jnp.asarray(node.options["defaultHiddenActivity"], delayed.dtype)
    else:
        rank = len(node.shape or ())
        lead = 2 if node.input(1).has_layout else 0
        missing = rank + lead - initial.ndim
        default = initial.reshape(*initial.shape[:lead], *(1,) * missing, *initial.shape[lead:])
        delayed = delayed.reshape(*delayed.shape[:2], *(1,) * (rank + 2 - delayed.ndim), *delayed.shape[2:])
    return jnp.where(inside.reshape(*inside.shape, *(1,) * (delayed.ndim - 2)), delayed, default)


def _along(value: Array, node: Node, context: Context) -> Array:
    """Return the value of a node outside of a loop; where sequences share slots, one of each sequence comes to its
    steps.
    """
    if context.packed is None or node.axis != ONE:
        return value
    return at_every_step(dense(value, node)[0], context.packed)


def _carry_name(source: Node) -> str:
    return source.name + CARRIED


def shift(
    node: Node, source: Float[Array, "T S ..."], context: Context, initial: Float[Array, " *axes"] | None = None
) -> Float[Array, "T S ..."]:
    """Return a delay node outside of loops.

    Args:
        node: the delay node.
        source: its input, `(T, S, ...)`.
        context: for boundaries and the activations carried over from the last minibatch.
        initial: the state outside of the sequence, without T and S or `(1, S, ...)`; None: the node's constant.
    """
    if initial is not None:
        initial = _along(initial, node.input(1), context)
    source = dense(source, node.input(0))
    steps = int(node.options["timeStep"])
    length = source.shape[0]
    name = _carry_name(node.input(0))
    carried = context.state.get(name) if node.kind.time.delay < 0 else None
    pad = jnp.zeros((steps, *source.shape[1:]), source.dtype) if carried is None else carried[-steps:]
    if node.kind.time.delay < 0:
        delayed = jnp.concatenate([pad, source])[:length]
        if carried is not None:
            context.new_state[name] = _last_steps(carried, source, context)
    else:
        delayed = jnp.concatenate([source, pad])[steps:]
    return _select(node, context, delayed, initial)


def _last_steps(carried: Array, source: Array, context: Context) -> Array:
    """Return the steps for the next minibatch: the last steps of `source`, before them those of `carried`, padding left
    out."""
    both = jax.lax.stop_gradient(jnp.concatenate([carried, source]))
    steps = context.T if context.mask is None else jnp.sum(jnp.any(context.mask, axis=1), dtype=jnp.int32)
    return jax.lax.dynamic_slice_in_dim(both, steps, carried.shape[0])


_ARITHMETIC = ("add", "sub", "mul", "neg", "abs", "sign", "max", "min", "select_n", "eq", "ne", "ge", "gt", "le", "lt")
_FORM = ("broadcast_in_dim", "reshape", "squeeze", "slice", "split", "concatenate", "transpose", "convert_element_type")
_CHEAP = frozenset({*_ARITHMETIC, *_FORM, "and", "or", "not"})
"""Operations that the backward pass of a step repeats, because to store their results would take as long."""


def _is_kept(operation: Primitive, *_: object, **__: object) -> bool:
    return operation.name not in _CHEAP


def _equal_delays(delays: list[Node]) -> dict[Node, Node]:
    """For each delay node the first one with the same input, steps and constant."""
    first: dict[tuple[tuple[Node, ...], int, float], Node] = {}
    result: dict[Node, Node] = {}
    for node in delays:
        key = (tuple(node.connected), int(node.options["timeStep"]), float(node.options["defaultHiddenActivity"]))
        result[node] = first.setdefault(key, node)
    return result


def _depth(loop: list[Node]) -> dict[Node, int]:
    """Return the number of past values of the nodes of a loop are kept."""
    depth: dict[Node, int] = {}
    for node in loop:
        if node.kind.time.delay:
            depth[node.input(0)] = max(depth.get(node.input(0), 0), int(node.options["timeStep"]))
    return depth


def _wanted(loop: list[Node], plan: Plan) -> list[Node]:
    """Return the nodes of a loop that others use."""
    members = set(loop)
    return [node for node in loop if node in plan.outputs or any(user not in members for user in plan.users[node])]


def _products(loop: list[Node], plan: Plan) -> tuple[list[JoinedProduct], dict[Node, Node]]:
    """See `joined_products`."""
    members = set(loop)
    fixed = {i for node in loop for i in node.connected if i not in members and not i.has_layout}
    same = _equal_delays([node for node in loop if node.kind.time.delay])
    return joined_products(loop, plan, fixed, same, [*_wanted(loop, plan), *_depth(loop)])


def side_by_side(plan: Plan) -> list[tuple[list[int], list[Node]]]:
    """Return the nodes that loops read side by side, and nothing else does, with their widths; see `JoinedProduct`."""
    groups = [
        (widths, nodes)
        for loop in plan.components
        if is_loop(loop)
        for product in _products(loop, plan)[0]
        for widths, nodes in product.side_by_side()
    ]
    return [
        group for group in groups if len(set(group[1])) > 1 and all(len(plan.users[node]) == 1 for node in group[1])
    ]


class _Loop:
    """A loop of a plan, for one minibatch: what its steps read, compute and give.

    Attributes:
        direction: of its delay nodes, negative for PastValue.
        depth: how many past values of a node are kept.
        wanted: its nodes that others use.
        kept: those whose last values the next minibatch needs.
        sequences: the values from outside of which a step reads its own step.
        constants: those that are the same at every step: without minibatch data, or one step per sequence.
        whole: the values from outside that each step reads as a whole.
    """

    def __init__(self, plan: Plan, nodes: list[Node], values: dict[Node, Array], context: Context) -> None:
        self.nodes, self._plan, self._values, self._context = nodes, plan, values, context
        members = set(nodes)
        self.direction = next(node.kind.time.delay for node in nodes if node.kind.time.delay)
        self.depth, self.wanted = _depth(nodes), _wanted(nodes, plan)
        self.kept = [source for source in self.depth if context.state.get(_carry_name(source)) is not None]
        self._given = list(dict.fromkeys([*self.wanted, *self.kept]))
        self._same = _equal_delays([node for node in nodes if node.kind.time.delay])
        self._products, self._passed = _products(nodes, plan)
        self._product_of = {node: k for k, product in enumerate(self._products) for node in product.nodes}
        # a dict keeps the order of the loop: that of a set differs between processes, and with it the program's text
        read = dict.fromkeys(
            i
            for node in nodes
            if node not in self._passed and node not in self._product_of
            for index, i in enumerate(node.connected)
            if i not in members and index not in node.kind.time.whole
        )
        whole = dict.fromkeys(node.input(index) for node in nodes for index in node.kind.time.whole)
        self.whole = {i: dense(values[i], i) for i in whole}
        axis = nodes[0].axis
        several = axis != ONE and context.packed is None
        self.sequences = {
            i: dense(_along(values[i], i, context), i) for i in read if i.has_layout and not (several and i.axis == ONE)
        }
        self.constants = {i: dense(values[i], i) for i in read if i not in self.sequences}

    def __call__(self) -> dict[str, Array]:
        """By name, the values `(T, S, ...)` of the nodes that are wanted or kept."""
        context = self._context
        keys = None
        if context.key is not None and any(node.kind.random for node in self.nodes):
            keys = jax.random.split(context.key, context.T)
        operands = {
            "constants": list(self.constants.values()),
            "sequences": list(self.sequences.values()),
            "whole": list(self.whole.values()),
            "sums": [product.sums(self._plan, self._values, context) for product in self._products],
            "start": {source.name: self._start(source) for source in self.depth},
        }
        weights = [context.numbers.factor(product.weights(self._values, context)) for product in self._products]
        masks = {axis: context.grid(axis).mask for axis in dict.fromkeys(i.axis for i in self.whole)}
        fixed = ((context.mask, context.to_start, context.to_end, keys), masks)
        return differentiable_loop(partial(self._run, early=True), self._run)(weights, operands, fixed)

    def _start(self, source: Node) -> Array:
        """Return the past values of a node before the first step."""
        carried = self._context.state.get(_carry_name(source)) if self.direction < 0 else None
        if carried is not None:
            return self._context.numbers.value(source, carried[-self.depth[source] :])
        assert source.shape is not None
        shape = (self.depth[source], self._context.S, *reversed(source.shape))
        return jnp.zeros(shape, self._context.numbers.of(source))

    def _run(
        self, weights: list[Array], inputs: Any, fixed: Any, early: bool = False
    ) -> tuple[dict[str, Array], list[Array]]:
        """Return all steps; see `differentiable_loop`.

        A step that reads its sums itself is no vector code of XLA's where it takes parts of them, as those of gates.

        Args:
            weights: of the products.
            inputs: what the steps read.
            fixed: masks and random keys.
            early: each step reads the sums of the next one: a third less time, but not for gradients.
        """
        by_step, masks = fixed
        whole = dict(zip(self.whole, inputs["whole"], strict=True))

        def step(past: dict[str, Array], slices: Any) -> tuple[dict[str, Array], Any]:
            sequences, sums, *grid, key = slices
            mask, to_start, to_end = (None if x is None else x[None] for x in grid)
            context = self._context.step(mask, to_start, to_end, key, masks)
            now: dict[Node, Array] = dict(zip(self.constants, inputs["constants"], strict=True))
            now.update({node: x[None] for node, x in zip(self.sequences, sequences, strict=True)})
            operands: list[Array | None] = [None] * len(self._products)
            for node in self.nodes:
                if (k := self._product_of.get(node)) is None:
                    now[node] = self._node(node, now, past, context, whole)
                elif operands[k] is None:
                    x = context.numbers.factor(now[node.input(1)])
                    operands[k] = x.reshape(-1, len(weights[k]))
                    now.update(self._products[k].at(x, weights[k], sums[k]))
            past = {source.name: jnp.concatenate([past[source.name][1:], now[source]]) for source in self.depth}
            return past, ({node.name: now[node][0] for node in self._given}, operands)

        backwards, steps = self.direction > 0, self._context.T
        if early:
            return _scan_early(step, inputs["start"], inputs["sums"], (inputs["sequences"], *by_step), steps, backwards)
        step = jax.checkpoint(step, policy=_is_kept, prevent_cse=False)
        slices = (inputs["sequences"], inputs["sums"], *by_step)
        return jax.lax.scan(step, inputs["start"], slices, steps, reverse=backwards)[1]

    def _node(
        self, node: Node, now: dict[Node, Array], past: dict[str, Array], context: Context, whole: dict[Node, Array]
    ) -> Array:
        """Return the value of a node at a step, `(1, S, ...)`.

        Args:
            node: the node.
            now: values of this step.
            past: what came before, by name `(steps, S, ...)`.
            context: of this step.
            whole: values of all steps.
        """
        if (first := self._same.get(node, node)) is not node:
            return now[first]
        if (operand := self._passed.get(node)) is not None:
            return now[operand]
        if node.kind.time.delay:
            previous_array = past[node.input(0).name]
            initial = now[node.input(1)] if len(node.inputs) > 1 else None
            result = _select(
                node, context, previous_array[len(previous_array) - int(node.options["timeStep"])][None], initial
            )
            return context.numbers.value(node, result)
        arrays = [(whole if index in node.kind.time.whole else now)[i] for index, i in enumerate(node.connected)]
        return apply(node, arrays, context, self._plan.order[node])


def _scan_early(
    step: Callable[[Any, Any], tuple[Any, Any]], start: Any, sums: list[Array], slices: Any, steps: int, backwards: bool
) -> Any:
    """As `jax.lax.scan` over `slices` and `sums`, the second of what a step reads, which the step before it has read.

    Args:
        step: maps the past and `(sequences, sums, ...)` to the past and the results.
        start: the past before the first step.
        sums: with the steps in front.
        slices: what else a step reads, likewise.
        steps: their number.
        backwards: whether the last one comes first.
    """

    def at(number: Array | int) -> list[Array]:
        return [jax.lax.dynamic_index_in_dim(every, number, keepdims=False) for every in sums]

    def wrapped(carry: Any, now: Any) -> tuple[Any, Any]:
        (past, read), (following, (sequences, *by_step)) = carry, now
        past, results = step(past, (sequences, read, *by_step))
        return (past, at(_known_after(following, past.values(), steps))), results

    following = np.arange(steps) + (-1 if backwards else 1)
    numbers = np.clip(following, 0, steps - 1).astype(np.int32)
    first = (start, at(steps - 1 if backwards else 0))
    return jax.lax.scan(wrapped, first, (numbers, slices), steps, reverse=backwards)[1]


def _known_after(number: Array, values: Iterable[Array], steps: int) -> Array:
    """Return the number of a step unchanged, by a program that computes values first.

    Without this order XLA copies an array of the carry twice at each step: before its last use the next one is written.

    Args:
        number: of a step.
        values: their signs are part of a limit that the number never reaches.
        steps: their number.
    """
    for value in values:
        is_negative = jnp.any(jnp.signbit(value.ravel()[:1]))
        number = jnp.minimum(number, steps - 1 + is_negative.astype(number.dtype))
    return number


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
    in_pieces = any(_carry_name(node.input(0)) in context.state for node in loop if node.kind.time.delay)
    if plan.own_slots and not in_pieces and (repeated := held(loop)) is not None:
        return _repeated(*repeated, values, context)
    loop_state = _Loop(plan, loop, values, context)
    steps = loop_state()
    for source in loop_state.kept:
        name = _carry_name(source)
        context.new_state[name] = _last_steps(context.state[name], steps[source.name], context)
    return {node: steps[node.name] for node in loop_state.wanted}


def _repeated(chosen: Node, past: Node, first: Node, values: dict[Node, Array], context: Context) -> dict[Node, Array]:
    """Return the loop of `cntkpy.networks.graph.axes.held`, where all sequences are in one piece: no steps are
    needed.
    """
    assert chosen.shape is not None
    start = dense(values[first], first)
    if context.packed is not None:
        start = jnp.take(start.reshape(-1, *start.shape[2:]), context.packed.first, axis=0, mode="clip")[None]
    missing = len(chosen.shape) + 2 - start.ndim
    start = start[:1].reshape(1, start.shape[1], *(1,) * missing, *start.shape[2:])
    every = jnp.broadcast_to(start, (context.T, start.shape[1], *reversed(chosen.shape)))
    if context.packed is not None:
        every = together(every, context.packed)
    result = {chosen: every, past: shift(past, every, context)}
    return {node: context.numbers.value(node, value) for node, value in result.items()}


def carried(network: ValidatedNetwork) -> dict[str, tuple[int, ...]]:
    """For truncated back-propagation: state name -> (steps kept, *array shape of one cell) of PastValue inputs."""
    result: dict[str, tuple[int, ...]] = {}
    for node in network.nodes.values():
        if node.kind.time.delay < 0:
            source = node.input(0)
            assert source.shape is not None
            name, steps = _carry_name(source), int(node.options["timeStep"])
            result[name] = (max(steps, result.get(name, (0,))[0]), *reversed(source.shape))
    return result
