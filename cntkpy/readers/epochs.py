"""Request to a reader at the start of an epoch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from cntkpy.readers.common.arguments import check_share, check_size, whole_number


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
    """A reader that is given an `EpochRequest`; `start_minibatch_loop` makes one of CNTK's arguments."""

    @abstractmethod
    def start(self, request: EpochRequest) -> None:
        """Go to the start of an epoch."""

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
