"""The cores of workers that one machine runs side by side: each has a share of its own.

The system moves threads from core to core. What a thread had in the caches of one is not in those of another, and all
workers wait for the one that is slowed down.
"""

import os
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from itertools import pairwise

from cntkpy.cntk_config.base.systems.cores import can_be_chosen, choose, count, of_process, place

ALL_CORES = "CNTKPY_CORES"
"""The environment variable that tells a worker the cores of its launcher: 0,1,2,3."""

THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""The environment variables that limit the threads of libraries."""


def shares(cores: Collection[int], workers: int) -> list[set[int]]:
    """Return the cores of each worker, neighbours together; where there are fewer than workers, each has all of
    them.
    """
    if len(cores) < workers:
        return [set(cores)] * workers
    ordered = sorted(cores, key=place)
    cuts = [len(ordered) * rank // workers for rank in range(workers + 1)]
    return [set(ordered[first:last]) for first, last in pairwise(cuts)]


def sharing(environment: Mapping[str, str], cores: Collection[int], workers: int) -> dict[str, str]:
    """Return the environment of one of several processes that share the cores: as many threads as its share has
    cores.
    """
    shared = {name: str(max(1, len(cores) // workers)) for name in THREADS}
    return shared | dict(environment) | {ALL_CORES: ",".join(map(str, cores))}


@contextmanager
def started_on(cores: set[int]) -> Generator[None]:
    """Processes that are started meanwhile may use these cores only, where the system lets them be chosen."""
    previous = of_process()
    choose(cores)
    try:
        yield
    finally:
        choose(previous)


def use_for(threads: int) -> None:
    """Let this worker use all cores of its launcher, if it is configured for more threads than its share."""
    setting = os.environ.get(ALL_CORES)
    if can_be_chosen() and setting and threads > count():
        choose({int(core) for core in setting.split(",")})
