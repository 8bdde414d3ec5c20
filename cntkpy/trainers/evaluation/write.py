"""Values of nodes for all samples of a reader, sequence by sequence, without padding."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluate import EvaluationData
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.evaluation.output import node_sequences
from cntkpy.trainers.log.reporting import NoProgress, Progress
from cntkpy.trainers.step.feed import CAPACITY


class Written(NamedTuple):
    """A minibatch: its number of columns, per node the values of its sequences, and what the reader gave."""

    columns: int
    values: list[list[NDArray[Any]]]
    minibatch: Minibatch


def node_values(evaluator: Evaluator, data: EvaluationData, progress: Progress | None = None) -> Iterator[Written]:
    """Yield for every minibatch its number of columns (gaps included) and, per node, the values of its sequences.

    A sequence is an array (steps, elements), elements in CNTK's flat order (first axis fastest). A node that
    carries no minibatch data is one sequence whose steps are the columns of its matrix.

    Args:
        evaluator: Of the nodes, with `summed=False`.
        data: The data.
        progress: Shows how many samples are done.
    """
    progress, nodes = progress or NoProgress(), evaluator.nodes
    batcher = evaluator.batcher(data.minibatch_size, 1 if evaluator.callbacks else CAPACITY)
    samples = 0
    progress.start("writing", data.samples)
    for stack in batcher.stacks(data.minibatches(), lambda number: False):
        results = {name: np.asarray(array) for name, array in evaluator.run(stack).items()}
        for k, columns in enumerate(stack.columns.tolist()):
            row = {name: array[k] for name, array in results.items()}
            values = [node_sequences(node, row[node.name], stack.layout(k, node, row)) for node in nodes]
            yield Written(columns, values, stack.minibatches[k])
        samples += int(stack.samples.sum())
        progress.update(samples)
    progress.finish()
