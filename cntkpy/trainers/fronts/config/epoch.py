"""The criterion of an epoch, which has to be finite, and the data of a trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.hooks import Hook, Interval, Running
from cntkpy.trainers.log import text
from cntkpy.trainers.loop import not_a_number
from cntkpy.trainers.step.not_finite import NotFinite
from cntkpy.trainers.step.step import CompiledStep


@dataclass
class FiniteCriterion(Hook):
    """Stops at a criterion that is not finite: in the line that shows it, else after the stack.

    Args:
        step: The compiled step.
        epoch: Index of the epoch.
    """

    step: CompiledStep
    epoch: int

    def on_interval(self, interval: Interval) -> None:
        """Check the criterion of an interval."""
        check_criterion(interval.totals.rows(self.step.nodes)[0], self.epoch, interval.not_finite, self.step)

    def on_stack(self, run: Running) -> None:
        """Check the criterion of the epoch so far."""
        if run.position.not_finite is not None and run.frequency.every is None:
            totals = run.position.totals.rows(self.step.nodes)
            check_criterion(totals[0], self.epoch, run.position.not_finite, self.step)


def check_criterion(total: text.Total, epoch: int, bad: NotFinite | None, step: CompiledStep) -> None:
    """Stop at a criterion that is not finite.

    Raises:
        UserError: A criterion is infinite or not a number; says in which sequences and at which node.
    """
    if math.isfinite(total.value):
        return
    notes: list[str] = []
    where = f"epoch {epoch + 1}"
    if bad is not None:
        where += f", minibatch {bad.number}"
        keys = [str(key) for key in bad.minibatch.keys]
        if keys:
            further = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
            notes.append(f"sequences in that minibatch: {', '.join(keys[:8])}{further}")
        node = bad.node(step)
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
