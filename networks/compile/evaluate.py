"""Evaluation: a network becomes a pure function of parameters, state and minibatch.

`compile_network` gives a function for values, `compile_gradient` one for values and gradients. Neither is jitted; the
trainers do that. Arrays have the reversed sample shapes, data with time and slot in front (see
`networks.graph.shapes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cntk_config.base.diagnostics import UserError
from networks.arrays.lazy import jax, jnp, prepare
from networks.arrays.sparse import RowGradient, is_sparse
from networks.compile import recurrence
from networks.compile.differentiable import check_gradient, row_parameters
from networks.graph.network import Network, Node, is_loop

Array = Any
Values = dict[Node, Any]


class Batch(NamedTuple):
    """A minibatch on T time steps and S slots.

    Attributes:
        inputs: by name of the input node: array `(T, S, ...)` (trailing axes in the flat order of the sample, any
            grouping; gap cells finite, best zero) or `Sparse`.
        mask: bool `(T, S)`, False in gaps; None when every cell is real.
        to_start: int32 `(T, S)`, distance of a cell from the first step of its sequence, -1 in gaps. None: every
            cell is a sequence of its own.
        to_end: the same to the last step.
    """

    inputs: Mapping[str, Any]
    mask: Any = None
    to_start: Any = None
    to_end: Any = None


class Settings(NamedTuple):
    """What the trainer may change from epoch to epoch.

    Attributes:
        dropout_rate: scalar; None: dropout is off and costs nothing.
        bn_time_constant: overrides the time constant of BatchNormalization nodes; None: their own.
        bn_blend_time_constant: the same for blending.
    """

    dropout_rate: Any = None
    bn_time_constant: Any = None
    bn_blend_time_constant: Any = None


DEFAULT_SETTINGS = Settings()


class Context:
    """What a forward function may look at besides its inputs."""

    def __init__(self, batch: Batch, grid: tuple[int, int], dtype: Any, training: bool, key: Any, settings: Settings):
        self.T, self.S = grid
        self.mask, self.to_start, self.to_end = batch.mask, batch.to_start, batch.to_end
        self.dtype = dtype
        self.training = training
        self.key = key
        self.settings = settings
        self.state: Mapping[str, Any] = {}
        self.new_state: dict[str, Any] = {}
        self.gathered: Mapping[str, Any] = {}

    def step(self, mask: Any, to_start: Any, to_end: Any, key: Any) -> Context:
        """The context of one time step inside a loop."""
        inner = Context(Batch({}, mask, to_start, to_end), (1, self.S), self.dtype, self.training, key, self.settings)
        inner.state, inner.new_state, inner.gathered = self.state, self.new_state, self.gathered
        return inner

    def samples(self) -> Any:
        """Number of real cells, as a number or a traced scalar."""
        return self.T * self.S if self.mask is None else jnp.sum(self.mask).astype(self.dtype)


class Call:
    """One use of an operation: the node, and what `Context` has."""

    def __init__(self, node: Node, context: Context, order: int = 0) -> None:
        self.node = node
        self.context = context
        self.options = node.options
        self.order = order

    def flat(self, array: Array, index: int = 0) -> Array:
        """Input `index` with its sample axes joined: `(T, S, n)`, or `(n,)` without layout."""
        if self.node.input(index).has_layout:
            return array.reshape(*array.shape[:2], -1)
        return array.reshape(-1)

    def masked(self, array: Array, value: float = 0.0) -> Array:
        """`array` (with T, S in front) with its gap cells replaced."""
        return masked(array, self.context.mask, value)

    def total(self, cells: Array) -> Array:
        """Sum of per-cell values `(T, S, ...)` over the real cells, as a criterion's value of shape `(1,)`."""
        return jnp.sum(self.masked(cells)).reshape(1)


def masked(array: Array, mask: Array, value: float = 0.0) -> Array:
    """`array` `(T, S, ...)` with `value` where `mask` `(T, S)` is False; unchanged if `mask` is None."""
    if mask is None:
        return array
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (array.ndim - 2)), array, jnp.asarray(value, array.dtype))


def _aligned(node: Node, arrays: Sequence[Array]) -> list[Array]:
    """Inputs of an elementwise node with equal sample rank (axes of 1 put before the sample axes)."""
    rank = max(len(i.shape or ()) for i in node.connected)
    result = []
    for source, array in zip(node.connected, arrays, strict=True):
        lead = 2 if source.has_layout else 0
        missing = rank - (array.ndim - lead)
        result.append(array.reshape(*array.shape[:lead], *(1,) * missing, *array.shape[lead:]) if missing else array)
    return result


def apply(node: Node, arrays: Sequence[Array], context: Context, order: int = 0) -> Array:
    """The forward function of one node, with the treatment its kind asks for."""
    kind = node.kind
    if not kind.sparse:
        arrays = [
            a.dense(context.T, context.S, i.shape) if is_sparse(a) else a
            for i, a in zip(node.connected, arrays, strict=True)
        ]
    if kind.gaps is not None and context.mask is not None:
        arrays = [
            masked(a, context.mask, kind.gaps) if i.has_layout else a
            for i, a in zip(node.connected, arrays, strict=True)
        ]
    if kind.elementwise and len(arrays) > 1:
        arrays = _aligned(node, arrays)
    assert kind.forward is not None, kind.name
    return kind.forward(Call(node, context, order), *arrays)


class Plan:
    """The part of a network needed for some nodes, in evaluation order."""

    def __init__(self, network: Network, names: Iterable[str], training: bool) -> None:
        network.validate()
        self.network = network
        self.names = list(names)
        self.training = training
        self.outputs = [network.find(name) for name in self.names]
        self.components = network.components(self.outputs)
        self.nodes = [node for component in self.components for node in component]
        self.order = {node: index for index, node in enumerate(self.nodes)}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for source in node.connected:
                if source in self.users:
                    self.users[source].append(node)
        for node in self.nodes:
            if node.kind.forward is None and node.inputs and not node.kind.precompute and not node.kind.delay:
                raise UserError("BadShape", f"{node.operation} '{node.name}' cannot be evaluated", span=node.span)
        self.inputs = [n for n in self.nodes if n.kind.layout == "always"]

    def leaf(self, node: Node, parameters: Mapping[str, Array], batch: Batch, context: Context) -> Array:
        """Value of an input, parameter or pre-computed node."""
        assert node.shape is not None
        if node.kind.layout == "always":
            if node.name not in batch.inputs:
                raise UserError(
                    "MissingStream", f"the minibatch has no data for the input '{node.name}'", span=node.span
                )
            data = batch.inputs[node.name]
            if is_sparse(data):
                return data
            return jnp.asarray(data, self.network.dtype).reshape(context.T, context.S, *reversed(node.shape))
        if node.name in parameters:
            return parameters[node.name]
        if node.name in context.state:
            return context.state[node.name]
        if node.value is None:
            what = "was not computed yet" if node.kind.precompute else "has no value"
            raise UserError("BadShape", f"{node.operation} '{node.name}' {what}", span=node.span)
        return jnp.asarray(node.value, self.network.dtype)

    def run(
        self,
        parameters: Mapping[str, Array],
        state: Mapping[str, Array],
        batch: Batch,
        key: Any,
        settings: Settings,
        gathered: Mapping[str, Array],
    ) -> tuple[Values, dict[str, Array]]:
        """Values of all nodes of the plan, and the new state."""
        context = Context(batch, _grid(batch, self.inputs), self.network.dtype, self.training, key, settings)
        context.state, context.new_state, context.gathered = state, dict(state), gathered
        values: Values = {}
        for component in self.components:
            if is_loop(component):
                values.update(recurrence.run_loop(self, component, values, context))
                continue
            node = component[0]
            if not node.inputs or node.kind.precompute:
                values[node] = self.leaf(node, parameters, batch, context)
            elif node.kind.delay:
                values[node] = recurrence.shift(node, values[node.input(0)], context)
            else:
                values[node] = apply(node, [values[i] for i in node.connected], context, self.order[node])
        return values, context.new_state


def _grid(batch: Batch, inputs: Sequence[Node]) -> tuple[int, int]:
    for array in (batch.mask, batch.to_start):
        if array is not None:
            return array.shape[0], array.shape[1]
    for node in inputs:
        data = batch.inputs.get(node.name)
        if data is not None:
            return data.index.shape[:2] if is_sparse(data) else (data.shape[0], data.shape[1])
    return (1, 1)


def compile_network(network: Network, names: Iterable[str], training: bool = False) -> Callable[..., Any]:
    """A pure function that computes nodes.

    Args:
        network: validated here.
        names: nodes to compute.
        training: whether dropout is active and batch normalisation uses and updates minibatch statistics.

    Returns:
        `f(parameters, state, batch, key=None, settings=Settings()) -> (values, new_state)`. `parameters`: arrays by
        name (see `network_parameters`); `state`: see `network_state`; `values`: arrays by the given names, a criterion
        as an array of shape (1,); gap cells of values with layout are undefined. Not jitted.
    """
    prepare()
    plan = Plan(network, names, training)

    def function(
        parameters: Mapping[str, Array],
        state: Mapping[str, Array],
        batch: Batch,
        key: Any = None,
        settings: Settings = DEFAULT_SETTINGS,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        values, new_state = plan.run(parameters, state, batch, key, settings, {})
        return {
            name: _dense(node, values[node], batch) for name, node in zip(plan.names, plan.outputs, strict=True)
        }, new_state

    return function


def compile_gradient(network: Network, criterion: str, names: Iterable[str] = ()) -> Callable[..., Any]:
    """A pure function that computes nodes in training mode, and the gradient of the sum of one of them.

    Args:
        network: validated here.
        criterion: node to differentiate; summed over its elements and real cells.
        names: further nodes to compute in the same pass.

    Returns:
        `f(parameters, state, batch, key=None, settings=Settings()) -> (gradients, values, new_state)`; values are
        `node_total`s: scalars by name, sums over the real cells. Gradients by name of the parameter, for all of
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
        key: Any = None,
        settings: Settings = DEFAULT_SETTINGS,
    ) -> tuple[dict[str, Any], dict[str, Array], dict[str, Array]]:
        rows = {
            name: batch.inputs[source].rows
            for name, source in by_rows.items()
            if name in parameters and is_sparse(batch.inputs.get(source))
        }
        gathered = {name: jnp.take(parameters[name], index, axis=0, mode="clip") for name, index in rows.items()}
        dense = {name: array for name, array in parameters.items() if name not in rows}

        def loss(variables: tuple[dict[str, Array], dict[str, Array]]) -> Any:
            dense, gathered = variables
            values, new_state = plan.run(
                {**{name: parameters[name] for name in rows}, **dense}, state, batch, key, settings, gathered
            )
            totals = {
                name: node_total(node, values[node], batch) for name, node in zip(names, plan.outputs, strict=True)
            }
            return totals[criterion], (totals, new_state)

        (_, (totals, new_state)), (dense, gathered) = jax.value_and_grad(loss, has_aux=True)((dense, gathered))
        gradients: dict[str, Any] = dict(dense)
        gradients.update({name: RowGradient(rows[name], gathered[name]) for name in rows})
        return gradients, totals, new_state

    return function


def node_total(node: Node, value: Array, batch: Batch) -> Array:
    """A node's value summed over all elements and real cells: a scalar."""
    return jnp.sum(masked(value, batch.mask)) if node.has_layout else jnp.sum(value)


def _dense(node: Node, value: Any, batch: Batch) -> Array:
    if is_sparse(value):
        return value.dense(*value.index.shape[:2], node.shape)
    return value


def network_parameters(network: Network) -> dict[str, np.ndarray]:
    """The trainable parameters by name (of the reversed shapes)."""
    network.validate()
    return {node.name: _value(node, network) for node in network.parameters()}


def network_state(network: Network, truncated_slots: int | None = None) -> dict[str, np.ndarray]:
    """Everything else a compiled function reads: frozen parameters, pre-computed values, running statistics.

    Args:
        network: validated here.
        truncated_slots: for truncated back-propagation through time, the number of parallel slots; the state then
            carries the last activations of delay nodes' inputs from minibatch to minibatch.
    """
    network.validate()
    state: dict[str, np.ndarray] = {}
    for node in network.nodes.values():
        constant = node.is_parameter and node.value is not None and node.value.size == 1 and not _running(network, node)
        if (node.is_parameter and not node.trainable and not constant) or (
            node.kind.precompute and node.value is not None
        ):
            state[node.name] = _value(node, network)
        if node.operation == "BatchNormalization":
            state[node.name + "/samples"] = np.asarray(node.samples, np.float64)
    if truncated_slots:
        for name, shape in recurrence.carried(network).items():
            state[name] = np.zeros((shape[0], truncated_slots, *shape[1:]), network.dtype)
    return state


def _running(network: Network, node: Node) -> bool:
    return any(node in u.inputs[3:] for u in network.nodes.values() if u.operation == "BatchNormalization")


def _value(node: Node, network: Network) -> np.ndarray:
    if node.value is None:
        raise UserError("NoValue", f"{node.operation} '{node.name}' has no value", span=node.span)
    return np.asarray(node.value, network.dtype)


def store(network: Network, parameters: Mapping[str, Array], state: Mapping[str, Array] | None = None) -> None:
    """Write trained parameters and state back into the nodes."""
    for name, array in {**(state or {}), **parameters}.items():
        if name in network.nodes:
            node = network.nodes[name]
            node.value = np.array(array, network.dtype)
        elif name.endswith("/samples"):
            network.nodes[name.removesuffix("/samples")].samples = int(np.asarray(array))
