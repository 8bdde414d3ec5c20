"""Values of nodes for all samples of a reader, sequence by sequence, without padding."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluate import minibatches
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.evaluation.output import node_sequences
from cntkpy.trainers.log.nodes import log_shapes
from cntkpy.trainers.log.reporting import NoProgress, Progress, Tracing
from cntkpy.trainers.step.batching import CAPACITY
from cntkpy.trainers.step.context import Callback


class Written(NamedTuple):
    """A minibatch: its number of columns, per node the values of its sequences, and what the reader gave."""

    columns: int
    values: list[list[NDArray[Any]]]
    minibatch: Minibatch


def node_values(
    network: ValidatedNetwork,
    nodes: Sequence[Node],
    reader: MinibatchReader,
    minibatch_size: int,
    epoch_samples: int | None = None,
    progress: Progress | None = None,
    tracing: Tracing | None = None,
    callbacks: Sequence[Callback] = (),
    trace_level: int = 0,
) -> Iterator[Written]:
    """For every minibatch, its number of columns (gaps included) and, per node, the values of its sequences.

    A sequence is an array (steps, elements), elements in CNTK's flat order (first axis fastest). A node that
    carries no minibatch data is one sequence whose steps are the columns of its matrix. From `trace_level` 2 on, every
    compilation is logged, from 3 on the nodes and their shapes.
    """
    progress = progress or NoProgress()
    log_shapes(network, nodes, trace_level)
    evaluator = Evaluator(network, nodes, summed=False, callbacks=callbacks, trace_level=trace_level)
    batcher = evaluator.batcher(minibatch_size, 1 if callbacks else CAPACITY)
    samples = 0
    progress.start("writing", epoch_samples)
    for stack in batcher.stacks(minibatches(reader, minibatch_size, 0, epoch_samples, tracing), lambda number: False):
        results = {name: np.asarray(array) for name, array in evaluator.run(stack).items()}
        for k, columns in enumerate(stack.columns.tolist()):
            found = {name: array[k] for name, array in results.items()}
            values = [node_sequences(node, found[node.name], stack.layout(k, node, found)) for node in nodes]
            yield Written(columns, values, stack.minibatches[k])
        samples += int(stack.samples.sum())
        progress.update(samples)
    progress.finish()
