"""Means and deviations of the data, computed in one pass before training (docs/specification/networks.md F.6)."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluate import minibatches
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.log.reporting import Tracing
from cntkpy.trainers.parameters.sgd import SGDParameters

log = logging.getLogger("cntkpy.trainers")

VARIANCE_FLOOR = 1e-10


def precompute_all(network: ValidatedNetwork, p: SGDParameters, data: Iterator[Minibatch]) -> bool:
    """Compute the pending nodes as the `SGD` section says, with the lines of the log.

    Args:
        network: The network.
        p: The `SGD` section.
        data: See `precompute_data`; read only if there are such nodes.

    Returns:
        Whether there were any.
    """
    nodes = network.precompute_nodes()
    if not nodes:
        if p.trace_level > 0:
            log.info("No PreCompute nodes found, or all already computed. Skipping pre-computation step.")
        return False
    log.info("Precomputing --> %d PreCompute nodes found.", len(nodes))
    precompute(network, data, p.minibatch_size[0])
    log.info("Precomputing --> Completed.")
    return True


def precompute_data(p: SGDParameters, reader: MinibatchReader, tracing: Tracing) -> Iterator[Minibatch]:
    """Return the minibatches from which nodes are computed before training."""
    samples = None if p.precompute_on_all_data else p.epoch_size or None
    return minibatches(reader, p.minibatch_size[0], 0, samples, tracing)


def precompute(network: ValidatedNetwork, data: Iterator[Minibatch], minibatch_size: int) -> None:
    """Give every pending `Mean` and `InvStdDev` node its value from one pass over the data.

    Running averages, minibatch by minibatch: with `n` samples before and `m` new ones, `a = 1/(n + m)` rounded to
    single precision and `b = n/(n + m)`,

        mean <- b mean + a sum x
        var  <- b (var + (mean_old - mean)^2) + a (sum (x - mean)^2 + gaps mean^2)

    exactly as in CNTK: the cells of a minibatch that hold no sample (`gaps`) count as zeros in the variance,
    so sequences of different lengths make it a little larger than that of the samples.

    Raises:
        UserError: There are no data.
    """
    nodes = network.precompute_nodes()
    sources = {node.input(0).name: node.input(0) for node in nodes}
    evaluator = Evaluator(network, list(sources.values()), summed=False)
    dtype = network.dtype.type
    running = {name: _Running(dtype) for name in sources}
    batcher = evaluator.batcher(minibatch_size)
    for stack in batcher.stacks(data, lambda number: False):
        values = {name: np.asarray(array) for name, array in evaluator.run(stack).items()}
        for k in range(len(stack.minibatches)):
            row = {name: array[k] for name, array in values.items()}
            for name, statistics in running.items():
                layout = stack.layout(k, sources[name], row)
                samples = row[name][: layout.T, : layout.S][layout.mask]
                statistics.add(samples, stack.gaps(k, sources[name], layout))
    for node in nodes:
        statistics = running[node.input(0).name]
        if not statistics.count:
            raise UserError("NoData", f"node '{node.name}' cannot be computed: the reader has no data")
        node.value = statistics.mean if node.operation == "Mean" else statistics.inverse_deviation()
        node.computed = True


class _Running:
    """Mean and variance of the samples so far, element by element."""

    def __init__(self, dtype: Any):
        self.dtype, self.count = dtype, 0
        self.mean: NDArray[Any] = np.zeros((), dtype)
        self.variance: NDArray[Any] = np.zeros((), dtype)

    def add(self, samples: NDArray[Any], gaps: int = 0) -> None:
        """Samples of shape (m, ...), from a minibatch with that many gaps."""
        if not len(samples):
            return
        total = self.count + len(samples)
        new, kept = self.dtype(np.float32(1 / total)), self.dtype(self.count / total)
        mean = kept * self.mean + new * samples.sum(axis=0)
        squares = ((samples - mean) ** 2).sum(axis=0) + gaps * mean * mean
        self.variance = kept * (self.variance + (self.mean - mean) ** 2) + new * squares
        self.mean, self.count = mean, total

    def inverse_deviation(self) -> NDArray[Any]:
        """`1 / sqrt(max(variance, 1e-10))`."""
        return (1 / np.sqrt(np.maximum(self.variance, self.dtype(VARIANCE_FLOOR)))).astype(self.dtype)
