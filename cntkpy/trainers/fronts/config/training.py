"""Stochastic gradient descent: the loop over epochs, what is logged, when files are written.

The order of operations is that of CNTK (docs/specification/actions-and-training.md 2.4 and 2.8). What happens inside
a minibatch is compiled by `cntkpy.trainers.step.step`; this module never looks inside an array.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.compile.evaluate import start_values
from cntkpy.networks.graph.network import ValidatedNetwork as Network
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.checkpoints.checkpoint import Checkpoint, partial_name
from cntkpy.trainers.evaluation.evaluate import EvaluationData, evaluate, minibatches
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.evaluation.precompute import precompute_all, precompute_data
from cntkpy.trainers.fronts.config.best import BestModels
from cntkpy.trainers.fronts.config.criteria import announce
from cntkpy.trainers.fronts.config.epoch import check_criterion, train_epoch, up_to
from cntkpy.trainers.fronts.config.epoch_log import EpochLog
from cntkpy.trainers.fronts.config.files import TrainingFiles
from cntkpy.trainers.fronts.config.partial import Interrupted, SavedEpoch
from cntkpy.trainers.fronts.config.rates import ParallelSequences, RatePolicy
from cntkpy.trainers.fronts.config.state import TrainingState
from cntkpy.trainers.log import text
from cntkpy.trainers.log.nodes import log_shapes
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.loop import NotFinite
from cntkpy.trainers.monitors.callbacks import callbacks
from cntkpy.trainers.monitors.details import DETAILS_LEVEL, Details
from cntkpy.trainers.monitors.scales import warned_of_scales
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.parameters.sgd import UNLIMITED, SGDParameters
from cntkpy.trainers.rules.rules import (
    log_changes,
    network_settings,
    regularisation,
    rule_name,
    update_rule,
    warn_of_idle_settings,
)
from cntkpy.trainers.schedules.checks import too_small
from cntkpy.trainers.schedules.rate_control import Options, RateControl
from cntkpy.trainers.schedules.schedules import Schedules, time_constant
from cntkpy.trainers.step.pieces import pieces_of
from cntkpy.trainers.step.reading import CountedReader
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")

STOP_RATE = 1e-12
"""A rate below this is mentioned after the epoch; what ends training is minLearningRatePerSample."""


@dataclass
class TrainingLoop:
    """One run of the trainer.

    Args:
        parameters: The `SGD` section.
        network: Validated; fresh, or the model of the last finished epoch.
        reader: Reads the training data.
        validation: Reads the data to evaluate after every epoch; None: there are none.
        start: Number of finished epochs.
        loaded: Whether the network comes from a file of this training.
        reporting: Where progress is reported besides the log.
        targets: Changes the data of minibatches before they are trained on (see `MixedTargets`).
        stop: Whether the run should save its state and end with `Interrupted`; called for every minibatch.
        sequences: The reader's number of parallel sequences.
        parallel: The processes that share the training.
        settings: What the configuration says about this training, kept with its models.
    """

    parameters: SGDParameters
    network: Network
    reader: MinibatchReader
    validation: MinibatchReader | None = None
    start: int = 0
    loaded: bool = False
    reporting: Reporting = field(default_factory=Reporting)
    targets: Callable[[Stack], Stack] | None = None
    stop: Callable[[], bool] = lambda: False
    sequences: ParallelSequences = field(default_factory=ParallelSequences)
    parallel: ParallelTraining = field(default_factory=ParallelTraining)
    settings: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        p = self.parameters
        self._counted = CountedReader(self.reader)
        self.reader = self._part = self.parallel.part_of(self._counted)
        if self.validation is not None:
            self.validation = self.parallel.part_of(self.validation, always=True)
        elif p.save_best:
            log.warning("WARNING: saveBestModelPerCriterion has no effect: there is no cvReader.")
        schedules = Schedules(p)
        control = RateControl(Options.read(p.auto_adjust, schedules.listed_rates), self.start)
        self.state = TrainingState(control, BestModels(str(p.model_path)), p.minibatch_size[self.start])
        self.rates = RatePolicy(p, schedules, self.state, self._parallel_sequences)
        self.files = TrainingFiles(p, schedules, self.network, self.settings, self.parallel)
        self.log = EpochLog(p, self.reporting, self.start > 0, self.reader.samples_per_sweep)
        self._not_finite: NotFinite | None = None
        self._evaluator: Evaluator | None = None
        self._details: Details | None = None
        self._trained: SavedEpoch | None = None

    def run(self) -> None:
        """Train until the last epoch, or until the rate is too small.

        Raises:
            UserError: The criterion is not a number, the data are wrong, or a file cannot be written.
            Interrupted: The run was asked to stop, and its state is saved.
        """
        try:
            self._run()
        finally:
            self.parallel.end()

    def _run(self) -> None:
        p, rates, state = self.parameters, self.rates, self.state
        self._prepare()
        epoch, before, last = self.start, None, 0.0
        while epoch < p.max_epochs:
            log_changes(p, epoch, before)
            before = epoch
            rate = rates.rate(epoch, self._trial)
            if rate < p.min_rate:
                self._rate_too_small(epoch, rate)
                return
            state.minibatch_size = rates.minibatch_size(epoch, rate, self._trial)
            totals = self._epoch(epoch, rate, state.minibatch_size)
            last = totals[0].average
            if not rates.is_due(epoch):  # else a roll-back may mend it
                check_criterion(totals[0], epoch, self._not_finite, self.step)
            validated = self._validate(epoch, state.minibatch_size)
            state.rate = rate
            value = rates.value(totals, validated)
            after = self._after_epoch(epoch, value)
            if after is None:
                return
            if after > epoch:
                state.observe(epoch + 1, value)
                checkpoint = partial(self._checkpoint, epoch + 1)
                trained = self.step.trained_network()
                self.files.save_epoch(epoch + 1, trained, state, checkpoint, validated if p.save_best else None)
                del trained  # it has the arrays that the next step changes in place
            if state.rate < STOP_RATE:
                log.info(
                    "learnRate per sample is reduced to %.8g which is below %.8g. stop training.", state.rate, STOP_RATE
                )
            epoch = after
        self.reporting.tracing.point(p.max_epochs, last, at_end=True)

    # ---- before the first epoch

    def _prepare(self) -> None:
        """Compute what is computed before the first epoch, save the start, and make the step."""
        p = self.parameters
        nodes = announce(self.network, p, self.reporting.device)
        log_shapes(self.network, nodes, p.trace_level)
        warn_of_idle_settings(p, self.network)
        with self._stopped_between_epochs(self.start if self.loaded else None):
            computed = precompute_all(self.network, p, self._precompute_data())
            if not computed and self.loaded and self.sequences.varying and not self.start:
                self._read_as_before()
        if computed or not self.loaded:
            self.files.save_start(self.start)
        if not p.max_epochs:
            log.info("maxEpochs = 0: nothing is trained; the network as it was made is saved in %s", p.model_path)
        sizes = zip(p.minibatch_size.starts(), p.minibatch_size.distinct(), strict=True)
        values = start_values(self.network)
        for node in self.network.parameters():
            node.value = None  # the step alone has it
        self.step = CompiledStep(
            self.network,
            nodes,
            update_rule(p),
            regularisation(p, self.network),
            self.targets,
            p.trace_level,
            self.parallel.alone,
            max_minibatch_size=max(size for start, size in sizes if start < max(1, p.max_epochs)),
            values=values,
        )
        self._callbacks = callbacks(p, self.network, nodes)
        if self.start:
            self._resume()

    def _read_as_before(self) -> None:
        """Read what was read for nodes computed before the first epoch, which leaves its number of sequences."""
        p = self.parameters
        if p.truncated and self.network.precompute_nodes(pending=False):
            for _ in self._precompute_data():
                pass

    def _precompute_data(self) -> Iterator[Minibatch]:
        """Return the minibatches from which nodes are computed before the first epoch, until the run is stopped."""
        data = precompute_data(self.parameters, self.reader, self.reporting.tracing)
        return self.parallel.until_stopped(data, self.stop)

    @contextmanager
    def _stopped_between_epochs(self, done: int | None) -> Generator[None]:
        """Let what is done be left at any point, because everything worth saving is in files already.

        Args:
            done: Number of the epochs whose model is saved; None: there is no model yet.

        Raises:
            Interrupted: The run was asked to stop.
        """
        try:
            yield
        except Stopped:
            saved = "training has not begun"
            if done is not None:
                saved = f"the state before is saved in {self.files.model(done)}"
            raise Interrupted(f"{saved}; start the same command again to resume") from None

    def _resume(self) -> None:
        """Resume after the last finished epoch."""
        self.step.drop_updates()
        try:
            checkpoint = self.files.load_checkpoint(self.start)
        except FileNotFoundError:
            self.step.reload_updates()
            log.warning(
                "Warning: Checkpoint file is missing. Parameter-learning state (such as momentum) will be reset."
            )
            return
        schedule = self.state.resume(checkpoint)
        _warn_of_reset(self.step.reload_updates(checkpoint.updates))
        self._part.restore_epoch(checkpoint.values["reader"])
        self._counted.last_slots = schedule.get("last_slots", 0)
        if "shapes" in schedule:  # so that minibatches are padded as before, and sums rounded alike
            self.step.pad_to(schedule["shapes"])

    # ---- one epoch

    def _parallel_sequences(self, epoch: int) -> int:
        """Return the reader's number of parallel sequences as an epoch begins."""
        per_epoch = self.sequences.per_epoch
        if self.sequences.varying and self.parameters.truncated:
            read = self.parallel.total_slots(self._counted.last_slots, self.reader)
            return read or per_epoch[0]
        return per_epoch[min(epoch, len(per_epoch) - 1)]

    def _trial(self, epoch: int, rate: float, minibatch_size: int, samples: int, tag: str) -> float:
        """Train on the first samples of an epoch, undo it, and return the criterion; `tag` begins progress lines."""
        p = self.parameters
        self.parallel.train_alone(self.step, self.reader)
        settings = self._settings(epoch, rate, minibatch_size, frozen=rate <= 0.01 * p.min_rate)
        data = up_to(minibatches(self.reader, minibatch_size, epoch, p.epoch_size or None, ahead=False), samples)
        with self._stopped_between_epochs(epoch):
            data = self.parallel.until_stopped(data, self.stop)
            view = self.log.trial_view(epoch, tag, self._callbacks)
            totals = train_epoch(self.step, data, minibatch_size, settings, view)
        self.log.trial(epoch, totals, rate, minibatch_size)
        self.step.drop_updates()
        values, updates = self.files.load_values(epoch), None
        with suppress(FileNotFoundError):  # before the first epoch, or after a resume without checkpoint
            updates = self.files.load_checkpoint(epoch).updates
        self.step.begin(values, updates)
        return totals[0].average

    def _settings(self, epoch: int, rate: float, minibatch_size: int, frozen: bool = False) -> EpochSettings:
        p = self.parameters
        momentum, per_step = self.rates.schedules.momentum_of_updates(epoch)
        pieces = pieces_of(p, minibatch_size)
        return EpochSettings(rate, momentum, network_settings(p, epoch), epoch, frozen, pieces, per_step)

    def _epoch(self, epoch: int, rate: float, minibatch_size: int) -> list[text.Total]:
        p, schedules = self.parameters, self.rates.schedules
        together = self.parallel.start_epoch(self.step, self.reader, epoch)
        parallel = self._parallel_sequences(epoch)
        momentum = schedules.effective_momentum(epoch, minibatch_size, parallel)
        constant = time_constant(schedules.momentum_per_sample(epoch, parallel))
        self.log.started(epoch, rate, momentum, constant, together)
        if p.trace_level >= DETAILS_LEVEL and self._details is None:
            whole = p.subminibatches <= 1 and p.max_samples_in_ram == UNLIMITED
            self._details = Details(self.network, self.step.nodes, self.reader.state, p.trace_level, whole)
        view = self.log.view(epoch, self._details, self._callbacks)
        began = time.perf_counter()
        saved = self._trained = self._saved_epoch(epoch, rate, minibatch_size)
        if saved.position is not None:
            log.info("Resuming after minibatch %d of this epoch.", saved.position.done)
        data = saved.data(EpochRequest(minibatch_size, epoch, p.epoch_size or None))
        if not epoch and saved.position is None:
            data = warned_of_scales(self.network, self.step.nodes, data)
        settings = self._settings(epoch, rate, minibatch_size)
        totals = train_epoch(self.step, data, minibatch_size, settings, view, saved.position, saved.between)
        if not saved.finished:
            self.step.finish_epoch()
        self._not_finite = view.not_finite
        self.state.samples_seen += totals[0].count
        if not self.state.samples_seen:
            raise _no_samples(p, epoch)
        self.log.finished(view, totals, self.state.samples_seen, rate, time.perf_counter() - began)
        return totals

    def _saved_epoch(self, epoch: int, rate: float, minibatch_size: int) -> SavedEpoch:
        p = self.parameters
        settings = {"epoch": epoch, "rate": rate, "size": minibatch_size, "samples": p.epoch_size, "rule": rule_name(p)}
        path = partial_name(self.files.model(epoch))
        return SavedEpoch(self.step, self.reader, path, settings, p.checkpoint_minutes, self.stop, self.parallel)

    def _validate(self, epoch: int, minibatch_size: int) -> list[text.Total] | None:
        if self.validation is None:
            return None
        trained = self.step.trained_network()
        if self._evaluator is None:
            level = self.parameters.trace_level
            self._evaluator = Evaluator(self.network, self.step.nodes, trace_level=level, start=trained)
        else:
            self._evaluator.load(trained)
        tracing, group = self.reporting.tracing, self.parallel.evaluating
        data = EvaluationData(self.validation, minibatch_size, tracing=tracing, group=group, stop=self.stop)
        try:
            totals = evaluate(self._evaluator, data)
        except Stopped:
            assert self._trained is not None
            self._trained.stopped_afterwards()
        self.log.validated(epoch, totals)
        return totals

    # ---- after an epoch

    def _after_epoch(self, epoch: int, value: float) -> int | None:
        """Adjust the rate; returns the index of the epoch to train next, None if training ends here."""
        rates, control = self.rates, self.state.control
        control.observe(epoch, value)
        if not rates.is_due(epoch):
            control.accept(epoch)
            return epoch + 1
        back = rates.rolls_back_to(epoch)
        if back is not None:
            model = self.files.model(back)
            log.info("Loading (rolling back to) previous model with best training-criterion value: %s.", model)
            self.step.drop_updates()
            values, checkpoint = self.files.load_values(back), self.files.load_checkpoint(back)
            self.state.roll_back(checkpoint)
            _warn_of_reset(self.step.begin(values, checkpoint.updates))
        if rates.adjust():
            self.files.save_final(epoch + 1, self.step.trained_network())
            log.info("Finished training and saved final model")
            return None
        if back is None:
            control.accept(epoch)
            return epoch + 1
        self.files.remove_after(back, epoch)
        log.info("SGD: revoke back to and update checkpoint file for epoch %d", back)
        self.files.save_checkpoint(back, self._checkpoint(back))
        return back

    def _checkpoint(self, done: int) -> Checkpoint:
        reader, slots = self._part.epoch_state(done), self._counted.last_slots
        return self.state.checkpoint(self.step.updates(), reader, slots, self.step.buckets.to_json())

    def _rate_too_small(self, epoch: int, rate: float) -> None:
        p = self.parameters
        log.info(
            "Learn Rate Per Sample for Epoch[%d] = %.8g is less than minLearningRatePerSample %.8g. Training complete.",
            epoch + 1,
            rate,
            p.min_rate,
        )
        if not epoch:
            name = "learningRatesPerSample" if p.rates_per_sample is not None else "learningRatesPerMB"
            raise p.error(name, *too_small(rate, p.min_rate))
        if self.rates.schedules.automatic:
            self.files.save_final(epoch, self.step.trained_network())
        else:
            log.warning(
                "WARNING: %s is not written: training ended before epoch %d of %d. The last model is %s.",
                p.model_path,
                epoch + 1,
                p.max_epochs,
                self.files.model(epoch),
            )


def _warn_of_reset(names: list[str]) -> None:
    """Log which parameters have fresh arrays of the update rule, although a checkpoint has some."""
    if names:
        log.warning(
            "Warning: The checkpoint is of another update rule or another network. "
            "Parameter-learning state (such as momentum) will be reset for %s.",
            ", ".join(names[:3]) + (", ..." if len(names) > 3 else ""),
        )


def _no_samples(parameters: SGDParameters, epoch: int) -> UserError:
    """Return the error of an epoch that had no data, where none before it had any."""
    message = f"nothing was trained: epoch {epoch + 1} had no samples"
    hint = "look at the warnings above: the reader has no data, or leaves all of them out"
    value = parameters.given("epochSize")
    return UserError("NoSamples", message, value.span if value is not None else None, hint)
