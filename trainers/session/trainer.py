"""The trainer of Python programs: drives the compiled step that configurations train with.

Minibatches are collected and trained on together, as many as fit into one call of the compiled step, until something is
asked for that depends on them: a result, a parameter, a checkpoint. The order of the updates stays the same.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntk_config.base.diagnostics import UserError
from networks.builders.brainscript.node_values import NodeValue
from networks.builders.python import graph
from networks.builders.python.calls import as_list
from networks.builders.python.cells import cell_of
from networks.builders.python.function import Function, as_function
from networks.builders.python.reductions import reduce_sum
from networks.compile.evaluate import Settings
from networks.files.model_file import save_model
from networks.graph.network import Network
from networks.graph.node import Node
from readers.errors import ArgumentError
from readers.minibatch import Minibatch
from trainers.checkpoints.array_file import load_arrays, not_a_checkpoint, save_arrays
from trainers.evaluation.evaluator import Evaluator
from trainers.monitors.not_finite import first_not_finite
from trainers.rules.update_step import Group
from trainers.session.checks import check_filename, check_flag, check_json, check_type
from trainers.session.data import Arguments, counted, has_one_element, inputs_of, with_samples
from trainers.session.learners import DistributedLearner, Learner
from trainers.session.progress import ProgressWriter, Totals
from trainers.session.values import Values
from trainers.session.workers import Workers
from trainers.step import step
from trainers.step.batching import CAPACITY, STACK_BYTES, Batcher, Stack
from trainers.step.buckets import Buckets
from trainers.step.step import EpochSettings, StepContext

FORMAT = "cntkpy session 1"
_FIELDS = {
    "samples": int,
    "updates": int,
    "sweeps": int,
    "totals": list,
    "shapes": object,
    "writers": list,
    "external": list,
    "workers": int,
}


@dataclass
class _Waiting:
    """A call of the compiled step whose results are not read yet.

    Attributes:
        results: (capacity, nodes), on the device.
        stack: what was trained on.
        samples: of every minibatch.
        first: number of its first minibatch.
    """

    results: Any
    stack: Stack
    samples: NDArray[np.int64]
    first: int


class Trainer:
    """Trains parameters of a network.

    Args:
        model: the function to train, or a network that was read or built. None: only the criteria are known.
        criterion: the loss, or a pair of the loss and a metric (or None). Of a network also names of its nodes, or None
            for those that it names itself.
        learners: what is trained and how; one learner, or a list of them for different parameters.
        progress_writers: told of the progress.
    """

    def __init__(
        self, model: Function | Network | None, criterion: Any, learners: Any, progress_writers: Any = None
    ) -> None:
        function = as_function(model) if isinstance(model, Network) else model
        if function is not None:
            hint = "Trainer(z, (loss, metric), learner); a layer is a function once it was applied to an input"
            check_type("the model of a trainer", function, Function, hint)
        self.model = function
        loss, metric = _criteria(function, criterion)
        self.loss_function, self.evaluation_function = loss, metric
        self.learners = _learners(learners)
        self.workers = Workers.of(self.learners)
        self.progress_writers: list[ProgressWriter] = [one for one in as_list(progress_writers) if one is not None]
        for writer in self.progress_writers:
            check_type("what is told of the progress", writer, ProgressWriter, "ProgressPrinter(tag='Training')")
            writer.attach()
        criteria = [with_samples(one) for one in ([loss] if metric is None else [loss, metric])]
        if not self.workers.main:
            for writer in self.progress_writers:
                writer.active = False
        outputs = function.roots if function is not None else ()
        self._graph = _network_of(criteria, outputs)
        self._nodes = [self._graph.nodes[one.root] for one in criteria]
        if not all(map(has_one_element, self._nodes)):
            pairs = zip(criteria, self._nodes, strict=True)
            criteria = [one if has_one_element(node) else reduce_sum(one) for one, node in pairs]
            self._graph = _network_of(criteria, outputs)
            self._nodes = [self._graph.nodes[one.root] for one in criteria]
        self._choose_parameters()
        whole = any(node.kind.own_slots for node in self._graph.nodes.values())
        self._arguments = Arguments(inputs_of(self._graph, self._nodes), self._graph.network.dtype, whole)
        if not self._arguments.inputs:
            hint = "compute it from an input_variable; a minibatch has a value of the loss for each of its samples"
            raise ArgumentError("the criterion depends on no input, so there are no samples to train on", hint)
        self._counted = counted(self._nodes[0], self._arguments.inputs)
        self._cells = [cell_of(value) for value, node in self._graph.nodes.items() if _changes(node)]
        self._loop: step.CompiledStep | None = None
        self._batcher: Batcher | None = None
        self._singles: Batcher | None = None
        self._evaluator: Evaluator | None = None
        self._pending: list[Minibatch] = []
        self._pending_bytes = 0
        self._settings: EpochSettings | None = None
        self._constants: list[Any] = []
        """Schedules that do not change, and the seed, which the settings are from; [] where some schedule changes."""
        self._waiting: list[_Waiting] = []
        self._dirty = False
        self._last = Totals()
        self._totals = Totals()
        self._samples = self._updates = self._sweeps = self._reported = 0
        self._done = self._size = 0
        self._tested = Totals()
        self._evaluated: list[Any] = []
        self._shown: dict[tuple[NodeValue, ...], Values] = {}
        """What computes the outputs that `train_minibatch` is asked for."""
        self.together = False
        self.seed = 0

    # ------------------------------------------------------------------------------------------------- what it is

    @property
    def parameter_learners(self) -> list[Learner]:
        """The learners."""
        return list(self.learners)

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples of the criterion that were trained on, of all workers."""
        return self._samples

    @property
    def total_number_of_units_seen(self) -> int:
        """The same."""
        return self._samples

    @property
    def total_number_of_updates(self) -> int:
        """Minibatches that were trained on."""
        return self._updates

    @property
    def total_number_of_sweeps(self) -> int:
        """Passes over the data that ended."""
        return self._sweeps

    @property
    def has_unreported(self) -> bool:
        """Whether minibatches were trained on since `summarize_training_progress`."""
        return self._reported < self._updates

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the network's elements."""
        return np.dtype(self._graph.network.dtype)

    @property
    def previous_minibatch_loss_average(self) -> float:
        """The loss per sample of the last minibatch."""
        return self._before().average_loss

    @property
    def previous_minibatch_evaluation_average(self) -> float:
        """The metric per sample of the last minibatch."""
        if self.evaluation_function is None:
            raise ArgumentError("the trainer has no metric", "Trainer(model, (loss, metric), learners)")
        return self._before().average_metric

    def _before(self) -> Totals:
        """The sums of the last minibatch."""
        if not self._updates:
            raise ArgumentError("there was no minibatch before", "train_minibatch comes first")
        self.collect()
        return self._last

    @property
    def previous_minibatch_sample_count(self) -> int:
        """The samples of the last minibatch."""
        self.collect()
        return self._last.samples

    @property
    def totals(self) -> Totals:
        """What was summed up since the first minibatch."""
        self.collect()
        return self._totals

    @property
    def inputs(self) -> tuple[Function, ...]:
        """The inputs that the criteria depend on."""
        return tuple(one.function for one in self._arguments.inputs)

    @property
    def arguments(self) -> Arguments:
        """Makes minibatches of what programs give."""
        return self._arguments

    def _choose_parameters(self) -> None:
        """Only parameters of the learners are trained."""
        wanted: dict[Node, Learner] = {}
        for learner in self.learners:
            for one in learner.parameters:
                node = self._graph.nodes.get(one.root)
                if node is None:
                    continue
                if node in wanted:
                    raise ArgumentError(
                        f"two learners have the parameter '{node.name}'", "give each its own parameters"
                    )
                wanted[node] = learner
        if not wanted:
            raise ArgumentError("the criterion depends on no parameter of the learners", "give z.parameters")
        for node in self._graph.nodes.values():
            if node.trainable and node not in wanted:
                node.learning_rate_multiplier = 0.0
        self._learner_of = {node.name: learner for node, learner in wanted.items()}

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
        minibatch = self._arguments.minibatch(arguments, goes_on=True) if not _is_empty(arguments) else None
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
        self.flush()
        roots = tuple(one.root for one in wanted)
        if roots not in self._shown:
            self._shown[roots] = Values(wanted, [value for node in self._nodes for value in self._values_of(node)])
        shown: dict[Function, Any] = {}
        names = {value: node.name for value, node in self._graph.nodes.items()}

        def show(step: StepContext) -> None:
            try:
                shown.update(zip(wanted, self._shown[roots].in_training_step(step, names), strict=True))
            except KeyError as error:
                message = f"the criterion does not depend on the input {error}, so a minibatch has no data for it"
                raise ArgumentError(message, "evaluate the output by itself: f.eval(data)") from None

        loop = self._made()
        loop.callbacks = [show]
        try:
            trained = self.train(minibatch)
            self.flush()
        finally:
            loop.callbacks = ()
        return trained, shown

    def _values_of(self, node: Node) -> list[NodeValue]:
        return [value for value, one in self._graph.nodes.items() if one is node]

    def train(self, minibatch: Minibatch | None) -> bool:
        """Train on a minibatch whose streams are called like the input nodes.

        Args:
            minibatch: this worker's data; None: there are none.

        Returns:
            Whether any worker had data.
        """
        self._hold()
        if self.workers.size > 1:
            return self._train_with_others(minibatch)
        if minibatch is None or minibatch.num_samples == 0:
            return False
        settings = self._settings_now()
        if self._pending and (
            (settings is not self._settings and settings != self._settings)
            or self._pending[-1].truncated != minibatch.truncated
        ):
            self.flush()
        self._settings = settings
        self._pending.append(minibatch)
        self._pending_bytes += minibatch.nbytes
        self._dirty = True
        self._count(self.samples_of(minibatch), minibatch.end_of_sweep)
        if len(self._pending) >= CAPACITY or self._pending_bytes > STACK_BYTES:
            self.flush()
        return True

    def _train_with_others(self, minibatch: Minibatch | None) -> bool:
        self._settings = self._settings_now()
        loop = self._made()
        if self.workers.choose(loop, self._samples) or self._batcher is None:
            self._batcher = loop.batcher(self._first_size(minibatch), 1, chosen=0)
        source = iter([] if minibatch is None or not minibatch.num_sequences else [minibatch])
        before = self._updates
        sweep_end = self.workers.any(minibatch is not None and minibatch.end_of_sweep)
        for stack in self._batcher.stacks(source, _always):
            self._dirty = True
            samples = int(stack.sizes(False).sum())
            self._run(stack)
            self._count(samples, sweep_end)
        return self._updates > before

    def _count(self, samples: int, sweep_end: bool) -> None:
        self._samples += samples
        self._updates += 1
        self._sweeps += sweep_end
        for learner in self.learners:
            learner.count(samples, sweep_end)
        for writer in self.progress_writers:
            writer.after_update(self._updates, self._all_totals)

    def _all_totals(self) -> Totals:
        return self.totals

    def samples_of(self, minibatch: Minibatch) -> int:
        """The samples of a minibatch that the criterion counts."""
        return self._counted(minibatch)

    def _settings_now(self) -> EpochSettings:
        """Rate and momentum of the next minibatch."""
        now: list[Any] = [self.seed]
        for one in self.learners:
            now += one.rate, one.momentum
        if self._settings is not None and now == self._constants:
            return self._settings
        self._constants = now if all(one.constant for one in now[1:]) else []
        (value, kept, mean, per_sample), *more = (one.scalars() for one in self.learners)
        return EpochSettings(
            value, kept, Settings(), self.seed, per_step=not per_sample, mean=bool(mean), more=tuple(more)
        )

    def _made(self) -> step.CompiledStep:
        """The compiled step with its state."""
        if self._loop is None:
            learner = self.learners[0]
            places = {id(one): at for at, one in enumerate(self.learners[1:])}
            groups = {
                name: Group(one.rule, one.regularisation, places[id(one)])
                for name, one in self._learner_of.items()
                if id(one) in places
            }
            self._loop = step.CompiledStep(
                self._graph.network,
                self._nodes,
                learner.rule,
                learner.regularisation,
                strategy=self.workers.alone,
                groups=groups,
            )
        return self._loop

    def _nominal(self, minibatch: Minibatch | None) -> int:
        return max(1, minibatch.num_samples if minibatch is not None else 1)

    def _first_size(self, minibatch: Minibatch | None) -> int:
        """The size of the first minibatch, by which others are padded, after a restart as before."""
        self._size = self._size or self._nominal(minibatch)
        return self._size

    def flush(self) -> None:
        """Train on what was collected; its results are not waited for."""
        if not self._pending:
            return
        minibatches, self._pending, self._pending_bytes = self._pending, [], 0
        loop = self._made()
        if len(minibatches) == 1 and not self.together:
            if self._singles is None:
                self._singles = loop.batcher(self._first_size(minibatches[0]), 1, chosen=0)
            batcher = self._singles
        else:
            if self._batcher is None:
                self._batcher = loop.batcher(self._first_size(minibatches[0]), chosen=0)
            batcher = self._batcher
        for stack in batcher.stacks(iter(minibatches), _never):
            self._run(stack)

    def _run(self, stack: Stack) -> None:
        assert self._settings is not None
        of_criterion = CountedStack.of(stack)
        results = self._made().run(of_criterion, self._settings, self._done)
        self._waiting.append(_Waiting(results, stack, of_criterion.columns, self._done))
        self._done += len(stack.minibatches)
        while len(self._waiting) > 2:
            self._read(self._waiting.pop(0))

    def collect(self) -> None:
        """Wait for all results."""
        self.flush()
        while self._waiting:
            self._read(self._waiting.pop(0))

    def _read(self, one: _Waiting) -> None:
        count = len(one.samples)
        values = np.asarray(one.results, np.float64)[:count]
        bad = np.flatnonzero(~np.isfinite(values[:, 0]))
        if len(bad):
            self._waiting.clear()
            self._not_finite(one, int(bad[0]))
        metric = values[:, 1] if len(self._nodes) > 1 else np.zeros(count)
        total = Totals(float(values[:, 0].sum()), float(metric.sum()), int(one.samples.sum()), count)
        self._totals = self._totals.plus(total)
        self._last = Totals(float(values[-1, 0]), float(metric[-1]), int(one.samples[-1]), 1)

    def _not_finite(self, one: _Waiting, index: int) -> None:
        loop, number = self._made(), one.first + index + 1
        node = first_not_finite(self._graph.network, self._nodes[0], loop.at(one.stack, index, number))
        notes = [f"first node that is not finite: {node.name} = {node.operation}"] if node is not None else []
        loop.forget()
        raise UserError(
            "NotANumber",
            f"the training criterion '{self._nodes[0].name}' is not a number (minibatch {number})",
            hint="lower the learning rate, bound gradients with gradient_clipping_threshold_per_sample, or look for "
            "values in the data that are far too large; parameters are as they were before that minibatch",
            notes=notes,
        )

    # ------------------------------------------------------------------------------------------------- parameters

    def _hold(self) -> None:
        """Be the one that trains the parameters."""
        for cell in self._cells:
            if cell.holder is not self:
                break
        else:
            return
        for cell in self._cells:
            if cell.holder is not self:
                cell.release()
        if self._loop is not None:
            updates = copy.deepcopy(self._loop.store())
            self._graph.load()
            self._loop.load(updates)
        else:
            self._graph.load()
        for cell in self._cells:
            cell.holder = self

    def release(self) -> None:
        """Show the parameters as they are now."""
        self.flush()
        if not self._dirty or self._loop is None:
            return
        self._dirty = False
        self._loop.store()
        self._graph.keep(copies=True)

    def _finish(self) -> None:
        """Let all workers have the same parameters."""
        if self.workers.together and self._loop is not None:
            self._loop.finish_epoch()
            self._dirty = True

    def summarize_training_progress(self) -> None:
        """Let the progress writers sum up what was trained since the last time."""
        self._finish()
        totals = self.totals
        self._reported = self._updates
        for writer in self.progress_writers:
            writer.after_epoch(totals, self.evaluation_function is not None)

    # ------------------------------------------------------------------------------------------------- tests

    def test_minibatch(self, arguments: Any, device: Any = None) -> float:
        """The metric per sample (the loss, if there is no metric) for some data; changes nothing.

        Args:
            arguments: see `train_minibatch`.
            device: accepted; changes nothing.
        """
        del device
        found = self.test(self._arguments.minibatch(arguments))
        return found.average_metric

    def test(self, minibatch: Minibatch) -> Totals:
        """Loss and metric of a minibatch; without a metric the loss is both."""
        self.collect()
        self.release()
        self._load_evaluator()
        assert self._evaluator is not None
        totals = Totals()
        batcher = self._evaluator.batcher(self._nominal(minibatch), 1, chosen=0)
        for stack in batcher.stacks(iter([minibatch]), _never):
            values = np.asarray(self._evaluator.run(stack), np.float64)[:1]
            loss, metric = float(values[0, 0]), float(values[0, len(self._nodes) - 1])
            totals = totals.plus(Totals(loss, metric, self.samples_of(minibatch), 1))
        self._tested = self._tested.plus(totals)
        for writer in self.progress_writers:
            writer.after_test_minibatch(self._tested)
        return totals

    def _load_evaluator(self) -> None:
        """Let the evaluator have the parameters of now."""
        values = [cell.value for cell in self._cells]
        if self._evaluator is not None and all(a is b for a, b in zip(values, self._evaluated, strict=True)):
            return
        self._graph.load()
        self._evaluated = values
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, self._nodes)
        self._evaluator.load()

    def summarize_test_progress(self) -> None:
        """Let the progress writers sum up what was tested since the last time."""
        for writer in self.progress_writers:
            writer.after_test(self._tested)
        self._tested = Totals()

    # ------------------------------------------------------------------------------------------------- checkpoints

    def save_checkpoint(self, filename: str | Path, external_state: dict[str, Any] | None = None) -> None:
        """Write the model to a file, and beside it (`.ckp`) everything that training needs to go on bit for bit.

        Args:
            filename: the model file.
            external_state: values of the program's own, to be stored as JSON.
        """
        check_filename(filename)
        check_json(external_state)
        self._hold()
        self.collect()
        loop = self._made()
        arrays = loop.snapshot()
        values: dict[str, Any] = {
            "samples": self._samples,
            "updates": self._updates,
            "sweeps": self._sweeps,
            "reported": self._reported,
            "totals": list(self._totals),
            "last": list(self._last),
            "done": self._done,
            "seed": self.seed,
            "size": self._size,
            "pieces": self._arguments.pieces.state,
            "shapes": loop.buckets.to_json(),
            "learners": [[one.samples_seen, one.sweeps, *one.rate_since] for one in self.learners],
            "writers": [writer.state() for writer in self.progress_writers],
            "external": self.workers.exchange(external_state or {}),
            "workers": self.workers.size,
        }
        self.release()
        if self.workers.main:
            self._graph.load()
            save_model(filename, self._graph.network)
            save_arrays(f"{filename}.ckp", FORMAT, arrays, values)
        self.workers.wait()

    def restore_from_checkpoint(self, filename: str | Path) -> dict[str, Any]:
        """Go on where a checkpoint was written.

        Args:
            filename: the model file.

        Returns:
            The program's own values.

        Raises:
            UserError: it is no checkpoint, or that of another network.
        """
        check_filename(filename)
        path = f"{filename}.ckp"
        try:
            arrays, values = load_arrays(path, FORMAT, _FIELDS)
        except FileNotFoundError:
            raise UserError("NoModel", f"there is no checkpoint {path}", hint="save_checkpoint writes it") from None
        self._hold()
        if int(values["workers"]) != self.workers.size:
            raise not_a_checkpoint(path, f"it is that of {values['workers']} workers")
        loop = self._made()
        if self.workers.size > 1:
            self.workers.choose(loop, int(values["samples"]))  # the arrays are those of this way to train together
        expected = loop.snapshot()
        if {k: v.shape for k, v in expected.items() if "/" not in k} != {
            k: v.shape for k, v in arrays.items() if "/" not in k
        }:
            raise not_a_checkpoint(path, "it is that of another network, or of another learner")
        self._pending, self._pending_bytes, self._waiting = [], 0, []
        loop.restore(arrays)
        loop.buckets = Buckets.from_json(values["shapes"])
        self._batcher = self._singles = None
        self._samples, self._updates, self._sweeps = values["samples"], values["updates"], values["sweeps"]
        self._done, self.seed = int(values["done"]), int(values["seed"])
        self._totals, self._last = Totals(*values["totals"]), Totals(*values["last"])
        self._reported, self._size = int(values["reported"]), int(values.get("size", 0))
        self._arguments.pieces.state = values.get("pieces")
        for learner, (samples, sweeps, *since) in zip(self.learners, values["learners"], strict=True):
            learner.samples_seen, learner.sweeps = samples, sweeps
            learner.rate_since = (since[0], since[1]) if since else (0, 0)
        for writer, state in zip(self.progress_writers, values["writers"], strict=False):
            writer.restore(state)
        self._dirty = True
        return values["external"][self.workers.rank]


class CountedStack(Stack):
    """A stack whose samples are those that the criterion counts, and whose minibatches count as one step each."""

    inside: Stack

    @classmethod
    def of(cls, stack: Stack) -> CountedStack:
        """The same stack."""
        found = cls.__new__(cls)
        found.__dict__.update(stack.__dict__)
        found.inside = stack
        return found

    @property
    def carried_slots(self) -> int:
        """See `Stack.carried_slots`."""
        return self.inside.carried_slots

    @property
    def samples(self) -> NDArray[np.int64]:
        """Those of the criterion."""
        return self.inside.sizes(False)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The same."""
        return self.samples

    def sizes(self, gaps: bool) -> NDArray[np.int64]:
        """The same as `columns`."""
        return self.columns

    @property
    def steps(self) -> NDArray[np.int64]:
        """1 for every minibatch."""
        return np.ones(len(self.minibatches), np.int64)


def _is_empty(arguments: Any) -> bool:
    """Whether there are no data: None, or an empty dictionary or list."""
    return arguments is None or (isinstance(arguments, Mapping | list | tuple) and not arguments)


def _never(number: int) -> bool:
    return False


def _always(number: int) -> bool:
    return True


def _changes(node: Node) -> bool:
    """Whether training may change a node."""
    return node.is_parameter or bool(node.kind.running)


def _network_of(criteria: Sequence[Function], outputs: Sequence[Any]) -> graph.Model:
    """The network of a loss, and perhaps a metric, and of what else the model gives."""
    roots = [one.root for one in criteria]
    groups = {"criterion": roots[:1], "evaluation": roots[1:], "output": outputs}
    return graph.make([*roots, *(one for one in outputs if one not in roots)], groups)


def _criteria(model: Function | None, given: Any) -> tuple[Function, Function | None]:
    """The loss and the metric."""
    if isinstance(given, Function):
        several: list[Any] = list(given.outputs)
    elif given is None and model is not None:
        network = model.model.network
        nodes = {node: value for value, node in model.model.nodes.items()}
        groups = network.groups["criterion"][:1] + network.groups["evaluation"][:1]
        several = [Function(nodes[node]) for node in groups]
    else:
        several = as_list(given)
    found = [_criterion(model, one) for one in several if one is not None]
    if not found or len(found) > 2:
        raise ArgumentError(f"a trainer has a loss and perhaps a metric, not {len(found)} criteria", "(loss, metric)")
    return found[0], found[1] if len(found) == 2 else None


def _criterion(model: Function | None, given: Any) -> Function:
    if isinstance(given, Function):
        if given.is_leaf:
            hint = "cross_entropy_with_softmax(z, y)"
            raise ArgumentError(f"a criterion is computed from others, {given!r} is not", hint)
        return given
    if isinstance(given, str) and model is not None:
        found = model.find_by_name(given)
        if found is not None:
            return found
        raise ArgumentError(f"the network has no node '{given}'")
    if isinstance(given, Node) and model is not None:
        return _criterion(model, given.name)
    raise ArgumentError(f"a criterion is a function, not {type(given).__name__}")


def _learners(given: Any) -> list[Learner]:
    several = as_list(given)
    for one in several:
        if isinstance(one, Function):
            raise ArgumentError("a function is no learner", "Trainer(model, (loss, metric), learner)")
        if not isinstance(one, Learner):
            raise ArgumentError(f"{type(one).__name__} is no learner", "make one: sgd(z.parameters, lr=0.1)")
    if not several:
        raise ArgumentError("a trainer needs a learner", "sgd(z.parameters, lr=0.1)")
    shared = [one for one in several if isinstance(one, DistributedLearner)]
    if shared and len(shared) < len(several):
        raise ArgumentError("some learners are for several workers, others are not", "data_parallel(learner) for each")
    if len(several) > 1 and any(one.block is not None for one in shared):
        raise ArgumentError("block momentum takes one learner", "data_parallel(learner) for each of several learners")
    if len({one.after for one in shared}) > 1:
        raise ArgumentError("the learners are distributed after different numbers of samples", "give all the same")
    return several
