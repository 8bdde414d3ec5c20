"""What a training does differently when several workers share it: who reads what, who writes, when they agree."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainers.parallel.communicator import Communicator
from trainers.parallel.placement import OneDevice
from trainers.parallel.plan import Plan, warn_of_quantisation
from trainers.parallel.process_group import ProcessGroup
from trainers.parallel.reading import SharedReader

log = logging.getLogger("cntkpy.trainers")


@dataclass
class ParallelTraining:
    """The workers of a training. Without a group there is one process with one device.

    **Arguments:**

    - `group`: all workers.
    - `plan`: how they train together; `None`: each trains alone, all alike.
    - `precision`: "float" or "double".
    """

    group: ProcessGroup | None = None
    plan: Plan | None = None
    precision: str = "float"
    _alone: OneDevice = field(default_factory=OneDevice)

    def __post_init__(self) -> None:
        self.communicator = self.group.communicator if self.group is not None else Communicator()
        several = self.group is not None and self.group.workers > 1
        self._plan = self.plan if several and self.plan is not None and self.plan.method != "none" else None
        self._together: Any = None
        self._told = False

    @property
    def main(self) -> bool:
        """Whether this process writes the files."""
        return self.communicator.main

    @property
    def evaluating(self) -> ProcessGroup | None:
        """The group that shares the data of evaluations, if there are several processes."""
        return self.group if self.communicator.size > 1 else None

    def shares(self, reader: Any, always: bool = False) -> Any:
        """A reader that gives this process its part of the minibatches; `always`, not in parallel epochs only."""
        if self.communicator.size == 1:
            return reader
        given = self.plan.reads_share if self.plan is not None else None
        shared = SharedReader(reader, self.communicator.rank, self.communicator.size, given)
        shared.active = always
        return shared

    def start(self, trainer: Any, reader: Any, epoch: int) -> str:
        """Before an epoch: arrays and data go where they belong; returns what the log says of it."""
        plan = self._plan
        self._tell()
        if plan is None or not plan.parallel(epoch):
            self.leave(trainer, reader)
            return ""
        assert self.group is not None
        if self._together is None:
            warn_of_quantisation(plan, self.precision)
            self._together = plan.placement(self.group)
        self._place(trainer, reader, self._together)
        bits = 64 if self.precision == "double" else 32
        return plan.describe(self.group, bits, getattr(reader, "reads_share", False))

    def _tell(self) -> None:
        """Say once when workers and the section for them do not come together."""
        several = self.group is not None and self.group.workers > 1
        if self._plan is None and not self._told and self.group is not None:
            if several:
                log.warning(
                    "WARNING: there are %d workers, but SGD has no ParallelTrain section with a "
                    "parallelizationMethod: each of them trains on all data, for nothing.",
                    self.group.workers,
                )
            elif self.plan is not None and self.plan.method != "none":
                log.info("There is one worker: ParallelTrain has no effect.")
        self._told = True

    def together(self, slots: int, reader: Any) -> int:
        """The number of parallel sequences of a minibatch of which this process has read so many."""
        read = self.communicator.exchange(slots)
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
        self.communicator.barrier()

    def settings(self) -> dict[str, Any]:
        """What a state inside an epoch depends on."""
        if self._plan is None:
            return {}
        assert self.group is not None
        return {"workers": [self.communicator.size, self.group.workers], "method": self._plan.method}

    def agree(self, *wishes: bool) -> list[bool]:
        """What any of the processes wishes."""
        return [
            any(column) for column in zip(*self.communicator.exchange([bool(wish) for wish in wishes]), strict=True)
        ]

    def gathered(self, state: dict[str, Any]) -> dict[str, Any]:
        """The states of all readers as one."""
        return state if self.communicator.size == 1 else {"workers": self.communicator.exchange(state)}

    def own(self, state: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `gathered`."""
        return state["workers"][self.communicator.rank] if "workers" in state and self.communicator.size > 1 else state
