"""Workers in threads of one process, which exchange values as processes do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Meeting:
    """Where workers in threads of one process exchange values."""

    def __init__(self, size: int) -> None:
        self.barrier, self.values = threading.Barrier(size, timeout=60), [None] * size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self.values[rank] = value
        self.barrier.wait()
        found = list(self.values)
        self.barrier.wait()
        return found


class Connection:
    """What workers need of a communicator."""

    def __init__(self, meeting: Meeting, rank: int, size: int) -> None:
        self.meeting, self.rank, self.size = meeting, rank, size

    @property
    def main(self) -> bool:
        return self.rank == 0

    def exchange(self, value: Any) -> list[Any]:
        return self.meeting.exchange(self.rank, value)


class Store:
    """A key-value store with the methods of JAX's client that the communicator calls."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def key_value_set(self, key: str, text: str, allow_overwrite: bool = False) -> None:
        with self.changed:
            assert allow_overwrite or key not in self.values
            self.values[key] = text
            self.changed.notify_all()

    def key_value_dir_get(self, folder: str) -> list[tuple[str, str]]:
        with self.changed:
            return [(key, text) for key, text in self.values.items() if key.startswith(folder)]

    def key_value_delete(self, key: str) -> None:
        with self.changed:
            del self.values[key]

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, milliseconds / 1000):
                raise RuntimeError("DEADLINE_EXCEEDED")
            return self.values[key]


def of_each(size: int, work: Callable[[Any], Any]) -> list[Any]:
    """What `work` makes of the connection of every worker, each in a thread of its own; exceptions are results too."""
    meeting = Meeting(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(Connection(meeting, rank, size))
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
