"""The process group of a run: its processes and their devices, and the arrays that lie on all of them.

A worker is a device. Every process has the same number of them (one, unless `deviceId` asks for several). Arrays of
all workers lie on one mesh with the axis `workers`.
"""

import base64
import functools
import itertools
import logging
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, number_of
from cntkpy.trainers.parallel import host_call, shared_memory
from cntkpy.trainers.parallel.communicator import Communicator
from cntkpy.trainers.parallel.shared_messages import MAX_MESSAGE_BYTES
from cntkpy.trainers.step.placement import copy_to_device

log = logging.getLogger("cntkpy.trainers")

AXIS = "workers"

Array = Any


@dataclass
class ProcessGroup:
    """The workers of a run.

    Attributes:
        communicator: the connection to the other processes.
        devices: those of all processes, in order of the processes, equally many of each.
        local: those of this process.
    """

    communicator: Communicator = field(default_factory=Communicator)
    devices: Sequence[Any] = ()
    local: Sequence[Any] = ()

    @property
    def workers(self) -> int:
        """Return the number of devices in all processes."""
        return len(self.devices)

    @property
    def main(self) -> bool:
        """Return whether this process writes the files."""
        return self.communicator.main

    @cached_property
    def mesh(self) -> Any:
        """Return the devices that a program runs on in a row: all, or the own ones where workers share memory."""
        return jax.sharding.Mesh(np.array(self.devices if self.sums is None else self.local), (AXIS,))

    @cached_property
    def first(self) -> int:
        """Return the number of the first device of `mesh` among all."""
        return 0 if self.sums is None else self.communicator.rank * len(self.local)

    def on_all(self, array: Any, axis: int | None = None) -> Array:
        """Return an array on the devices of `mesh`: the same everywhere, or with each worker's part at its place on an
        axis.

        Args:
            array: NumPy's. The whole, which every process has; with `axis`, the parts of the own devices along it.
            axis: where the parts are joined; `None` for the whole.
        """
        spec = jax.sharding.PartitionSpec() if axis is None else jax.sharding.PartitionSpec(*[None] * axis, AXIS)
        sharding = jax.sharding.NamedSharding(self.mesh, spec)
        if axis is None:
            copies = [copy_to_device(array, device) for device in self.local]
            return jax.make_array_from_single_device_arrays(np.shape(array), sharding, copies)
        width = array.shape[axis] // len(self.local)
        places = [(slice(None),) * axis + (slice(k * width, (k + 1) * width),) for k in range(len(self.local))]
        parts = [jax.device_put(array[place], device) for place, device in zip(places, self.local, strict=True)]
        shape = (*array.shape[:axis], width * self.mesh.size, *array.shape[axis + 1 :])
        return jax.make_array_from_single_device_arrays(shape, sharding, parts)

    def on_each(self, function: Callable[..., Any], arguments: object, results: object) -> Callable[..., Any]:
        """Return a function that every worker computes with its own parts; given, results: how arguments and results
        lie.
        """
        return jax.shard_map(function, mesh=self.mesh, in_specs=arguments, out_specs=results, check_vma=False)

    @cached_property
    def sums(self) -> str | None:
        """Return the name of the function that compiled programs call for sums in shared memory; None: there is none.

        To ask for it the first time, all processes have to come together.
        """
        alone = self.communicator.size == 1 or len(self.local) > 1 or self.local[0].platform != "cpu"
        return None if alone else sums_in_memory(self.communicator)

    def send(self, message: bytes) -> list[bytes]:
        """Send a message to all; returns those of all processes, in order of their ranks."""
        received = self.communicator.send(message) if self.sums is not None else None
        if received is not None:
            return received
        return [
            base64.b64decode(text) for text in self.communicator.exchange(base64.b64encode(message).decode("ascii"))
        ]

    def gather(self, array: Array, axis: int = 0) -> np.ndarray:
        """Return the whole of an array of which every process has a part, on the host of every process.

        Args:
            array: what `on_all` gave.
            axis: along which the parts lie.
        """
        if self.sums is None:
            return np.asarray(self._together(array))
        part = np.ascontiguousarray(array)
        message = part.tobytes()
        begins = range(0, len(message) or 1, MAX_MESSAGE_BYTES)
        received = [self.send(message[begin : begin + MAX_MESSAGE_BYTES]) for begin in begins]
        joined = (b"".join(pieces) for pieces in zip(*received, strict=True))
        parts = [np.frombuffer(data, part.dtype).reshape(part.shape) for data in joined]
        return np.concatenate(parts, axis)

    def part(self, array: np.ndarray, axis: int = 0) -> np.ndarray:
        """Return this process's part of a whole that `gather` gave, whose parts lie along an axis."""
        return np.split(array, self.communicator.size, axis)[self.communicator.rank]

    @cached_property
    def _together(self) -> Callable[[Array], Array]:
        """Gives every device the whole of an array; compiled once per shape."""
        whole = jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())
        return jax.jit(_as_it_is, out_shardings=whole)


@functools.cache
def sums_in_memory(communicator: Communicator) -> str | None:
    """Return the name of the function for sums in memory that all processes share; None, in all of them: they cannot.

    From now on the processes send each other everything through that memory.
    """
    sums = shared_memory.connect(communicator)
    if sums is None:
        return None
    communicator.use(sums.messages)
    name = f"cntkpy_sums_{next(_numbers)}"
    known = True
    try:
        host_call.register(name, sums.sum_of_real)
    except Exception as error:  # of another version of the interface
        log.debug("Gradients do not go through shared memory: %s", error)
        known = False
    return name if all(communicator.exchange(known)) else None


_numbers = itertools.count()


def _as_it_is(array: Array) -> Array:
    return array


def process_group_of(communicator: Communicator, local: Sequence[Any]) -> ProcessGroup:
    """Return the group of all processes, each of which uses its `local` devices.

    Raises:
        UserError: if the processes have different numbers or kinds of devices, or share one.
    """
    if communicator.size == 1:
        return ProcessGroup(communicator, tuple(local), tuple(local))
    used = [
        [_Used(*location) for location in devices]
        for devices in communicator.exchange([_Used.of(device) for device in local])
    ]
    _check_alike(used)
    known = {device.id: device for device in jax.devices(local[0].platform)}
    return ProcessGroup(
        communicator, tuple(known[location.id] for location in itertools.chain.from_iterable(used)), tuple(local)
    )


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
    """Check that every worker has what training together needs.

    Raises:
        UserError: if workers cannot train together on the devices of each.
    """
    counts = [str(len(devices)) for devices in used]
    if len(set(counts)) > 1:
        raise UserError(
            "UnequalDevices",
            f"the workers have different numbers of devices: {', '.join(counts)}",
            hint="choose equally many in each process, for instance deviceId = auto",
        )
    kinds = [devices[0].kind for devices in used]
    if len(set(kinds)) > 1:
        raise UserError(
            "UnequalDevices",
            f"the workers compute on different kinds of devices: {', '.join(kinds)}",
            hint="start as many workers on every machine as it has GPUs, or use deviceId = cpu",
        )
    owner: dict[tuple[str, int], int] = {}
    for rank, devices in enumerate(used):
        for device in devices:
            holder = owner.setdefault((device.host, device.number), rank)
            if holder != rank and device.kind != "cpu":
                raise UserError(
                    "SharedDevice",
                    f"workers {holder} and {rank} both compute on GPU {device.number} of {device.host}",
                    hint="use deviceId = auto: every worker then takes a GPU of its own",
                )
