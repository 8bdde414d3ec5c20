"""Stochastic gradient descent: the loop over epochs, what is logged, when files are written.

The order of operations is that of CNTK (docs/specification/actions-and-training.md 2.4 and 2.8). What happens inside
a minibatch is compiled by `cntkpy.trainers.step.step`; this module never looks inside an array.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cntkpy.networks.graph.network import ValidatedNetwork as Network
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.trainers.checkpoints.checkpoint import Checkpoint
from cntkpy.trainers.fronts.config.best import BestModels
from cntkpy.trainers.fronts.config.epoch import check_criterion
from cntkpy.trainers.fronts.config.epoch_log import EpochLog
from cntkpy.trainers.fronts.config.epochs import EpochTrainer, Validation
from cntkpy.trainers.fronts.config.files import TrainingFiles
from cntkpy.trainers.fronts.config.rates import ParallelSequences, RatePolicy
from cntkpy.trainers.fronts.config.start import Start, warn_of_reset
from cntkpy.trainers.fronts.config.state import TrainingState
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.monitors.callbacks import callbacks
from cntkpy.trainers.parallel.training import ParallelTraining
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.rules.rules import log_changes
from cntkpy.trainers.schedules.checks import too_small
from cntkpy.trainers.schedules.rate_control import Options, RateControl
from cntkpy.trainers.schedules.schedules import Schedules
from cntkpy.trainers.step.reading import CountedReader
from cntkpy.trainers.step.stack import Stack

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
        schedules = Schedules(p)
        control = RateControl(Options.read(p.auto_adjust, schedules.listed_rates), self.start)
        self.state = TrainingState(control, BestModels(str(p.model_path)), p.minibatch_size[self.start])
        self.rates = RatePolicy(p, schedules, self.state, self._parallel_sequences)
        self.files = TrainingFiles(p, schedules, self.network, self.settings, self.parallel)
        self.log = EpochLog(p, self.reporting, self.start > 0, self.reader.samples_per_sweep)
        self._validation: Validation | None = None
        if self.validation is not None:
            data = self.parallel.part_of(self.validation, always=True)
            self._validation = Validation(self.network, data, self.log, p.trace_level, self.parallel)

    def run(self) -> None:
        """Train until the last epoch, or until the rate is too small.

        Raises:
            UserError: The criterion is not a number, the data are wrong, or a file cannot be written.
            Interrupted: The run was asked to stop, and its state is saved.
        """
        try:
            self._run(self._prepare())
        finally:
            self.parallel.end()

    def _prepare(self) -> EpochTrainer:
        """Run all that precedes the first epoch; return the trainer of epochs."""
        p, reporting, parallel, files = self.parameters, self.reporting, self.parallel, self.files
        start = Start(p, self.network, self.reader, self.start, self.loaded, reporting, parallel, files, self.stop)
        nodes = start.nodes(self.sequences)
        self.step = start.step(nodes, self.targets)
        watching = callbacks(p, self.network, nodes)
        if self.start:
            start.resume(self.state, self.step, self._part, self._counted)
        return EpochTrainer(
            p,
            self.rates.schedules,
            self.state,
            self.step,
            self.reader,
            self.log,
            files,
            parallel,
            self._parallel_sequences,
            self.stop,
            watching,
        )

    def _run(self, trainer: EpochTrainer) -> None:
        p, rates, state = self.parameters, self.rates, self.state
        epoch, previous, last = self.start, None, 0.0
        while epoch < p.max_epochs:
            log_changes(p, epoch, previous)
            previous = epoch
            rate = rates.rate(epoch, trainer.trial)
            if rate < p.min_rate:
                self._rate_too_small(epoch, rate)
                return
            state.minibatch_size = rates.minibatch_size(epoch, rate, trainer.trial)
            totals = trainer.train(epoch, rate, state.minibatch_size)
            last = totals[0].average
            if not rates.is_due(epoch):  # else a roll-back may mend it
                check_criterion(totals[0], epoch, trainer.not_finite, self.step)
            validated = self._validation and self._validation.run(trainer, epoch, state.minibatch_size)
            state.rate = rate
            value = rates.value(totals, validated)
            following = self._after_epoch(epoch, value)
            if following is None:
                return
            if following > epoch:
                state.observe(epoch + 1, value)
                checkpoint = partial(self._checkpoint, epoch + 1)
                trained = self.step.trained_network()
                self.files.save_epoch(epoch + 1, trained, state, checkpoint, validated if p.save_best else None)
                del trained  # it has the arrays that the next step changes in place
            if state.rate < STOP_RATE:
                log.info(
                    "learnRate per sample is reduced to %.8g which is below %.8g. stop training.", state.rate, STOP_RATE
                )
            epoch = following
        self.reporting.tracing.point(p.max_epochs, last, at_end=True)

    def _parallel_sequences(self, epoch: int) -> int:
        """Return the reader's number of parallel sequences as an epoch begins."""
        per_epoch = self.sequences.per_epoch
        if self.sequences.varying and self.parameters.truncated:
            read = self.parallel.total_slots(self._counted.last_slots, self.reader)
            return read or per_epoch[0]
        return per_epoch[min(epoch, len(per_epoch) - 1)]

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
            warn_of_reset(self.step.begin(values, checkpoint.updates))
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
