"""A pass of training over the data of an epoch, with its progress lines."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.networks.graph.network import Node
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.log import text
from cntkpy.trainers.log.events import event, level
from cntkpy.trainers.log.reporting import NoProgress, NoTracing, Progress, Tracing
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.loop import NotFinite, StepRunner, TrainedStack, not_a_number
from cntkpy.trainers.monitors.details import Details
from cntkpy.trainers.step.ahead import StacksAhead
from cntkpy.trainers.step.batching import CAPACITY
from cntkpy.trainers.step.context import Callback
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

log = logging.getLogger("cntkpy.trainers")


@dataclass
class EpochView:
    """What is shown of an epoch while it runs.

    Attributes:
        epoch, epochs: 0-based number of the epoch, and how many there are.
        lines: whether progress lines are logged.
        every, first: minibatches between lines (0: none), and minibatches at the start with a line of their own.
        samples: size of the epoch, 0 if it is not known.
        shown_samples: set to what CNTK takes for the size of later epochs: the number of minibatches up to the
            last line times the mean number of samples in those of that line.
        bar: size of the epoch for the progress bar, `None` if it is not known.
        progress, tracing: report how far the epoch is.
        prefix: what is before a line, in the trials of a search.
        details: what is logged after every progress line, if anything.
        perf: log where the time of every minibatch goes.
        callbacks: get every minibatch before it is trained on.
        not_finite: set to the first minibatch whose criterion is not a number.
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
    details: Details | None = None
    perf: bool = False
    callbacks: Sequence[Callback] = ()
    not_finite: NotFinite | None = None

    def is_due(self, number: int) -> bool:
        """Return whether results are wanted after minibatch `number` (from 1)."""
        return number <= self.first or (self.every > 0 and number % self.every == 0)

    def timed(self, stacks: Iterator[Stack]) -> Iterator[Stack]:
        """Yield the stacks; the time that they are waited for is a detail."""
        return stacks if self.details is None else self.details.timed(stacks)

    def log_details(self, trainer: CompiledStep, stack: Stack, number: int) -> None:
        """Log the details, if they are wanted, when `number` minibatches are done, the last of them that of a stack."""
        if self.details is not None:
            last = len(stack.minibatches) - 1
            self.details.log(trainer.at(stack, last, number), last)


@dataclass
class Position:
    """How far an epoch is.

    Attributes:
        totals, interval: sums of the nodes since the start of the epoch, and since the last progress line.
        done: minibatches trained on.
        shown: minibatches up to that line.
        not_finite: the first minibatch whose criterion is not a number, once there is one.
    """

    totals: Totals
    interval: Totals
    done: int = 0
    shown: int = 0
    not_finite: NotFinite | None = None

    @classmethod
    def start(cls, nodes: Sequence[Node]) -> "Position":
        """Return the start of an epoch."""
        return cls(Totals.start(nodes), Totals.start(nodes))

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "done": self.done,
            "shown": self.shown,
            "sums": self.totals.to_json(),
            "interval": self.interval.to_json(),
        }

    @classmethod
    def from_json(cls, nodes: Sequence[Node], saved: dict[str, Any]) -> "Position":
        """Return the position that `to_json` has described."""
        totals, interval = (Totals.from_json(nodes, saved[key]) for key in ("sums", "interval"))
        return cls(totals, interval, saved["done"], saved["shown"])


Between = Callable[[Callable[[], Position], int], None]


def _capacity(every: int) -> int:
    """Minibatches of a stack, of which all room is copied: those between two lines (0: none) in equal parts."""
    return -(-every // -(-every // CAPACITY)) if every else CAPACITY


T = TypeVar("T")


def _saved_when_stopped(
    trained: Iterator[T],
    between: Between | None,
    collected: Callable[[], Position],
    done: Callable[[], int],
) -> Iterator[T]:
    """Yield what was trained; where reading or compiling is stopped, save the state after the last stack."""
    try:
        yield from trained
    except Stopped:
        if between is not None:
            between(collected, done())
        raise


def train_epoch(
    trainer: CompiledStep,
    data: Iterator[Minibatch],
    minibatch_size: int,
    settings: EpochSettings,
    view: EpochView,
    position: Position | None = None,
    between: Between | None = None,
) -> list[text.Total]:
    """Train on all minibatches of `data`; returns the totals of the criterion and of the evaluation nodes.

    Results are fetched one stack late, so that reading and computing overlap, except where a line is due. Where a
    stack is copied to the device, the next is read and on its way before any results are waited for that the device
    still computes, see `cntkpy.trainers.step.ahead`.

    Args:
        trainer, data, minibatch_size, settings, view: what is trained, on what, how, and what is shown.
        position: where an epoch that is resumed stands; `data` begins with the minibatch after it.
        between: called after every stack with a function that waits for all results and gives the position, and the
            number of minibatches done.

    Raises:
        UserError: where the criterion is not a number.
    """
    if position is None:
        trainer.forget()
    nodes = trainer.nodes
    at = position or Position.start(nodes)
    one_by_one = view.perf or bool(view.callbacks)
    copies = trainer.strategy.copies and not one_by_one
    batcher = trainer.batcher(minibatch_size, 1 if one_by_one else _capacity(view.every if copies else 0))

    def read(trained: TrainedStack) -> None:
        values, stack = trained.values(), trained.stack
        at.not_finite = at.not_finite or trained.not_finite(values)
        added = values, int(stack.samples.sum()), stack.counts
        at.totals, at.interval = at.totals.add(nodes, *added), at.interval.add(nodes, *added)

    runner = StepRunner(read, at.done)

    def collected() -> Position:
        runner.collect()
        return at

    def run(stack: Stack) -> tuple[TrainedStack, float]:
        """Train on a stack; return also when that began."""
        before = time.perf_counter()
        return runner.run(trainer, stacks.take_placed(stack), settings, view.callbacks), before

    view.progress.start(f"epoch {view.epoch + 1} of {view.epochs}", view.bar)
    waited = began = time.perf_counter()
    first = at.done
    made = view.timed(batcher.stacks(data, lambda number: view.is_due(first + number)))
    stacks = StacksAhead(made, trainer.place, early=copies)
    for trained, before in _saved_when_stopped(map(run, stacks), between, collected, lambda: at.done):
        stack, at.done = trained.stack, runner.done
        if view.perf:
            trained.values()
            after = time.perf_counter()
            sizes = stack.layouts[0].num_samples, int(stack.samples[0])
            log.info("%s", text.perf_trace(*sizes, before - waited, after - before))
            waited = after
        if view.is_due(at.done) and not one_by_one:
            batcher.prepare()
        stacks.read()
        runner.collect(but=1)
        stacks.place()
        runner.collect(but=0 if view.is_due(at.done) else 1)
        view.progress.update(at.totals.samples, str(at.interval.rows(nodes)[0]))
        if view.is_due(at.done):
            totals = at.interval.rows(nodes)
            now = time.perf_counter()
            log.log(
                level(view.lines),
                "%s%s",
                view.prefix,
                _line(view, minibatch_size, at.shown + 1, at.done, totals, now - began),
                extra=event(
                    "progress",
                    totals,
                    epoch=view.epoch + 1,
                    epochs=view.epochs,
                    minibatches=[at.shown + 1, at.done],
                    seconds=now - began,
                    **({"trial": view.prefix.strip(" :")} if view.prefix else {}),
                ),
            )
            check_criterion(totals[0], view.epoch, at.not_finite, trainer)
            view.log_details(trainer, stack, at.done)
            view.shown_samples = at.done * at.interval.samples // (at.done - at.shown)
            if view.samples:
                view.tracing.point(view.epoch + at.done * minibatch_size / view.samples, totals[0].average)
            at.shown, began, at.interval = at.done, time.perf_counter(), Totals.start(nodes)
        if at.not_finite is not None and not view.every:  # else the line that is due shows it
            check_criterion(at.totals.rows(nodes)[0], view.epoch, at.not_finite, trainer)
        if between is not None:
            between(collected, at.done)
    view.progress.finish()
    totals = collected().totals.rows(nodes)
    view.not_finite = at.not_finite
    return totals


def check_criterion(total: text.Total, epoch: int, bad: NotFinite | None, trainer: CompiledStep) -> None:
    """Stop where a criterion is not finite.

    Raises:
        UserError: a criterion is infinite or not a number: where, in which sequences, at which node.
    """
    if math.isfinite(total.value):
        return
    notes: list[str] = []
    where = f"epoch {epoch + 1}"
    if bad is not None:
        where += f", minibatch {bad.number}"
        keys = [str(key) for key in bad.minibatch.keys]
        if keys:
            more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
            notes.append(f"sequences in that minibatch: {', '.join(keys[:8])}{more}")
        node = bad.node(trainer)
        if node is not None:
            since = " (since the update before)" if node.is_parameter else ""
            notes.append(f"first node that is not finite: {node.name} = {node.operation}{since}")
    intact = "the models of earlier epochs are intact"
    raise not_a_number(total.name, where, "clippingThresholdPerSample", intact, notes)


def up_to(data: Iterator[Minibatch], samples: int) -> Iterator[Minibatch]:
    """Yield the minibatches until more than that many samples have passed; as in CNTK, one more is read then."""
    total = 0
    for minibatch in data:
        yield minibatch
        total += minibatch.num_samples
        if total > samples:
            next(data, None)
            return


def _line(view: EpochView, minibatch_size: int, first: int, last: int, totals: list[text.Total], seconds: float) -> str:
    percent = None
    if view.samples:
        minibatches = view.samples / minibatch_size
        percent = (100 * last / minibatches, text.percent_digits(minibatches, last - first + 1))
    return text.progress(view.epoch + 1, view.epochs, first, last, percent, totals, seconds, totals[0].count)
