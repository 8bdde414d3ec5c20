"""Evaluation: a network becomes a pure function of parameters, state and minibatch.

`compile_network` gives a function for values, `compile_gradient` one for values and gradients. Neither is jitted; the
trainers do that. Arrays have the reversed sample shapes, data with time and slot in front (see
`cntkpy.networks.graph.shapes`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.batch import Batch, PackedGrid
from cntkpy.networks.arrays.images import Turned, is_turned, plain
from cntkpy.networks.arrays.lazy import Array, jax, jnp, prepare
from cntkpy.networks.arrays.packing import batch_apart, together
from cntkpy.networks.arrays.sparse import RowGradient, is_sparse
from cntkpy.networks.compile import recurrence
from cntkpy.networks.compile.apply import apply_to_images
from cntkpy.networks.compile.differentiable import check_gradient, row_parameters
from cntkpy.networks.compile.flat import Flat
from cntkpy.networks.compile.group_blocks import run_group
from cntkpy.networks.compile.loop_products import dense
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.compile.step_groups import StepGroup
from cntkpy.networks.graph.axes import fallible, is_kept, operating
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.call import DEFAULT_SETTINGS, Context, Settings, masked

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from cntkpy.networks.arrays.sparse import Sparse

__all__ = [
    "LENGTHS", "PROBLEM", "Batch", "Settings", "compile_gradient", "compile_network", "compute", "context_of",
    "kept_lengths", "network_parameters", "network_state", "node_total", "own_mask", "remembered", "start_values",
    "store", "with_values",
]  # fmt: skip

Values = dict[Node, Any]

PROBLEM = "/problem"
"""Key in the state of a node's flag for sequences that do not fit."""

LENGTHS = "/lengths"
"""Key among values of the step counts on an axis that a node makes."""


def _leaf(plan: Plan, node: Node, parameters: Mapping[str, Array], batch: Batch, context: Context) -> Array | Sparse:
    """Value of an input, parameter or pre-computed node."""
    assert node.shape is not None
    if node.kind.layout == "always":
        if node.name not in batch.inputs:
            raise UserError("MissingStream", f"the minibatch has no data for the input '{node.name}'", span=node.span)
        data = batch.inputs[node.name]
        if is_sparse(data):
            return data
        node_context = context.on(node.axis)
        return jnp.asarray(data, plan.network.dtype).reshape(node_context.T, node_context.S, *reversed(node.shape))
    if node.kind.time.makes_axis:
        return jnp.zeros(tuple(reversed(node.shape)), plan.network.dtype)
    if node.name in parameters:
        return parameters[node.name]
    if node.name in context.state:
        return context.state[node.name]
    if node.value is None:
        reason, hint = "has no value", None
        if node.kind.precompute:
            reason, hint = "was not computed yet", "a training computes it from its data before the first epoch"
        raise UserError("BadShape", f"{node.operation} '{node.name}' {reason}", span=node.span, hint=hint)
    return jnp.asarray(node.value, plan.network.dtype)


def _run(
    plan: Plan,
    parameters: Mapping[str, Array],
    state: Mapping[str, Array],
    batch: Batch,
    key: Array | None,
    settings: Settings,
    gathered: Mapping[str, Array],
    matrices: Mapping[tuple[str, ...], Array] | None = None,
) -> tuple[Values, dict[str, Array], Context]:
    """Values of all nodes of the plan, the new state, and where the sequences lie."""
    batch = batch_apart(batch, {node.name: node.axis for node in plan.inputs}, plan.packed)
    context = context_of(plan, state, batch, key, settings, gathered)
    context.matrices = matrices or {}
    values: Values = {}
    images: dict[Node, Turned] = {}
    for part in plan.parts:
        if isinstance(part, StepGroup):
            run_group(plan, part, values, context)
        else:
            compute(plan, part, values, images, parameters, batch, context)
    for name, problem in context.problems.items():
        if (previous_array := context.state.get(name + PROBLEM)) is not None:
            context.new_state[name + PROBLEM] = previous_array | problem
    return values, context.new_state, context


def context_of(
    plan: Plan,
    state: Mapping[str, Array],
    batch: Batch,
    key: Array | None,
    settings: Settings,
    gathered: Mapping[str, Array],
) -> Context:
    """Return the context of nodes for a minibatch; for the arguments see `compile_network`."""
    context = Context(batch, _grid(batch, plan.inputs), plan.network.dtype, plan.training, key, settings)
    context.state, context.new_state, context.gathered = state, dict(state), gathered
    context.numbers = plan.numbers
    return context


def compute(
    plan: Plan,
    component: list[Node],
    values: Values,
    images: dict[Node, Turned],
    parameters: Mapping[str, Array],
    batch: Batch,
    context: Context,
) -> None:
    """Add the values of a node, or of the nodes of a loop.

    Args:
        plan: the evaluation that they are a part of.
        component: the node, or the loop.
        values: by node, those that were computed before; the new ones are added.
        images: those with their axes in another order; a new one is added.
        parameters: by name.
        batch: the minibatch.
        context: what nodes may look at.
    """
    if is_loop(component):
        values.update(recurrence.run_loop(plan, component, values, context.on(operating(component[0]))))
        return
    node = component[0]
    if node in plan.zeros:
        node_context = context.on(node.axis)
        values[node] = jnp.zeros((node_context.T, node_context.S, *reversed(node.shape or ())), plan.numbers.of(node))
    elif (not node.inputs and node.kind.forward is None) or node.kind.precompute:
        values[node] = _leaf(plan, node, parameters, batch, context)
    elif node.kind.time.delay:
        initial = values[node.input(1)] if len(node.inputs) > 1 else None
        value = recurrence.shift(node, values[node.input(0)], context.on(node.axis), initial)
        values[node] = plan.numbers.value(node, value)
    else:
        operands = [images.get(i, values[i]) for i in node.connected]
        value = apply_to_images(node, operands, context, plan.order[node])
        if is_turned(value):
            images[node] = value
        values[node] = plain(value)  # where nobody needs it, XLA leaves it out


def _grid(batch: Batch, inputs: Sequence[Node]) -> tuple[int, int]:
    for array in (batch.mask, batch.to_start):
        if array is not None:
            return array.shape[0], array.shape[1]
    for node in inputs:
        data = batch.inputs.get(node.name)
        if data is not None:
            cells = data.index if is_sparse(data) else data
            return cells.shape[0], cells.shape[1]
    return (1, 1)


def compile_network(
    network: ValidatedNetwork, names: Iterable[str], training: bool = False
) -> Callable[..., tuple[dict[str, Array], dict[str, Array]]]:
    """Return a pure function that computes nodes.

    Args:
        network: the network.
        names: nodes to compute.
        training: whether dropout is active and batch normalisation uses and updates minibatch statistics.

    Returns:
        `f(parameters, state, batch, key=None, settings=Settings()) -> (values, new_state)`. `parameters`: arrays by
        name (see `network_parameters`); `state`: see `network_state`; `values`: arrays by the given names, a criterion
        as an array of shape (1,); gap cells of values with layout are undefined. For each time axis that the network
        makes itself there is one more, the name of the axis and `LENGTHS`: how many steps each slot has. Not jitted.
    """
    prepare()
    plan = Plan(network, names, training)

    def function(
        parameters: Mapping[str, Array],
        state: Mapping[str, Array],
        batch: Batch,
        key: Array | None = None,
        settings: Settings = DEFAULT_SETTINGS,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        values, new_state, context = _run(plan, parameters, state, batch, key, settings, {})
        inputs = {
            name: plan.numbers.given(_as_in(batch, node, dense(values[node], node), context))
            for name, node in zip(plan.names, plan.outputs, strict=True)
        }
        for axis in plan.made_axes:
            inputs[axis + LENGTHS] = jnp.sum(context.grid(axis).mask, axis=0, dtype=jnp.int32)
        return inputs, new_state

    return function


def compile_gradient(
    network: ValidatedNetwork, criterion: str, names: Iterable[str] = (), flats: Sequence[Flat] = ()
) -> Callable[..., tuple[dict[str, Array | RowGradient], dict[str, Array], dict[str, Array]]]:
    """Return a pure function that computes nodes in training mode, and the gradient of the sum of one of them.

    Args:
        network: the network.
        criterion: node to differentiate; summed over its elements and real cells.
        names: further nodes to compute in the same pass.
        flats: vectors that `parameters` may have, by their keys, in the place of the parameters in them.

    Returns:
        `f(parameters, state, batch, key=None, settings=Settings()) -> (gradients, values, new_state)`; values are
        `node_total`s: scalars by name, sums over the real cells. For a node on the steps that a `Where` keeps there is
        one more, its name and `LENGTHS`: how many these are. Gradients by name of the parameter, for all of
        `parameters`; a parameter that only multiplies one sparse input gets a `RowGradient` when the batch has that
        input as `Sparse`.
    """
    prepare()
    names = list(dict.fromkeys([criterion, *names]))
    plan = Plan(network, names, training=True)
    root = network.find(criterion)
    check_gradient(network, root)
    by_rows = row_parameters(plan)

    def function(
        parameters: Mapping[str, Array],
        state: Mapping[str, Array],
        batch: Batch,
        key: Array | None = None,
        settings: Settings = DEFAULT_SETTINGS,
    ) -> tuple[dict[str, Array | RowGradient], dict[str, Array], dict[str, Array]]:
        rows = {
            name: batch.inputs[source].rows
            for name, source in by_rows.items()
            if name in parameters and is_sparse(batch.inputs.get(source))
        }
        gathered = {name: jnp.take(parameters[name], index, axis=0, mode="clip") for name, index in rows.items()}
        dense = {name: array for name, array in parameters.items() if name not in rows}

        def loss(
            variables: tuple[dict[str, Array], dict[str, Array]],
        ) -> tuple[Array, tuple[dict[str, Array], dict[str, Array]]]:
            dense, gathered = variables
            named = {name: parameters[name] for name in rows} | dense
            matrices: dict[tuple[str, ...], Array] = {}
            for flat in flats:
                if flat.key in named:
                    apart, together = flat.traced(named.pop(flat.key))
                    named, matrices = named | apart, matrices | together
            values, new_state, context = _run(plan, named, state, batch, key, settings, gathered, matrices)
            totals = {
                name: _total(node, plan.numbers.given(values[node]), context.on(node.axis).mask)
                for name, node in zip(names, plan.outputs, strict=True)
            }
            wrong = list(context.problems.values())
            totals = _no_numbers(totals, wrong) if wrong else totals
            kept = {
                node.name + LENGTHS: jnp.sum(context.grid(node.axis).mask).astype(context.dtype)
                for node in kept_lengths(plan.outputs)
            }
            return totals[criterion], (totals | kept, new_state)

        (_, (totals, new_state)), (dense, gathered) = jax.value_and_grad(loss, has_aux=True)((dense, gathered))
        gradients: dict[str, Any] = dict(dense)
        gradients.update({name: RowGradient(rows[name], gathered[name]) for name in rows})
        return gradients, totals, new_state

    return function


def kept_lengths(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes whose samples are counted when they are computed: those on the steps that a `Where` keeps."""
    return [node for node in nodes if is_kept(node.axis)]


def own_mask(
    node: Node, value: Array | np.ndarray, batch: Batch, masks: Mapping[str, Array]
) -> Bool[Array, "T S"] | None:
    """Return the mask of a node's samples.

    Args:
        node: the node.
        value: its value.
        batch: the minibatch.
        masks: results of a function of `compile_network` for it.

    Returns:
        False in gaps; None: everywhere, or it carries no minibatch data.
    """
    if node.axis is None:
        return None
    if batch.axes is not None and node.axis in batch.axes:
        return batch.axes[node.axis].mask
    lengths = masks.get(node.axis + LENGTHS)
    return batch.mask if lengths is None else jnp.arange(value.shape[0])[:, None] < lengths


def node_total(node: Node, masks: Mapping[str, Array], batch: Batch) -> Float[Array, ""]:
    """Return a node's value summed over all elements and real cells: a scalar.

    Args:
        node: the node.
        masks: results of a function of `compile_network` for the minibatch.
        batch: the minibatch.
    """
    value = masks[node.name]
    return _total(node, value, own_mask(node, value, batch, masks))


def _total(node: Node, value: Array, mask: Bool[Array, "T S"] | None) -> Float[Array, ""]:
    return jnp.sum(masked(value, mask)) if node.has_layout else jnp.sum(value)


def _no_numbers(totals: dict[str, Array], wrong: list[Array]) -> dict[str, Array]:
    """Return the sums, which are not numbers if sequences of the minibatch do not fit."""
    bad = functools.reduce(jnp.logical_or, wrong)
    return {name: jnp.where(bad, jnp.nan, total) for name, total in totals.items()}


def _as_in(batch: Batch, node: Node, value: Array, context: Context) -> Array:
    """Return a value with the sequences where the batch has them: it may have been computed with a slot for each."""
    lie = (batch.axes or {}).get(node.axis or "")
    if not isinstance(lie, PackedGrid) or context.on(node.axis).packed is not None:
        return value
    return together(value, lie)


def network_parameters(network: ValidatedNetwork) -> dict[str, np.ndarray]:
    """Return the trainable parameters by name (of the reversed shapes)."""
    return {node.name: _value(node, network) for node in network.parameters()}


def network_state(network: ValidatedNetwork, truncated_slots: int | None = None) -> dict[str, np.ndarray]:
    """Everything else a compiled function reads: frozen parameters, pre-computed values, running statistics.

    Args:
        network: the network.
        truncated_slots: for truncated back-propagation through time, the number of parallel slots; the state then
            carries the last activations of delay nodes' inputs from minibatch to minibatch.
    """
    state: dict[str, np.ndarray] = {}
    inlined = network.inlined()
    for node in network.nodes.values():
        if (node.is_parameter and not node.trainable and node not in inlined) or (
            node.kind.precompute and node.value is not None
        ):
            state[node.name] = _value(node, network)
        if node.kind.running:
            state[node.name + "/samples"] = np.asarray(node.samples, np.float64)
        if fallible(node):
            state[node.name + PROBLEM] = np.asarray(False)
    state |= remembered(network)
    if truncated_slots:
        for name, shape in recurrence.carried(network).items():
            state[name] = np.zeros((shape[0], truncated_slots, *shape[1:]), network.dtype)
    return state


def remembered(network: ValidatedNetwork) -> dict[str, np.ndarray]:
    """Return the part of the state that nodes remember from minibatch to minibatch, as it is when an epoch begins."""
    return {
        node.name + name: start
        for node in network.nodes.values()
        if node.kind.memory is not None
        for name, start in node.kind.memory(node).items()
    }


def _value(node: Node, network: ValidatedNetwork) -> np.ndarray:
    if node.value is None:
        raise UserError("NoValue", f"{node.operation} '{node.name}' has no value", span=node.span)
    return np.asarray(node.value, network.dtype)


def start_values(network: ValidatedNetwork) -> dict[str, np.ndarray]:
    """Return the start values of a training: parameters and state by name."""
    return network_state(network) | network_parameters(network)


def store(network: ValidatedNetwork, values: Mapping[str, Array | np.ndarray]) -> None:
    """Write parameters and state into the nodes; arrays of the network's element type are not copied."""
    for name, array in values.items():
        if name in network.nodes:
            network.nodes[name].value = np.asarray(array, network.dtype)
        elif name.endswith("/samples"):
            network.nodes[name.removesuffix("/samples")].samples = int(np.asarray(array))


def with_values(network: ValidatedNetwork, values: Mapping[str, Array | np.ndarray]) -> ValidatedNetwork:
    """Return the same network with other values, for instance to save it; see `store`."""
    copied = ValidatedNetwork(network.copied())
    store(copied, values)
    return copied
