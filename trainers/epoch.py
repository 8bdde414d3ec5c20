"""One pass of training over the data of an epoch, with its progress lines."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cntk_config.diagnostics import UserError
from networks.network import Node
from readers.minibatch import Minibatch
from trainers import text
from trainers.feed import CAPACITY, Feeder
from trainers.reporting import NoProgress, NoTracing, Progress, Tracing
from trainers.step import EpochSettings, Trainer

log = logging.getLogger("cntkpy.trainers")


@dataclass
class EpochView:
    """What is shown of an epoch while it runs.

    **Arguments:**

    - `epoch`, `epochs`: 0-based number of the epoch, and how many there are.
    - `lines`: whether progress lines are logged.
    - `every`, `first`: minibatches between lines (0: none), and minibatches at the start with a line of their own.
    - `samples`: size of the epoch, 0 if it is not known.
    - `shown_samples`: set to what the original takes for the size of later epochs: the number of minibatches up to
      the last line times the samples in the last of them.
    - `bar`: size of the epoch for the progress bar, `None` if it is not known.
    - `progress`, `tracing`: told how far the epoch is.
    - `prefix`: what stands before a line, in the trials of a search.
    - `perf`: log where the time of every minibatch goes.
    """

    epoch: int
    epochs: int
    lines: bool = False
    every: int = 0
    first: int = 0
    samples: int = 0
    shown_samples: int = 0
    bar: int | None = None
    progress: Progress = field(default_factory=NoProgress)
    tracing: Tracing = field(default_factory=NoTracing)
    prefix: str = ""
    perf: bool = False

    def is_due(self, number: int) -> bool:
        """Whether results are wanted after minibatch `number` (from 1)."""
        return number <= self.first or (self.every > 0 and number % self.every == 0)


def train_epoch(
    trainer: Trainer, data: Iterator[Minibatch], size: int, settings: EpochSettings, view: EpochView
) -> list[text.Total]:
    """Train on all minibatches of `data`; returns the totals of the criterion and of the evaluation nodes.

    Results are fetched one stack late, so that reading and computing overlap, except where a line is due.

    **Raises** a `UserError` where the criterion is not a number.
    """
    one_by_one = view.perf or bool(trainer.watchers)
    trainer.forget()
    feeder = Feeder(trainer.inputs, trainer.network.precision, size, trainer.shapes, 1 if one_by_one else CAPACITY)
    sums = _Sums(trainer.nodes)
    interval = _Sums(trainer.nodes)
    shown, done, began = 0, 0, time.perf_counter()
    waiting: list[Callable[[], None]] = []
    view.progress.start(f"epoch {view.epoch + 1} of {view.epochs}", view.bar)
    read = began
    for group in feeder.groups(data, view.is_due):
        before = time.perf_counter()
        results = trainer.run(group, settings, done)
        done += len(group.minibatches)
        if view.perf:
            np.asarray(results)  # waits for it
            after = time.perf_counter()
            log.info("%s", text.perf_trace(int(group.samples[0]), before - read, after - before))
            read = after
        waiting.append(_collector(results, group.samples, sums, interval))
        while len(waiting) > (0 if view.is_due(done) else 1):
            waiting.pop(0)()
        view.progress.update(sums.samples, str(interval.totals()[0]))
        if view.is_due(done):
            totals = interval.totals()
            now = time.perf_counter()
            if view.lines:
                log.info("%s%s", view.prefix, _line(view, size, shown + 1, done, totals, now - began))
            check_criterion(totals[0], view.epoch, done)
            view.shown_samples = done * int(group.samples[-1])
            if view.samples:
                view.tracing.point(view.epoch + done * size / view.samples, totals[0].average)
            shown, began, interval = done, now, _Sums(trainer.nodes)
    for collect in waiting:
        collect()
    view.progress.finish()
    return sums.totals()


def check_criterion(total: text.Total, epoch: int, minibatch: int | None = None) -> None:
    """**Raises** a `UserError` if a criterion is infinite or not a number."""
    if math.isfinite(total.value):
        return
    where = f"epoch {epoch + 1}" + (f", minibatch {minibatch} or shortly before" if minibatch else "")
    raise UserError(
        f"the training criterion '{total.name}' is not a number ({where})",
        hint="lower the learning rate, or bound gradients with clippingThresholdPerSample; "
        "the models of earlier epochs are intact",
        kind="NotANumber",
    )


def up_to(data: Iterator[Minibatch], samples: int) -> Iterator[Minibatch]:
    """The minibatches of `data` until more than that many samples have passed."""
    total = 0
    for minibatch in data:
        yield minibatch
        total += minibatch.num_samples
        if total > samples:
            return


def _line(view: EpochView, size: int, first: int, last: int, totals: list[text.Total], seconds: float) -> str:
    percent = None
    if view.samples:
        minibatches = view.samples / size
        percent = (100 * last / minibatches, text.percent_digits(minibatches, last - first + 1))
    return text.progress(view.epoch + 1, view.epochs, first, last, percent, totals, seconds, totals[0].count)


class _Sums:
    """Sums of the nodes' values, in double precision whatever the network computes in."""

    def __init__(self, nodes: Sequence[Node]):
        self._nodes = nodes
        self._values = np.zeros(len(nodes))
        self.samples = 0

    def add(self, values: np.ndarray, samples: int) -> None:
        self._values += values
        self.samples += samples

    def totals(self) -> list[text.Total]:
        pairs = zip(self._nodes, self._values, strict=True)
        return [text.Total(node.name, float(value), self.samples) for node, value in pairs]


def _collector(results: object, samples: np.ndarray, *targets: _Sums) -> Callable[[], None]:
    """A function that waits for the results (capacity, nodes) of a stack and adds them to the targets."""

    def collect() -> None:
        values = np.asarray(results, np.float64)[: len(samples)].sum(axis=0)
        for target in targets:
            target.add(values, int(samples.sum()))

    return collect
