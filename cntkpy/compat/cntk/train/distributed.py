"""cntk.train.distributed."""

from ..distributed import (
    Communicator,
    DistributedLearner,
    WorkerDescriptor,
    block_momentum_distributed_learner,
    data_parallel_distributed_learner,
    mpi_communicator,
)
from ..missing import no_attribute

__all__ = [
    "Communicator",
    "DistributedLearner",
    "WorkerDescriptor",
    "block_momentum_distributed_learner",
    "data_parallel_distributed_learner",
    "mpi_communicator",
]

__getattr__ = no_attribute("cntk.train.distributed", __all__)
