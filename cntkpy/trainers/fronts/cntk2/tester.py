"""A metric evaluated on data, without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from cntkpy.networks.builders.python.functions.calls import as_list
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.nodes.host.kinds import raise_failure
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.fronts.cntk2.checks import check_type
from cntkpy.trainers.fronts.cntk2.data import Arguments
from cntkpy.trainers.fronts.cntk2.objective import Objective
from cntkpy.trainers.fronts.cntk2.padded_sizes import PaddedSizes
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter
from cntkpy.trainers.fronts.cntk2.sized import SizedObjectives
from cntkpy.trainers.fronts.cntk2.timing import LastMinibatch
from cntkpy.trainers.fronts.cntk2.values import Draws
from cntkpy.trainers.log.totals import Totals


@dataclass
class _Loaded:
    """The evaluator of an objective.

    Attributes:
        evaluator: The evaluator.
        changing: How many constants were known to change when it was compiled.
        values: The values of parameters that it has.
    """

    evaluator: Evaluator
    changing: int
    values: list[Any]


class MetricTests:
    """Evaluates the criteria of a network on single minibatches, and reports them.

    Args:
        writers: Report the totals.
    """

    def __init__(self, writers: Sequence[ProgressWriter]) -> None:
        self._writers = writers
        self._totals = Totals()
        self._known: WeakKeyDictionary[Objective, _Loaded] = WeakKeyDictionary()
        self._last = LastMinibatch()
        self._sizes = PaddedSizes()

    def run(self, objective: Objective, minibatch: Minibatch) -> Totals:
        """Loss and metric of a minibatch, with the parameters of now; of one criterion the metric is the loss."""
        evaluator = self._loaded(objective)
        self._last.keep(minibatch)
        batcher = evaluator.batcher(self._sizes.of(minibatch.num_samples), 1, chosen=0)
        last = len(objective.nodes) - 1
        totals, samples = Totals(), objective.samples_of(minibatch)
        for stack in batcher.stacks(iter([minibatch]), lambda number: False):
            row = np.asarray(evaluator.run(stack), np.float64)[0]
            raise_failure()
            for name, target in objective.assigned.items():
                cell_of(target).set_value(np.asarray(evaluator.state[name]))
            totals = totals.plus(Totals.of_loss(float(row[0]), float(row[last]), samples, 1))
        self._totals = self._totals.plus(totals)
        for writer in self._writers:
            writer.after_test_minibatch(self._totals)
        return totals

    def print_times(self, title: str, objective: Objective) -> None:
        """Print the time of each node for the last minibatch."""
        objective.model.load()
        self._last.print_times(title, objective.model.network, objective.nodes, False)

    def summarize(self) -> None:
        """Let the progress writers sum up what was tested since the last time."""
        for writer in self._writers:
            writer.after_test(self._totals)
        self._totals = Totals()

    def _loaded(self, objective: Objective) -> Evaluator:
        values = [cell.current() for cell in objective.cells]
        known = self._known.get(objective)
        if known is not None and all(a is b for a, b in zip(values, known.values, strict=True)):
            return known.evaluator
        model = objective.model
        model.load()
        changing = len(model.network.changing)
        if known is None or known.changing != changing:
            known = self._known[objective] = _Loaded(Evaluator(model.network, objective.nodes), changing, values)
            draws = Draws()
            draws.begin(model.network)
            known.evaluator.load_again(draws.counts)
        known.values = values
        known.evaluator.load_again()
        return known.evaluator


class Tested:
    """Criteria that are evaluated on data: the common part of trainers and testers.

    Args:
        objectives: of the criteria.
        progress_writers: report the progress.

    Attributes:
        progress_writers: the same.
    """

    def __init__(self, objectives: SizedObjectives, progress_writers: Sequence[ProgressWriter]) -> None:
        self._objectives, self.progress_writers = objectives, list(progress_writers)
        self._tests = MetricTests(self.progress_writers)

    @property
    def arguments(self) -> Arguments:
        """Makes minibatches of what programs give."""
        return self._objectives.arguments

    def minibatch(self, arguments: object, *, continued: bool = False) -> Minibatch:
        """Return the minibatch of some data, see `Arguments.minibatch`."""
        return self._objectives.minibatch(arguments, continued)

    def test_minibatch(self, arguments: object, device: object = None) -> float:
        """Return the metric per sample (the loss, if there is no metric) for some data; nothing changes.

        Args:
            arguments: see `Trainer.train_minibatch`.
            device: accepted; changes nothing.
        """
        del device
        return self.test(self.minibatch(arguments)).average_metric

    def test(self, minibatch: Minibatch) -> Totals:
        """Return loss and metric of a minibatch; of one criterion the metric is the loss."""
        self._objectives.fit(minibatch)
        return self._tests.run(self._objectives.now, minibatch)

    def summarize_test_progress(self) -> None:
        """Let the progress writers sum up what was tested since the last time."""
        self._tests.summarize()


def writers_of(writers: object, main: bool | None = None) -> list[ProgressWriter]:
    """Return the progress writers of what a program gives; `main`: attach them to a trainer, of the main worker or not.

    Raises:
        ArgumentError: One that is attached is something else.
    """
    result = [writer for writer in as_list(writers) if writer is not None]
    if main is not None:
        for writer in result:
            check_type("a progress writer", writer, ProgressWriter, "ProgressPrinter(tag='Training')")
            writer.attach(main)
    return result


class Tester(Tested):
    """Evaluates a metric on data.

    Args:
        eval_function: the metric; of a function of several outputs the first one.
        progress_writers: report the progress.
    """

    __test__ = False  # pytest would take it for a test

    def __init__(self, eval_function: Function, progress_writers: object = None) -> None:
        check_type("a metric", eval_function, Function, "classification_error(z, y)")
        self.evaluation_function = eval_function.outputs[0]
        objectives = SizedObjectives([self.evaluation_function], "evaluation")
        super().__init__(objectives, writers_of(progress_writers))

    def print_node_timing(self) -> None:
        """Print the time of each node for the data of the last test; see `Function.print_node_timing`."""
        self._tests.print_times("Evaluator", self._objectives.now)
