"""Training on the data of single epochs, trials for searches, and validation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import ValidatedNetwork as Network
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.epochs import EpochRequest, state_of
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.checkpoints.checkpoint import partial_name
from cntkpy.trainers.evaluation.evaluate import EvaluationData, evaluate, minibatches
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.fronts.config.epoch import FiniteCriterion, up_to
from cntkpy.trainers.fronts.config.epoch_log import ClusterProgress, EpochLog
from cntkpy.trainers.fronts.config.files import TrainingFiles
from cntkpy.trainers.fronts.config.partial import DATA, SavedEpoch, stopped_between_epochs
from cntkpy.trainers.fronts.config.state import TrainingState
from cntkpy.trainers.hooks import Hook, Stopwatch
from cntkpy.trainers.log import text
from cntkpy.trainers.loop import EpochView, Loop
from cntkpy.trainers.monitors.details import DETAILS_LEVEL, Details
from cntkpy.trainers.monitors.scales import warned_of_scales
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.parameters.sgd import UNLIMITED, SGDParameters
from cntkpy.trainers.rules.rules import network_settings, rule_name
from cntkpy.trainers.schedules.schedules import Schedules, time_constant
from cntkpy.trainers.step.context import Callback
from cntkpy.trainers.step.feed import Stage, Through
from cntkpy.trainers.step.not_finite import NotFinite
from cntkpy.trainers.step.pieces import pieces_of
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")


@dataclass
class EpochTrainer:
    """Trains single epochs.

    Attributes:
        parameters: The `SGD` section.
        schedules: Its listed values.
        state: The state of the training.
        step: The compiled step.
        reader: Reads this process's part of the data.
        log: Logs epochs.
        files: The files of the training.
        parallel: The processes that share the training.
        sequences: Returns the reader's number of parallel sequences as an epoch begins.
        stop: Whether the run should end.
        callbacks: Get every minibatch before it is trained on.
        not_finite: The first minibatch of the last epoch whose criterion is not a number.
        saved: The state inside of the last epoch.
    """

    parameters: SGDParameters
    schedules: Schedules
    state: TrainingState
    step: CompiledStep
    reader: MinibatchReader
    log: EpochLog
    files: TrainingFiles
    parallel: ParallelTraining
    sequences: Callable[[int], int]
    stop: Callable[[], bool]
    callbacks: Sequence[Callback]
    not_finite: NotFinite | None = None
    saved: SavedEpoch | None = None
    _details: list[Hook] = field(default_factory=list[Hook])

    def train(self, epoch: int, rate: float, minibatch_size: int) -> list[text.Total]:
        """Train on the data of an epoch, or on what is left of it.

        Args:
            epoch: Its index.
            rate: Per sample.
            minibatch_size: Samples of a minibatch of all workers.

        Returns:
            The totals of the criterion and of the evaluation nodes.

        Raises:
            UserError: No epoch has had any data; or see `Loop`.
            Interrupted: The run was asked to stop, and its state is saved.
        """
        p, step, nodes = self.parameters, self.step, self.step.nodes
        together = self.parallel.start_epoch(step, self.reader, epoch)
        parallel = self.sequences(epoch)
        momentum = self.schedules.effective_momentum(epoch, minibatch_size, parallel)
        constant = time_constant(self.schedules.momentum_per_sample(epoch, parallel))
        self.log.started(epoch, rate, momentum, constant, together)
        clock = Stopwatch()
        saved = self.saved = self._saved_epoch(epoch, rate, minibatch_size)
        if saved.position is not None:
            log.info("Resuming after minibatch %d of this epoch.", saved.position.done)
        data: Stage[Minibatch] = saved.data(EpochRequest(minibatch_size, epoch, p.epoch_size or None))
        if not epoch and saved.position is None:
            data = Through(data, partial(warned_of_scales, step.network, nodes))
        lines = self.log.lines(nodes, epoch, minibatch_size)
        hooks = [self.log.bar(nodes, epoch), lines, FiniteCriterion(step, epoch), *self._detailed()]
        if self.log.samples:
            minibatches = self.log.samples / minibatch_size
            hooks.append(ClusterProgress(self.log.reporting.tracing, epoch, minibatches))
        view = EpochView(self.log.frequency, [*hooks, saved], p.perf_trace_level > 0, self.callbacks)
        run = Loop(step, self._settings(epoch, rate, minibatch_size), view, saved.position, saved.state)
        position = run.train(data, minibatch_size)
        if not saved.finished:
            step.finish_epoch()
        self.not_finite = position.not_finite
        totals = position.totals.rows(nodes)
        self.state.samples_seen += totals[0].count
        if not self.state.samples_seen:
            raise _no_samples(p, epoch)
        self.log.finished(lines, totals, self.state.samples_seen, rate, clock.seconds)
        return totals

    def trial(self, epoch: int, rate: float, minibatch_size: int, samples: int, tag: str) -> float:
        """Train on the first samples of an epoch, undo it, and return the criterion; `tag` begins progress lines."""
        p, step = self.parameters, self.step
        self.parallel.train_alone(step, self.reader)
        settings = self._settings(epoch, rate, minibatch_size, frozen=rate <= 0.01 * p.min_rate)
        data = up_to(minibatches(self.reader, minibatch_size, epoch, p.epoch_size or None, ahead=False), samples)
        with stopped_between_epochs(self.files.model(epoch)):
            data = self.parallel.until_stopped(data, self.stop)
            hooks = [self.log.lines(step.nodes, epoch, minibatch_size, tag), FiniteCriterion(step, epoch)]
            view = EpochView(self.log.frequency, hooks, callbacks=self.callbacks)
            totals = Loop(step, settings, view).train(data, minibatch_size).totals.rows(step.nodes)
        self.log.trial(epoch, totals, rate, minibatch_size)
        step.drop_updates()
        values, updates = self.files.load_values(epoch), None
        with suppress(FileNotFoundError):  # before the first epoch, or after a resume without checkpoint
            updates = self.files.load_checkpoint(epoch).updates
        step.begin(values, updates)
        return totals[0].average

    def _detailed(self) -> list[Hook]:
        """Return the hook that logs details, if they are wanted."""
        p = self.parameters
        if p.trace_level >= DETAILS_LEVEL and not self._details:
            whole = p.subminibatches <= 1 and p.max_samples_in_ram == UNLIMITED
            step = self.step
            self._details = [Details(step.network, step.nodes, partial(state_of, self.reader), p.trace_level, whole)]
        return self._details

    def _settings(self, epoch: int, rate: float, minibatch_size: int, frozen: bool = False) -> EpochSettings:
        p = self.parameters
        momentum, per_step = self.schedules.momentum_of_updates(epoch)
        pieces = pieces_of(p, minibatch_size)
        return EpochSettings(rate, momentum, network_settings(p, epoch), epoch, frozen, pieces, per_step)

    def _saved_epoch(self, epoch: int, rate: float, minibatch_size: int) -> SavedEpoch:
        p = self.parameters
        settings = {"epoch": epoch, "rate": rate, "size": minibatch_size, "samples": p.epoch_size, "rule": rule_name(p)}
        settings[DATA] = self.reader.samples_per_sweep
        path = partial_name(self.files.model(epoch))
        return SavedEpoch(self.step, self.reader, path, settings, p.checkpoint_minutes, self.stop, self.parallel)


@dataclass
class Validation:
    """Evaluates the network that is trained.

    Attributes:
        network: The network.
        reader: Reads the data.
        log: Logs the results.
        trace_level: See `Evaluator`.
        parallel: The processes that share the training.
    """

    network: Network
    reader: MinibatchReader
    log: EpochLog
    trace_level: int
    parallel: ParallelTraining
    _evaluator: Evaluator | None = None

    def run(self, trainer: EpochTrainer, epoch: int, minibatch_size: int) -> list[text.Total]:
        """Evaluate after an epoch.

        Raises:
            Interrupted: The run was asked to stop; the state of the trained epoch is saved.
        """
        trained = trainer.step.trained_network()
        if self._evaluator is None:
            nodes = trainer.step.nodes
            self._evaluator = Evaluator(self.network, nodes, trace_level=self.trace_level, start=trained)
        else:
            self._evaluator.load(trained)
        tracing, group = self.log.reporting.tracing, self.parallel.evaluating
        data = EvaluationData(self.reader, minibatch_size, tracing=tracing, group=group, stop=trainer.stop)
        try:
            totals = evaluate(self._evaluator, data)
        except Stopped:
            assert trainer.saved is not None
            trainer.saved.stopped_afterwards()
        self.log.validated(epoch, totals)
        return totals


def _no_samples(parameters: SGDParameters, epoch: int) -> UserError:
    """Return the error of an epoch that had no data, where none before it had any."""
    message = f"nothing was trained: epoch {epoch + 1} had no samples"
    hint = "look at the warnings above: the reader has no data, or leaves all of them out"
    value = parameters.given("epochSize")
    return UserError("NoSamples", message, value.span if value is not None else None, hint)
