"""Request to a reader at the start of an epoch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from cntkpy.readers.common.arguments import check_share, check_size, whole_number
from cntkpy.readers.common.planned import State


@dataclass(frozen=True)
class EpochRequest:
    """The samples of an epoch, and the share of them that one worker reads.

    Attributes:
        minibatch_size: samples of a minibatch, of all workers together.
        epoch: number of the epoch, from 0.
        samples: samples of an epoch, of all workers together; None: one sweep of the data.
        worker: number of the worker that reads, from 0.
        workers: number of workers.

    Raises:
        ArgumentError: for anything but whole numbers in their range.
    """

    minibatch_size: int
    epoch: int = 0
    samples: int | None = None
    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        check_size(self.minibatch_size)
        whole_number(self.epoch, "The number of an epoch")
        if self.samples is not None:
            whole_number(self.samples, "The number of samples of an epoch (None: one sweep)", 1)
        check_share(self.worker, self.workers)


class EpochReader:
    """A reader that takes an `EpochRequest`; `start_minibatch_loop` makes one of CNTK's arguments."""

    @abstractmethod
    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""

    @abstractmethod
    def get_state(self) -> State:
        """Return the position after the last minibatch given out, to be stored as JSON."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Restore a state of `get_state`, also in the middle of an epoch."""

    def state(self) -> State:
        """Return `get_state()`, which this method was called in versions before 0.2."""
        return self.get_state()

    def restore(self, state: State) -> None:
        """Call `set_state`, which this method was called in versions before 0.2."""
        self.set_state(state)

    def start_minibatch_loop(
        self,
        minibatch_size: int,
        epoch: int,
        requested_epoch_samples: int | None = None,
        worker_rank: int = 0,
        number_of_workers: int = 1,
    ) -> None:
        """Go to the start of an epoch, counted from 0; without a number of samples it is one sweep of the data."""
        self.start(EpochRequest(minibatch_size, epoch, requested_epoch_samples, worker_rank, number_of_workers))


@runtime_checkable
class HasPosition(Protocol):
    """Capability of a stage or a reader: its position can be saved."""

    def get_state(self) -> State:
        """Return the position after the last value."""
        ...

    def set_state(self, state: Any) -> None:
        """Restore a state of `get_state`."""
        ...


FORMER_NAMES = {"get_state": "state", "set_state": "restore"}
"""Methods of readers that people write, by their names since version 0.2."""


def state_of(reader: object) -> State:
    """Return the position of any reader; one that people write may have the former names."""
    if isinstance(reader, EpochReader | HasPosition):
        return reader.get_state()
    return cast("Any", reader).state()


def set_state(reader: object, state: State) -> None:
    """Have any reader resume at a position; one that people write may have the former names."""
    if isinstance(reader, EpochReader | HasPosition):
        reader.set_state(state)
    else:
        cast("Any", reader).restore(state)
