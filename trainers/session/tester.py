"""A metric evaluated on data, without training."""

from __future__ import annotations

from typing import Any

import numpy as np

from networks.builders.python import graph
from networks.builders.python.calls import as_list
from networks.builders.python.function import Function
from networks.builders.python.reductions import reduce_sum
from networks.graph.node import Node
from readers.minibatch import Minibatch
from trainers.evaluation.evaluator import Evaluator
from trainers.session.checks import check_type
from trainers.session.data import Arguments, counted, has_one_element, inputs_of, with_samples
from trainers.session.progress import ProgressWriter, Totals


class Tester:
    """Evaluates a metric on data.

    Args:
        eval_function: the metric; of a function of several outputs the first one.
        progress_writers: told of the progress.
    """

    __test__ = False  # pytest would take it for a test

    def __init__(self, eval_function: Function, progress_writers: Any = None) -> None:
        check_type("a metric", eval_function, Function, "classification_error(z, y)")
        self.evaluation_function = eval_function.outputs[0]
        self.progress_writers: list[ProgressWriter] = [one for one in as_list(progress_writers) if one is not None]
        self._graph, self._node = _network_of(self.evaluation_function)
        if not has_one_element(self._node):
            self._graph, self._node = _network_of(reduce_sum(self.evaluation_function))
        self.arguments = Arguments(inputs_of(self._graph, [self._node]), self._graph.network.dtype)
        self._counted = counted(self._node, self.arguments.inputs)
        self._evaluator: Evaluator | None = None
        self._totals = Totals()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the network's elements."""
        return np.dtype(self._graph.network.dtype)

    def test_minibatch(self, arguments: Any, device: Any = None) -> float:
        """The metric per sample for some data.

        Args:
            arguments: see `Trainer.train_minibatch`.
            device: accepted; changes nothing.
        """
        del device
        return self.test(self.arguments.minibatch(arguments)).average_metric

    def test(self, minibatch: Minibatch) -> Totals:
        """The metric of a minibatch, also as its loss."""
        self._graph.load()
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, [self._node])
        else:
            self._evaluator.load()
        samples = self._counted(minibatch)
        batcher = self._evaluator.batcher(max(1, minibatch.num_samples), 1, chosen=0)
        totals = Totals()
        for stack in batcher.stacks(iter([minibatch]), lambda number: False):
            value = float(np.asarray(self._evaluator.run(stack), np.float64)[0, 0])
            totals = totals.plus(Totals(value, value, samples, 1))
        self._totals = self._totals.plus(totals)
        for writer in self.progress_writers:
            writer.after_test_minibatch(self._totals)
        return totals

    def summarize_test_progress(self) -> None:
        """Let the progress writers sum up what was tested since the last time."""
        for writer in self.progress_writers:
            writer.after_test(self._totals)
        self._totals = Totals()


def _network_of(metric: Function) -> tuple[graph.Model, Node]:
    root = with_samples(metric).root
    made = graph.make([root], {"evaluation": [root]})
    return made, made.nodes[root]
