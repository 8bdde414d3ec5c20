"""Progress writers: what a training says about itself, and when."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cntkpy.cntk_config.base.writing import empty, open_text_in_place, shown
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.checks import check_count, is_whole
from cntkpy.trainers.log.totals import Totals


def is_due(updates: int, frequency: int | None, first: int) -> bool:
    """Whether something is written after this many minibatches.

    Args:
        updates: minibatches so far.
        frequency: every so many; 0: after 1, 2, 4, 8, ...; None: never.
        first: also after each of the first so many.
    """
    if frequency is None:
        return False
    if updates <= first:
        return True
    return updates & (updates - 1) == 0 if frequency == 0 else updates % frequency == 0


class ProgressWriter:
    """Writes progress in some form; derive from it and override the `on_` methods.

    Its own attributes begin with `_`: programs derive from it and add theirs, such as `epochs`.

    Args:
        frequency: minibatches of training between writes; 0: after 1, 2, 4, ...; None: never.
        first: also each of the first so many.
        test_frequency: the same of minibatches of tests.
        test_first: the same.
        rank: which worker this is; only worker 0 writes.
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
        self._frequency, self._first = frequency, first
        self._test_frequency, self._test_first = test_frequency, test_first
        self._writes = not rank
        self._began = time.perf_counter()
        self._epoch_start = self._interval_start = Totals()
        self._test_start = Totals()
        self._epochs = self._tests = 0

    # ---- what the trainer calls

    def attach(self, main: bool) -> None:
        """A new trainer writes here: its totals begin with nothing. Only the main worker goes on writing."""
        self._writes = self._writes and main
        self._epoch_start = self._interval_start = self._test_start = Totals()

    def start_clock(self) -> None:
        """Training continues: time counts from now."""
        self._began = time.perf_counter()

    def after_update(self, updates: int, totals: Callable[[], Totals]) -> None:
        """A minibatch was trained on; `totals` waits for its results."""
        number = updates - self._epoch_start.minibatches
        if is_due(number, self._frequency, self._first):
            now = totals()
            interval, first = (
                now.since(self._interval_start),
                self._interval_start.minibatches - self._epoch_start.minibatches,
            )
            self._interval_start = now
            if self._writes:
                self.on_training(interval, now.since(self._epoch_start), (first + 1, number))

    def after_epoch(self, totals: Totals, with_metric: bool) -> None:
        """A stretch of training is over."""
        self._epochs += 1
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        epoch = totals.since(self._epoch_start)
        self._epoch_start = self._interval_start = totals
        if self._writes:
            self.on_epoch(epoch, seconds, with_metric)

    def after_test_minibatch(self, totals: Totals) -> None:
        """A minibatch was evaluated."""
        if is_due(totals.minibatches, self._test_frequency, self._test_first):
            interval, first = totals.since(self._test_start), self._test_start.minibatches + 1
            self._test_start = totals
            if self._writes:
                self.on_test(interval, (first, totals.minibatches))

    def after_test(self, totals: Totals) -> None:
        """An evaluation is over."""
        self._tests += 1
        self._test_start = Totals()
        if self._writes:
            self.on_test_end(totals)

    # ---- what a checkpoint keeps

    def saved_state(self) -> dict[str, Any]:
        """The position, JSON-able."""
        return {
            "epochs": self._epochs,
            "tests": self._tests,
            "epoch": self._epoch_start.numbers(),
            "interval": self._interval_start.numbers(),
        }

    def take_state(self, state: dict[str, Any]) -> None:
        """The inverse of `saved_state`."""
        self._epochs, self._tests = int(state["epochs"]), int(state["tests"])
        self._epoch_start, self._interval_start = Totals.of_loss(*state["epoch"]), Totals.of_loss(*state["interval"])

    # ---- what a writer does

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """The frequency says that it is time; `minibatches`: the first and the last one of the interval."""

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """A stretch of training is over."""

    def on_test(self, interval: Totals, minibatches: tuple[int, int]) -> None:
        """The frequency of tests says that it is time."""

    def on_test_end(self, totals: Totals) -> None:
        """An evaluation is over."""

    def write(self, key: str, value: Any) -> None:
        """A value of the program's own."""


@dataclass
class _Output:
    """Where a printer writes."""

    file: TextIO | None = None

    def line(self, text: str) -> None:
        out = sys.stdout if self.file is None else self.file
        print(text, file=out, flush=True)


class ProgressPrinter(ProgressWriter):
    """Prints progress in CNTK's lines.

    Args:
        freq: minibatches between lines; 0: after 1, 2, 4, ...; None: none.
        first: also a line for each of the first so many.
        tag: is in the lines of epochs.
        log_to_file: a file to print to.
        rank: which worker this is; only worker 0 prints.
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
        self._out = _Output()
        self._headed = False
        if log_to_file is not None:
            self._writes = True
            path = f"{log_to_file}{rank}" if rank else str(log_to_file)
            try:
                self._out.file = open_text_in_place(path)
                empty(self._out.file)
            except OSError as error:
                raise ArgumentError(f"cannot write the log {shown(path)}: {error.strerror}") from None

    def _metric(self, value: float) -> str:
        return f"{100 * value:.2f}%" if self.metric_is_pct else f"{value:.6f}"

    def _values(self, totals: Totals, with_metric: bool = True) -> str:
        loss = f"loss = {totals.average_loss:.6f} * {totals.samples}"
        return f"{loss}, metric = {self._metric(totals.average_metric)} * {totals.samples}" if with_metric else loss

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """A line, or with a frequency of 0 a row of a table."""
        if self._frequency == 0:
            if not self._headed:
                self._headed = True
                self._out.line(" average      since    average      since      examples")
                self._out.line("    loss       last     metric       last              ")
                self._out.line(" ------------------------------------------------------")
            numbers = (epoch.average_loss, interval.average_loss, epoch.average_metric, interval.average_metric)
            self._out.line(" ".join(f"{one:8.3g}  " for one in numbers) + f" {epoch.samples:10d}")
            return
        first, last = minibatches
        self._out.line(f" Minibatch[{first:4d}-{last:4d}]: {self._values(interval)};")

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """`Finished Epoch[1 of 10]: [Training] loss = ... * 20, metric = ...% * 20 0.600s ( 33.3 samples/s);`."""
        of = f" of {self.num_epochs}" if self.num_epochs is not None else ""
        speed = totals.samples / seconds if seconds > 0 else 0.0
        text = f"Finished Epoch[{self._epochs}{of}]: {self.tag}{self._values(totals, with_metric)}"
        self._out.line(f"{text} {seconds:.3f}s ({speed:5.1f} samples/s);")

    def on_test(self, interval: Totals, minibatches: tuple[int, int]) -> None:
        """A line for some minibatches of a test."""
        first, last = minibatches
        metric = self._metric(interval.average_metric)
        self._out.line(f" Minibatch[{first:4d}-{last:4d}]: metric = {metric} * {interval.samples};")

    def on_test_end(self, totals: Totals) -> None:
        """`Finished Evaluation [1]: Minibatch[1-10]: metric = ...% * 100;`."""
        metric = self._metric(totals.average_metric)
        what = f"Minibatch[1-{totals.minibatches}]: metric = {metric} * {totals.samples};"
        self._out.line(f"Finished Evaluation [{self._tests}]: {what}")

    def write(self, key: str, value: Any) -> None:
        """`key: value`."""
        self._out.line(f"{key}: {value}")
