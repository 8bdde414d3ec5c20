"""Time each node of a network; compiles and runs every node alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.compile.evaluate import compute, context_of
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.call import DEFAULT_SETTINGS, Context

if TYPE_CHECKING:
    Run = Callable[[list[object]], object]

REPEATS = 10
"""Runs whose least time counts, after one that compiles."""


@dataclass(frozen=True)
class NodeTime:
    """The time of a node, or of the nodes of a loop together.

    Attributes:
        nodes: the names; of a loop, those of all its nodes.
        operation: of the node; of a loop "Loop".
        forward: seconds for the value.
        backward: seconds for the value and the gradient by the inputs, less those for the value; 0 where none was
            wanted or none exists.
    """

    nodes: tuple[str, ...]
    operation: str
    forward: float
    backward: float


def time_nodes(
    network: ValidatedNetwork,
    names: Sequence[str],
    parameters: Mapping[str, Any],
    state: Mapping[str, Any],
    batch: Batch,
    training: bool,
) -> list[NodeTime]:
    """Measure the nodes that some nodes depend on, in the order of computation; inputs and parameters are left out.

    What XLA fuses in a program of the whole network is measured separately here, so the sum is an upper bound of the
    time of that program.

    Args:
        network: the network.
        names: the nodes.
        parameters: see `compile_network`.
        state: see `compile_network`.
        batch: the minibatch.
        training: whether values are those of training mode, and gradients are measured as well.
    """
    plan, values = Plan(network, names, training), dict[Node, Any]()
    context = context_of(plan, state, batch, jax.random.key(0), DEFAULT_SETTINGS, {})
    node_times: list[NodeTime] = []
    for component in plan.components:
        sources = list(dict.fromkeys(operand for node in component for operand in node.connected if operand in values))
        shared = context.apart()

        def run(
            values: list[object],
            component: list[Node] = component,
            sources: Sequence[Node] = sources,
            previous_context: Context = shared,
        ) -> Any:
            known = dict(zip(sources, values, strict=True))
            compute(plan, component, known, {}, parameters, batch, previous_context.apart())
            return {node.name: known[node] for node in component if node in known}

        source_values = [values[source] for source in sources]
        compute(plan, component, values, {}, parameters, batch, context)  # axes that nodes make are in the context then
        if component[0].inputs:
            forward = _least(jax.jit(run), source_values)
            backward = max(0.0, _least(_with_gradient(run), source_values) - forward) if training else 0.0
            operation = "Loop" if is_loop(component) else component[0].operation
            node_times.append(NodeTime(tuple(node.name for node in component), operation, forward, backward))
    return node_times


def _with_gradient(run: Run) -> Run:
    """Return a function for the value and the gradient of the sum by all inputs that are arrays of numbers."""

    def total(numbers: dict[int, Array], values: list[object]) -> Any:
        leaves = jax.tree.leaves(run([numbers.get(index, value) for index, value in enumerate(values)]))
        return sum((jnp.sum(leaf) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)), jnp.zeros(()))

    def both(values: list[Any]) -> tuple[Array, dict[int, Array]]:
        kinds = {index: value for index, value in enumerate(values) if hasattr(value, "dtype")}
        numbers = {key: kind for key, kind in kinds.items() if jnp.issubdtype(kind.dtype, jnp.floating)}
        return jax.value_and_grad(total)(numbers, values)

    return jax.jit(both)


def _least(function: Run, arguments: list[object]) -> float:
    """Return the least time of several runs."""
    jax.block_until_ready(function(arguments))
    times: list[float] = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(function(arguments))
        times.append(time.perf_counter() - begin)
    return min(times)
