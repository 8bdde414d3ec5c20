"""What workers tell each other through the store of the coordination service."""

import os
from concurrent.futures import ThreadPoolExecutor

from meeting import Store

from cntkpy.trainers.parallel.communicator import Communicator


def test_workers_know_each_other_from_the_first_exchange() -> None:
    """One that is killed in the first second is called by its name, too."""
    store = Store()

    def work(rank: int) -> tuple[Communicator, list[list[int]]]:
        own = Communicator(rank, 3, store)
        return own, [own.exchange(10 * rank), own.exchange(rank)]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, range(3)))
        for own, told in found:
            assert told == [[0, 10, 20], [0, 1, 2]]
            assert [own.watch.name(rank).partition(" on ")[0] for rank in range(3)] == [
                f"worker {rank} of 3 (process {os.getpid()}" for rank in range(3)
            ]
        list(pool.map(Communicator.close, [own for own, _ in found]))
    assert all(key.startswith("cntkpy/signs/") or key.split("/")[2] == "3" for key in store.values)
