"""Evaluation of a network on data: sums of criteria over all samples (`test`, `cv`, validation while training)."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import Node
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.hooks import Frequency
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event
from cntkpy.trainers.log.reporting import NoProgress, Progress, Tracing
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step.feed import CAPACITY, Placed
from cntkpy.trainers.step.reading import following, start_epoch

log = logging.getLogger("cntkpy.trainers")

PERPLEXITY = {
    "CrossEntropyWithSoftmax",
    "CrossEntropy",
    "ClassBasedCrossEntropyWithSoftmax",
    "NoiseContrastiveEstimation",
}
"""Operations whose final result is followed by its perplexity."""


def minibatches(
    reader: MinibatchReader,
    minibatch_size: int,
    epoch: int,
    epoch_samples: int | None,
    tracing: Tracing | None = None,
    stop: Callable[[], bool] = lambda: False,
    ahead: bool = True,
) -> Iterator[Minibatch]:
    """Yield the minibatches of one epoch.

    Args:
        reader: Reads the data.
        minibatch_size: In samples.
        epoch: Number of the epoch, from 0.
        epoch_samples: Samples of an epoch; None is one pass over the data.
        tracing: Gets the number of minibatches read; training reports by itself.
        stop: Whether the run should end.
        ahead: See `following`.

    Raises:
        Stopped: `stop` says so.
    """
    start_epoch(reader, EpochRequest(minibatch_size, epoch, epoch_samples))
    for number, (minibatch, _) in enumerate(following(reader, ahead=ahead), 1):
        if stop():
            raise Stopped
        yield minibatch
        if tracing is not None:
            tracing.keep_alive(number)


@dataclass(frozen=True)
class EvaluationData:
    """The data that nodes are evaluated on.

    Args:
        reader: Reads them, from their beginning.
        minibatch_size: In samples.
        samples: Samples to evaluate; None: one pass over the data.
        tracing: Gets the number of minibatches read.
        group: The processes that share the minibatches; `reader` gives each its part.
        stop: Whether the run should end.
    """

    reader: MinibatchReader
    minibatch_size: int
    samples: int | None = None
    tracing: Tracing | None = None
    group: ProcessGroup | None = None
    stop: Callable[[], bool] = lambda: False

    def minibatches(self) -> Iterator[Minibatch]:
        """Yield the minibatches."""
        return minibatches(self.reader, self.minibatch_size, 0, self.samples, self.tracing, self.stop)


def evaluate(
    evaluator: Evaluator,
    data: EvaluationData,
    every: int | None = None,
    first: int = 0,
    progress: Progress | None = None,
) -> list[text.Total]:
    """Evaluate nodes on data and log the results in CNTK's lines.

    Args:
        evaluator: Of the nodes, each of which has one element per sample.
        data: The data.
        every: Minibatches between intermediate lines; 0: only one at the end, for what no line has shown; None: not
            that one either.
        first: Minibatches at the start that get a line of their own.
        progress: Shows how many samples are done.

    Returns:
        One `Total` per node.

    Raises:
        Stopped: `data.stop` says so, in this process or in another one of the group.
    """
    nodes, group, progress = evaluator.nodes, data.group, progress or NoProgress()
    batcher = evaluator.batcher(data.minibatch_size, 1 if evaluator.callbacks else CAPACITY)
    if group is not None:
        batcher = SharedBatcher.like(batcher, group)

    def rows(totals: Totals) -> list[text.Total]:
        return (totals if group is None else totals.joint(nodes, group.communicator.total)).rows(nodes)

    frequency = Frequency(every or None, first)
    totals = interval = Totals.start(nodes)
    count = shown = 0
    progress.start("evaluating", data.samples)
    feed = Placed(batcher.stacks(data.minibatches(), frequency.is_due), evaluator.place)
    early = evaluator.copies and group is None and not evaluator.callbacks
    for placed in feed:
        stack = placed.stack
        size = len(stack.minibatches)
        results = evaluator.run(placed)
        del placed
        if early and not feed.is_slow:
            feed.read_ahead()
        values = np.asarray(results, np.float64)[:size]
        added = values, int(stack.samples.sum()), stack.counts
        totals, interval = totals.add(nodes, *added), interval.add(nodes, *added)
        count += size
        progress.update(totals.samples)
        if frequency.is_due(count):
            log.info("%s", _interval(rows(interval), shown + 1, count))
            shown, interval = count, Totals.start(nodes)
    if every is not None and count > shown:
        log.info("%s", _interval(rows(interval), shown + 1, count))
    progress.finish()
    final = rows(totals)
    log.info(
        "Final Results: Minibatch[1-%d]: %s",
        count,
        "; ".join(_final(nodes, final)),
        extra=event("final results", final, minibatches=[1, count]),
    )
    return final


def _interval(totals: Sequence[text.Total], first: int, last: int) -> str:
    return f"Minibatch[{first}-{last}]: {text.totals_line(totals)}"


def _final(nodes: Sequence[Node], totals: Sequence[text.Total]) -> Iterator[str]:
    for node, total in zip(nodes, totals, strict=True):
        yield str(total)
        if node.operation in PERPLEXITY:
            try:
                perplexity = math.exp(total.average)
            except OverflowError:
                perplexity = math.inf
            yield f"perplexity = {perplexity:.8f}"
