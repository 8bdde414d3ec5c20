"""cntk.device: descriptions of devices. Networks run where JAX does; see docs/training-from-python.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from cntk_config import UserError

from .missing import no_attribute


class DeviceKind(IntEnum):
    """What `DeviceDescriptor.type` gives."""

    CPU = 0
    GPU = 1


@dataclass(frozen=True)
class DeviceDescriptor:
    """A device.

    Args:
        kind: "cpu" or "gpu".
        number: of a GPU.
    """

    kind: str
    number: int = 0

    def type(self) -> DeviceKind:
        """The kind: 0 for the CPU, 1 for a GPU."""
        return DeviceKind.GPU if self.kind == "gpu" else DeviceKind.CPU

    def is_locked(self) -> bool:
        """False: devices are not locked for a process."""
        return False

    def id(self) -> int:
        """The number."""
        return self.number

    def __str__(self) -> str:
        return "CPU" if self.kind == "cpu" else f"GPU[{self.number}]"


def cpu() -> DeviceDescriptor:
    """The CPU."""
    return DeviceDescriptor("cpu")


def gpu(device_id: int) -> DeviceDescriptor:
    """A GPU."""
    return DeviceDescriptor("gpu", device_id)


def all_devices() -> list[DeviceDescriptor]:
    """The devices of this machine."""
    from networks.arrays.lazy import jax

    try:
        gpus: list[Any] = jax.devices("gpu")
    except RuntimeError:
        gpus = []
    return [*(gpu(number) for number in range(len(gpus))), cpu()]


def try_set_default_device(new_default_device: DeviceDescriptor, acquire_device_lock: bool = False) -> bool:
    """Compute on a device from now on; whether it is there."""
    del acquire_device_lock
    from networks.arrays.lazy import jax

    if new_default_device not in all_devices():
        return False
    found = jax.devices(new_default_device.kind)[new_default_device.number]
    jax.config.update("jax_default_device", found)
    return True


def use_default_device() -> DeviceDescriptor:
    """The device that is computed on."""
    from networks.arrays.lazy import jax

    found = jax.config.jax_default_device or jax.devices()[0]
    return cpu() if found.platform == "cpu" else gpu(found.id)


def set_excluded_devices(excluded_devices: Any) -> None:
    """Not there: CUDA_VISIBLE_DEVICES does that."""
    raise UserError("NotSupported", "set_excluded_devices does not exist", hint="set CUDA_VISIBLE_DEVICES")


__all__ = [
    "DeviceDescriptor",
    "DeviceKind",
    "all_devices",
    "cpu",
    "gpu",
    "set_excluded_devices",
    "try_set_default_device",
    "use_default_device",
]

__getattr__ = no_attribute("cntk.device", __all__)
