"""Rendezvous: how the processes of a run find each other, through JAX's coordination service, and part again."""

import importlib
import ipaddress
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from cntk_config.base.diagnostics import UserError
from networks.arrays.lazy import jax, prepare
from trainers.parallel.communicator import SILENT, Communicator

RENDEZVOUS_SECONDS = 300.0
"""Seconds that the processes wait for each other when they start."""

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Rendezvous:
    """How a process joins the others.

    Attributes:
        rank, size: number of this process, and how many there are.
        local_rank: its number among those on this machine.
        coordinator: `host:port` of worker 0; with `None` JAX finds it in what the launcher has told the processes.
        silent: seconds without a sign of life after which a worker counts as lost.
    """

    rank: int
    size: int
    local_rank: int = 0
    coordinator: str | None = None
    silent: float = SILENT


def join(rendezvous: Rendezvous, on_lost: Callable[[str], NoReturn], visible: list[int] | None = None) -> Communicator:
    """Meet the other processes, before anything is computed; `visible`: numbers of the GPUs that this process may use.

    Raises:
        UserError: if they cannot be reached.
    """
    _check_host_name()
    prepare()
    jax.config.update("jax_enable_preemption_service", False)  # else SIGTERM never reaches our own handler
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    where = f" at {rendezvous.coordinator}" if rendezvous.coordinator else ""
    this = f"worker {rendezvous.rank} of {rendezvous.size}"
    message = f"{this} has not met the others{where} within {RENDEZVOUS_SECONDS:.0f} s"
    waited = threading.Timer(RENDEZVOUS_SECONDS, on_lost, [message])  # JAX itself would end the process, with a trace
    waited.daemon = True
    waited.start()
    try:
        announced = rendezvous.coordinator or _detected(rendezvous, visible)
        if _is_loopback(announced):
            _stay_on_this_machine()
        jax.distributed.initialize(
            announced,
            rendezvous.size,
            rendezvous.rank,
            visible,
            cluster_detection_method="deactivate",
            initialization_timeout=round(RENDEZVOUS_SECONDS) + 60,
            coordinator_bind_address=os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or announced,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            "NoCoordinator",
            f"{this} cannot meet the others{where}: {str(error).splitlines()[0]}",
            hint="all workers must reach worker 0: give its address in JAX_COORDINATOR_ADDRESS=host:port",
        ) from None
    finally:
        waited.cancel()
    return Communicator(rendezvous.rank, rendezvous.size, _coordination_client(), on_lost, rendezvous.silent)


def _coordination_client() -> Any:
    """JAX's client of the coordination service, which has no public name yet."""
    from jax._src import distributed

    state: Any = distributed.global_state
    return state.client


def _detected(rendezvous: Rendezvous, visible: list[int] | None) -> str:
    """The address of worker 0 that JAX finds in what the launcher has told the processes."""
    from jax._src.clusters import ClusterEnv  # it has no public name

    timeout = round(RENDEZVOUS_SECONDS) + 60
    detect = ClusterEnv.auto_detect_unset_distributed_params
    found: Any = detect(None, rendezvous.size, rendezvous.rank, visible, None, timeout)
    if found[0] is None:
        raise ValueError("the address of worker 0 is not known")
    return found[0]


def _is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this machine only."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _stay_on_this_machine() -> None:
    """Let what exchanges arrays listen on loopback; by itself it takes the address that the host's name has."""
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    # these have neither public names nor types
    bridge: Any = importlib.import_module("jax._src.xla_bridge")
    native: Any = importlib.import_module("jax._src.lib")._jax

    def make_client() -> Any:
        transport = native.make_gloo_tcp_collectives(distributed_client=_coordination_client(), hostname=LOOPBACK)
        return bridge.make_cpu_client(transport)

    bridge.register_backend_factory("cpu", make_client, priority=0, fail_quietly=False)


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
