"""Strategies for the workers of a process group: data parallel training and local SGD."""

from __future__ import annotations

from cntkpy.trainers.parallel.averaging import BlockMomentum, LocalSGD
from cntkpy.trainers.parallel.placement import ByProcess, PerWorker, Replicated
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.parallel.reduction import CriterionSums, GradientSums, sums_of
from cntkpy.trainers.parallel.statistics import SynchronousUpdates
from cntkpy.trainers.step.strategy import Strategy


def data_parallel(group: ProcessGroup, statistics: int = 0) -> Strategy:
    """Sum all workers' gradients for one update, the same everywhere.

    Args:
        group: the processes.
        statistics: synchronisations between log lines about a worker's share; 0: there are none.
    """
    placement = Replicated(group) if group.sums is None else ByProcess(group, group.sums)
    first = group.first if group.sums is None else group.communicator.rank
    reduction = GradientSums(sums_of(group), first, in_program=group.sums is None)
    return Strategy(placement, reduction, SynchronousUpdates(statistics))


def local_sgd(group: ProcessGroup, block: int, filtering: BlockMomentum | None = None, statistics: int = 0) -> Strategy:
    """Let workers train by themselves, and join their models after every block of samples; see `LocalSGD`."""
    placement = PerWorker(group)
    reduction = CriterionSums(sums_of(group), group.first, in_program=True)
    return Strategy(placement, reduction, LocalSGD(placement, block, filtering, statistics))
