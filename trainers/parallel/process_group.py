"""Workers that train together: the processes of a run and their devices, on JAX's distributed runtime.

A worker is a device. Every process has the same number of them (one, unless `deviceId` asks for several); processes
find each other through `jax.distributed`, and arrays of all workers lie on one mesh with the axis `workers`.
"""

import ipaddress
import itertools
import logging
import os
import platform
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from cntk_config.base.diagnostics import UserError
from networks.arrays.lazy import jax, number_of
from trainers.parallel.communicator import SILENT, Link

log = logging.getLogger("cntkpy.trainers")

AXIS = "workers"

MEETING = 300.0
"""Seconds that the processes wait for each other when they start."""

LOOPBACK = "127.0.0.1"

Array = Any


@dataclass
class Team:
    """The workers of a run.

    **Arguments:**

    - `link`: the connection to the other processes.
    - `devices`: those of all processes, in order of the processes, equally many of each.
    - `own`: those of this process.
    """

    link: Link = field(default_factory=Link)
    devices: Sequence[Any] = ()
    own: Sequence[Any] = ()

    @property
    def workers(self) -> int:
        """How many devices there are in all processes."""
        return len(self.devices)

    @property
    def main(self) -> bool:
        """Whether this process writes the files."""
        return self.link.main

    @cached_property
    def mesh(self) -> Any:
        """All devices in a row."""
        return jax.sharding.Mesh(np.array(self.devices), (AXIS,))

    def on_all(self, array: Any, axis: int | None = None) -> Array:
        """An array on all devices: the same everywhere, or with each worker's part at its place along an axis.

        **Arguments:** `array`, numpy: the whole, which every process has; or along `axis` the parts of the own devices.
        """
        spec = jax.sharding.PartitionSpec() if axis is None else jax.sharding.PartitionSpec(*[None] * axis, AXIS)
        sharding = jax.sharding.NamedSharding(self.mesh, spec)
        if axis is None:
            copies = [jax.device_put(array, device, may_alias=False) for device in self.own]
            return jax.make_array_from_single_device_arrays(np.shape(array), sharding, copies)
        width = array.shape[axis] // len(self.own)
        places = [(slice(None),) * axis + (slice(k * width, (k + 1) * width),) for k in range(len(self.own))]
        parts = [jax.device_put(array[place], device) for place, device in zip(places, self.own, strict=True)]
        shape = (*array.shape[:axis], width * self.workers, *array.shape[axis + 1 :])
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def gather(self, array: Array) -> np.ndarray:
        """The whole of an array of which every process has a part, on the host of every process."""
        return np.asarray(self._together(array))

    @cached_property
    def _together(self) -> Callable[[Array], Array]:
        """Gives every device the whole of an array; compiled once per shape."""
        whole = jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())
        return jax.jit(lambda array: array, out_shardings=whole)


def alone(device: Any = None) -> Team:
    """One process with one device."""
    return Team(Link(), (device,), (device,))


@dataclass(frozen=True)
class Meeting:
    """How a process joins the others.

    **Arguments:**

    - `rank`, `size`: number of this process, and how many there are.
    - `local_rank`: its number among those on this machine.
    - `coordinator`: `host:port` of worker 0; `None`: JAX finds it in what the launcher has told the processes.
    - `silent`: seconds without a sign of life after which a worker counts as lost.
    """

    rank: int
    size: int
    local_rank: int = 0
    coordinator: str | None = None
    silent: float = SILENT


def join(meeting: Meeting, on_lost: Callable[[str], NoReturn], visible: list[int] | None = None) -> Link:
    """Meet the other processes, before anything is computed; `visible`: numbers of the GPUs that this process may use.

    **Raises** a `UserError` if they cannot be reached.
    """
    from networks.arrays.lazy import prepare

    _check_host_name()
    prepare()
    jax.config.update("jax_enable_preemption_service", False)  # else SIGTERM never reaches our own handler
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    where = f" at {meeting.coordinator}" if meeting.coordinator else ""
    alone = f"worker {meeting.rank} of {meeting.size} has not met the others{where} within {MEETING:.0f} s"
    waited = threading.Timer(MEETING, on_lost, [alone])  # JAX itself would end the process with a stack trace
    waited.daemon = True
    waited.start()
    try:
        announced = meeting.coordinator or _detected(meeting, visible)
        if _is_loopback(announced):
            _stay_on_this_machine()
        jax.distributed.initialize(
            announced,
            meeting.size,
            meeting.rank,
            visible,
            cluster_detection_method="deactivate",
            initialization_timeout=round(MEETING) + 60,
            coordinator_bind_address=os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or announced,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"worker {meeting.rank} of {meeting.size} cannot meet the others{where}: {str(error).splitlines()[0]}",
            hint="all workers must reach worker 0: give its address in JAX_COORDINATOR_ADDRESS=host:port",
            kind="NoCoordinator",
        ) from None
    finally:
        waited.cancel()
    from jax._src import distributed  # the coordination service has no public name yet

    return Link(meeting.rank, meeting.size, distributed.global_state.client, on_lost, meeting.silent)


def _detected(meeting: Meeting, visible: list[int] | None) -> str:
    """The address of worker 0 that JAX finds in what the launcher has told the processes."""
    from jax._src.clusters import ClusterEnv  # it has no public name

    timeout = round(MEETING) + 60
    detect = ClusterEnv.auto_detect_unset_distributed_params
    found: Any = detect(None, meeting.size, meeting.rank, visible, None, timeout)
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
    from jax._src import distributed, xla_bridge
    from jax._src.lib import _jax

    def make_client() -> Any:
        client = distributed.global_state.client
        return xla_bridge.make_cpu_client(_jax.make_gloo_tcp_collectives(distributed_client=client, hostname=LOOPBACK))

    xla_bridge.register_backend_factory("cpu", make_client, priority=0, fail_quietly=False)


def _check_host_name() -> None:
    """**Raises** a `UserError` if this machine's name has no address: JAX's transport on CPUs looks it up."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise UserError(
            f"the name of this machine, '{name}', has no address, so workers cannot meet",
            hint=f"add it to /etc/hosts: 127.0.0.1 {name} (with several machines, the address the others reach it at)",
            kind="NoCoordinator",
        ) from None


def leave(link: Link) -> None:
    """Part from the other processes when all have come to the end."""
    link.close()
    jax.distributed.shutdown()


def team_of(link: Link, own: Sequence[Any]) -> Team:
    """The team of all processes, each of which uses its `own` devices.

    **Raises** a `UserError` if the processes have different numbers or kinds of devices, or share one.
    """
    if link.size == 1:
        return Team(link, tuple(own), tuple(own))
    used = [[_Used(*one) for one in devices] for devices in link.exchange([_Used.of(device) for device in own])]
    _check_alike(used)
    known = {device.id: device for device in jax.devices(own[0].platform)}
    return Team(link, tuple(known[one.id] for one in itertools.chain.from_iterable(used)), tuple(own))


class _Used(NamedTuple):
    """A device of some process: what it is, its number in the run, on which machine it is, its number there."""

    kind: str
    id: int
    host: str
    number: int

    @classmethod
    def of(cls, device: Any) -> "_Used":
        return cls(device.platform, device.id, platform.node(), number_of(device))


def _check_alike(used: list[list[_Used]]) -> None:
    """**Raises** a `UserError` if workers cannot train together on the devices of each."""
    counts = [str(len(devices)) for devices in used]
    if len(set(counts)) > 1:
        raise UserError(
            f"the workers have different numbers of devices: {', '.join(counts)}",
            hint="choose equally many in each process, for instance deviceId = auto",
            kind="UnequalDevices",
        )
    kinds = [devices[0].kind for devices in used]
    if len(set(kinds)) > 1:
        raise UserError(
            f"the workers compute on different kinds of devices: {', '.join(kinds)}",
            hint="start as many workers on every machine as it has GPUs, or use deviceId = cpu",
            kind="UnequalDevices",
        )
    owner: dict[tuple[str, int], int] = {}
    for rank, devices in enumerate(used):
        for one in devices:
            other = owner.setdefault((one.host, one.number), rank)
            if other != rank and one.kind != "cpu":
                raise UserError(
                    f"workers {other} and {rank} both compute on GPU {one.number} of {one.host}",
                    hint="use deviceId = auto: every worker then takes a GPU of its own",
                    kind="SharedDevice",
                )
