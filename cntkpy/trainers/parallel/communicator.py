"""Exchange between the processes of a parallel run besides arrays: plans, decisions, heartbeats.

Everything goes through the key-value store of JAX's coordination service, which lives in worker 0, or, except for
heartbeats, through memory that the workers of one machine share. A thread of every worker sends a heartbeat each second
and reads those of the others; a second thread judges them, because the first hangs when worker 0 does. A worker that is
silent or reports that it failed ends this process too, with a message that names it, even while the main thread waits
inside a collective operation.
"""

from __future__ import annotations

import json
import math
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cntkpy.trainers.parallel.signals import Gone

if TYPE_CHECKING:
    from cntkpy.trainers.parallel.shared_messages import SharedMessages

SILENCE_SECONDS = 30.0
"""Seconds without a sign of life after which a worker counts as lost, where nothing else is said."""

SILENCE_AFTER_FAILURE_SECONDS = 5.0
"""The same, after a collective operation has failed."""

BARRIER_TIMEOUT_SECONDS = 1800.0
"""Seconds to wait for a worker that gives signs of life but does not come to an exchange."""

HEARTBEAT_SECONDS = 1.0
"""Seconds between two signs of life."""

SOCKET = "unix:"
"""Beginning of the address of worker 0 if it is a socket in a folder that only this user can open."""

T = TypeVar("T")
Client = Any
"""JAX's client of its coordination service, which has no type; None: a process alone."""


class WorkerLost(Exception):
    """Another worker failed, died or hangs."""


class Watch:
    """Signs of life of the processes of a run.

    Args:
        rank, size, client, on_lost, silent: see `Communicator`.

    Attributes:
        lost: which worker is lost, in words; None: none is.
    """

    def __init__(
        self, rank: int, size: int, client: Client, on_lost: Callable[[str], NoReturn] | None, silent: float
    ) -> None:
        self.rank, self.size = rank, size
        self.lost: str | None = None
        self._client, self._on_lost, self._silent = client, on_lost, silent
        self._closed = threading.Event()
        self._state: dict[str, Any] = {"who": f"process {os.getpid()} on {platform.node()}"}
        self._beat = 0
        self._end_sent = False  # the others can read that this worker ends
        self._states: dict[int, dict[str, Any]] = {}
        self._heard, self._gone = time.monotonic(), ""
        self._names: dict[int, str] = {}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        for work in (self._talk, self._watch):
            self._threads.append(threading.Thread(target=work, name=f"cntkpy{work.__name__}", daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def learn_names(self) -> None:
        """Take the names of all from their last signs."""
        self._names |= {rank: state["who"] for rank, state in self._signs().items()}

    def name(self, rank: int) -> str:
        """Return the name of a worker in messages."""
        return f"worker {rank} of {self.size} ({self._names.get(rank, 'not heard of yet')})"

    def failed(self, message: str) -> None:
        """Report to the others that this worker ends; worker 0, whom all need for that, stays until they have ended."""
        self._state = self._state | {"failed": self.lost or message, "behind": self.lost is not None}
        until = time.monotonic() + SILENCE_AFTER_FAILURE_SECONDS
        while time.monotonic() < until and self._threads[0].is_alive():
            if self._end_sent and (
                self.rank or all("failed" in self._states.get(rank, {}) for rank in range(self.size))
            ):
                if self.rank == 0:  # JAX aborts workers that outlive it, with a trace of its stack
                    time.sleep(HEARTBEAT_SECONDS / 2)
                return
            time.sleep(HEARTBEAT_SECONDS / 4)

    def explain(self, error: BaseException) -> NoReturn:
        """Name the worker behind a failed collective operation.

        Raises:
            WorkerLost: if another worker does not live; otherwise the error itself is raised again.
        """
        self._silent = min(self._silent, SILENCE_AFTER_FAILURE_SECONDS)
        until = time.monotonic() + SILENCE_AFTER_FAILURE_SECONDS + 3 * HEARTBEAT_SECONDS
        while time.monotonic() < until and self.lost is None:
            time.sleep(HEARTBEAT_SECONDS / 4)
        if self.lost is not None:
            raise WorkerLost(self.lost) from error
        raise error

    def check(self, rank: int, until: float) -> None:
        """Check whether there is sense in waiting for a worker on, until some time."""
        if self.lost is not None:
            raise WorkerLost(self.lost)
        if time.monotonic() > until:
            raise WorkerLost(
                f"{self.name(rank)} is alive, but has not come to the others for {BARRIER_TIMEOUT_SECONDS:.0f} s"
            )

    def give_sign(self) -> None:
        """Report to the others that this worker lives."""
        sign = json.dumps(self._state | {"beat": self._beat})
        self._client.key_value_set(f"cntkpy/signs/{self.rank}", sign, allow_overwrite=True)

    def _signs(self) -> dict[int, dict[str, Any]]:
        """Return the last sign of each worker."""
        signs = self._client.key_value_dir_get("cntkpy/signs/")
        return {int(key.rpartition("/")[2]): json.loads(text) for key, text in signs}

    # ---- the thread that talks to worker 0, and hangs with it

    def _talk(self) -> None:
        while not self._closed.wait(HEARTBEAT_SECONDS):
            try:
                ends = "failed" in self._state
                self.give_sign()
                self._end_sent = ends
                states = self._signs()
            except Exception as error:  # what became of the coordination service has no exception class of its own
                self._gone = str(error).splitlines()[0]
                return
            self._states = states
            self._heard = time.monotonic()
            self._beat += 1

    # ---- the thread that judges

    def _watch(self) -> None:
        parent = os.getppid()
        earlier = time.monotonic()
        last = dict.fromkeys(range(self.size), (-1, earlier))
        while not self._closed.wait(HEARTBEAT_SECONDS):
            now = time.monotonic()
            stopped = (
                now - earlier if now - earlier > 3 * HEARTBEAT_SECONDS else 0.0
            )  # this process itself had a rest: so much later
            earlier, self._heard = now, self._heard + stopped
            if os.getppid() != parent:
                self._end("the process that started this worker is gone")
            if self._gone:
                self._end(f"{self.name(0)}, which coordinates the others, is gone ({self._gone})")
            elif self.rank and now - self._heard > self._silent:
                self._end(
                    f"{self.name(0)}, which coordinates the others, has not answered for {now - self._heard:.0f} s"
                )
            for rank, state in self._states.items():
                self._names[rank] = state["who"]
                beat, since = last[rank]
                last[rank] = (state["beat"], since + stopped if beat == state["beat"] else now)
                if rank != self.rank and "failed" in state:
                    self._end(state["failed"] if state["behind"] else f"{self.name(rank)} failed: {state['failed']}")
            silence = {rank: self._heard - since for rank, (_, since) in last.items() if rank != self.rank}
            longest = max(silence, key=silence.__getitem__)
            if silence[longest] > self._silent:
                self._end(f"{self.name(longest)} has given no sign of life for {silence[longest]:.0f} s")

    def _end(self, message: str) -> None:
        """Let the main thread end the process, or do it when that is blocked."""
        if self._closed.is_set():
            return
        self.lost = self.lost or message
        if self._closed.wait(3 * HEARTBEAT_SECONDS) or "failed" in self._state or self._on_lost is None:
            return  # the main thread has noticed, too
        self.failed(self.lost)
        self._on_lost(self.lost)


class Communicator:
    """The connection of one process to the others of its run.

    Args:
        rank, size: number of this process, from 0, and how many there are.
        client: JAX's client of the coordination service; `None` for a process alone.
        on_lost: called by the watching thread with a message, when another worker is lost and the main thread does not
            end by itself; it must end the process.
        silent: seconds without a sign of life after which a worker counts as lost.
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        client: Client = None,
        on_lost: Callable[[str], NoReturn] | None = None,
        silent: float = SILENCE_SECONDS,
    ):
        self.rank, self.size = rank, size
        self._client = client
        self.watch = Watch(rank, size, client, on_lost, silent)
        """Signs of life of all."""
        self._messages: SharedMessages | None = None
        self._number = 0
        if client is not None:
            self.watch.start()

    @property
    def main(self) -> bool:
        """Return whether this is the process that writes models and checkpoints."""
        return self.rank == 0

    def exchange(self, value: Any, no_timeout: bool = False) -> list[Any]:
        """Return the JSON-able values of all processes, in order of their ranks; `no_timeout`: however long they take.

        Raises:
            WorkerLost: when another worker does not come.
        """
        if self.size == 1:
            return [value]
        received = self.send(json.dumps(value).encode(), no_timeout)
        if received is not None:
            return [value if rank == self.rank else json.loads(message) for rank, message in enumerate(received)]
        self._number += 1
        if self._number == 1:
            self._try(self.watch.give_sign)
        key = f"cntkpy/exchange/{self._number}"
        self._store(f"{key}/{self.rank}", json.dumps(value))
        until = math.inf if no_timeout else time.monotonic() + BARRIER_TIMEOUT_SECONDS
        texts = [None if rank == self.rank else self._wait(f"{key}/{rank}", rank, until) for rank in range(self.size)]
        values = [value if text is None else json.loads(text) for text in texts]
        if self._number > 1:  # everyone has read what was said before, else it would not have come here
            self._client.key_value_delete(f"cntkpy/exchange/{self._number - 1}/{self.rank}")
        else:  # everyone has given a sign, and may end before the next one
            self._try(self.watch.learn_names)
        return values

    def use(self, messages: SharedMessages) -> None:
        """Exchange messages through this memory from now on; called by all processes between the same two exchanges."""
        self._messages = messages

    def send(self, message: bytes, no_timeout: bool = False) -> list[bytes] | None:
        """Send a message to all; returns those of all processes, in order of their ranks.

        None, in all of them, if there is no memory for messages.

        Raises:
            WorkerLost: when another worker does not come.
        """
        if self._messages is None:
            return None
        until = math.inf if no_timeout else time.monotonic() + BARRIER_TIMEOUT_SECONDS
        try:
            return self._messages.exchange(message, lambda rank: self.watch.check(rank, until))
        except Gone as error:
            self.watch.explain(error)

    def from_main(self, value: Any) -> Any:
        """Return the value of worker 0."""
        return self.exchange(value if self.main else None)[0]

    def total(self, values: list[float]) -> list[float]:
        """Return the sums of the numbers of all processes."""
        return [sum(column) for column in zip(*self.exchange(values), strict=True)]

    def barrier(self, no_timeout: bool = False) -> None:
        """Wait for all."""
        self.exchange(None, no_timeout)

    def failed(self, message: str) -> None:
        """Report to the others that this worker ends; worker 0, whom all need for that, stays until they know."""
        if self._client is not None:
            self.watch.failed(message)

    def explain(self, error: BaseException) -> NoReturn:
        """See `Watch.explain`."""
        self.watch.explain(error)

    def close(self) -> None:
        """Wait for all, then stop watching."""
        self.barrier()
        self.watch.close()

    def _store(self, key: str, text: str) -> None:
        self._try(lambda: self._client.key_value_set(key, text))

    def _try(self, call: Callable[[], T]) -> T:
        """Return the result of a call of JAX's client; where it fails, raise an error that names the worker."""
        try:
            return call()
        except Exception as error:
            self.watch.explain(error)

    def _wait(self, key: str, rank: int, until: float) -> str:
        while True:
            self.watch.check(rank, until)
            try:
                return self._client.blocking_key_value_get(key, int(1000 * HEARTBEAT_SECONDS))
            except Exception as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    self.watch.explain(error)
