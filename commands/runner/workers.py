"""The processes of a parallel run: how they were started, how they find each other, how they part."""

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from cntk_config import ConfigError, UserError
from commands.context.device import Device

if TYPE_CHECKING:
    from trainers.parallel.communicator import Communicator
    from trainers.parallel.rendezvous import Rendezvous

log = logging.getLogger("cntkpy.commands")

RANK, SIZE, COORDINATOR = "CNTKPY_RANK", "CNTKPY_WORKERS", "JAX_COORDINATOR_ADDRESS"

LOST_AFTER = "CNTKPY_LOST_AFTER"
"""Seconds without a sign of life after which a worker counts as lost, if not those of `communicator.SILENT`."""

TOGETHER = ("train", "trainRNN", "adapt", "test", "eval", "cv", "testUnroll")
"""Actions that all workers run; worker 0 runs the others alone."""

LAUNCHERS = {
    "cntkpy run --workers": (RANK, SIZE, RANK, SIZE),
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
"""Environment variables by launcher: rank, number of processes, rank on this machine, processes on this machine."""

FIRST_PORT, PORTS = 20000, 12000
"""Where the port of worker 0 lies if it is derived from the launcher's process number, below ephemeral ports."""


def find_meeting(environment: Mapping[str, str]) -> "Rendezvous | None":
    """What the launcher has told this process; `None` if it was started alone.

    Raises:
        ConfigError: if the address of worker 0 has to be given.
    """
    for launcher, (rank, size, local_rank, local_size) in LAUNCHERS.items():
        if not environment.get(rank, "").isdigit() or not environment.get(size, "").isdigit():
            continue
        count = int(environment[size])
        if count < 2:
            return None
        from trainers.parallel.rendezvous import Rendezvous

        coordinator = environment.get(COORDINATOR)
        if coordinator is None and environment.get(local_size) == environment[size]:
            coordinator = f"127.0.0.1:{_port(environment)}"
        elif coordinator is None and launcher == "MPICH":
            raise ConfigError(
                "NoCoordinator",
                f"{launcher} has started {count} processes on several machines; the address of worker 0 is not known",
                hint=f"give it to all of them: mpiexec -genv {COORDINATOR} HOST:PORT -n {count} cntkpy ...",
            )
        own = int(environment.get(local_rank, "0"))
        return Rendezvous(int(environment[rank]), count, own, coordinator, silence_allowed(environment))
    return None


def silence_allowed(environment: Mapping[str, str]) -> float:
    """Seconds without a sign of life after which a worker counts as lost.

    Raises:
        ConfigError: if the variable holds no such number.
    """
    from trainers.parallel.communicator import BEAT, SILENT

    text = environment.get(LOST_AFTER, str(SILENT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 2 * BEAT:
        raise ConfigError("BadSilence", f"{LOST_AFTER} is a number of seconds, {2 * BEAT:.0f} or more, not '{text}'")
    return seconds


def _port(environment: Mapping[str, str]) -> int:
    """A port that processes of one launcher have in common, and those of others hardly ever."""
    job = environment.get("OMPI_MCA_ess_base_jobid") or environment.get("SLURM_JOB_ID") or str(os.getppid())
    step = int(environment.get("SLURM_STEP_ID", "0")) if environment.get("SLURM_STEP_ID", "0").isdigit() else 0
    number = int(job) if job.isdigit() else os.getppid()
    return FIRST_PORT + (number + (number >> 16) + 7919 * step) % PORTS


class Workers:
    """The other processes of this run, if there are any: `workers.link` is `None` in a process started alone."""

    def __init__(self) -> None:
        self.link: Communicator | None = None
        self.meeting: Rendezvous | None = None

    def find(self, wanted: bool | None) -> None:
        """Look who has started this process. `wanted` is `parallelTrain`: False leaves it alone, whoever did."""
        self.meeting = None if wanted is False else find_meeting(os.environ)

    @property
    def rank(self) -> int:
        """Number of this process."""
        return self.meeting.rank if self.meeting is not None else 0

    def join(self, device: Device) -> None:
        """Meet the others. It has to happen before anything is computed."""
        if self.meeting is None:
            return
        device.prepare()
        from trainers.parallel.rendezvous import join

        self.link = join(self.meeting, _end_process, device.visible(self.meeting.local_rank))

    def runs(self, action: str) -> bool:
        """Whether this process runs an action."""
        return self.rank == 0 or action in TOGETHER

    def wait(self) -> None:
        """After an action: wait for all, however long worker 0 takes."""
        if self.link is not None:
            with self.explained():
                self.link.barrier(patient=True)

    @contextmanager
    def explained(self) -> Generator[None]:
        """Failures of collective operations become errors that name the worker behind them."""
        from trainers.parallel.communicator import WorkerLost

        try:
            yield
        except WorkerLost as error:
            raise _lost(str(error)) from None
        except (UserError, MemoryError):
            raise
        except Exception as error:
            if self.link is None:
                raise
            try:
                self.link.explain(error)
            except WorkerLost as lost:
                raise _lost(str(lost)) from None

    def part(self, status: int, message: str) -> None:
        """At the end: wait for the others; or, if this one failed, tell them why and end at once."""
        if self.link is None:
            return
        if status == 0:
            from trainers.parallel.rendezvous import leave

            leave(self.link)
            return
        try:
            self.link.failed(message.removeprefix("EXCEPTION occurred: "))
        finally:  # also if mpiexec, which has seen another worker end, sends a signal meanwhile
            _exit(status)


def _lost(message: str) -> UserError:
    return UserError(
        "WorkerLost",
        message,
        hint="see the log of that worker; the last checkpoint is whole: start the same command again to go on from it",
    )


def _end_process(message: str) -> NoReturn:
    """End from the watching thread while the main thread waits inside a library."""
    error: Any = _lost(message)
    log.info("", extra={"plain": True})
    log.error("EXCEPTION occurred: %s", error.diagnostic.render().removeprefix("error: "))
    _exit(1)


def _exit(status: int) -> NoReturn:
    """End without the clean-up of JAX's runtime, which would wait for the others."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)
