"""Progress writers: hooks of programs that report training and tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from cntkpy.cntk_config.base.writing import empty, open_text_in_place, shown
from cntkpy.readers.common.planned import State
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.checks import check_count, is_whole
from cntkpy.trainers.hooks import Frequency, Hook, Interval, Stopwatch
from cntkpy.trainers.log import text
from cntkpy.trainers.log.totals import Totals


class ProgressWriter(Hook):
    """Writes progress in some form; derive from it and override the `on_` methods.

    Its attributes begin with `_`: programs derive from it and add theirs, such as `epochs`.

    Args:
        frequency: minibatches of training between writes; 0: after 1, 2, 4, ...; None: never.
        first: also each of the first so many.
        test_frequency: the same of minibatches of tests.
        test_first: the same.
        rank: number of this worker; only worker 0 writes.
    """

    def __init__(
        self,
        frequency: int | None = None,
        first: int = 0,
        test_frequency: int | None = None,
        test_first: int = 0,
        rank: int | None = None,
    ) -> None:
        for value in (frequency, test_frequency):
            if value is not None and (not is_whole(value) or value < 0):
                raise ArgumentError(f"a frequency is a number of minibatches, 0 or None, not {value!r}")
        self._frequency, self._test_frequency = _frequency(frequency, first), _frequency(test_frequency, test_first)
        self._writes = not rank
        self._clock = Stopwatch()
        self._epoch_start = self._interval_start = Totals()
        self._test_start = Totals()
        self._epochs = self._tests = 0

    # ---- calls of the trainer

    def attach(self, main: bool) -> None:
        """Begin to write for a new trainer: totals begin with nothing. Only the main worker goes on writing."""
        self._writes = self._writes and main
        self._epoch_start = self._interval_start = self._test_start = Totals()

    def start_clock(self) -> None:
        """Count time from now on: training continues."""
        self._clock.restart()

    def after_update(self, updates: int, totals: Callable[[], Totals]) -> None:
        """Report the interval that ends with a minibatch of training; `totals` waits for its results."""
        number = updates - self._epoch_start.minibatches
        if self._frequency.is_due(number):
            now = totals()
            interval = now.since(self._interval_start)
            first = self._interval_start.minibatches - self._epoch_start.minibatches + 1
            self._interval_start = now
            if self._writes:
                epoch = now.since(self._epoch_start)
                self.on_interval(Interval(interval, epoch, first, number, self._clock.seconds))

    def after_epoch(self, totals: Totals, with_metric: bool) -> None:
        """Report a stretch of training."""
        self._epochs += 1
        seconds = self._clock.lap()
        epoch = totals.since(self._epoch_start)
        self._epoch_start = self._interval_start = totals
        if self._writes:
            self.on_epoch(epoch, seconds, with_metric)

    def after_test_minibatch(self, totals: Totals) -> None:
        """Report the interval that ends with a minibatch of an evaluation."""
        if self._test_frequency.is_due(totals.minibatches):
            interval, first = totals.since(self._test_start), self._test_start.minibatches + 1
            self._test_start = totals
            if self._writes:
                self.on_test(interval, (first, totals.minibatches))

    def after_test(self, totals: Totals) -> None:
        """Report an evaluation."""
        self._tests += 1
        self._test_start = Totals()
        if self._writes:
            self.on_test_end(totals)

    # ---- part of checkpoints

    def saved_state(self) -> State:
        """Return the position, JSON-able."""
        return {
            "epochs": self._epochs,
            "tests": self._tests,
            "epoch": self._epoch_start.numbers(),
            "interval": self._interval_start.numbers(),
        }

    def take_state(self, state: State) -> None:
        """Take a position that `saved_state` has returned."""
        self._epochs, self._tests = int(state["epochs"]), int(state["tests"])
        self._epoch_start, self._interval_start = Totals.of_loss(*state["epoch"]), Totals.of_loss(*state["interval"])

    # ---- work of a writer

    def on_interval(self, interval: Interval) -> None:
        """Call `on_training`."""
        self.on_training(interval.totals, interval.epoch, (interval.first, interval.last))

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """Write an interval of training; `minibatches`: the first and the last one."""

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """Write a stretch of training."""

    def on_test(self, interval: Totals, minibatches: tuple[int, int]) -> None:
        """Write an interval of a test."""

    def on_test_end(self, totals: Totals) -> None:
        """Write the end of an evaluation."""

    def on_setting(self, name: str, value: float) -> None:
        """Write a number of a learner that has changed."""

    def write(self, key: str, value: object) -> None:
        """Write a value that a program gives."""


def _frequency(every: int | None, first: int) -> Frequency:
    """Return the frequency of a writer; None: never, not even after the first minibatches."""
    return Frequency() if every is None else Frequency(every, first)


class ProgressPrinter(ProgressWriter):
    """Prints progress in CNTK's lines.

    Args:
        freq: minibatches between lines; 0: after 1, 2, 4, ...; None: none.
        first: also a line for each of the first so many.
        tag: is in the lines of epochs.
        log_to_file: a file to print to.
        rank: number of this worker; only worker 0 prints.
        num_epochs: the number of epochs to show.
        test_freq: minibatches of tests between lines.
        test_first: also a line for each of the first so many.
        metric_is_pct: show the metric in percent.
    """

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        tag: str = "",
        log_to_file: str | Path | None = None,
        rank: int | None = None,
        num_epochs: int | None = None,
        test_freq: int | None = None,
        test_first: int = 0,
        metric_is_pct: bool = True,
    ) -> None:
        super().__init__(freq, first, test_freq, test_first, rank)
        check_count("num_epochs", num_epochs)
        self.tag = f"[{tag}] " if tag else ""
        self.num_epochs, self.metric_is_pct = num_epochs, metric_is_pct
        self._file: TextIO | None = None
        self._headed = False
        if log_to_file is not None:
            self._writes = True
            path = f"{log_to_file}{rank}" if rank else str(log_to_file)
            try:
                self._file = open_text_in_place(path)
                empty(self._file)
            except OSError as error:
                raise ArgumentError(f"cannot write the log {shown(path)}: {error.strerror}") from None

    def _line(self, line: str) -> None:
        print(line, file=sys.stdout if self._file is None else self._file, flush=True)

    def _metric(self, totals: Totals) -> str:
        return text.metric_value(totals.average_metric, self.metric_is_pct)

    def _head(self) -> None:
        """Print the head of the table, once, with a frequency of 0."""
        if self._frequency.every == 0 and not self._headed:
            self._headed = True
            for line in text.GROWING_INTERVALS_HEAD:
                self._line(line)

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """Print a line, or with a frequency of 0 a row of a table."""
        if self._frequency.every == 0:
            self._head()
            averages = epoch.average_loss, interval.average_loss, epoch.average_metric, interval.average_metric
            self._line(text.growing_interval(averages, epoch.samples))
            return
        averages = text.loss_and_metric(interval.average_loss, self._metric(interval), interval.samples)
        self._line(f" {text.minibatch_range(*minibatches)}: {averages};")

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """Print `Finished Epoch[1 of 10]: [Training] loss = ... * 20, metric = ...% * 20 0.600s ( 33.3 samples/s);`."""
        of_epochs = f" of {self.num_epochs}" if self.num_epochs is not None else ""
        metric = self._metric(totals) if with_metric else None
        averages = text.loss_and_metric(totals.average_loss, metric, totals.samples)
        speed = text.samples_per_second(totals.samples, seconds)
        line = f"Finished Epoch[{self._epochs}{of_epochs}]: {self.tag}{averages}"
        self._line(f"{line} {seconds:.3f}s ({speed:5.1f} samples/s);")

    def on_test(self, interval: Totals, minibatches: tuple[int, int]) -> None:
        """Print a line for an interval of a test."""
        self._line(
            f" {text.minibatch_range(*minibatches)}: {text.metric_sum(self._metric(interval), interval.samples)};"
        )

    def on_test_end(self, totals: Totals) -> None:
        """Print `Finished Evaluation [1]: Minibatch[1-10]: metric = ...% * 100;`."""
        metric = text.metric_sum(self._metric(totals), totals.samples)
        self._line(f"Finished Evaluation [{self._tests}]: Minibatch[1-{totals.minibatches}]: {metric};")

    def write(self, key: str, value: object) -> None:
        """Print `key: value`."""
        self._line(f"{key}: {value}")
