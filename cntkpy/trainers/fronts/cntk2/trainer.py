"""The trainer of Python programs: drives the compiled step that configurations train with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.function import Function, as_function
from cntkpy.networks.files.model_file import save_model
from cntkpy.networks.graph.network import Network
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.checkpoints.checkpoint import PROGRAM, Checkpoint, not_a_checkpoint
from cntkpy.trainers.fronts.cntk2.checks import check_filename, check_flag, check_json, check_type
from cntkpy.trainers.fronts.cntk2.objective import CurrentSettings, Objective, learners_of, loss_and_metric
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter
from cntkpy.trainers.fronts.cntk2.sized import SizedObjectives
from cntkpy.trainers.fronts.cntk2.tester import Tested, writers_of
from cntkpy.trainers.fronts.cntk2.timing import LastMinibatch
from cntkpy.trainers.fronts.cntk2.training import Training
from cntkpy.trainers.fronts.cntk2.user.learners import PythonLearner, update_all
from cntkpy.trainers.fronts.cntk2.values import Values
from cntkpy.trainers.fronts.cntk2.workers import Workers
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.step.context import Callback, StepContext


@dataclass
class _Counts:
    """What was trained on so far, with the names of a checkpoint.

    Attributes:
        samples: Samples of the criterion, of all workers.
        updates: Minibatches.
        sweeps: Passes over the data that ended.
        reported: Minibatches up to the last `summarize_training_progress`.
    """

    samples: int = 0
    updates: int = 0
    sweeps: int = 0
    reported: int = 0


class Trainer(Tested):
    """Trains parameters of a network.

    Args:
        model: the function to train, or a network that was read or built. None: only the criteria are known.
        criterion: the loss, or a pair of the loss and a metric (or None). Of a network also names of its nodes, or None
            for those that it names itself.
        learners: what is trained and how; one learner, or a list of them for different parameters.
        progress_writers: report the progress.

    Attributes:
        seed: of random masks.
    """

    def __init__(
        self, model: Function | Network | None, criterion: Any, learners: Any, progress_writers: Any = None
    ) -> None:
        function = as_function(model) if isinstance(model, Network) else model
        if function is not None:
            hint = "Trainer(z, (loss, metric), learner); a layer is a function once it was applied to an input"
            check_type("the model of a trainer", function, Function, hint)
        self.model = function
        self.loss_function, self.evaluation_function = loss_and_metric(function, criterion)
        self.learners = learners_of(learners)
        self.workers = Workers.of(self.learners)
        writers = writers_of(progress_writers)
        for writer in writers:
            check_type("a progress writer", writer, ProgressWriter, "ProgressPrinter(tag='Training')")
            writer.attach(self.workers.main)
        criteria = [self.loss_function]
        if self.evaluation_function is not None:
            criteria.append(self.evaluation_function)
        outputs = function.roots if function is not None else ()
        objectives = SizedObjectives(criteria, "criterion", outputs, self.learners)
        if objectives.is_free and self.workers.size > 1:
            message = (
                "several workers train one network; this one has a size for each minibatch (FreeDimension, unpack)"
            )
            raise ArgumentError(message, "train on one worker, or give inputs one size")
        super().__init__(objectives, writers)
        self._training = Training(objectives, self.workers.alone)
        self.queue = self._training.queue
        """The minibatches on their way through the compiled step."""
        self._settings = CurrentSettings(self.learners)
        self._counts = _Counts()
        self._last_minibatch = LastMinibatch()
        self._shown: WeakKeyDictionary[Objective, dict[tuple[NodeValue, ...], Values]] = WeakKeyDictionary()
        """What computes the outputs that `train_minibatch` is asked for."""
        self.seed = 0

    # ------------------------------------------------------------------------------------------------- what it is

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
        return self._counts.samples

    @property
    def total_number_of_units_seen(self) -> int:
        """The same."""
        return self._counts.samples

    @property
    def total_number_of_updates(self) -> int:
        """Minibatches that were trained on."""
        return self._counts.updates

    @property
    def total_number_of_sweeps(self) -> int:
        """Passes over the data that ended."""
        return self._counts.sweeps

    @property
    def has_unreported(self) -> bool:
        """Whether minibatches were trained on since `summarize_training_progress`."""
        return self._counts.reported < self._counts.updates

    @property
    def previous_minibatch_loss_average(self) -> float:
        """The loss per sample of the last minibatch."""
        return self._last().average_loss

    @property
    def previous_minibatch_evaluation_average(self) -> float:
        """The metric per sample of the last minibatch."""
        if self.evaluation_function is None:
            raise ArgumentError("the trainer has no metric", "Trainer(model, (loss, metric), learners)")
        return self._last().average_metric

    @property
    def previous_minibatch_sample_count(self) -> int:
        """The samples of the last minibatch."""
        return self.queue.collect()[1].samples

    def _last(self) -> Totals:
        """Return the totals of the last minibatch."""
        if not self._counts.updates:
            raise ArgumentError("there was no minibatch before", "train_minibatch comes first")
        return self.queue.collect()[1]

    @property
    def totals(self) -> Totals:
        """What was summed up since the first minibatch."""
        return self.queue.collect()[0]

    @property
    def inputs(self) -> tuple[Function, ...]:
        """The inputs that the criteria depend on."""
        return tuple(known.function for known in self.arguments.inputs)

    # ------------------------------------------------------------------------------------------------- training

    def train_minibatch(
        self,
        arguments: Any,
        outputs: Function | Iterable[Function] | None = None,
        device: Any = None,
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
        if minibatch is not None and is_sweep_end is not None:
            minibatch.end_of_sweep = is_sweep_end
        if outputs is None:
            return self.train(minibatch)
        wanted = list(outputs.outputs if isinstance(outputs, Function) else outputs)
        return self._train_and_show(minibatch, wanted) if wanted else (self.train(minibatch), {})

    def _train_and_show(self, minibatch: Minibatch | None, wanted: list[Function]) -> tuple[bool, dict[Function, Any]]:
        """Train on a minibatch alone; whether there were data, and the values of functions in that step."""
        self._training.use(minibatch)
        self.queue.flush()
        objective, roots = self._training.objective, tuple(function.root for function in wanted)
        known = self._shown.setdefault(objective, {})
        if roots not in known:
            known[roots] = Values(wanted, objective.roots, objective.sizes)
        values = known[roots]
        shown: dict[Function, Any] = {}
        names = objective.names()

        def show(step: StepContext) -> None:
            try:
                shown.update(zip(wanted, values.in_training_step(step, names), strict=True))
            except KeyError as error:
                message = f"the criterion does not depend on the input {error}, so a minibatch has no data for it"
                raise ArgumentError(message, "evaluate the output by itself: f.eval(data)") from None

        return self._train(minibatch, [show]), shown

    def train(self, minibatch: Minibatch | None) -> bool:
        """Train on a minibatch whose streams are called like the input nodes.

        Args:
            minibatch: this worker's data; None: there are none.

        Returns:
            Whether any worker had data.
        """
        return self._train(minibatch)

    def _train(self, minibatch: Minibatch | None, callbacks: Sequence[Callback] = ()) -> bool:
        """Train on a minibatch, of which `callbacks` get the context before."""
        self._training.use(minibatch)
        self._training.hold()
        self._last_minibatch.keep(minibatch)
        if self.workers.size > 1:
            return self._train_with_others(minibatch, callbacks)
        if minibatch is None or minibatch.num_samples == 0:
            return False
        self.queue.add(minibatch, self._settings.get(self.seed), callbacks)
        self._count(self._training.objective.samples_of(minibatch), minibatch.end_of_sweep)
        if self._training.user_learners:
            return self._update_by_python(minibatch)
        if self.queue.is_full:
            self.queue.flush()
        return True

    def _update_by_python(self, minibatch: Minibatch) -> bool:
        """Let the learners that are Python code change their parameters; whether training goes on."""
        last = self.queue.collect()[1]
        gradients = {
            parameter: self.queue.now.step.updates([name])[name]["gradient"].reshape(parameter.shape)
            for name, (parameter, _) in self._training.user_learners.items()
        }
        learners = dict(self._training.user_learners.values())
        return update_all(learners, gradients, last.samples, minibatch.end_of_sweep)

    def _train_with_others(self, minibatch: Minibatch | None, callbacks: Sequence[Callback]) -> bool:
        settings = self._settings.get(self.seed)
        renew = self.workers.choose(self.queue.now.step, self._counts.samples)
        before = self._counts.updates
        sweep_end = self.workers.any(minibatch is not None and minibatch.end_of_sweep)
        for samples in self.queue.train_with_others(minibatch, settings, renew, callbacks):
            self._count(samples, sweep_end)
        return self._counts.updates > before

    def _count(self, samples: int, sweep_end: bool) -> None:
        self._counts.samples += samples
        self._counts.updates += 1
        self._counts.sweeps += sweep_end
        for learner in self.learners:
            learner.count(samples, sweep_end)
        for writer in self.progress_writers:
            writer.after_update(self._counts.updates, lambda: self.totals)

    def print_node_timing(self) -> None:
        """Print how long each node takes for the last minibatch of training; see `Function.print_node_timing`."""
        self._training.release()
        self._training.objective.model.load()
        network, nodes = self._training.objective.model.network, self._training.objective.nodes
        self._last_minibatch.print_times("Trainer", network, nodes, True)

    def release(self) -> None:
        """Show the parameters as they are now."""
        self._training.release()

    def summarize_training_progress(self) -> None:
        """Let the progress writers sum up what was trained since the last time."""
        if self.workers.together:
            self._training.finish_epoch()
        totals = self.totals
        self._counts.reported = self._counts.updates
        for writer in self.progress_writers:
            writer.after_epoch(totals, self.evaluation_function is not None)

    def test(self, minibatch: Minibatch) -> Totals:
        """Return loss and metric of a minibatch; without a metric the loss is both."""
        self.queue.collect()
        self._last_minibatch.keep(minibatch)
        return super().test(minibatch)

    # ------------------------------------------------------------------------------------------------- checkpoints

    def save_checkpoint(self, filename: str | Path, external_state: dict[str, Any] | None = None) -> None:
        """Write the model to a file, and next to it (`.ckp`) everything that training needs to resume bit for bit.

        Args:
            filename: the model file.
            external_state: values of the program's own, to be stored as JSON.
        """
        check_filename(filename)
        check_json(external_state)
        values, arrays = self._training.snapshot()
        values |= {
            **asdict(self._counts),
            "seed": self.seed,
            "learners": [[lr.samples_seen, lr.sweeps, *lr.rate_since] for lr in self.learners],
            "writers": [writer.saved_state() for writer in self.progress_writers],
            "external": self.workers.exchange(external_state or {}),
            "workers": self.workers.size,
        }
        self._training.release()
        if self.workers.main:
            model = self._training.objective.model
            model.load()
            save_model(filename, model.network)
            Checkpoint(PROGRAM, values, arrays).save(f"{filename}.ckp")
        self.workers.wait()

    def restore_from_checkpoint(self, filename: str | Path) -> dict[str, Any]:
        """Resume where a checkpoint was written.

        Args:
            filename: the model file.

        Returns:
            The program's own values.

        Raises:
            UserError: it is not a checkpoint, or that of another network.
        """
        check_filename(filename)
        path = f"{filename}.ckp"
        try:
            checkpoint = Checkpoint.load(path, PROGRAM)
        except FileNotFoundError:
            raise UserError("NoModel", f"there is no checkpoint {path}", hint="save_checkpoint writes it") from None
        values = checkpoint.values
        if int(values["workers"]) != self.workers.size:
            raise not_a_checkpoint(path, f"it is that of {values['workers']} workers")
        self._training.restore(path, checkpoint, lambda step: self.workers.choose(step, int(values["samples"])))
        for learner, (samples, sweeps, *since) in zip(self.learners, values["learners"], strict=True):
            learner.samples_seen, learner.sweeps = samples, sweeps
            learner.rate_since = (since[0], since[1]) if since else (0, 0)
        for writer, state in zip(self.progress_writers, values["writers"], strict=False):
            writer.take_state(state)
        self._counts = _Counts(*(int(values[field.name]) for field in fields(_Counts)))
        self.seed = int(values["seed"])
        return values["external"][self.workers.rank]


def _is_empty(arguments: Any) -> bool:
    """Return whether there are no data: None, or an empty dictionary or list."""
    return arguments is None or (isinstance(arguments, Mapping | list | tuple) and not arguments)
