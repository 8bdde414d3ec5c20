"""What workers tell each other through the store of the coordination service."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from meeting import Store

from cntkpy.trainers.parallel import communicator
from cntkpy.trainers.parallel.communicator import HEARTBEAT_SECONDS, Communicator, Watch


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


@pytest.mark.parametrize(("rank", "waits"), [(0, [HEARTBEAT_SECONDS / 2]), (1, [])])
def test_worker_0_ends_last(rank: int, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that outlive it are aborted by JAX, after an interruption, too."""
    slept: list[float] = []
    monkeypatch.setattr(communicator.time, "sleep", slept.append)
    watch = Watch(rank, 2, None, None, 1.0)
    watch._threads = [threading.main_thread()]
    watch._end_sent, watch._states = True, {0: {"failed": "interrupted"}, 1: {"failed": "interrupted"}}
    watch.failed("interrupted")
    assert slept == waits
