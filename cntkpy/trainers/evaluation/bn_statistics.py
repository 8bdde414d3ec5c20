"""The statistics of BatchNormalization nodes, estimated again as plain averages over minibatches."""

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Settings, compile_network, network_parameters, network_state, store
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluate import minibatches
from cntkpy.trainers.log.reporting import NoProgress, Progress
from cntkpy.trainers.step.buckets import EVALUATION_BUCKETS
from cntkpy.trainers.step.context import Callback, StepContext, minibatch_of
from cntkpy.trainers.step.feed import Batcher

log = logging.getLogger("cntkpy.trainers")

FROZEN = {"normalizationTimeConstant": float("inf"), "blendTimeConstant": float("inf")}
"""Options with which a node in training uses its running statistics, and leaves them alone."""

AVERAGED = {"normalizationTimeConstant": -1.0, "blendTimeConstant": 0.0}
"""Options with which a node in training uses the minibatch, and averages all minibatches with equal weight."""


def estimate_statistics(
    network: ValidatedNetwork,
    roots: Sequence[Node],
    reader: MinibatchReader,
    minibatch_size: int,
    iterations: int,
    progress: Progress | None = None,
    watch: Callable[[Node], Sequence[Callback]] = lambda node: (),
) -> None:
    """Estimate the statistics of all BatchNormalization nodes below some nodes, from the data upwards.

    Each node gets `iterations` fresh minibatches, while the nodes below it use what was estimated for them.
    `watch` gives those that are told of the minibatches of a node.

    Raises:
        UserError: if there is no such node, or the data end before all nodes have had theirs.
    """
    nodes = [node for node in network.below(roots) if node.operation == "BatchNormalization"]
    if not nodes:
        raise UserError(
            "NothingToDo", "the network has no BatchNormalization node, there are no statistics to estimate"
        )
    progress = progress or NoProgress()
    data = minibatches(reader, minibatch_size, 0, len(nodes) * minibatch_size * iterations)
    options = {node.name: dict(node.options) for node in nodes}
    for node in nodes:
        node.samples = 0
    try:
        for node in nodes:
            log.info("Estimating Statistics --> %s", node.name)
            node.options.update(AVERAGED)
            progress.start(f"statistics of {node.name}", iterations * minibatch_size)
            _estimate(network, node, data, minibatch_size, iterations, progress, watch(node))
            progress.finish()
            node.options.update(FROZEN)
    finally:
        for node in nodes:
            node.options.clear()
            node.options.update(options[node.name])


def _estimate(
    network: ValidatedNetwork,
    node: Node,
    data: Iterator[Minibatch],
    minibatch_size: int,
    iterations: int,
    progress: Progress,
    callbacks: Sequence[Callback],
) -> None:
    function = jax.jit(_pass(network, node))
    parameters, state = network_parameters(network), network_state(network)
    batcher = Batcher.of(network, [node], minibatch_size, capacity=1, chosen=EVALUATION_BUCKETS)
    done = samples = 0
    for stack in batcher.stacks(itertools.islice(data, iterations), lambda number: True):
        if callbacks:
            context = StepContext.of(stack, 0, done + 1, parameters, state, None, Settings())
            for callback in callbacks:
                callback(context)
        state = function(parameters, state, minibatch_of(stack.batch, 0))
        samples += int(stack.samples.sum())
        done += 1
        progress.update(samples)
    if done < iterations:
        raise UserError(
            "DataEnd",
            f"the data end after {done} of {iterations} minibatches for '{node.name}'",
            hint="lower itersPerNode or minibatchSize",
        )
    names = (node.input(3).name, node.input(4).name, f"{node.name}/samples")
    store(network, {name: np.array(state[name]) for name in names})


def _pass(network: ValidatedNetwork, node: Node) -> Callable[..., Any]:
    """Return the state after a minibatch."""
    compiled = compile_network(network, [node.name], training=True)

    def state_after(parameters: dict[str, Any], state: dict[str, Any], batch: object) -> Any:
        return compiled(parameters, state, batch)[1]

    return state_after
