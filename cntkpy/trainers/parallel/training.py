"""The parallel part of a training: shares of the data, files, agreements, the strategy."""

import gc
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.common.planned import State
from cntkpy.readers.contracts import MinibatchReader
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.parallel.communicator import Communicator
from cntkpy.trainers.parallel.plan import Plan, warn_of_quantisation
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.parallel.reading import SharedReader
from cntkpy.trainers.step.reading import WrappedReader
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.step.strategy import Strategy

log = logging.getLogger("cntkpy.trainers")

STOP_CHECK_MINIBATCHES = 32
"""Minibatches after which processes ask each other whether to stop, while each reads all the data by itself."""


@dataclass
class ParallelTraining:
    """The part of a process in a training. Without a process group there is one process with one device.

    Args:
        group: all processes and their devices.
        plan: how they train together; None: each trains alone, all alike.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
    """

    group: ProcessGroup | None = None
    plan: Plan | None = None
    precision: str = "float"
    alone: Strategy = field(default_factory=Strategy)
    """The strategy of epochs that every process trains by itself."""

    def __post_init__(self) -> None:
        self.communicator = self.group.communicator if self.group is not None else Communicator()
        several = self.group is not None and self.group.workers > 1
        self._plan = self.plan if several and self.plan is not None and self.plan.method != "none" else None
        self._shared: Strategy | None = None
        self._trains_together = False
        self._warned = False

    @property
    def main(self) -> bool:
        """Return whether this process writes the files."""
        return self.communicator.main

    @property
    def stops_while_reading(self) -> bool:
        """Return whether training may be stopped while a minibatch is read.

        Not so where several processes read the same data, each for itself: they have to stop at the same minibatch.
        """
        return self.communicator.size == 1 or self._trains_together

    @property
    def evaluating(self) -> ProcessGroup | None:
        """Return the process group that shares the data of evaluations, if there are several processes."""
        return self.group if self.communicator.size > 1 else None

    def part_of(self, reader: MinibatchReader, always: bool = False) -> WrappedReader:
        """Return a reader of this process's part of the minibatches; `always`: not only in epochs trained together."""
        if self.communicator.size == 1:
            return reader if isinstance(reader, WrappedReader) else WrappedReader(reader)
        reads_share = self.plan.reads_share if self.plan is not None else None
        shared = SharedReader(reader, self.communicator.rank, self.communicator.size, reads_share)
        shared.active = always
        return shared

    def start_epoch(self, trainer: CompiledStep, reader: MinibatchReader, epoch: int) -> str:
        """Choose the strategy of an epoch and the data of this process; returns what the log adds about them."""
        plan, group = self._plan, self.group
        self._warn()
        if plan is None or group is None or not plan.parallel(epoch):
            self.train_alone(trainer, reader)
            return ""
        if self._shared is None:
            warn_of_quantisation(plan, self.precision)
            self._shared = plan.strategy(group)
            _settle()
        self._use(trainer, reader, self._shared)
        bits = 64 if self.precision == "double" else 32
        return plan.describe(group, bits, isinstance(reader, SharedReader) and reader.reads_share)

    def _warn(self) -> None:
        """Say once when there are workers without a section for them, or a section without workers."""
        several = self.group is not None and self.group.workers > 1
        if self._plan is None and not self._warned and self.group is not None:
            if several:
                log.warning(
                    "WARNING: there are %d workers, but SGD has no ParallelTrain section with a "
                    "parallelizationMethod: each of them trains on all data, without effect.",
                    self.group.workers,
                )
            elif self.plan is not None and self.plan.method != "none":
                log.info("There is one worker: ParallelTrain has no effect.")
        self._warned = True

    def total_slots(self, slots: int, reader: MinibatchReader) -> int:
        """Return the number of parallel sequences of a whole minibatch; `slots`: as many of them this process has
        read.
        """
        read = self.communicator.exchange(slots)
        shares = isinstance(reader, SharedReader) and reader.active and reader.reads_share
        return sum(read) if shares else max(read)

    def train_alone(self, trainer: CompiledStep, reader: MinibatchReader) -> None:
        """Let every process train by itself, with all the data."""
        self._use(trainer, reader, self.alone)

    def _use(self, trainer: CompiledStep, reader: MinibatchReader, strategy: Strategy) -> None:
        self._trains_together = strategy is not self.alone
        if isinstance(reader, SharedReader):
            reader.active = self._trains_together
        if trainer.strategy is not strategy:
            trainer.use(strategy)

    def write(self, files: Callable[[], None]) -> None:
        """Let the main process write or remove files; the others wait for it."""
        if self.main:
            files()
        self.communicator.barrier()

    def settings(self) -> State:
        """Return the settings that a state inside an epoch depends on."""
        if self._plan is None or self.group is None:
            return {}
        return {"workers": [self.communicator.size, self.group.workers], "method": self._plan.method}

    def until_stopped(self, data: Iterator[Minibatch], stop: Callable[[], bool]) -> Iterator[Minibatch]:
        """Yield the minibatches of data that every process reads by itself, until one of them is asked to stop.

        Args:
            data: The same minibatches in every process.
            stop: Whether this process is asked to stop.

        Raises:
            Stopped: In all processes, before the same minibatch.
        """
        for number, minibatch in enumerate(data):
            if (self.communicator.size == 1 or number % STOP_CHECK_MINIBATCHES == 0) and self.any_of(stop())[0]:
                raise Stopped
            yield minibatch

    def end(self) -> None:
        """Let the memory of this training be freed, that of its devices too, where the process continues."""
        if self._shared is not None:
            gc.unfreeze()  # see `_settle`

    def any_of(self, *wishes: bool) -> list[bool]:
        """Return for every wish, whether any of the processes has it."""
        return [any(wish) for wish in zip(*self.communicator.exchange([bool(wish) for wish in wishes]), strict=True)]

    def gather(self, state: State) -> State:
        """Return the states of the readers of all processes as one."""
        return state if self.communicator.size == 1 else {"workers": self.communicator.exchange(state)}

    def own(self, state: State) -> State:
        """Return the inverse of `gather`."""
        return state["workers"][self.communicator.rank] if "workers" in state and self.communicator.size > 1 else state


def _settle() -> None:
    """Let the collector of garbage look no more at what there is, modules above all.

    It takes a tenth of a second each time, now and then, and all workers wait for the one whose time has come.
    """
    gc.collect()
    gc.freeze()
