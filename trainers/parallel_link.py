"""What the processes of a parallel run tell each other beside arrays: plans, decisions, signs of life.

Everything goes through the key-value store of JAX's coordination service, which lives in worker 0. A thread of every
worker gives a sign each second and looks for those of the others; a worker that is silent or says that it failed ends
this process too, with a message that names it, even while the main thread waits inside a collective operation.
"""

import json
import math
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

SILENT = 30.0
"""Seconds without a sign of life after which a worker counts as lost."""

SUSPECTED = 5.0
"""The same, after a collective operation has failed."""

PATIENCE = 1800.0
"""Seconds to wait for a worker that gives signs of life but does not come to an exchange."""

BEAT = 1.0
"""Seconds between two signs of life."""


class WorkerLost(Exception):
    """Another worker failed, died or hangs."""


class Link:
    """The connection of one process to the others of its run.

    **Arguments:**

    - `rank`, `size`: number of this process, from 0, and how many there are.
    - `client`: JAX's client of the coordination service; `None` for a process alone.
    - `on_lost`: called by the watching thread with a message, when another worker is lost and the main thread does not
      end by itself; it must end the process.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, client: Any = None, on_lost: Callable[[str], NoReturn] | None = None
    ):
        self.rank, self.size = rank, size
        self._client, self._on_lost = client, on_lost
        self._number = 0
        self._silent = SILENT
        self._closed = threading.Event()
        self._lost: str | None = None
        self._state: dict[str, Any] = {"who": f"process {os.getpid()} on {platform.node()}", "beat": 0}
        self._names: dict[int, str] = {}
        self._thread: threading.Thread | None = None
        if client is not None:
            self._thread = threading.Thread(target=self._watch, name="cntkpy-watch", daemon=True)
            self._thread.start()

    @property
    def main(self) -> bool:
        """Whether this is the process that writes models and checkpoints."""
        return self.rank == 0

    def name(self, rank: int) -> str:
        """What messages call a worker."""
        return f"worker {rank} of {self.size} ({self._names.get(rank, 'unknown')})"

    def exchange(self, value: Any, patient: bool = False) -> list[Any]:
        """The JSON-able values of all processes, in order of their ranks; `patient`: however long they take.

        **Raises** `WorkerLost` when another worker does not come.
        """
        if self.size == 1:
            return [value]
        self._number += 1
        key = f"cntkpy/exchange/{self._number}"
        self._store(f"{key}/{self.rank}", json.dumps(value))
        until = math.inf if patient else time.monotonic() + PATIENCE
        others = [None if rank == self.rank else self._wait(f"{key}/{rank}", rank, until) for rank in range(self.size)]
        values = [value if text is None else json.loads(text) for text in others]
        if self._number > 1:  # everyone has read what was said before, else it would not have come here
            self._client.key_value_delete(f"cntkpy/exchange/{self._number - 1}/{self.rank}")
        return values

    def from_main(self, value: Any) -> Any:
        """The value of worker 0."""
        return self.exchange(value if self.main else None)[0]

    def total(self, values: list[float]) -> list[float]:
        """The sums of the numbers of all processes."""
        return [sum(column) for column in zip(*self.exchange(values), strict=True)]

    def barrier(self, patient: bool = False) -> None:
        """Wait for all."""
        self.exchange(None, patient)

    def failed(self, message: str) -> None:
        """Tell the others that this worker ends; worker 0, whom all need for that, stays until they have heard it."""
        if self._client is None:
            return
        self._state["failed"] = message
        try:
            self._give_sign()
            until = time.monotonic() + SUSPECTED
            while self.main and time.monotonic() < until:
                states = self._signs()
                if all("failed" in states.get(rank, {}) for rank in range(self.size) if rank != self.rank):
                    return
                time.sleep(BEAT / 4)
        except Exception:  # the store is gone, and with it worker 0: nobody is left to tell
            return

    def close(self) -> None:
        """Wait for all, then stop watching."""
        self.barrier()
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def explain(self, error: BaseException) -> NoReturn:
        """Say which worker is behind a failed collective operation.

        **Raises** `WorkerLost`, or the error itself if all the others are alive.
        """
        self._silent = min(self._silent, SUSPECTED)
        until = time.monotonic() + SUSPECTED + 3 * BEAT
        while time.monotonic() < until and self._lost is None:
            time.sleep(BEAT / 4)
        if self._lost is not None:
            raise WorkerLost(self._lost) from error
        raise error

    def _store(self, key: str, text: str) -> None:
        try:
            self._client.key_value_set(key, text)
        except Exception as error:
            self.explain(error)

    def _wait(self, key: str, rank: int, until: float) -> str:
        while True:
            if self._lost is not None:
                raise WorkerLost(self._lost)
            try:
                return self._client.blocking_key_value_get(key, int(1000 * BEAT))
            except Exception as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    self.explain(error)
            if time.monotonic() > until:
                raise WorkerLost(f"{self.name(rank)} is alive, but has not come to the others for {PATIENCE:.0f} s")

    # ---- the watching thread

    def _give_sign(self) -> None:
        self._state["beat"] += 1
        self._client.key_value_set(f"cntkpy/signs/{self.rank}", json.dumps(self._state), allow_overwrite=True)

    def _signs(self) -> dict[int, dict[str, Any]]:
        found = self._client.key_value_dir_get("cntkpy/signs/")
        return {int(key.rpartition("/")[2]): json.loads(text) for key, text in found}

    def _watch(self) -> None:
        parent = os.getppid()
        last: dict[int, tuple[int, float]] = {}
        while not self._closed.wait(BEAT):
            if os.getppid() != parent:
                self._end("the process that started this worker is gone")
            try:
                self._give_sign()
                states = self._signs()
            except Exception as error:
                if not self._closed.is_set():
                    self._end(f"{self.name(0)}, which coordinates the others, is gone ({str(error).splitlines()[0]})")
                return
            now = time.monotonic()
            for rank, state in states.items():
                self._names[rank] = state["who"]
                if rank == self.rank:
                    continue
                if "failed" in state:
                    self._end(f"{self.name(rank)} failed: {state['failed']}")
                beat, since = last.get(rank, (-1, now))
                last[rank] = (beat, since) if beat == state["beat"] else (state["beat"], now)
                if now - last[rank][1] > self._silent:
                    self._end(f"{self.name(rank)} has given no sign of life for {now - last[rank][1]:.0f} s")

    def _end(self, message: str) -> None:
        """Let the main thread end the process, or do it when that is blocked."""
        if self._closed.is_set():
            return
        self._lost = message
        if self._closed.wait(3 * BEAT) or "failed" in self._state or self._on_lost is None:
            return  # the main thread has noticed, too
        self._on_lost(message)
