"""The processes of a Python program that train together."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

from cntkpy.networks.arrays.lazy import default_device
from cntkpy.readers.common.planned import State
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.learners import BlockMomentumOptions, DistributedLearner, Learner
from cntkpy.trainers.parallel.averaging import BlockMomentum, momentum_of_time_constant
from cntkpy.trainers.parallel.communicator import Communicator as Connection
from cntkpy.trainers.parallel.launchers import find_meeting
from cntkpy.trainers.parallel.process_group import ProcessGroup, process_group_of
from cntkpy.trainers.parallel.strategies import data_parallel, local_sgd
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.step.strategy import Strategy


class _Processes:
    """The connection of this process to the others, once it was asked for."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.parted = False

    def connect(self) -> Connection:
        """Meet the others, if a launcher has started this process with others."""
        if self.connection is not None:
            return self.connection
        meeting = find_meeting(os.environ)
        if meeting is None:
            self.connection = Connection()
            return self.connection
        from cntkpy.trainers.parallel.rendezvous import join

        self.connection = join(meeting, _lost)
        sys.excepthook = _failed
        atexit.register(self.part)
        return self.connection

    def part(self) -> None:
        """Wait for the others, then work alone."""
        if self.connection is None or self.connection.size == 1 or self.parted:
            return
        from cntkpy.trainers.parallel.rendezvous import leave

        self.parted = True
        leave(self.connection)


_processes = _Processes()


def _lost(message: str) -> NoReturn:
    """Another worker is gone while this one waits for it."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    os._exit(1)


def _failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An exception that nobody handles: the others must not wait."""
    sys.__excepthook__(kind, error, trace)
    sys.stdout.flush()
    if _processes.connection is not None and not _processes.parted:
        _processes.connection.failed(str(error) or kind.__name__)
        os._exit(1)


class Communicator:
    """Communication among workers."""

    @staticmethod
    def rank() -> int:
        """Return the number of this worker, from 0."""
        return _processes.connect().rank

    @staticmethod
    def current_worker_rank() -> int:
        """Return the same."""
        return _processes.connect().rank

    @staticmethod
    def num_workers() -> int:
        """Return the number of workers."""
        return _processes.connect().size

    @staticmethod
    def is_main() -> bool:
        """Return whether this worker writes files."""
        return _processes.connect().main

    @staticmethod
    def barrier() -> None:
        """Wait for all workers."""
        _processes.connect().barrier(no_timeout=True)

    @staticmethod
    def finalize() -> None:
        """Part from the others at the end of a program; nothing can be trained together afterwards."""
        _processes.part()


def mpi_communicator() -> Communicator:
    """Return the workers of this program, whoever has started them."""
    return Communicator()


def _local_sgd(group: ProcessGroup, block: BlockMomentumOptions) -> Strategy:
    """Return the strategy of workers that train by themselves for a block of samples.

    Raises:
        ArgumentError: nothing new would ever be learned.
    """
    size, constant = block.block_size, block.time_constant
    if size < 1:
        raise ArgumentError(f"a block has samples, not {size}", "block_size=120000, for instance")
    momentum = 1 - 1 / group.workers if constant is None else momentum_of_time_constant(size, constant)
    if not 0 <= momentum < 1:
        raise ArgumentError(f"the time constant {constant:g} is too long for blocks of {size} samples")
    return local_sgd(group, size, BlockMomentum(momentum, block.rate, block.nesterov, block.reset))


class Workers:
    """The workers of a trainer.

    Args:
        learner: what they train with; None: this process trains by itself.
    """

    def __init__(self, learner: DistributedLearner | None = None) -> None:
        self._learner = learner
        self._connection = Connection() if learner is None else _processes.connect()
        self.alone = Strategy()
        self._shared: Strategy | None = None
        self.together = False

    @classmethod
    def of(cls, learners: Sequence[Learner]) -> Workers:
        """Return the workers that the learners ask for."""
        return cls(next((learner for learner in learners if isinstance(learner, DistributedLearner)), None))

    @property
    def size(self) -> int:
        """Return the number of processes."""
        return self._connection.size

    @property
    def rank(self) -> int:
        """Return the number of this one."""
        return self._connection.rank

    @property
    def main(self) -> bool:
        """Return whether it writes files."""
        return self._connection.main

    def refuse_free_sizes(self) -> None:
        """See that several workers do not train a network that has a size for each minibatch.

        Raises:
            ArgumentError: They would.
        """
        if self.size > 1:
            message = (
                "several workers train one network; this one has a size for each minibatch (FreeDimension, unpack)"
            )
            raise ArgumentError(message, "train on one worker, or give inputs one size")

    def share(self, samples: int) -> tuple[int, int]:
        """Return the number of workers that share the data after `samples` samples, and the part of this worker."""
        learner = self._learner
        if learner is None or samples < learner.after:
            return 1, 0
        return self.size, self.rank

    def choose(self, trainer: CompiledStep, samples: int) -> bool:
        """Use the strategy of this point of training; whether it is another one than before."""
        learner = self._learner
        together = learner is not None and self.size > 1 and samples >= learner.after
        if together == self.together:
            return False
        self.together = together
        trainer.use(self._made() if together else self.alone)
        return True

    def _made(self) -> Strategy:
        assert self._learner is not None
        if self._shared is None:
            if _processes.parted:
                raise ArgumentError("the workers have parted", "call Communicator.finalize() at the end of the program")
            group = process_group_of(self._connection, [default_device()])
            block = self._learner.block
            self._shared = data_parallel(group) if block is None else _local_sgd(group, block)
        return self._shared

    def any(self, wish: bool) -> bool:
        """Return whether any worker has the wish."""
        return any(self._connection.exchange(bool(wish)))

    def exchange(self, value: object) -> list[State]:
        """Return the values of all workers."""
        return self._connection.exchange(value)

    def wait(self) -> None:
        """Until all workers are here."""
        self._connection.barrier()
