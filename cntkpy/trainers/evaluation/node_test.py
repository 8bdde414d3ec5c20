"""`nodeUnitTest`: the values of a node, and the gradients of everything that feeds it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.compile.evaluate import compile_network, network_parameters, network_state, node_total
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.evaluation.evaluate import EvaluationData
from cntkpy.trainers.evaluation.output import node_sequences
from cntkpy.trainers.evaluation.write import Written
from cntkpy.trainers.log.reporting import NoProgress, Progress
from cntkpy.trainers.step.buckets import EVALUATION_BUCKETS
from cntkpy.trainers.step.context import carry, minibatch_of
from cntkpy.trainers.step.feed import Batcher


def gradient_sources(network: ValidatedNetwork, root: Node) -> list[Node]:
    """Return the inputs and parameters that feed a node.

    Raises:
        UserError: if there is an operation between them that has no gradient.
    """
    sources: dict[Node, None] = {}
    seen: set[Node] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if node in seen or node.kind.precompute:  # what is computed before training is constant
            continue
        seen.add(node)
        if node.is_parameter or node.kind.layout == "always":
            sources[node] = None
        elif not node.kind.differentiable:
            raise UserError(
                "NoGradient",
                f"{node.operation} '{node.name}' has no gradient, but inputs or parameters feed '{root.name}' by it",
                span=node.span,
                hint="write a node above it, or the values only (nodeUnitTest=false)",
            )
        pending += node.connected
    return sorted(sources, key=lambda node: node.name.lower())


def node_gradients(
    network: ValidatedNetwork,
    root: Node,
    sources: Sequence[Node],
    data: EvaluationData,
    progress: Progress | None = None,
) -> Iterator[Written]:
    """Yield for every minibatch its number of columns, the values of a node, and the gradients of the sources.

    The node is computed as in training; every element of it has the gradient 1.
    """
    progress = progress or NoProgress()
    compiled = compile_network(network, [root.name], training=True)
    leaves = {node.name: np.asarray(node.value) for node in sources if node.is_parameter}

    def total(variables: tuple[Any, Any], state: Any, batch: Any, key: Any) -> Any:
        parameters, inputs = variables
        values, new_state = compiled(parameters, state, batch._replace(inputs=inputs), key)
        return node_total(root, values, batch), (values, new_state)

    @jax.jit
    def gradients(parameters: Any, state: Any, batch: Any, key: Any) -> Any:
        inputs = {
            name: data.dense(network.nodes[name].shape) if is_sparse(data) else data
            for name, data in batch.inputs.items()
        }
        return jax.grad(total, has_aux=True)((parameters, inputs), state, batch, key)

    batcher = Batcher.of(network, [root], data.minibatch_size, capacity=1, chosen=EVALUATION_BUCKETS)
    leaves_and_values, state = network_parameters(network) | leaves, network_state(network)
    samples = 0
    progress.start("writing", data.samples)
    for number, stack in enumerate(batcher.stacks(data.minibatches(), lambda _: True)):
        state = carry(network, state, stack)
        batch = minibatch_of(stack.batch, 0)
        (by_name, by_input), (outcome, state) = gradients(leaves_and_values, state, batch, jax.random.key(number))
        rows = [node_sequences(root, np.asarray(outcome[root.name]), stack.layout(0, root, outcome))]
        for node in sources:
            gradient = by_input[node.name] if node.name in by_input else by_name[node.name]
            rows.append(node_sequences(node, np.asarray(gradient), stack.layout(0, node)))
        yield Written(int(stack.columns[0]), rows, stack.minibatches[0])
        samples += int(stack.samples.sum())
        progress.update(samples)
    progress.finish()
