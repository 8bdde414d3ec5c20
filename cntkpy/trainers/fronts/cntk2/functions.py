"""Functions with training and testing in one call."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cntkpy.networks.builders.python.functions.calls import as_list
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers import FULL_DATA_SWEEP, INFINITELY_REPEAT, StreamInformation
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.user.record import Record
from cntkpy.trainers.fronts.cntk2.passes import backward, forward, gradients
from cntkpy.trainers.fronts.cntk2.progress import ProgressWriter
from cntkpy.trainers.fronts.cntk2.schedules import Schedule
from cntkpy.trainers.fronts.cntk2.session import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    Feed,
    TestConfig,
    TrainingSession,
    from_arrays,
)
from cntkpy.trainers.fronts.cntk2.tester import Tester
from cntkpy.trainers.fronts.cntk2.trainer import Trainer
from cntkpy.trainers.fronts.cntk2.values import evaluate, print_node_timing
from cntkpy.trainers.log.totals import Totals

# --------------------------------------------------------------------------------------------- training


class EpochSummary(Record):
    """Results of training between two lines of progress, or of a test; `summary["loss"]` is `summary.loss`.

    Attributes:
        loss: per sample.
        metric: per sample; 0 where there is none.
        samples: how many.
    """

    loss: float
    metric: float
    samples: int


class TrainingSummary(Record):
    """Results of `Function.train`; `summary["updates"]` is `summary.updates`.

    Attributes:
        updates: minibatches.
        epoch_summaries: one for each epoch.
        cross_validation_summaries: one for each evaluation while training went on, and at its end.
        test_summary: of the test at the end; None: there was none.
    """

    updates: int
    epoch_summaries: list[EpochSummary]
    cross_validation_summaries: list[EpochSummary]
    test_summary: EpochSummary | None


class _Collector(ProgressWriter):
    """Keeps the calls of progress writers, on every worker."""

    def __init__(self) -> None:
        super().__init__()
        self.updates = 0
        self.of_epochs: list[EpochSummary] = []
        self.evaluations: list[EpochSummary] = []

    def after_epoch(self, totals: Totals, with_metric: bool) -> None:
        """See `ProgressWriter.after_epoch`."""
        self._writes = True
        super().after_epoch(totals, with_metric)

    def after_test(self, totals: Totals) -> None:
        """See `ProgressWriter.after_test`."""
        self._writes = True
        super().after_test(totals)

    def on_epoch(self, totals: Totals, seconds: float, with_metric: bool) -> None:
        self.updates += totals.minibatches
        self.of_epochs.append(_summary(totals))

    def on_test_end(self, totals: Totals) -> None:
        self.evaluations.append(_summary(totals))


def _summary(totals: Totals) -> EpochSummary:
    return EpochSummary(loss=totals.average_loss, metric=totals.average_metric, samples=totals.samples)


def train(
    function: Function,
    minibatch_source: object,
    minibatch_size: int | Schedule = 32,
    streams: Sequence[StreamInformation] | None = None,
    model_inputs_to_streams: Mapping[Function, StreamInformation] | None = None,
    parameter_learners: object = (),
    callbacks: object = (),
    progress_frequency: Any = None,
    max_epochs: int | None = None,
    epoch_size: int | None = None,
    max_samples: int | None = None,
) -> TrainingSummary:
    """Train by a loss, or a loss and a metric.

    Args:
        function: the loss, or a function of loss and metric.
        minibatch_source: a source; or a tuple of arrays (n, *sample), one for each input in their order.
        minibatch_size: in samples, or a schedule.
        streams: the stream of each input in their order.
        model_inputs_to_streams: the same by input.
        parameter_learners: learners.
        callbacks: progress writers, and configurations of checkpoints, cross validation and test.
        progress_frequency: how often progress is summed up; by default with each epoch.
        max_epochs: how many epochs there are; by default one.
        epoch_size: samples of an epoch; by default a pass over the data.
        max_samples: how many samples are trained on at most.

    Returns:
        What was done.
    """
    known = as_list(callbacks)
    collector = _Collector()
    writers = [callback for callback in known if isinstance(callback, ProgressWriter)]
    checkpoint = next((callback for callback in known if isinstance(callback, CheckpointConfig)), None)
    validation = next((callback for callback in known if isinstance(callback, CrossValidationConfig)), None)
    tested = next((callback for callback in known if isinstance(callback, TestConfig)), None)
    for callback in known:
        if callback not in writers and callback not in (checkpoint, validation, tested):
            raise ArgumentError(
                f"{callback!r} is no callback", "progress writers, CheckpointConfig, TestConfig and others"
            )
    source, inputs = _source(function, minibatch_source, streams, model_inputs_to_streams, INFINITELY_REPEAT)
    if max_samples is None and epoch_size is not None:
        max_samples = epoch_size * (max_epochs or 1)
    every = progress_frequency or epoch_size or (1, DataUnit.sweep)
    trainer = Trainer(None, function, parameter_learners, [*writers, collector])
    TrainingSession(
        trainer,
        source,
        minibatch_size,
        inputs,
        max_samples,
        every,
        checkpoint,
        validation,
        tested,
        max_epochs or 1 if max_samples is None else None,
    ).train()
    evaluations = collector.evaluations
    of_test = evaluations.pop() if tested is not None and evaluations else None  # it comes last
    return TrainingSummary(
        updates=collector.updates,
        epoch_summaries=collector.of_epochs,
        cross_validation_summaries=evaluations,
        test_summary=of_test,
    )


def test(
    function: Function,
    minibatch_source: object,
    minibatch_size: int = 32,
    streams: Sequence[StreamInformation] | None = None,
    model_inputs_to_streams: Mapping[Function, StreamInformation] | None = None,
    callbacks: object = (),
) -> EpochSummary:
    """The value of a metric on data: the second of several outputs, a criterion's; for the arguments see `train`."""
    source, inputs = _source(function, minibatch_source, streams, model_inputs_to_streams, FULL_DATA_SWEEP)
    tester = Tester(function.outputs[:2][-1], callbacks)
    feed, totals = Feed(tester, source, inputs, shared=False), Totals()
    while (minibatch := feed.next(minibatch_size)) is not None:
        totals = totals.plus(tester.test(minibatch))
    tester.summarize_test_progress()
    return _summary(totals)


def _source(
    function: Function,
    data: object,
    streams: Sequence[StreamInformation] | None,
    inputs: Mapping[Function, StreamInformation] | None,
    max_samples: int,
) -> tuple[Any, Mapping[Function, Any]]:
    if isinstance(data, tuple | list):
        data, infos = from_arrays(data, function, max_samples)
        return data, infos if inputs is None else inputs
    if inputs is None:
        if streams is None or len(streams) != len(function.arguments):
            raise ArgumentError("the streams of the inputs are not known", "model_inputs_to_streams={input: stream}")
        inputs = dict(zip(function.arguments, streams, strict=True))
    return data, inputs


class SessionBackend:
    """The `Backend` that computes and trains functions."""

    evaluate = staticmethod(evaluate)
    forward = staticmethod(forward)
    backward = staticmethod(backward)
    grad = staticmethod(gradients)
    train = staticmethod(train)
    test = staticmethod(test)
    print_node_timing = staticmethod(print_node_timing)
