"""`cntkpy run --workers K ...`: the workers of one machine, started and watched over without MPI."""

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.cache_folders import socket_folder
from cntkpy.cntk_config.base.systems import cores
from cntkpy.cntk_config.base.systems.processes import name_of_end, pass_on
from cntkpy.cntk_config.base.systems.sockets import have_paths
from cntkpy.commands.console import print_error
from cntkpy.commands.context import processes
from cntkpy.commands.runner.cores import shares, sharing, started_on
from cntkpy.trainers.parallel.communicator import SOCKET
from cntkpy.trainers.parallel.launchers import COORDINATOR, RANK, SIZE, no_socket_folder, silence_allowed

GRACE = 15.0
"""Seconds that the other workers have to say why they end, beside those that they may need to notice it."""

EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 130, 143


def launch(words: list[str], workers: int) -> int:
    """Run a configuration, or a program in Python, in local worker processes; return the exit status.

    Each has an equal share of the CPU cores for itself, unless `numCPUThreads` says otherwise. When one fails, the
    others have some seconds to end by themselves, then they are killed: the bound is `GRACE` and the silence that is
    allowed.
    """
    if workers < 1:
        print(f"error: --workers is at least 1, not {workers}", file=sys.stderr)
        return 2
    program = bool(words) and words[0].endswith(".py")
    if workers == 1 and not program:
        from cntkpy.commands.runner.run import main

        return main(words)
    try:
        silence = silence_allowed(os.environ)
    except ConfigError as error:
        print_error(error)
        return error.exit_code
    command = _python_command(words) if program else processes.cntkpy_command(words)
    if workers == 1:
        return _run_alone(command)
    folder = socket_folder()
    if folder is None and have_paths():
        print_error(no_socket_folder())
        return EXIT_FAILURE
    meeting = folder / secrets.token_hex(8) if folder is not None else None
    address = f"127.0.0.1:{_free_port()}" if meeting is None else f"{SOCKET}{meeting}"
    usable = cores.of_process()
    environment = sharing(processes.environment(), usable, workers) | {SIZE: str(workers), COORDINATOR: address}
    started: list[subprocess.Popen[bytes]] = []
    stopped: list[int] = []
    handlers = {number: signal.signal(number, _forward(started, stopped)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for rank, share in enumerate(shares(usable, workers)):
            with started_on(share):
                started.append(subprocess.Popen(command, env=environment | {RANK: str(rank)}))
            if stopped:  # while this one was being started, so that it may not have heard
                started[-1].terminate()
                break
        return _watch(started, stopped, silence)
    finally:
        _kill(started)
        if meeting is not None:
            meeting.unlink(missing_ok=True)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run_alone(command: list[str]) -> int:
    """Run one process, pass signals on to it, and return its exit status; it says itself why it fails."""
    started: list[subprocess.Popen[bytes]] = []
    handlers = {number: signal.signal(number, _forward(started, [])) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        started.append(subprocess.Popen(command, env=processes.environment()))
        status = started[0].wait()
        return status if status >= 0 else 128 - status
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _python_command(words: list[str]) -> list[str]:
    """Return the program that runs a file of Python; `import cntk` gives cntkpy there, unless cntk is installed."""
    known = importlib.util.find_spec("cntk") is not None
    return [sys.executable, *(() if known else ("-m", "cntkpy.compat")), *words]


def _watch(started: list[subprocess.Popen[bytes]], stopped: list[int], silence: float) -> int:
    """Wait until all have ended, or until some time after one has failed; then the others are killed.

    The others of a worker that was killed may have to wait for its signs of life (`silence`); one that has failed by
    itself has told them, or is the first of several to find another silent.
    """
    failed, until = None, 0.0
    while any(process.poll() is None for process in started):
        if failed is None:
            failed = next((rank for rank, process in enumerate(started) if process.poll()), None)
            if failed is not None:
                until = time.monotonic() + GRACE + (silence if started[failed].returncode < 0 else 0)
                if not stopped:
                    _say(f"{_describe(failed, started)}; the others end")
        elif time.monotonic() > until:
            _kill(started)
        time.sleep(0.05)
    if stopped:
        return EXIT_INTERRUPTED if stopped[0] == signal.SIGINT else EXIT_TERMINATED
    if failed is None:
        failed = next((rank for rank, process in enumerate(started) if process.returncode), None)
        if failed is None:
            return 0
        _say(_describe(failed, started))
    status = started[failed].returncode
    return status if status > 0 else EXIT_FAILURE


def _kill(started: list[subprocess.Popen[bytes]]) -> None:
    """End those that do not end by themselves: they hang, or wait for one that never came."""
    for rank, process in enumerate(started):
        if process.poll() is None:
            _say(f"worker {rank} of {len(started)} (process {process.pid}) has not ended and is killed")
            process.kill()
            process.wait()


def _say(text: str) -> None:
    print(f"\n{text}", file=sys.stderr, flush=True)


def _describe(rank: int, started: list[subprocess.Popen[bytes]]) -> str:
    process = started[rank]
    name = f"worker {rank} of {len(started)} (process {process.pid})"
    if process.returncode < 0:
        return f"{name} was killed by {name_of_end(process.returncode)}"
    return f"{name} ended with exit status {process.returncode}"


def _forward(started: list[subprocess.Popen[bytes]], stopped: list[int]) -> Any:
    """Return a handler that passes a signal on; those of a terminal reach all its processes by themselves."""

    def handle(number: int, frame: Any) -> None:
        stopped.append(number)
        for process in started:
            pass_on(process, number)

    return handle


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
