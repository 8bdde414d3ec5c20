"""The log lines of the epochs of a training, and their other displays."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cntkpy.networks.graph.network import Node
from cntkpy.trainers.hooks import Frequency, Hook, Interval, Running
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event, level
from cntkpy.trainers.log.reporting import NoProgress, Progress, Reporting, Tracing
from cntkpy.trainers.monitors.details import DETAILS_LEVEL
from cntkpy.trainers.parameters.sgd import SGDParameters

log = logging.getLogger("cntkpy.trainers")

UNKNOWN_EPOCH = 2**62 - 1
"""CNTK's size of an epoch after a resume with epochSize=0; it shows in the percentages."""


@dataclass
class ProgressLines(Hook):
    """Logs a line for each interval, with an event for trackers.

    Attributes:
        log: The log of the training.
        nodes: The criterion and the nodes that are reported.
        epoch: Index of the epoch.
        minibatch_size: Nominal samples of a minibatch.
        prefix: Stands before a line, in the trials of a search.
        shown_samples: CNTK's size of later epochs: the number of minibatches up to the last line times the mean number
            of samples in those of that line.
    """

    log: EpochLog
    nodes: Sequence[Node]
    epoch: int
    minibatch_size: int
    prefix: str = ""
    shown_samples: int = 0

    def on_interval(self, interval: Interval) -> None:
        """Log the line of an interval."""
        epoch, epochs, samples = self.epoch + 1, self.log.epochs, self.log.samples
        first, last, totals = interval.first, interval.last, interval.totals.rows(self.nodes)
        percent = None
        if samples:
            minibatches = samples / self.minibatch_size
            percent = (100 * last / minibatches, text.percent_digits(minibatches, last - first + 1))
        line = text.progress((epoch, epochs), (first, last), percent, totals, interval.seconds)
        trial = {"trial": self.prefix.strip(" :")} if self.prefix else {}
        about = {"epoch": epoch, "epochs": epochs, "minibatches": [first, last], "seconds": interval.seconds} | trial
        log.log(level(self.log.shown), "%s%s", self.prefix, line, extra=event("progress", totals, **about))
        self.shown_samples = last * interval.totals.samples // (last - first + 1)


@dataclass
class ClusterProgress(Hook):
    """Reports to a cluster how far an epoch of a known size is.

    Attributes:
        tracing: Gets the report.
        epoch: Index of the epoch.
        minibatches: Minibatches of an epoch.
    """

    tracing: Tracing
    epoch: int
    minibatches: float

    def on_interval(self, interval: Interval) -> None:
        """Report the criterion of an interval."""
        criterion = float(interval.totals.values[0]) / int(interval.totals.counts[0])
        self.tracing.point(self.epoch + interval.last / self.minibatches, criterion)


@dataclass
class ProgressBar(Hook):
    """Shows on a terminal how far an epoch is.

    Attributes:
        display: The bar.
        nodes: The criterion, of which the bar has the value, and others.
        title: Stands before the bar.
        samples: Of the epoch; None: that is not known.
    """

    display: Progress
    nodes: Sequence[Node]
    title: str
    samples: int | None
    _text: str = ""

    def on_start(self) -> None:
        """Begin a bar."""
        self.display.start(self.title, self.samples)

    def on_interval(self, interval: Interval) -> None:
        """Keep the value of the interval that has just ended."""
        self._text = str(interval.totals.rows(self.nodes)[0])

    def on_stack(self, run: Running) -> None:
        """Show the samples so far, and the criterion of the interval."""
        position = run.position
        self.display.update(position.totals.samples, self._text or str(position.interval.rows(self.nodes)[0]))
        self._text = ""

    def on_end(self) -> None:
        """End the bar."""
        self.display.finish()


class EpochLog:
    """Logs epochs.

    Args:
        parameters: The `SGD` section.
        reporting: Where progress is reported besides the log.
        resumed: Whether epochs of the training are done already.
        sweep: Samples of the whole data set; 0 if that is not known.

    Attributes:
        frequency: Minibatches after which there is a line.
        reporting: See above.
        shown: Whether progress lines are in the log.
        samples: Size of an epoch in percentages; 0: it is not known.
        epochs: Number of epochs.
    """

    def __init__(self, parameters: SGDParameters, reporting: Reporting, resumed: bool, sweep: int):
        self._p, self.reporting = parameters, reporting
        self.frequency = Frequency(parameters.show_every or None, parameters.show_first)
        self.shown, self.epochs = parameters.trace_level > 0, parameters.max_epochs
        self._bar = parameters.epoch_size or (0 if isinstance(reporting.progress, NoProgress) else sweep)
        self.samples = parameters.epoch_size or (UNKNOWN_EPOCH if resumed else 0)

    def lines(self, nodes: Sequence[Node], epoch: int, minibatch_size: int, trial: str = "") -> ProgressLines:
        """Return the hook that logs the intervals of an epoch; `trial` begins the lines of a trial."""
        return ProgressLines(self, nodes, epoch, minibatch_size, f"  {trial}:" if trial else "")

    def bar(self, nodes: Sequence[Node], epoch: int) -> ProgressBar:
        """Return the hook that shows how far an epoch is."""
        return ProgressBar(self.reporting.progress, nodes, f"epoch {epoch + 1} of {self.epochs}", self._bar or None)

    def trial(self, epoch: int, totals: list[text.Total], rate: float, minibatch_size: int) -> None:
        """Log that a trial is over."""
        log.info(
            " Finished Mini-Epoch[%d]: %s; learningRatePerSample = %.8g; minibatchSize = %d",
            epoch + 1,
            text.totals_line(totals),
            rate,
            minibatch_size,
        )

    def started(self, epoch: int, rate: float, momentum: float, constant: float, together: str) -> None:
        """Log that an epoch begins.

        Args:
            epoch: 0-based.
            rate: Per sample.
            momentum: The effective one.
            constant: Momentum as a time constant, in samples.
            together: The log's words about workers.
        """
        p = self._p
        if self.shown:
            log.info("")
        log.log(
            level(self.shown),
            "%s",
            text.starting_epoch(epoch + 1, rate, momentum, constant),
            extra=event("epoch started", epoch=epoch + 1, epochs=self.epochs, learningRatePerSample=rate),
        )
        if self.shown:
            log.info("")
            log.info("Starting minibatch loop%s%s.", together, text.pieces(p.subminibatches, p.max_samples_in_ram))

    def finished(
        self, lines: ProgressLines, totals: list[text.Total], samples_seen: int, rate: float, seconds: float
    ) -> None:
        """Log that an epoch is over.

        Args:
            lines: The hook that has logged its intervals.
            totals: The criteria.
            samples_seen: Over all epochs.
            rate: Per sample.
            seconds: How long it took.
        """
        epoch, epochs = lines.epoch + 1, self.epochs
        self._bar = totals[0].count
        self.samples = self.samples or lines.shown_samples
        about = {"epoch": epoch, "epochs": epochs, "totalSamplesSeen": samples_seen, "learningRatePerSample": rate}
        log.info(
            "%s",
            text.finished_epoch(epoch, epochs, totals, samples_seen, rate, seconds),
            extra=event("epoch finished", totals, **about, seconds=seconds),
        )
        if epochs > epoch and self._p.trace_level >= DETAILS_LEVEL:
            log.info("  About %s to go.", text.duration((epochs - epoch) * seconds))

    def validated(self, epoch: int, totals: list[text.Total]) -> None:
        """Log that an epoch was validated."""
        line = text.validated_epoch(epoch + 1, self.epochs, totals)
        log.info("%s", line, extra=event("validation", totals, epoch=epoch + 1, epochs=self.epochs))
