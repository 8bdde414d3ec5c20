"""Minibatches on their way through the compiled step.

Minibatches are collected and trained on together, as many as fit into one call of the compiled step, until something is
asked for that depends on them: a result, a parameter, a checkpoint. The order of the updates stays the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cntkpy.networks.compile.evaluate import start_values
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.nodes.host.kinds import is_failed, raise_failure
from cntkpy.readers.common.planned import State
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.log.totals import Totals
from cntkpy.trainers.loop import StepRunner, TrainedStack, not_a_number
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.context import Callback
from cntkpy.trainers.step.feed import CAPACITY, STACK_BYTES, Batcher, Placed, PlacedStack, Pushed
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.state_arrays import UpdateState
from cntkpy.trainers.step.step import CompiledStep

MAX_UNREAD = 2
"""Calls of the compiled step whose results are not read yet, at most."""


class ObjectiveStep:
    """The compiled step of an objective, and its feeds.

    Args:
        make: makes the step, when it is first needed, with the padded shapes of minibatches.
    """

    def __init__(self, make: Callable[[Buckets], CompiledStep]) -> None:
        self._make = make
        self._step: CompiledStep | None = None
        self._changing = 0
        """Number of constants that were known to change when the step was compiled."""
        self._feeds: dict[bool, Placed] = {}
        """By whether a stack has room for one minibatch only."""
        self._shared: Batcher | None = None

    @property
    def started(self) -> bool:
        """Return whether the compiled step was made."""
        return self._step is not None

    @property
    def step(self) -> CompiledStep:
        """Return the compiled step with its state."""
        if self._step is None:
            self._step = self._make(Buckets())
        return self._step

    def load(self, network: ValidatedNetwork, updates: UpdateState) -> None:
        """Take the values of a network's nodes, and the arrays of the update rule; nothing is on its way."""
        if self._changing == len(network.changing):
            self.step.begin(start_values(network), updates)
            return
        self._changing = len(network.changing)
        self.drop_feeds()
        self._step = self._make(self.step.buckets)
        self._step.reload_updates(updates)

    def reload(self, network: ValidatedNetwork) -> None:
        """Take the values of a network's nodes; nothing is on its way."""
        if self._changing == len(network.changing):
            self.step.reload(start_values(network))
        else:
            self.load(network, copy.deepcopy(self.step.updates()))

    def feed(self, source: Pushed, alone: bool, size: int) -> Placed:
        """Return the feed of minibatches that come alone, or of several; frames are padded to `size` samples."""
        if alone not in self._feeds:
            batcher = self.step.batcher(size, 1 if alone else CAPACITY, chosen=0)
            self._feeds[alone] = Placed(batcher.stacks(source, lambda number: False), self.step.place)
        return self._feeds[alone]

    def shared_feed(self, minibatch: Minibatch | None, size: int) -> Placed:
        """Return the feed of the next minibatch of all workers, of which this one has `minibatch`; None: nothing."""
        if self._shared is None:
            self._shared = self.step.batcher(size, 1, chosen=0)  # a block of local SGD begins with it
        source = Pushed([] if minibatch is None or not minibatch.num_sequences else [minibatch])
        return Placed(self._shared.stacks(source, lambda number: True), self.step.place)

    def drop_feeds(self) -> None:
        """Drop the feeds, so that others are made."""
        self._feeds, self._shared = {}, None


class StepQueue:
    """Collects minibatches, runs the compiled step, reads its results.

    Args:
        now: what is trained.

    Attributes:
        now: what is trained; everything is collected before it is replaced.
        changed: Whether parameters were trained since this was set to False.
        always_stacked: A single minibatch goes through the program for many; else it has a program of its own.
        size: Samples of the first minibatch, by which others are padded, after a restart as before; 0: none yet.
    """

    def __init__(self, now: ObjectiveStep) -> None:
        self.now = now
        self.changed = self.always_stacked = False
        self.size = 0
        self._source = Pushed()
        self._bytes = 0
        self._settings: EpochSettings | None = None
        self._runner = StepRunner(self._read)
        self._totals = self._last = Totals()

    @property
    def is_full(self) -> bool:
        """Return whether as much is collected as one call takes."""
        return len(self._source.waiting) >= CAPACITY or self._bytes > STACK_BYTES

    def add(self, minibatch: Minibatch, settings: EpochSettings, callbacks: Sequence[Callback] = ()) -> None:
        """Train on a minibatch, now or together with later ones.

        Args:
            minibatch: The minibatch.
            settings: Of the minibatch.
            callbacks: Get the minibatch before it is trained on, and now.
        """
        waiting = self._source.waiting
        if waiting and (
            callbacks
            or (settings is not self._settings and settings != self._settings)
            or waiting[-1].truncated != minibatch.truncated
        ):
            self.flush()
        self.changed = True
        self._settings = settings
        waiting.append(minibatch)
        self._bytes += minibatch.nbytes
        if callbacks:
            self.flush(callbacks)

    def flush(self, callbacks: Sequence[Callback] = ()) -> None:
        """Train on what was collected; its results are not waited for. `callbacks` get the only minibatch before."""
        waiting = self._source.waiting
        if not waiting:
            return
        alone = len(waiting) == 1 and not self.always_stacked
        feed, self._bytes = self.now.feed(self._source, alone, self._first_size(waiting[0])), 0
        try:
            for placed in feed:
                self._run(placed, callbacks)
        except BaseException:
            self._forget()
            raise

    def train_with_others(
        self, minibatch: Minibatch | None, settings: EpochSettings, renew: bool, callbacks: Sequence[Callback] = ()
    ) -> Iterator[int]:
        """Train on what all workers have; gives the samples of every minibatch when it is on its way.

        Args:
            minibatch: This worker's data; None: it has none.
            settings: Of the minibatch.
            renew: The workers train together in another way than before.
            callbacks: Get the minibatch before it is trained on.
        """
        self._settings = settings
        if renew:
            self.now.drop_feeds()
        for placed in self.now.shared_feed(minibatch, self._first_size(minibatch)):
            samples = int(placed.stack.sizes(False).sum())
            self._run(placed, callbacks)
            self.changed = True
            yield samples

    def _first_size(self, minibatch: Minibatch | None) -> int:
        self.size = self.size or max(1, minibatch.num_samples if minibatch is not None else 1)
        return self.size

    def _forget(self) -> None:
        """Drop what was collected."""
        self._source.waiting.clear()
        self._bytes = 0
        self.now.drop_feeds()

    def _run(self, placed: PlacedStack, callbacks: Sequence[Callback]) -> None:
        assert self._settings is not None
        self._runner.run(self.now.step, placed, self._settings, callbacks)
        self._runner.collect(but=MAX_UNREAD)

    def collect(self) -> tuple[Totals, Totals]:
        """Wait for all results; return the totals since the start, and those of the last minibatch."""
        self.flush()
        self._runner.collect()
        return self._totals, self._last

    def _read(self, trained: TrainedStack) -> None:
        values, samples = trained.values(), trained.stack.sizes(False)
        if is_failed():
            self._drop()
            raise_failure()
        bad = trained.not_finite(values)
        if bad is not None:
            node, criterion = bad.node(self.now.step), self.now.step.nodes[0].name
            self._drop()
            notes = [f"first node that is not finite: {node.name} = {node.operation}"] if node is not None else []
            intact = "parameters are as they were before that minibatch"
            where, bound = f"minibatch {bad.number}", "gradient_clipping_threshold_per_sample"
            raise not_a_number(criterion, where, bound, intact, notes)
        metrics = values[:, 1] if values.shape[1] > 1 else np.zeros(len(values))
        total = Totals.of_loss(float(values[:, 0].sum()), float(metrics.sum()), int(samples.sum()), len(values))
        self._totals = self._totals.plus(total)
        self._last = Totals.of_loss(float(values[-1, 0]), float(metrics[-1]), int(samples[-1]), 1)

    def _drop(self) -> None:
        """Drop results that are not read; training continues with what it had before."""
        self._runner.drop()
        self.now.step.forget()

    # ---- what a checkpoint keeps

    def state(self) -> State:
        """Return the position, JSON-able; everything was collected."""
        return {
            "totals": self._totals.numbers(),
            "last": self._last.numbers(),
            "done": self._runner.done,
            "size": self.size,
        }

    def restore(self, state: State) -> None:
        """Go to a position that `state` has returned; what was collected is dropped."""
        self._forget()
        self._runner, self.size = StepRunner(self._read, int(state["done"])), int(state.get("size", 0))
        self._totals, self._last = Totals.of_loss(*state["totals"]), Totals.of_loss(*state["last"])
