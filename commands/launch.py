"""`cntkpy run --workers K ...`: the workers of one machine, started and watched over without MPI."""

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from commands.workers import COORDINATOR, RANK, SIZE

GRACE = 45.0
"""Seconds that the other workers have to say why they end: more than they need to notice (`parallel_link.SILENT`)."""

EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 130, 143

THREADS = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def launch(words: list[str], workers: int) -> int:
    """Run a configuration in so many processes of this machine; returns the exit status.

    Each has an equal share of the CPU cores, unless `numCPUThreads` says otherwise. When one fails, the others have
    some seconds to end by themselves, then they are killed.
    """
    if workers < 1:
        print(f"error: --workers is at least 1, not {workers}", file=sys.stderr)
        return 2
    if workers == 1:
        from commands.run import main

        return main(words)
    environment = os.environ | {SIZE: str(workers), COORDINATOR: f"127.0.0.1:{_free_port()}"}
    share = str(max(1, len(os.sched_getaffinity(0)) // workers))
    for name in THREADS:
        environment.setdefault(name, share)
    command = [sys.executable, "-m", "cntkpy", *words]
    started = [subprocess.Popen(command, env=environment | {RANK: str(rank)}) for rank in range(workers)]
    stopped: list[int] = []
    before = {number: signal.signal(number, _forward(started, stopped)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return _watch(started, stopped)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(started: list[subprocess.Popen], stopped: list[int]) -> int:
    """Wait until all have ended, or until some time after one has failed."""
    failed, until = None, 0.0
    while any(process.poll() is None for process in started):
        if failed is None:
            failed = next((rank for rank, process in enumerate(started) if process.poll()), None)
            until = time.monotonic() + GRACE
            if failed is not None and not stopped:
                print(f"\n{_describe(failed, started)}; the others end", file=sys.stderr, flush=True)
        elif time.monotonic() > until:
            break
        time.sleep(0.05)
    statuses = [process.poll() for process in started]
    if stopped:
        return EXIT_INTERRUPTED if stopped[0] == signal.SIGINT else EXIT_TERMINATED
    if failed is None and any(statuses):
        failed = next(rank for rank, status in enumerate(statuses) if status)
        print(f"\n{_describe(failed, started)}", file=sys.stderr, flush=True)
    if failed is None:
        return 0
    status = started[failed].returncode
    return status if status > 0 else EXIT_FAILURE


def _describe(rank: int, started: list[subprocess.Popen]) -> str:
    process = started[rank]
    name = f"worker {rank} of {len(started)} (process {process.pid})"
    if process.returncode < 0:
        return f"{name} was killed by {signal.Signals(-process.returncode).name}"
    return f"{name} ended with exit status {process.returncode}"


def _forward(started: list[subprocess.Popen], stopped: list[int]) -> Any:
    """A handler that passes a signal on; those of a terminal reach all its processes by themselves."""

    def handle(number: int, frame: Any) -> None:
        stopped.append(number)
        for process in started:
            if process.poll() is None and not (number == signal.SIGINT and sys.stdin.isatty()):
                process.send_signal(number)

    return handle


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
