"""What a training does differently when several workers share it: who reads what, who writes, when they agree."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainers.parallel.communicator import Link
from trainers.parallel.placement import OneDevice
from trainers.parallel.plan import Plan, warn_of_quantisation
from trainers.parallel.process_group import Team
from trainers.parallel.reading import SharedReader

log = logging.getLogger("cntkpy.trainers")


@dataclass
class Crew:
    """The workers of a training. Without a team there is one process with one device.

    **Arguments:**

    - `team`: all workers.
    - `plan`: how they train together; `None`: each trains alone, all alike.
    - `precision`: "float" or "double".
    """

    team: Team | None = None
    plan: Plan | None = None
    precision: str = "float"
    _alone: OneDevice = field(default_factory=OneDevice)

    def __post_init__(self) -> None:
        self.link = self.team.link if self.team is not None else Link()
        several = self.team is not None and self.team.workers > 1
        self._plan = self.plan if several and self.plan is not None and self.plan.method != "none" else None
        self._together: Any = None
        self._told = False

    @property
    def main(self) -> bool:
        """Whether this process writes the files."""
        return self.link.main

    @property
    def evaluating(self) -> Team | None:
        """The team that shares the data of evaluations, if there are several processes."""
        return self.team if self.link.size > 1 else None

    def shares(self, reader: Any, always: bool = False) -> Any:
        """A reader that gives this process its part of the minibatches; `always`, not in parallel epochs only."""
        if self.link.size == 1:
            return reader
        given = self.plan.reads_share if self.plan is not None else None
        shared = SharedReader(reader, self.link.rank, self.link.size, given)
        shared.active = always
        return shared

    def start(self, trainer: Any, reader: Any, epoch: int) -> str:
        """Before an epoch: arrays and data go where they belong; returns what the log says of it."""
        plan = self._plan
        self._tell()
        if plan is None or not plan.parallel(epoch):
            self.leave(trainer, reader)
            return ""
        assert self.team is not None
        if self._together is None:
            warn_of_quantisation(plan, self.precision)
            self._together = plan.placement(self.team)
        self._place(trainer, reader, self._together)
        bits = 64 if self.precision == "double" else 32
        return plan.describe(self.team, bits, getattr(reader, "reads_share", False))

    def _tell(self) -> None:
        """Say once when workers and the section for them do not come together."""
        several = self.team is not None and self.team.workers > 1
        if self._plan is None and not self._told and self.team is not None:
            if several:
                log.warning(
                    "WARNING: there are %d workers, but SGD has no ParallelTrain section with a "
                    "parallelizationMethod: each of them trains on all data, for nothing.",
                    self.team.workers,
                )
            elif self.plan is not None and self.plan.method != "none":
                log.info("There is one worker: ParallelTrain has no effect.")
        self._told = True

    def together(self, slots: int, reader: Any) -> int:
        """The number of parallel sequences of a minibatch of which this process has read so many."""
        read = self.link.exchange(slots)
        shares = isinstance(reader, SharedReader) and reader.active and reader.reads_share
        return sum(read) if shares else max(read)

    def leave(self, trainer: Any, reader: Any) -> None:
        """Every process by itself, with all the data."""
        self._place(trainer, reader, self._alone)

    def _place(self, trainer: Any, reader: Any, placement: Any) -> None:
        if isinstance(reader, SharedReader):
            reader.active = placement is not self._alone
        if trainer.placement is not placement and not (
            isinstance(trainer.placement, OneDevice) and placement is self._alone
        ):
            trainer.place(placement, trainer.store())

    def write(self, files: Callable[[], None]) -> None:
        """Let the main process write or remove files; the others wait for it."""
        if self.main:
            files()
        self.link.barrier()

    def settings(self) -> dict[str, Any]:
        """What a state inside an epoch depends on."""
        if self._plan is None:
            return {}
        assert self.team is not None
        return {"workers": [self.link.size, self.team.workers], "method": self._plan.method}

    def agree(self, *wishes: bool) -> list[bool]:
        """What any of the processes wishes."""
        return [any(column) for column in zip(*self.link.exchange([bool(wish) for wish in wishes]), strict=True)]

    def gathered(self, state: dict[str, Any]) -> dict[str, Any]:
        """The states of all readers as one."""
        return state if self.link.size == 1 else {"workers": self.link.exchange(state)}

    def own(self, state: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `gathered`."""
        return state["workers"][self.link.rank] if "workers" in state and self.link.size > 1 else state
