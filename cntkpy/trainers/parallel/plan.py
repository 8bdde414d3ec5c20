"""From the `ParallelTrain` section to what the workers of a group do in an epoch."""

import logging
from dataclasses import dataclass

from cntkpy.trainers.parallel.averaging import BlockMomentum, momentum_of_time_constant
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.parallel.strategies import data_parallel, local_sgd
from cntkpy.trainers.parameters.parallel import ASYNCHRONOUS, BlockMomentumParameters, ParallelParameters
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.step.strategy import Strategy

log = logging.getLogger("cntkpy.trainers")

AVERAGING_BLOCK, FILTERING_BLOCK = 40000, 120000
"""Samples per worker between two synchronisations, where the section does not say."""


@dataclass(frozen=True)
class Plan:
    """Parallel training of a group.

    Attributes:
        method: as in `ParallelTrain`.
        start: index of the first epoch trained together.
        reads_share: `distributedMBReading` if it is given.
        statistics: see `syncPerfStats`.
        p: the section.
    """

    method: str
    start: int
    reads_share: bool | None
    statistics: int
    p: ParallelParameters

    def parallel(self, epoch: int) -> bool:
        """Return whether the workers share the data of an epoch (index)."""
        return self.method not in ("none", ASYNCHRONOUS) and epoch >= self.start

    def strategy(self, group: ProcessGroup) -> Strategy:
        """Return the strategy of the parallel epochs."""
        if self.method == "ModelAveragingSGD":
            return local_sgd(group, self.p.averaging.block_size(group.workers, AVERAGING_BLOCK), None, self.statistics)
        if self.method == "BlockMomentumSGD":
            block, filtering = _block_momentum(self.p.block_momentum, group.workers)
            return local_sgd(group, block, filtering, self.statistics)
        return data_parallel(group, self.statistics)

    def describe(self, group: ProcessGroup, bits: int, reads_share: bool) -> str:
        """Return the log's addition to the line that starts the minibatches."""
        numbers = f"myRank = {group.communicator.rank}, numNodes = {group.workers}"
        if self.method == "DataParallelSGD":
            numbers += f", numGradientBits = {bits}"
        return f", {self.method} training ({numbers})" + (", distributed reading is ENABLED" if reads_share else "")


def parallel_plan(sgd: SGDParameters, precision: str) -> Plan | None:
    """Return the plan of a training; `None` without a `ParallelTrain` section."""
    p = sgd.parallel_train
    if p is None:
        return None
    p.check(precision)
    if p.method == ASYNCHRONOUS:
        log.warning("WARNING: DataParallelASGD with one worker is plain SGD.")
    return Plan(p.method, p.start_epoch - 1, p.distributed_reading, p.sync_statistics, p)


def warn_of_quantisation(plan: Plan, precision: str) -> None:
    """Say once that gradients are exchanged in full, if the section asks for fewer bits."""
    width = 64 if precision == "double" else 32
    if plan.method == "DataParallelSGD" and any(value < width for value in plan.p.data_parallel.bits or ()):
        log.warning(
            "WARNING: gradientBits below %d is accepted, but gradients are exchanged unquantised: all %d bits.",
            width,
            width,
        )


def _block_momentum(b: BlockMomentumParameters, workers: int) -> tuple[int, BlockMomentum]:
    """Samples of all workers in a block, and what is kept of the last blocks.

    Raises:
        ConfigError: for a time constant so long that nothing new would ever be learned.
    """
    block = b.block_size(workers, FILTERING_BLOCK)
    momentum = 1 - 1 / workers if b.per_sync is None else b.per_sync
    if b.time_constant is not None:
        momentum = momentum_of_time_constant(block, b.time_constant)
        if momentum == 1:
            raise b.error("blockMomentumAsTimeConstant", f"this is too long for blocks of {block} samples")
    log.info("BlockMomentumSGD: momentum %.6g after every %d samples of all workers.", momentum, block)
    return block, BlockMomentum(momentum, b.rate, b.nesterov, b.reset)
