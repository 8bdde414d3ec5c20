"""The state of a training that changes from epoch to epoch; a checkpoint holds all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cntkpy.readers.common.planned import State
from cntkpy.trainers.checkpoints.checkpoint import EPOCH, Arrays, Checkpoint
from cntkpy.trainers.fronts.config.best import BestModels

if TYPE_CHECKING:
    from cntkpy.trainers.schedules.rate_control import RateControl


@dataclass
class TrainingState:
    """The numbers of a training after an epoch.

    Attributes:
        control: The control of the rate.
        best_models: The best model by each criterion.
        adapted_size: The minibatch size that was adapted last; sizes that are listed do not set it.
        samples_seen: Over all epochs.
        rate: Per sample, after the adjustments of the last epoch; None: not known yet.
        minibatch_size: That of the last epoch; 0: none yet.
        found_rates: Rates that searches have found.
        search_ratio: The rate that the last search has found by the rate before.
        best: The number of epochs after which the criterion was best, and the criterion then.
    """

    control: RateControl
    best_models: BestModels
    adapted_size: int
    samples_seen: int = 0
    rate: float | None = None
    minibatch_size: int = 0
    found_rates: list[float] = field(default_factory=list[float])
    search_ratio: float = 1.0
    best: tuple[int, float] | None = None

    def observe(self, done: int, value: float) -> None:
        """Remember the epoch with the smallest value; `done`: the number of epochs."""
        if self.best is None or value < self.best[1]:
            self.best = done, value

    def checkpoint(self, updates: dict[str, Arrays], reader: State, last_slots: int, shapes: object) -> Checkpoint:
        """Return the state as a checkpoint.

        Args:
            updates: By parameter, the arrays of the update rule.
            reader: Position of the reader.
            last_slots: Parallel sequences of the last minibatch.
            shapes: The padded shapes in use.
        """
        schedule = {
            "found_rates": self.found_rates,
            "search_ratio": self.search_ratio,
            "adapted_size": self.adapted_size,
            "last_slots": last_slots,
            "best": self.best,
            "best_models": self.best_models.state(),
            "shapes": shapes,
            "control": self.control.state(),
        }
        values = {
            "samples_seen": self.samples_seen,
            "rate": self.rate,
            "reference": self.control.reference,
            "minibatch_size": self.minibatch_size,
            "reader": reader,
            "schedule": schedule,
        }
        return Checkpoint(EPOCH, values, Checkpoint.update_paths(updates))

    def roll_back(self, checkpoint: Checkpoint) -> None:
        """Take the numbers of an earlier epoch; what the control and searches have learned since is kept."""
        values = checkpoint.values
        self.samples_seen, self.rate = values["samples_seen"], values["rate"]
        self.control.reference = values["reference"]
        self.minibatch_size = self.adapted_size = values["minibatch_size"]

    def resume(self, checkpoint: Checkpoint) -> State:
        """Take everything from a checkpoint; return the values of its schedule, {} in one of an early version."""
        self.roll_back(checkpoint)
        schedule: dict[str, Any] = checkpoint.values["schedule"]
        if schedule:
            self.found_rates, self.search_ratio = schedule["found_rates"], schedule["search_ratio"]
            self.control.restore(schedule["control"])
            self.adapted_size = schedule.get("adapted_size", self.minibatch_size)
            if (best := schedule.get("best")) is not None:
                self.best = int(best[0]), float(best[1])
            self.best_models.restore(schedule.get("best_models", {}))
        return schedule
