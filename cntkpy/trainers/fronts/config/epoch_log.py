"""The log lines of the epochs of a training, and what is shown while one runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cntkpy.trainers.fronts.config.epoch import EpochView
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event, level
from cntkpy.trainers.log.reporting import NoProgress, Reporting
from cntkpy.trainers.monitors.details import DETAILS_LEVEL, Details
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.step.context import Callback

log = logging.getLogger("cntkpy.trainers")

UNKNOWN_EPOCH = 2**62 - 1
"""What CNTK takes for the size of an epoch after a resume with epochSize=0; it shows in the percentages."""


class EpochLog:
    """Logs epochs.

    Args:
        parameters: The `SGD` section.
        reporting: Where progress is reported besides the log.
        resumed: Whether epochs of the training are done already.
        sweep: Samples of the whole data set; 0 if that is not known.
    """

    def __init__(self, parameters: SGDParameters, reporting: Reporting, resumed: bool, sweep: int):
        self._p, self._reporting = parameters, reporting
        self._shown = parameters.trace_level > 0
        self._bar = parameters.epoch_size or (0 if isinstance(reporting.progress, NoProgress) else sweep)
        self._samples = parameters.epoch_size or (UNKNOWN_EPOCH if resumed else 0)

    def trial_view(self, epoch: int, tag: str, callbacks: Sequence[Callback]) -> EpochView:
        """Return the view of a trial; `tag` begins its progress lines."""
        p = self._p
        shown = self._shown, p.show_every, p.show_first, self._samples
        return EpochView(epoch, p.max_epochs, *shown, prefix=f"  {tag}:", callbacks=callbacks)

    def view(self, epoch: int, details: Details | None, callbacks: Sequence[Callback]) -> EpochView:
        """Return the view of an epoch."""
        p = self._p
        return EpochView(
            epoch,
            p.max_epochs,
            self._shown,
            p.show_every,
            p.show_first,
            self._samples,
            bar=self._bar or None,
            details=details,
            perf=p.perf_trace_level > 0,
            progress=self._reporting.progress,
            tracing=self._reporting.tracing,
            callbacks=callbacks,
        )

    def trial(self, epoch: int, totals: list[text.Total], rate: float, minibatch_size: int) -> None:
        """A trial is over."""
        log.info(
            " Finished Mini-Epoch[%d]: %s; learningRatePerSample = %.8g; minibatchSize = %d",
            epoch + 1,
            text.totals_line(totals),
            rate,
            minibatch_size,
        )

    def started(self, epoch: int, rate: float, momentum: float, constant: float, together: str) -> None:
        """An epoch begins.

        Args:
            epoch: 0-based.
            rate: Per sample.
            momentum: The effective one.
            constant: Momentum as a time constant, in samples.
            together: What the log adds about workers.
        """
        p = self._p
        if self._shown:
            log.info("")
        log.log(
            level(self._shown),
            "%s",
            text.starting_epoch(epoch + 1, rate, momentum, constant),
            extra=event("epoch started", epoch=epoch + 1, epochs=p.max_epochs, learningRatePerSample=rate),
        )
        if self._shown:
            log.info("")
            log.info("Starting minibatch loop%s%s.", together, text.pieces(p.subminibatches, p.max_samples_in_ram))

    def finished(
        self, view: EpochView, totals: list[text.Total], samples_seen: int, rate: float, seconds: float
    ) -> None:
        """An epoch is over.

        Args:
            view: What was shown of it.
            totals: The criteria.
            samples_seen: Over all epochs.
            rate: Per sample.
            seconds: How long it took.
        """
        epoch, epochs = view.epoch + 1, view.epochs
        self._bar = totals[0].count
        self._samples = self._samples or view.shown_samples
        log.info(
            "%s",
            text.finished_epoch(epoch, epochs, totals, samples_seen, rate, seconds),
            extra=event(
                "epoch finished",
                totals,
                epoch=epoch,
                epochs=epochs,
                totalSamplesSeen=samples_seen,
                learningRatePerSample=rate,
                seconds=seconds,
            ),
        )
        if epochs > epoch and self._p.trace_level >= DETAILS_LEVEL:
            log.info("  About %s to go.", text.duration((epochs - epoch) * seconds))

    def validated(self, epoch: int, totals: list[text.Total]) -> None:
        """An epoch was validated."""
        epochs = self._p.max_epochs
        line = text.validated_epoch(epoch + 1, epochs, totals)
        log.info("%s", line, extra=event("validation", totals, epoch=epoch + 1, epochs=epochs))
