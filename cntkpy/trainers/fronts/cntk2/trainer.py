"""The trainer of Python programs: drives the compiled step that configurations train with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.function import Applies, Function, as_function
from cntkpy.networks.builders.python.functions.graph import MASK_SEEDS, names_seed
from cntkpy.networks.graph.network import Network
from cntkpy.readers.common.planned import State
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.fronts.cntk2.checks import check_filename, check_flag, check_json, check_type
from cntkpy.trainers.fronts.cntk2.objective import Objective, learners_of, loss_and_metric
from cntkpy.trainers.fronts.cntk2.sized import SizedObjectives
from cntkpy.trainers.fronts.cntk2.tester import Tested, writers_of
from cntkpy.trainers.fronts.cntk2.timing import LastMinibatch
from cntkpy.trainers.fronts.cntk2.training import Training
from cntkpy.trainers.fronts.cntk2.updates import Updates
from cntkpy.trainers.fronts.cntk2.user.learners import PythonLearner
from cntkpy.trainers.fronts.cntk2.values import Values
from cntkpy.trainers.fronts.cntk2.workers import Workers
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.step.context import Callback, StepContext


class Trainer(Tested):
    """Trains parameters of a network.

    Args:
        model: the function to train, or a network that was read or built. None: only the criteria are known.
        criterion: the loss, or a pair of the loss and a metric (or None). Of a network also names of its nodes, or None
            for those that it names itself.
        learners: what is trained and how; one learner, or a list of them for different parameters.
        progress_writers: report the progress.

    Attributes:
        queue: the minibatches on their way through the compiled step.
        seed: of random masks: 0 for the first trainer of a program, then 1, 2, ...; 0 with functions that have seeds.
    """

    def __init__(
        self, model: Function | Network | None, criterion: object, learners: object, progress_writers: object = None
    ) -> None:
        function = as_function(model) if isinstance(model, Network) else model
        if isinstance(function, Applies) and not function.of_placeholder().placeholders:
            function = function.of_placeholder()  # a program has replaced the placeholders of its layer
        if function is not None:
            hint = "Trainer(z, (loss, metric), learner); a layer is a function once it was applied to an input"
            check_type("the model of a trainer", function, Function, hint)
        self.model = function
        self.loss_function, self.evaluation_function = loss_and_metric(function, criterion)
        self.learners = learners_of(learners)
        self.workers = Workers.of(self.learners)
        writers = writers_of(progress_writers, self.workers.main)
        metric = [] if self.evaluation_function is None else [self.evaluation_function]
        outputs = function.roots if function is not None else ()
        objectives = SizedObjectives([self.loss_function, *metric], "criterion", outputs, self.learners)
        if objectives.is_free:
            self.workers.refuse_free_sizes()
        super().__init__(objectives, writers)
        self._training = Training(objectives, self.workers.alone)
        self.queue = self._training.queue
        self._updates = Updates(self._training, self.learners, self.workers, self.progress_writers)
        self._last_minibatch = LastMinibatch()
        self._shown = ShownOutputs()
        self.seed = 0 if names_seed([self.loss_function.root, *outputs]) else MASK_SEEDS.next() - 1

    def __repr__(self) -> str:
        metric = f", metric={self.evaluation_function!r}" if self.evaluation_function is not None else ""
        return f"Trainer(loss={self.loss_function!r}{metric}, {', '.join(map(repr, self.learners))})"

    @property
    def parameter_learners(self) -> list[Any]:
        """The learners."""
        return [learner.code if isinstance(learner, PythonLearner) else learner for learner in self.learners]

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples of the criterion that were trained on, of all workers."""
        return self._updates.counts.samples

    @property
    def total_number_of_updates(self) -> int:
        """Minibatches that were trained on."""
        return self._updates.counts.updates

    @property
    def total_number_of_sweeps(self) -> int:
        """Passes over the data that ended."""
        return self._updates.counts.sweeps

    @property
    def has_unreported(self) -> bool:
        """Return whether minibatches were trained on since `summarize_training_progress`."""
        return self._updates.counts.reported < self._updates.counts.updates

    @property
    def previous_minibatch_loss_average(self) -> float:
        """Return the loss per sample of the last minibatch."""
        return self._last().average_loss

    @property
    def previous_minibatch_evaluation_average(self) -> float:
        """Return the metric per sample of the last minibatch."""
        if self.evaluation_function is None:
            raise ArgumentError("the trainer has no metric", "Trainer(model, (loss, metric), learners)")
        return self._last().average_metric

    @property
    def previous_minibatch_sample_count(self) -> int:
        """Return the samples of the last minibatch."""
        return self.queue.collect()[1].samples

    def _last(self) -> Totals:
        """Return the totals of the last minibatch."""
        if not self._updates.counts.updates:
            raise ArgumentError("there was no minibatch before", "train_minibatch comes first")
        return self.queue.collect()[1]

    @property
    def totals(self) -> Totals:
        """Return the sums since the first minibatch."""
        return self.queue.collect()[0]

    @property
    def inputs(self) -> tuple[Function, ...]:
        """Return the inputs that the criteria depend on."""
        return tuple(known.function for known in self.arguments.inputs)

    def train_minibatch(
        self,
        arguments: object,
        outputs: Function | Iterable[Function] | None = None,
        device: object = None,
        is_sweep_end: bool | None = None,
    ) -> Any:
        """Train on a minibatch.

        Args:
            arguments: the data by input: arrays, lists of sequences, sparse matrices, values, or what a minibatch
                source gives.
            outputs: functions whose values for this minibatch are returned: those of the training step, before its
                update, with its random masks.
            device: accepted; changes nothing.
            is_sweep_end: whether a pass over the data ends; else what the minibatch says counts.

        Returns:
            Whether there were data; with `outputs` a pair of that and the values by output.
        """
        del device
        minibatch = self.minibatch(arguments, continued=True) if not _is_empty(arguments) else None
        if is_sweep_end is not None:
            check_flag("train_minibatch", "is_sweep_end", is_sweep_end)
            if minibatch is not None:
                minibatch.end_of_sweep = is_sweep_end
        if outputs is None:
            return self.train(minibatch)
        if not (wanted := list(outputs.outputs if isinstance(outputs, Function) else outputs)):
            return self.train(minibatch), {}
        self._training.use(minibatch)
        self.queue.flush()
        shown, take = self._shown.taker(self._training.objective, wanted)
        return self._train(minibatch, [take]), shown

    def train(self, minibatch: Minibatch | None) -> bool:
        """Train on a minibatch whose streams are called like the input nodes; return whether any worker had data."""
        return self._train(minibatch)

    def _train(self, minibatch: Minibatch | None, callbacks: Sequence[Callback] = ()) -> bool:
        """Train on a minibatch, of which `callbacks` get the context before."""
        self._training.use(minibatch)
        self._training.hold()
        self._last_minibatch.keep(minibatch)
        return self._updates.train(minibatch, self.seed, callbacks)

    def print_node_timing(self) -> None:
        """Print the time of each node for the last minibatch of training; see `Function.print_node_timing`."""
        self._training.release()
        objective = self._training.objective
        objective.model.load()
        self._last_minibatch.print_times("Trainer", objective.model.network, objective.nodes, True)

    def release(self) -> None:
        """Show the parameters as they are now."""
        self._training.release()

    def summarize_training_progress(self) -> None:
        """Let the progress writers sum up the training since the last time."""
        self._updates.summarize(self.evaluation_function is not None)

    def test(self, minibatch: Minibatch) -> Totals:
        """Return loss and metric of a minibatch; without a metric the loss is both."""
        self.queue.collect()
        self._last_minibatch.keep(minibatch)
        return super().test(minibatch)

    def save_checkpoint(self, filename: str | Path, external_state: State | None = None) -> None:
        """Write the model to a file, and next to it (`.ckp`) everything that training needs to resume bit for bit.

        Args:
            filename: the model file.
            external_state: values of the program's own, to be stored as JSON.
        """
        check_filename(filename)
        check_json(external_state)
        self._updates.save(filename, self.seed, external_state or {})

    def restore_from_checkpoint(self, filename: str | Path) -> State:
        """Restore a checkpoint.

        Args:
            filename: the model file.

        Returns:
            The program's own values.

        Raises:
            UserError: it is not a checkpoint, or that of another network.
        """
        check_filename(filename)
        self.seed, external_state = self._updates.restore(f"{filename}.ckp")
        return external_state


class ShownOutputs:
    """Values of the outputs that `train_minibatch` is asked for, compiled once."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Objective, dict[tuple[NodeValue, ...], Values]] = WeakKeyDictionary()

    def taker(self, objective: Objective, wanted: list[Function]) -> tuple[dict[Function, object], Callback]:
        """Return a dictionary, and a callback that puts values into it in a step of training.

        Args:
            objective: Is trained.
            wanted: Functions.
        """
        shown: dict[Function, Any] = {}
        known, roots = self._known.setdefault(objective, {}), tuple(function.root for function in wanted)
        if roots not in known:
            known[roots] = Values(wanted, objective.roots, objective.sizes)
        values, names = known[roots], objective.names()

        def take(step: StepContext) -> None:
            try:
                shown.update(zip(wanted, values.in_training_step(step, names), strict=True))
            except KeyError as error:
                message = f"the criterion does not depend on the input {error}, so a minibatch has no data for it"
                raise ArgumentError(message, "evaluate the output by itself: f.eval(data)") from None

        return shown, take


def _is_empty(arguments: object) -> bool:
    """Return whether there are no data: None, or an empty dictionary or list."""
    return arguments is None or (isinstance(arguments, Mapping | list | tuple) and not arguments)
