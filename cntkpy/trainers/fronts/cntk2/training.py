"""The parameters of a program while a trainer changes them, and the steps that do it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary, ref

import numpy as np

from cntkpy.readers.common.planned import State
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.checkpoints.checkpoint import PROGRAM, RATE_OUTSIDE, Arrays, Checkpoint, not_a_checkpoint
from cntkpy.trainers.fronts.cntk2.objective import Objective
from cntkpy.trainers.fronts.cntk2.queue import ObjectiveStep, StepQueue
from cntkpy.trainers.fronts.cntk2.sized import SizedObjectives, renamed
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.step.strategy import Strategy


class Training:
    """Trains objectives that share parameters, and holds the newest values of these (`cells.Holder`).

    Args:
        objectives: one for each combination of sizes that data have.
        strategy: how a step begins to train.

    Attributes:
        objective: the one that is trained; the last data that were tested may be of another.
        queue: the minibatches on their way through its compiled step.
        user_learners: see `Objective.user_learners`.
    """

    def __init__(self, objectives: SizedObjectives, strategy: Strategy) -> None:
        self._objectives, self._strategy = objectives, strategy
        self._steps: WeakKeyDictionary[Objective, ObjectiveStep] = WeakKeyDictionary()
        self.objective = objectives.now
        self.user_learners = self.objective.user_learners()
        self.queue = StepQueue(self._step_of(self.objective))

    def _step_of(self, objective: Objective) -> ObjectiveStep:
        if objective not in self._steps:
            self._steps[objective] = ObjectiveStep(partial(_compiled, ref(objective), self._strategy))
        return self._steps[objective]

    def use(self, minibatch: Minibatch | None) -> None:
        """Train the network of the sizes of a minibatch from now on."""
        if minibatch is not None and self._objectives.is_free:
            self._objectives.fit(minibatch)
            self._train_on(self._objectives.now)

    def _train_on(self, objective: Objective) -> None:
        """Train another network of the same parameters, with all that training has changed so far."""
        previous = self.objective
        if objective is previous:
            return
        arrays: Arrays = {}
        if self.queue.now.started:
            self.hold()
            self.queue.collect()
            arrays = renamed(self.queue.now.step.snapshot(), previous.names(), objective.names())
            self.release()
        self.queue.now = self._step_of(objective)
        self.objective, self.user_learners = objective, objective.user_learners()
        if not arrays:
            return
        objective.model.load()
        self.queue.now.load(objective.model.network, {})
        fresh = self.queue.now.step.snapshot()
        fresh |= {path: array for path, array in arrays.items() if path in fresh and fresh[path].shape == array.shape}
        self.queue.now.step.restore(fresh)
        for cell in objective.cells:
            cell.holder = self

    def hold(self) -> None:
        """Become the holder of the parameters: what has their newest values."""
        cells = self.objective.cells
        stale = [cell for cell in cells if cell.holder is not self]
        if self.objective.model.has_old_options:
            self.release()
        elif not stale:
            return
        for cell in stale:
            cell.release()
        self.objective.model.load()
        if self.queue.now.started:
            self.queue.now.reload(self.objective.model.network)
        for cell in cells:
            cell.holder = self

    def release(self) -> None:
        """Put the values of now into the cells of the parameters."""
        self.queue.flush()
        if self.queue.changed and self.queue.now.started:
            self.queue.changed = False
            self.objective.model.keep(self.queue.now.step.trained_values())

    def _with_rates(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a checkpoint of version 0.1 with velocities that have the learning rate in them."""
        arrays = dict(arrays)
        for name, learner in self.objective.learner_of.items():
            path = f"update\n{name}\nv"
            if learner.name in ("momentum_sgd", "nesterov") and path in arrays:
                arrays[path] = np.asarray(learner.scalars()[0] * arrays[path], arrays[path].dtype)
        return arrays

    def finish_epoch(self) -> None:
        """Let all workers have the same parameters."""
        if self.queue.now.started:
            self.queue.now.step.finish_epoch()
            self.queue.changed = True

    # ---- checkpoints

    def snapshot(self) -> tuple[State, Arrays]:
        """Return the values and arrays of a checkpoint."""
        self.hold()
        self.queue.collect()
        values = {
            **self.queue.state(),
            "pieces": self.objective.arguments.pieces.state,
            "sizes": [list(size) for size in self.objective.sizes.values()],
            "shapes": self.queue.now.step.buckets.to_json(),
        }
        return values, self.queue.now.step.snapshot()

    def restore(self, path: str, checkpoint: Checkpoint, choose: Callable[[CompiledStep], object]) -> None:
        """Resume from a checkpoint, whose arrays are emptied.

        Args:
            path: of the checkpoint.
            checkpoint: the checkpoint.
            choose: lets the step use the strategy that the arrays are of.

        Raises:
            UserError: it is that of another network.
        """
        values, arrays = checkpoint.values, checkpoint.arrays
        self._objectives.restore(values.get("sizes", []))
        self._train_on(self._objectives.now)
        self.hold()
        network = self.objective.model.network
        stored = {name.partition("\n")[2] for name in arrays if name.startswith("state\n")}
        network.changing.update(node.name for node in network.inlined() if node.name in stored)
        self.queue.now.load(network, {})
        step = self.queue.now.step
        choose(step)
        if _shapes(step.snapshot()) != _shapes(arrays):
            raise not_a_checkpoint(path, "it is that of another network, or of another learner", PROGRAM)
        self.queue.restore(values)
        step.restore(self._with_rates(arrays) if values.get(RATE_OUTSIDE) else arrays, values["shapes"])
        self.objective.arguments.pieces.state = values.get("pieces")
        self.queue.changed = True


def _compiled(objective: ref[Objective], strategy: Strategy, buckets: Buckets) -> CompiledStep:
    """Return the step of an objective, which lives as long as the sizes of its data are remembered."""
    known = objective()
    assert known is not None
    return known.compiled_step(strategy, buckets)


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    """Return by name the shapes of the arrays that belong to parameters themselves."""
    return {name: array.shape for name, array in arrays.items() if "/" not in name}
