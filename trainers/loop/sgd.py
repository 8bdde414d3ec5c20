"""Stochastic gradient descent: the loop over epochs, what is logged, when files are written.

The order of operations is that of CNTK (docs/specification/actions-and-training.md 2.4 and 2.8). What happens inside
a minibatch is compiled by `trainers.step.step`; this module never looks inside an array.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from cntk_config.base.diagnostics import UserError
from cntk_config.base.stopping import UNSAVED, Stopped
from networks.files.model_file import load_model, save_model
from networks.graph.network import ValidatedNetwork as Network
from readers.contracts import MinibatchReader
from readers.minibatch import Minibatch
from trainers.checkpoints.checkpoint import (
    Checkpoint,
    TrainingRecord,
    checkpoint_name,
    model_name,
    partial_name,
    remove,
)
from trainers.checkpoints.keeping import BEST
from trainers.evaluation.evaluate import evaluate, minibatches
from trainers.evaluation.evaluator import Evaluator
from trainers.evaluation.precompute import precompute_all, precompute_data
from trainers.log import text
from trainers.log.events import event, level
from trainers.log.nodes import log_shapes
from trainers.log.reporting import NoProgress, NoTracing, Progress, Tracing
from trainers.loop.best import BestModels
from trainers.loop.criteria import announce
from trainers.loop.epoch import Broken, EpochView, check_criterion, train_epoch, up_to
from trainers.loop.partial import Interrupted, SavedEpoch
from trainers.loop.tidy import keeps, remove_needless
from trainers.monitors.callbacks import callbacks
from trainers.monitors.details import DETAILS, Details
from trainers.monitors.scales import warned_of_scales
from trainers.parallel.training import ParallelTraining
from trainers.parameters.sgd import UNLIMITED, SGDParameters
from trainers.rules.rules import (
    log_changes,
    network_settings,
    regularisation,
    rule_name,
    update_rule,
    warn_of_idle_settings,
)
from trainers.schedules.checks import too_small
from trainers.schedules.rate_control import Options, RateControl
from trainers.schedules.schedules import Schedules, time_constant
from trainers.schedules.search import adapt_size, adapts_size, search_rate
from trainers.step.batching import Stack
from trainers.step.buckets import Buckets
from trainers.step.pieces import pieces_of
from trainers.step.reading import CountedReader
from trainers.step.step import CompiledStep, EpochSettings

log = logging.getLogger("cntkpy.trainers")

STOP_RATE = 1e-12
"""A rate below this is mentioned after the epoch; what ends training is minLearningRatePerSample."""

UNKNOWN_EPOCH = 2**62 - 1
"""What CNTK takes for the size of an epoch after a resume with epochSize=0; it shows in the percentages."""


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
        progress: Shows how far the work is.
        tracing: Reports how far the work is to a cluster.
        device: What the log calls the device; None: it does not say how large the model is and where it runs.
        targets: Changes the data of minibatches before they are trained on (see `trainers.loop.adaptation`).
        stop: Whether the run should save its state and end with `Interrupted`; called for every minibatch.
        parallel_sequences: Per epoch, the reader's number of parallel sequences; the last value repeats.
        varying_sequences: That number holds before the first minibatch only, then it is that of the last one read.
        parallel: The processes that share the training.
        settings: What the configuration says about this training, kept with its models.
    """

    parameters: SGDParameters
    network: Network
    reader: MinibatchReader
    validation: MinibatchReader | None = None
    start: int = 0
    loaded: bool = False
    progress: Progress = field(default_factory=NoProgress)
    tracing: Tracing = field(default_factory=NoTracing)
    device: str | None = "CPU"
    targets: Callable[[Stack], Stack] | None = None
    stop: Callable[[], bool] = lambda: False
    parallel_sequences: Sequence[int] = (1,)
    varying_sequences: bool = False
    parallel: ParallelTraining = field(default_factory=ParallelTraining)
    settings: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        p = self.parameters
        self._counted = CountedReader(self.reader)
        self.reader = self._part = self.parallel.part_of(self._counted)
        if self.validation is not None:
            self.validation = self.parallel.part_of(self.validation, always=True)
        self.schedules = Schedules(p)
        self.trace = p.trace_level > 0
        self.epochs = p.max_epochs
        self.adjusts = self.schedules.adjusts_after_epoch
        self.control = RateControl(Options.read(p.auto_adjust, self.schedules.listed_rates), self.start)
        self.rate: float | None = None
        self.found_rates: list[float] = []
        self.search_ratio = 1.0
        self.size: int | None = None
        self.adapted_size = p.minibatch_size[self.start]  # what adaptive sizing remembers; listed epochs do not set it
        self.broken: Broken | None = None
        self._evaluator: Evaluator | None = None
        self._shown_details: Details | None = None
        self._trained: SavedEpoch | None = None
        self.best: tuple[int, float] | None = None  # number of epochs, and the criterion then
        self._best_models = BestModels(str(p.model_path))
        if p.save_best and self.validation is None:
            log.warning("WARNING: saveBestModelPerCriterion has no effect: there is no cvReader.")
        self.samples_seen = 0
        shown = not isinstance(self.progress, NoProgress)
        self.sweep = p.epoch_size or (self.reader.samples_per_sweep if shown else 0)
        self.epoch_samples = p.epoch_size or (UNKNOWN_EPOCH if self.start else 0)

    def run(self) -> None:
        """Train until the last epoch, or until the rate is too small.

        Raises:
            UserError: The criterion is not a number, the data are wrong, or a file cannot be written.
            Interrupted: The run was asked to stop, and its state is saved.
        """
        p = self.parameters
        self.nodes = announce(self.network, p, self.device)
        log_shapes(self.network, self.nodes, p.trace_level)
        warn_of_idle_settings(p, self.network)
        with self._stopped_between_epochs(self.start if self.loaded else None):
            computed = precompute_all(self.network, p, self._precompute_data())
            if not computed and self.loaded and self.varying_sequences and not self.start:
                self._read_as_before()
        if computed or not self.loaded:
            self.parallel.write(self._save_start)
        if not self.epochs:
            path = self.parameters.model_path
            log.info("maxEpochs = 0: nothing is trained; the network as it was made is saved in %s", path)
        sizes = zip(p.minibatch_size.starts(), p.minibatch_size.distinct(), strict=True)
        self.trainer = CompiledStep(
            self.network,
            self.nodes,
            update_rule(p),
            regularisation(p, self.network),
            self.targets,
            callbacks(p, self.network, self.nodes),
            p.trace_level,
            self.parallel.alone,
            frames=max(size for start, size in sizes if start < max(1, self.epochs)),
        )
        if self.start:
            self._resume()
        epoch, before, last = self.start, None, 0.0
        while epoch < self.epochs:
            log_changes(self.parameters, epoch, before)
            before = epoch
            rate = self._rate(epoch)
            if rate < self.parameters.min_rate:
                self._rate_too_small(epoch, rate)
                return
            self.size = size = self._size(epoch, rate)
            totals = self._epoch(epoch, rate, size)
            last = totals[0].average
            if not (self.adjusts and self.control.due(epoch)):  # else a roll-back may mend it
                check_criterion(totals[0], epoch, self.broken, self.trainer)
            validated = self._validate(epoch, size)
            self.rate = rate
            value = self._control_value(totals, validated)
            after = self._control(epoch, value)
            if after is None:
                return
            if after > epoch:
                if self.best is None or value < self.best[1]:
                    self.best = epoch + 1, value
                self._save(epoch, validated if p.save_best else None)
            if self.rate < STOP_RATE:
                log.info(
                    "learnRate per sample is reduced to %.8g which is below %.8g. stop training.", self.rate, STOP_RATE
                )
            epoch = after
        self.tracing.point(self.epochs, last, at_end=True)

    # ---- before the first epoch

    def _read_as_before(self) -> None:
        """Read what was read for nodes computed before the first epoch, which leaves its number of sequences."""
        p = self.parameters
        if p.truncated and self.network.precompute_nodes(pending=False):
            for _ in self._precompute_data():
                pass

    def _precompute_data(self) -> Iterator[Minibatch]:
        """The minibatches from which nodes are computed before the first epoch, until the run is asked to stop."""
        return self.parallel.until_stopped(precompute_data(self.parameters, self.reader, self.tracing), self.stop)

    @contextmanager
    def _stopped_between_epochs(self, done: int | None) -> Generator[None]:
        """What may be left at any point, because everything worth saving is in files already.

        Args:
            done: Number of the epochs whose model is saved; None: there is no model yet.

        Raises:
            Interrupted: The run was asked to stop.
        """
        try:
            yield
        except Stopped:
            what = "training has not begun" if done is None else f"the state before is saved in {self._model(done)}"
            raise Interrupted(f"{what}; start the same command again to go on from there") from None

    def _save_start(self) -> None:
        self._write_model(self.start)
        remove(partial_name(self._model(self.start)))

    def _write_model(self, done: int, ended: bool = False) -> None:
        """Save the model after so many epochs; `ended`: as the final one, whatever the number."""
        record = TrainingRecord(done, self.settings, ended, keeps(self.parameters))
        save_model(self._model(self.epochs if ended else done), self.network, record.to_json())

    def _resume(self) -> None:
        self.trainer.drop_updates()
        try:
            checkpoint = Checkpoint.load(checkpoint_name(self._model(self.start)))
        except FileNotFoundError:
            self.trainer.load()
            log.warning(
                "Warning: Checkpoint file is missing. Parameter-learning state (such as momentum) will be reset."
            )
            return
        self._take(checkpoint)
        self._part.restore_epoch(checkpoint.reader)
        if "schedule" in checkpoint.extra:  # else a checkpoint of an earlier version
            schedule = checkpoint.extra["schedule"]
            self.found_rates, self.search_ratio = schedule["found_rates"], schedule["search_ratio"]
            self.control.restore(schedule["control"])
            self.adapted_size = schedule.get("adapted_size", checkpoint.minibatch_size)
            self._counted.last_slots = schedule.get("last_slots", 0)
            if (best := schedule.get("best")) is not None:
                self.best = int(best[0]), float(best[1])
            self._best_models.restore(schedule.get("best_models", {}))
            if "shapes" in schedule:  # so that minibatches are padded as before, and sums rounded alike
                self.trainer.buckets = Buckets.from_json(schedule["shapes"])

    def _take(self, checkpoint: Checkpoint) -> None:
        self.samples_seen = checkpoint.samples_seen
        self.rate = checkpoint.rate
        self.control.reference = checkpoint.reference
        self.size = self.adapted_size = checkpoint.minibatch_size
        if unlike := self.trainer.load(checkpoint.update_state):
            names = ", ".join(unlike[:3]) + (", ..." if len(unlike) > 3 else "")
            log.warning(
                "Warning: The checkpoint is of another update rule or another network. "
                "Parameter-learning state (such as momentum) will be reset for %s.",
                names,
            )

    # ---- one epoch

    def _parallel(self, epoch: int) -> int:
        """The reader's number of parallel sequences as an epoch begins, which converts what is given per minibatch."""
        if self.varying_sequences and self.parameters.truncated:
            read = self.parallel.total_slots(self._counted.last_slots, self.reader)
            return read or self.parallel_sequences[0]
        return self.parallel_sequences[min(epoch, len(self.parallel_sequences) - 1)]

    def _rate(self, epoch: int) -> float:
        if not self.schedules.automatic or epoch < self.schedules.listed_rates:
            return self.schedules.rate_per_sample(epoch, self._parallel(epoch))
        if self.schedules.searches_before_epoch:
            rate = search_rate(
                self.parameters, epoch, self.found_rates, self.control.reference, partial(self._trial, epoch)
            )
            self.search_ratio = rate / self.rate if self.rate else 1.0
            return rate
        if self.rate is None:
            raise self.parameters.error(
                "learningRatesPerMB",
                f"no learning rate is known for epoch {epoch + 1}",
                hint="autoAdjustLR = adjustAfterEpoch needs the rate of the first epoch: learningRatesPerMB = 0.1",
            )
        return self.rate

    def _size(self, epoch: int, rate: float) -> int:
        p = self.parameters
        if not adapts_size(p, epoch):
            return p.minibatch_size[epoch]
        trial = partial(self._trial, epoch)
        ratio = self.schedules.listed_ratio(epoch, self._parallel(epoch)) * self.search_ratio
        self.adapted_size = adapt_size(p, epoch, rate, self.adapted_size, ratio, trial)
        return self.adapted_size

    def _trial(self, epoch: int, rate: float, size: int, samples: int, tag: str) -> float:
        """Train on the first samples of an epoch, undo it, and return the criterion; `tag` begins progress lines."""
        p = self.parameters
        self.parallel.train_alone(self.trainer, self.reader)
        momentum, per_step = self.schedules.momentum_of_updates(epoch)
        frozen = rate <= 0.01 * p.min_rate
        network = network_settings(p, epoch)
        settings = EpochSettings(rate, momentum, network, epoch, frozen, pieces_of(p, size), per_step)
        view = EpochView(
            epoch, self.epochs, self.trace, p.show_every, p.show_first, self.epoch_samples, prefix=f"  {tag}:"
        )
        data = up_to(minibatches(self.reader, size, epoch, p.epoch_size or None, ahead=False), samples)
        with self._stopped_between_epochs(epoch):
            totals = train_epoch(self.trainer, self.parallel.until_stopped(data, self.stop), size, settings, view)
        log.info(
            " Finished Mini-Epoch[%d]: %s; learningRatePerSample = %.8g; minibatchSize = %d",
            epoch + 1,
            text.totals_line(totals),
            rate,
            size,
        )
        model = self._model(epoch)
        self.trainer.drop_updates()
        self._load_values(model)
        try:
            self.trainer.load(Checkpoint.load(checkpoint_name(model)).update_state)
        except FileNotFoundError:  # before the first epoch, or after a resume without checkpoint
            self.trainer.load()
        return totals[0].average

    def _epoch(self, epoch: int, rate: float, size: int) -> list[text.Total]:
        p = self.parameters
        together = self.parallel.start_epoch(self.trainer, self.reader, epoch)
        momentum, per_step = self.schedules.momentum_of_updates(epoch)
        pieces = pieces_of(p, size)
        settings = EpochSettings(rate, momentum, network_settings(p, epoch), epoch, pieces=pieces, per_step=per_step)
        parallel = self._parallel(epoch)
        effective = self.schedules.effective_momentum(epoch, size, parallel)
        constant = time_constant(self.schedules.momentum_per_sample(epoch, parallel))
        if self.trace:
            log.info("")
        log.log(
            level(self.trace),
            "%s",
            text.starting_epoch(epoch + 1, rate, effective, constant),
            extra=event("epoch started", epoch=epoch + 1, epochs=self.epochs, learningRatePerSample=rate),
        )
        if self.trace:
            log.info("")
            log.info("Starting minibatch loop%s%s.", together, text.pieces(p.subminibatches, p.max_samples_in_ram))
        view = EpochView(
            epoch,
            self.epochs,
            self.trace,
            p.show_every,
            p.show_first,
            self.epoch_samples,
            bar=self.sweep or None,
            details=self._details(),
            perf=p.perf_trace_level > 0,
            progress=self.progress,
            tracing=self.tracing,
        )
        began = time.perf_counter()
        saved = self._saved_epoch(epoch, rate, size)
        if saved.position is not None:
            log.info("Going on after minibatch %d of this epoch.", saved.position.done)
        data = saved.data(size, epoch, p.epoch_size or None)
        if not epoch and saved.position is None:
            data = warned_of_scales(self.network, self.nodes, data)
        totals = train_epoch(self.trainer, data, size, settings, view, saved.position, saved.between)
        if not saved.finished:
            self.trainer.finish_epoch()
        self._trained = saved
        self.broken = view.broken
        self.samples_seen += totals[0].count
        if not self.samples_seen:
            raise self._no_samples(epoch)
        self.sweep = totals[0].count
        self.epoch_samples = self.epoch_samples or view.shown_samples
        seconds = time.perf_counter() - began
        log.info(
            "%s",
            text.finished_epoch(epoch + 1, self.epochs, totals, self.samples_seen, rate, seconds),
            extra=event(
                "epoch finished",
                totals,
                epoch=epoch + 1,
                epochs=self.epochs,
                totalSamplesSeen=self.samples_seen,
                learningRatePerSample=rate,
                seconds=seconds,
            ),
        )
        self._log_time_to_go(epoch, seconds)
        return totals

    def _log_time_to_go(self, epoch: int, seconds: float) -> None:
        left = self.epochs - epoch - 1
        if left and self.parameters.trace_level >= DETAILS:
            log.info("  About %s to go.", text.duration(left * seconds))

    def _details(self) -> Details | None:
        if self.parameters.trace_level < DETAILS:
            return None
        if self._shown_details is None:
            p = self.parameters
            whole = p.subminibatches <= 1 and p.max_samples_in_ram == UNLIMITED
            self._shown_details = Details(self.network, self.nodes, self.reader.state, p.trace_level, whole)
        return self._shown_details

    def _saved_epoch(self, epoch: int, rate: float, size: int) -> SavedEpoch:
        p = self.parameters
        settings = {"epoch": epoch, "rate": rate, "size": size, "samples": p.epoch_size, "rule": rule_name(p)}
        path = partial_name(self._model(epoch))
        minutes = self.parameters.checkpoint_minutes
        return SavedEpoch(self.trainer, self.reader, path, settings, minutes, self.stop, self.parallel)

    def _validate(self, epoch: int, size: int) -> list[text.Total] | None:
        if self.validation is None:
            return None
        self.trainer.store()
        p = self.parameters
        known = self._evaluator = self._evaluator or Evaluator(self.network, self.nodes, trace_level=p.trace_level)
        try:
            totals = evaluate(
                self.network,
                self.nodes,
                self.validation,
                size,
                tracing=self.tracing,
                evaluator=known,
                group=self.parallel.evaluating,
                stop=self.stop,
            )
        except Stopped:
            assert self._trained is not None
            self._trained.stopped_afterwards()
        line = text.validated_epoch(epoch + 1, self.epochs, totals)
        log.info("%s", line, extra=event("validation", totals, epoch=epoch + 1, epochs=self.epochs))
        return totals

    def _no_samples(self, epoch: int) -> UserError:
        """The error of an epoch that had no data, where none before it had any."""
        message = f"nothing was trained: epoch {epoch + 1} had no samples"
        hint = "look at the warnings above: the reader has no data, or leaves all of them out"
        value = self.parameters.given("epochSize")
        return UserError("NoSamples", message, value.span if value is not None else None, hint)

    # ---- after an epoch

    def _control_value(self, trained: list[text.Total], validated: list[text.Total] | None) -> float:
        auto = self.parameters.auto_adjust
        totals = validated if validated is not None and auto.use_validation else trained
        return totals[1 if auto.use_evaluation and len(totals) > 1 else 0].average

    def _control(self, epoch: int, value: float) -> int | None:
        """Adjust the rate; returns the index of the epoch to train next, `None` if training ends here."""
        assert self.rate is not None
        control, auto = self.control, self.parameters.auto_adjust
        control.observe(epoch, value)
        if not (self.adjusts and control.due(epoch)):
            control.accept(epoch)
            return epoch + 1
        back = epoch + 1 - control.options.interval if control.degraded and auto.load_best else None
        if back is not None:
            model = self._model(back)
            log.info("Loading (rolling back to) previous model with best training-criterion value: %s.", model)
            self.trainer.drop_updates()
            self._load_values(model)
            self._take(Checkpoint.load(checkpoint_name(model)))
        before = self.rate
        self.rate, ends = control.decide(before)
        if ends:
            self.trainer.store()
            self.parallel.write(lambda: self._write_model(epoch + 1, ended=True))
            log.info("Finished training and saved final model")
            return None
        if self.rate != before:
            log.info("learnRatePerSample %s to %.8g", "reduced" if self.rate < before else "increased", self.rate)
        if back is None:
            control.accept(epoch)
            return epoch + 1
        for stale in range(epoch, back, -1):
            log.info("SGD: removing model and checkpoint files for epoch %d after rollback to epoch %d", stale, back)
            if self.parallel.main:
                remove(self._model(stale))
                remove(checkpoint_name(self._model(stale)))
        log.info("SGD: revoke back to and update checkpoint file for epoch %d", back)
        self.parallel.write(self._checkpoint(back))
        return back

    def _load_values(self, model: str) -> None:
        loaded = load_model(model, self.network.precision)
        for name, node in loaded.nodes.items():
            self.network.nodes[name].value = node.value
            self.network.nodes[name].samples = node.samples

    def _save(self, epoch: int, validated: list[text.Total] | None) -> None:
        model = self._model(epoch + 1)
        saved = event("saved", epoch=epoch + 1, epochs=self.epochs, model=model)
        log.log(level(self.trace), "SGD: Saving checkpoint model '%s'", model, extra=saved)
        if not self.trace and epoch + 1 == self.epochs:
            log.info("INFO: the model is saved in '%s'.", model)
        if self.parameters.keep_models == BEST and self.best and self.best[0] <= epoch + 1 == self.epochs:
            log.info("The best model is that of epoch %d, '%s'.", self.best[0], self._model(self.best[0]))
        better = self._best_models.observe(epoch + 1, validated or [])
        checkpoint = self._checkpoint(epoch + 1)

        def write() -> None:
            for path in better:
                save_model(path, self.network)
            checkpoint()
            self._write_model(epoch + 1)
            remove(partial_name(self._model(epoch)))
            best = None if self.best is None else self.best[0]
            remove_needless(self.parameters, epoch + 1, best, self.schedules, self.control.options)

        self.parallel.write(write)
        UNSAVED.clear()

    def _checkpoint(self, done: int) -> Callable[[], None]:
        """What writes the checkpoint after so many epochs."""
        searched = {
            "found_rates": self.found_rates,
            "search_ratio": self.search_ratio,
            "adapted_size": self.adapted_size,
            "last_slots": self._counted.last_slots,
            "best": self.best,
            "best_models": self._best_models.state(),
            "shapes": self.trainer.buckets.to_json(),
        }
        checkpoint = Checkpoint(
            self.samples_seen,
            self.rate,
            self.control.reference,
            self.size or 0,
            self.trainer.store(),
            self._part.epoch_state(done),
            {"schedule": {**searched, "control": self.control.state()}},
        )
        return lambda: checkpoint.save(checkpoint_name(self._model(done)))

    def _rate_too_small(self, epoch: int, rate: float) -> None:
        log.info(
            "Learn Rate Per Sample for Epoch[%d] = %.8g is less than minLearningRatePerSample %.8g. Training complete.",
            epoch + 1,
            rate,
            self.parameters.min_rate,
        )
        if not epoch:
            name = "learningRatesPerSample" if self.parameters.rates_per_sample is not None else "learningRatesPerMB"
            raise self.parameters.error(name, *too_small(rate, self.parameters.min_rate))
        if self.schedules.automatic:
            self.trainer.store()
            self.parallel.write(lambda: self._write_model(epoch, ended=True))
        else:
            log.warning(
                "WARNING: %s is not written: training ended before epoch %d of %d. The last model is %s.",
                self.parameters.model_path,
                epoch + 1,
                self.epochs,
                self._model(epoch),
            )

    def _model(self, done: int) -> str:
        return model_name(str(self.parameters.model_path), done, self.epochs)
