"""Rendezvous: how the processes of a run find each other, through JAX's coordination service, and part again."""

import contextlib
import ipaddress
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cntkpy.cntk_config.base.cache_folders import is_private
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, prepare
from cntkpy.trainers.parallel import jax_internals
from cntkpy.trainers.parallel.communicator import SILENCE_SECONDS, SOCKET, Communicator, WorkerLost
from cntkpy.trainers.parallel.process_group import sums_in_memory

log = logging.getLogger("cntkpy.trainers")

RENDEZVOUS_SECONDS = 300.0
"""Seconds that the processes wait for each other when they start."""

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Rendezvous:
    """Settings with which a process joins a run.

    Attributes:
        rank, size: number of this process, and how many there are.
        local_rank: its number among those on this machine.
        coordinator: `host:port` of worker 0, or `unix:` and the path of a socket; with `None` JAX finds it in what the
            launcher has told the processes.
        silent: seconds without a sign of life after which a worker counts as lost.
    """

    rank: int
    size: int
    local_rank: int = 0
    coordinator: str | None = None
    silent: float = SILENCE_SECONDS


def join(
    rendezvous: Rendezvous, on_lost: Callable[[str], NoReturn], visible: list[int] | None = None, several: bool = False
) -> Communicator:
    """Meet the other processes, before anything is computed.

    Args:
        rendezvous: how.
        on_lost: see `Communicator`.
        visible: numbers of the GPUs that this process may use.
        several: each process may use several devices.

    Raises:
        UserError: they cannot be reached.
    """
    prepare()
    where = f" at {rendezvous.coordinator}" if rendezvous.coordinator else ""
    this = f"worker {rendezvous.rank} of {rendezvous.size}"
    message = f"{this} has not met the others{where} within {RENDEZVOUS_SECONDS:.0f} s"
    waited = threading.Timer(RENDEZVOUS_SECONDS, on_lost, [message])  # JAX itself would end the process, with a trace
    waited.daemon = True
    waited.start()
    try:
        address = rendezvous.coordinator or _detected(rendezvous, visible)
        local = address.startswith(SOCKET) or _is_loopback(address)
        if not local:
            _check_host_name()
        if local and not address.startswith(SOCKET) and rendezvous.rank == 0:
            _warn_of_loopback("what coordinates the workers")
        _initialize(rendezvous, address, visible)
    except UserError:
        raise
    except (RuntimeError, ValueError) as error:
        raise UserError(
            "NoCoordinator",
            f"{this} cannot meet the others{where}: {str(error).splitlines()[0]}",
            hint="all workers must reach worker 0: give its address in JAX_COORDINATOR_ADDRESS=host:port",
        ) from None
    finally:
        waited.cancel()
    client = jax_internals.coordination_client()
    communicator = Communicator(rendezvous.rank, rendezvous.size, client, on_lost, rendezvous.silent)
    try:
        _choose_transport(communicator, local, several)
    except WorkerLost as error:
        on_lost(str(error))
    return communicator


def _initialize(rendezvous: Rendezvous, address: str, visible: list[int] | None) -> None:
    """Let JAX connect the processes through a service of worker 0, which listens at an address.

    Raises:
        UserError: others can open the folder of the socket.
    """
    bind = os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or address
    if address.startswith(SOCKET):
        bind = address
        folder = Path(address.removeprefix(SOCKET)).parent
        if not is_private(folder) or folder.stat().st_mode & 0o077:
            raise UserError(
                "NoCoordinator",
                f"the workers cannot meet at {address}: others can open the folder {folder}, or it is missing",
                hint="give JAX_COORDINATOR_ADDRESS=unix:FOLDER/NAME with a folder that only you can open (chmod 700)",
            )
    handler = signal.getsignal(signal.SIGTERM)
    with contextlib.suppress(AttributeError):  # JAX 0.7 has no such option
        jax.config.update("jax_enable_preemption_service", False)
    jax.distributed.initialize(
        address,
        rendezvous.size,
        rendezvous.rank,
        visible,
        cluster_detection_method="deactivate",
        initialization_timeout=round(RENDEZVOUS_SECONDS) + 60,
        coordinator_bind_address=bind,
    )
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGTERM, handler)  # JAX may have taken SIGTERM for itself


def _choose_transport(communicator: Communicator, local: bool, several: bool) -> None:
    """Choose the transport of arrays between processes: memory that they share, else JAX's own.

    Args:
        communicator: the connection of the processes.
        local: all processes are on this machine.
        several: each may use several devices, whose sums are JAX's.
    """
    if local:
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    shared = sums_in_memory(communicator) is not None
    if shared and not several:  # nothing has to listen
        jax.config.update("jax_cpu_collectives_implementation", None)
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if not local:
        return
    jax_internals.listen_on(LOOPBACK)
    if communicator.main:
        _warn_of_loopback("what exchanges arrays between workers")


def _warn_of_loopback(service: str) -> None:
    log.warning(
        "WARNING: %s listens on the loopback of this machine without authentication: other users of the machine must "
        "be trusted.",
        service,
    )


def _detected(rendezvous: Rendezvous, visible: list[int] | None) -> str:
    """Return the address of worker 0 that JAX finds in what the launcher has set for the processes."""
    timeout = round(RENDEZVOUS_SECONDS) + 60
    address = jax_internals.address_of_worker_0(rendezvous.rank, rendezvous.size, visible, timeout)
    if address is None:
        raise ValueError("the address of worker 0 is not known")
    return address


def _is_loopback(address: str) -> bool:
    """Return whether `host:port` can be reached from this machine only."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_host_name() -> None:
    """Check that this machine's name has an address, which JAX's transport on CPUs looks up.

    Raises:
        UserError: It has none.
    """
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise UserError(
            "NoCoordinator",
            f"the name of this machine, '{name}', has no address, so workers cannot meet",
            hint=f"add it to /etc/hosts: 127.0.0.1 {name} (with several machines, the address the others reach it at)",
        ) from None


def leave(communicator: Communicator) -> None:
    """Part from the other processes when all have come to the end."""
    communicator.close()
    jax.distributed.shutdown()
