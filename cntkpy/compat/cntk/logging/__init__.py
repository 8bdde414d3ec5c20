"""cntk.logging: progress writers and the level of the log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

from cntkpy.networks.builders.python.functions.checks import check_callable
from cntkpy.trainers.fronts.cntk2.checks import check_type
from cntkpy.trainers.fronts.cntk2.progress import ProgressPrinter as OwnPrinter
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter as OwnWriter
from cntkpy.trainers.fronts.cntk2.tensorboard import TensorBoardProgressWriter
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.log.totals import Totals

from ..missing import no_attribute
from ..ops.functions import Function as AnyFunction
from . import graph
from .graph import find_all_with_name, find_by_name, get_node_outputs, plot


class TraceLevel(IntEnum):
    """Amount of logging."""

    Error = 0
    Warning = 1
    Info = 2


_level = [TraceLevel.Warning]


def set_trace_level(value: TraceLevel) -> None:
    """Keep a level; the programs of this package log little by themselves."""
    _level[0] = TraceLevel(value)


def get_trace_level() -> TraceLevel:
    """Return the level."""
    return _level[0]


class _ByHand(OwnWriter):
    """A writer that a program may tell itself what was trained, instead of giving it to the trainer."""

    _trained = Totals()
    _trainer: Any = None

    def __disown__(self) -> Self:
        """Return the writer: CNTK's native code keeps no writer alive here."""
        return self

    def on_setting(self, name: str, value: float) -> None:
        """Call `write` for a learning rate or a momentum that has changed, as CNTK does."""
        if self._writes:
            self.write(name, value)

    def update(self, loss: float, minibatch_size: int, metric: float | None = None) -> None:
        """A minibatch was trained on, with this loss and metric per sample."""
        totals = Totals.of_loss(loss * minibatch_size, (metric or 0.0) * minibatch_size, minibatch_size, 1)
        self._trained = self._trained.plus(totals)
        self.after_update(self._trained.minibatches, lambda: self._trained)

    def update_with_trainer(self, trainer: Trainer, with_metric: bool = False) -> None:
        """The trainer has trained on a minibatch. A trainer that has this writer updates it by itself."""
        check_type("the trainer", trainer, Trainer, "update_with_trainer(trainer)")
        self._trainer = trainer if self in trainer.progress_writers else None
        if self._trainer is None:
            metric = trainer.previous_minibatch_evaluation_average if with_metric else None
            self.update(trainer.previous_minibatch_loss_average, trainer.previous_minibatch_sample_count, metric)

    def epoch_summary(self, with_metric: bool = False) -> tuple[float, float, int]:
        """An epoch is over: its loss and metric per sample, and its samples."""
        totals = self._trained if self._trainer is None else self._trainer.totals
        epoch = totals.since(self._epoch_start)
        self.after_epoch(totals, with_metric)
        return epoch.average_loss, epoch.average_metric, epoch.samples


class ProgressPrinter(OwnPrinter, _ByHand):
    """See `cntkpy.training.ProgressPrinter`; what it has besides CNTK's arguments changes nothing."""

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        tag: str = "",
        log_to_file: str | Path | None = None,
        rank: int | None = None,
        gen_heartbeat: bool = False,
        num_epochs: int | None = None,
        test_freq: int | None = None,
        test_first: int = 0,
        metric_is_pct: bool = True,
        distributed_freq: int | None = None,
        distributed_first: int = 0,
    ) -> None:
        del gen_heartbeat, distributed_freq, distributed_first
        super().__init__(freq, first, tag, log_to_file, rank, num_epochs, test_freq, test_first, metric_is_pct)

    def on_setting(self, name: str, value: float) -> None:
        """Print a learning rate or a momentum that has changed, below the head of the table."""
        if self._writes:
            self._head()
            self.write(name, value)

    def log(self, message: str) -> None:
        """Print a line of the program's own."""
        self._line(message)


class ProgressWriter(_ByHand):
    """Base of a program's own writers: override the methods called `on_write_`.

    Args:
        freq: minibatches of training between writes; 0: after 1, 2, 4, ...; None: never.
        first: also each of the first so many.
        test_freq: the same of minibatches of tests.
        test_first: the same.
        distributed_freq: accepted; workers exchange in every minibatch.
        distributed_first: the same.
        rank: which worker this is; only worker 0 writes.
    """

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        test_freq: int | None = None,
        test_first: int = 0,
        distributed_freq: int | None = None,
        distributed_first: int = 0,
        rank: int | None = None,
    ) -> None:
        del distributed_freq, distributed_first
        super().__init__(freq, first, test_freq, test_first, rank)
        self._tested = Totals()

    def on_training(self, interval: Totals, epoch: Totals, minibatches: tuple[int, int]) -> None:
        """See `ProgressWriter.on_training` of `cntkpy.training`."""
        loss, metric, samples, updates = zip(epoch.since(interval).numbers(), epoch.numbers(), strict=True)
        self.on_write_training_update(samples, updates, loss, metric)

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """See `ProgressWriter.on_epoch` of `cntkpy.training`."""
        self.on_write_training_summary(
            totals.samples, totals.minibatches, self._epochs, totals.loss, totals.metric, 1000 * seconds
        )

    def on_test(self, interval: Totals, minibatches: tuple[int, int]) -> None:
        """See `ProgressWriter.on_test` of `cntkpy.training`."""
        previous, self._tested = self._tested, self._tested.plus(interval)
        _, metric, samples, updates = zip(previous.numbers(), self._tested.numbers(), strict=True)
        self.on_write_test_update(samples, updates, metric)

    def on_test_end(self, totals: Totals) -> None:
        """See `ProgressWriter.on_test_end` of `cntkpy.training`."""
        self._tested = Totals()
        seconds = self._clock.seconds
        self.on_write_test_summary(totals.samples, totals.minibatches, self._tests, totals.metric, 1000 * seconds)

    def on_write_training_update(self, samples: Any, updates: Any, aggregate_loss: Any, aggregate_metric: Any) -> None:
        """The frequency says that it is time; pairs of sums: at the write before, and now."""

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: float,
    ) -> None:
        """A stretch of training is over; `summaries`: how many there were."""

    def on_write_test_update(self, samples: Any, updates: Any, aggregate_metric: Any) -> None:
        """The frequency of tests says that it is time; pairs of sums."""

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        """An evaluation is over."""


class TrainingSummaryProgressCallback(ProgressWriter):
    """Calls a function of the program after each epoch.

    Args:
        epoch_size: accepted; an epoch is a stretch of training between two summaries.
        callback: called with the number of the epoch, from 0 on, its loss and its metric per sample, and its samples.
    """

    def __init__(self, epoch_size: int, callback: Callable[[int, float, float, int], object]) -> None:
        super().__init__()
        check_callable("the callback", callback, "lambda epoch, loss, metric, samples: ...")
        self._epoch_size, self._callback = epoch_size, callback

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        """See `ProgressWriter.on_epoch` of `cntkpy.training`."""
        self._callback(self._epochs - 1, totals.average_loss, totals.average_metric, totals.samples)


def set_computation_network_trace_level(level: int) -> None:
    """Accepted; the compiled network is not traced: see traceNodeNames of configurations."""
    del level


def log_number_of_parameters(model: Any, trace_level: int = 0) -> None:
    """Print the number of parameters of a function."""
    check_type("a model", model, AnyFunction, "log_number_of_parameters(z)")
    parameters = model.parameters
    total = sum(parameter.value.size for parameter in parameters)
    print(f"Training {total} parameters in {len(parameters)} parameter tensors.")
    if trace_level > 0:
        for parameter in parameters:
            print(f"  {parameter.name or parameter.uid} {parameter.shape}")


from . import progress_print  # noqa: E402  # it takes names from here

__all__ = [
    "ProgressPrinter", "ProgressWriter", "TensorBoardProgressWriter", "TraceLevel", "TrainingSummaryProgressCallback",
    "find_all_with_name", "find_by_name", "get_node_outputs", "get_trace_level", "graph", "log_number_of_parameters",
    "os", "plot", "progress_print", "set_computation_network_trace_level", "set_trace_level", "sys", "time",
]  # fmt: skip

__getattr__ = no_attribute("cntk.logging", __all__)
