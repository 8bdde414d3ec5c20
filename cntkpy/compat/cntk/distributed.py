"""cntk.distributed: learners of several workers, and what workers say to each other."""

from __future__ import annotations

import socket
import warnings
from dataclasses import dataclass
from typing import Self

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.checks import check_whole
from cntkpy.trainers.fronts.cntk2 import learners
from cntkpy.trainers.fronts.cntk2.learners import BlockMomentumOptions, Learner
from cntkpy.trainers.fronts.cntk2.learners import DistributedLearner as OwnLearner
from cntkpy.trainers.fronts.cntk2.workers import Communicator as OwnCommunicator

from .missing import no_attribute


@dataclass(frozen=True)
class WorkerDescriptor:
    """One of the workers of a program.

    Attributes:
        global_rank: its number.
        host_id: the name of its machine.
    """

    global_rank: int
    host_id: str = ""


class Communicator(OwnCommunicator):
    """Communication among workers."""

    @staticmethod
    def current_worker() -> WorkerDescriptor:
        """Return this worker."""
        return WorkerDescriptor(OwnCommunicator.rank(), socket.gethostname())

    @staticmethod
    def workers() -> list[WorkerDescriptor]:
        """Return all workers; of others than this one, the machine is not known."""
        here = Communicator.current_worker()
        ranks = range(OwnCommunicator.num_workers())
        return [here if rank == here.global_rank else WorkerDescriptor(rank) for rank in ranks]


def mpi_communicator() -> Communicator:
    """Return the workers of this program, whoever has started them."""
    return Communicator()


class DistributedLearner(OwnLearner):
    """A learner whose workers train together."""

    @classmethod
    def of(cls, learner: OwnLearner) -> Self:
        """Return the same learner, with CNTK's names."""
        worker = cls.__new__(cls)
        vars(worker).update(vars(learner))
        return worker

    def communicator(self) -> Communicator:
        """Return the communicator of the workers."""
        return Communicator()


def data_parallel_distributed_learner(
    learner: Learner,
    distributed_after: int = 0,
    num_quantization_bits: int = 32,
    use_async_buffered_parameter_update: bool = False,
) -> DistributedLearner:
    """Workers that sum up their gradients in every minibatch, in full precision.

    Args:
        learner: what each worker updates its parameters with.
        distributed_after: samples that each worker trains on alone first.
        num_quantization_bits: 1 to 64. Fewer bits than 32 have no effect, and give a warning.
        use_async_buffered_parameter_update: False.

    Raises:
        UserError: the update is asynchronous, or the number of bits is out of range.
    """
    if use_async_buffered_parameter_update:
        raise UserError(
            "NotSupported",
            "gradients are exchanged in every minibatch, not asynchronously",
            hint="leave use_async_buffered_parameter_update out; block_momentum_distributed_learner exchanges less",
        )
    bits = check_whole("num_quantization_bits", num_quantization_bits, 1)
    if bits > 64:
        raise CallError("WrongArguments", f"num_quantization_bits is 1 to 64, not {bits}")
    if bits < 32:
        warnings.warn("gradients are exchanged in full precision: num_quantization_bits has no effect", stacklevel=2)
    return DistributedLearner.of(learners.data_parallel(learner, distributed_after))


def block_momentum_distributed_learner(
    learner: Learner,
    block_size: int,
    block_momentum_as_time_constant: float | None = None,
    use_nestrov_momentum: bool = True,
    reset_sgd_momentum_after_aggregation: bool = True,
    block_learning_rate: float = 1.0,
    distributed_after: int = 0,
) -> DistributedLearner:
    """Workers that join their models after a block of samples."""
    options = BlockMomentumOptions(
        block_size,
        block_momentum_as_time_constant,
        use_nestrov_momentum,
        reset_sgd_momentum_after_aggregation,
        block_learning_rate,
    )
    return DistributedLearner.of(learners.block_momentum(learner, options, distributed_after))


__all__ = [
    "Communicator", "DistributedLearner", "WorkerDescriptor", "block_momentum_distributed_learner",
    "data_parallel_distributed_learner", "mpi_communicator",
]  # fmt: skip

__getattr__ = no_attribute("cntk.distributed", __all__)
