"""Who has started this process with others, and with which settings: the launcher's environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError
from cntkpy.cntk_config.base.cache_folders import socket_folder
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems.sockets import have_paths

if TYPE_CHECKING:
    from cntkpy.trainers.parallel.rendezvous import Rendezvous

RANK, SIZE, COORDINATOR = "CNTKPY_RANK", "CNTKPY_WORKERS", "JAX_COORDINATOR_ADDRESS"

LOST_AFTER = "CNTKPY_LOST_AFTER"
"""Seconds without a sign of life after which a worker counts as lost; by default `communicator.SILENCE_SECONDS`."""

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
"""Range of the port of worker 0 if it is derived from the launcher's process number, below ephemeral ports."""


def find_meeting(environment: Mapping[str, str]) -> Rendezvous | None:
    """Return the settings of the launcher for this process; `None` if it was started alone.

    Raises:
        ConfigError: if the address of worker 0 has to be given.
    """
    for launcher, (rank, size, local_rank, local_size) in LAUNCHERS.items():
        if not environment.get(rank, "").isdigit() or not environment.get(size, "").isdigit():
            continue
        count = int(environment[size])
        if count < 2:
            return None
        from cntkpy.trainers.parallel.rendezvous import Rendezvous

        coordinator = environment.get(COORDINATOR)
        if coordinator is None and environment.get(local_size) == environment[size]:
            coordinator = _address_on_this_machine(environment)
        elif coordinator is None and launcher == "MPICH":
            raise ConfigError(
                "NoCoordinator",
                f"{launcher} has started {count} processes on several machines; the address of worker 0 is not known",
                hint=f"give it to all of them: mpiexec -genv {COORDINATOR} HOST:PORT -n {count} cntkpy ...",
            )
        local = int(environment.get(local_rank, "0"))
        return Rendezvous(int(environment[rank]), count, local, coordinator, silence_allowed(environment))
    return None


def silence_allowed(environment: Mapping[str, str]) -> float:
    """Seconds without a sign of life after which a worker counts as lost.

    Raises:
        ConfigError: if the variable holds no such number.
    """
    from cntkpy.trainers.parallel.communicator import HEARTBEAT_SECONDS, SILENCE_SECONDS

    text = environment.get(LOST_AFTER, str(SILENCE_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 2 * HEARTBEAT_SECONDS:
        raise ConfigError(
            "BadSilence", f"{LOST_AFTER} is a number of seconds, {2 * HEARTBEAT_SECONDS:.0f} or more, not '{text}'"
        )
    return seconds


def no_socket_folder() -> UserError:
    """Return the error where workers of one machine have no folder to meet in. They do not meet at a port instead."""
    return UserError(
        "NoCoordinator",
        "the workers have no folder to meet in that only you can write to, neither a temporary one nor in ~/.cache",
        hint="set TMPDIR to a folder of yours that others cannot write to",
    )


def _address_on_this_machine(environment: Mapping[str, str]) -> str:
    """Return an address that processes of one launcher have in common, and those of others hardly ever."""
    job = environment.get("OMPI_MCA_ess_base_jobid") or environment.get("SLURM_JOB_ID") or str(os.getppid())
    step = int(environment.get("SLURM_STEP_ID", "0")) if environment.get("SLURM_STEP_ID", "0").isdigit() else 0
    number = int(job) if job.isdigit() else os.getppid()
    from cntkpy.trainers.parallel.communicator import SOCKET

    folder = socket_folder()
    if folder is not None:
        return f"{SOCKET}{folder}/{number % 10**12}-{step % 10**10}"
    if have_paths():
        raise no_socket_folder()
    return f"127.0.0.1:{FIRST_PORT + (number + (number >> 16) + 7919 * step) % PORTS}"
