"""Evaluation of a network on data: sums of criteria over all samples (`test`, `cv`, validation while training)."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import Node
from cntkpy.networks.graph.network import ValidatedNetwork as Network
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event
from cntkpy.trainers.log.nodes import log_shapes
from cntkpy.trainers.log.reporting import NoProgress, Progress, Tracing
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step.ahead import StacksAhead
from cntkpy.trainers.step.batching import CAPACITY
from cntkpy.trainers.step.context import Callback
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
    """The minibatches of one epoch.

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


def evaluate(
    network: Network,
    nodes: Sequence[Node],
    reader: MinibatchReader,
    minibatch_size: int,
    epoch_samples: int | None = None,
    *,
    show_every: int | None = None,
    show_first: int = 0,
    progress: Progress | None = None,
    tracing: Tracing | None = None,
    callbacks: Sequence[Callback] = (),
    trace_level: int = 0,
    evaluator: Evaluator | None = None,
    group: ProcessGroup | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> list[text.Total]:
    """Evaluate nodes on the data of a reader and log the results in CNTK's lines.

    Args:
        network: The network.
        nodes: The nodes to evaluate; each must have one element per sample.
        reader: Reads the data, from their beginning.
        minibatch_size: In samples.
        epoch_samples: Samples to evaluate; None: one pass over the data.
        show_every: Minibatches between intermediate lines; 0: only one at the end, for what no line has
            shown; None: not that one either.
        show_first: Minibatches at the start that get a line of their own.
        progress: Shows how many samples are done.
        tracing: Gets the number of minibatches read.
        callbacks: Get every minibatch before it is evaluated.
        trace_level: From 2 on, every compilation is logged, from 3 on the nodes and their shapes.
        evaluator: One made before for these nodes, which need not be compiled again.
        group: The processes that share the minibatches; `reader` gives each its part.
        stop: Whether the run should end.

    Returns:
        One `Total` per node.

    Raises:
        Stopped: `stop` says so, in this process or in another one of the group.
    """
    progress = progress or NoProgress()
    if evaluator is None:
        log_shapes(network, nodes, trace_level)
        evaluator = Evaluator(network, nodes, callbacks=callbacks, trace_level=trace_level)
    else:
        evaluator.load(network)
    batcher = evaluator.batcher(minibatch_size, 1 if evaluator.callbacks else CAPACITY)
    if group is not None:
        batcher = SharedBatcher.like(batcher, group)

    def rows(totals: Totals) -> list[text.Total]:
        return (totals if group is None else totals.joint(nodes, group.communicator.total)).rows(nodes)

    def is_due(number: int) -> bool:
        return number <= show_first or (bool(show_every) and number % show_every == 0)

    totals = interval = Totals.start(nodes)
    count = shown = 0
    progress.start("evaluating", epoch_samples)
    made = batcher.stacks(minibatches(reader, minibatch_size, 0, epoch_samples, tracing, stop), is_due)
    early = evaluator.copies and group is None and not evaluator.callbacks
    stacks = StacksAhead(made, evaluator.place, early)
    for stack in stacks:
        size = len(stack.minibatches)
        results = evaluator.run(stacks.take_placed(stack))
        stacks.read()
        stacks.place()
        values = np.asarray(results, np.float64)[:size]
        added = values, int(stack.samples.sum()), stack.counts
        totals, interval = totals.add(nodes, *added), interval.add(nodes, *added)
        count += size
        progress.update(totals.samples)
        if is_due(count):
            log.info("%s", _interval(rows(interval), shown + 1, count))
            shown, interval = count, Totals.start(nodes)
    if show_every is not None and count > shown:
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
