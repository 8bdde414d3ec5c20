"""cntk.device: descriptions of devices. Networks run where JAX does; see docs/training-from-python.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cntkpy.readers.data_api.device import CPU, Device, DeviceKind
from cntkpy.readers.errors import ArgumentError

from .missing import no_attribute

_excluded: set[Device] = set()
"""The devices of `set_excluded_devices`."""


def cpu() -> Device:
    """Return the CPU."""
    return CPU


def gpu(device_id: int) -> Device:
    """Return a GPU."""
    return Device("gpu", device_id)


def all_devices() -> list[Device]:
    """Return the devices of this machine."""
    from cntkpy.networks.arrays.lazy import jax

    try:
        gpus: list[Any] = jax.devices("gpu")
    except RuntimeError:
        gpus = []
    return [*(gpu(number) for number in range(len(gpus))), cpu()]


def try_set_default_device(new_default_device: Device, acquire_device_lock: bool = False) -> bool:
    """Compute on a device from now on.

    Args:
        new_default_device: the device.
        acquire_device_lock: accepted; no process reserves a device for itself.

    Returns:
        Whether it is there, and `set_excluded_devices` has not excluded it.
    """
    del acquire_device_lock
    from cntkpy.networks.arrays.lazy import jax

    if new_default_device not in all_devices() or new_default_device in _excluded:
        return False
    jax.config.update("jax_default_device", _of_jax(new_default_device))
    return True


def set_default_device(new_default_device: Device) -> None:
    """Compute on a device from now on.

    Raises:
        ArgumentError: it is not there, or excluded.
    """
    if not try_set_default_device(new_default_device):
        known = ", ".join(str(device) for device in all_devices() if device not in _excluded)
        raise ArgumentError(f"the device {new_default_device} cannot be computed on", hint=f"there are: {known}")


def use_default_device() -> Device:
    """Return the device that is computed on."""
    from cntkpy.networks.arrays.lazy import default_device

    device = default_device()
    return cpu() if device.platform == "cpu" else gpu(device.id)


def set_excluded_devices(excluded_devices: Iterable[Device]) -> None:
    """Compute on none of these devices; if the one of now is among them, on the first other one of `all_devices`.

    Args:
        excluded_devices: the devices; an empty list excludes none.

    Raises:
        ArgumentError: no device is left.
    """
    wanted = set(excluded_devices)
    left = [device for device in all_devices() if device not in wanted]
    if not left:
        raise ArgumentError("set_excluded_devices excludes all devices", hint="leave cpu()")
    _excluded.clear()
    _excluded.update(wanted)
    if use_default_device() in wanted:
        try_set_default_device(left[0])


@dataclass(frozen=True)
class GPUProperties:
    """Properties of a GPU.

    Attributes:
        device_id: its number.
        version_major: of its compute capability.
        version_minor: of the same.
        cores: its multiprocessors.
        name: of the model.
        total_memory: that programs can use, in bytes; JAX reserves a part of the whole memory.
    """

    device_id: int
    version_major: int
    version_minor: int
    cores: int
    name: str
    total_memory: int


def get_gpu_properties(device: Device) -> GPUProperties:
    """Properties of a GPU.

    Raises:
        ArgumentError: it is not a GPU of this machine.
    """
    if device.type() != DeviceKind.GPU or device not in all_devices():
        known = ", ".join(map(str, all_devices()))
        raise ArgumentError(f"get_gpu_properties: {device} is not a GPU of this machine", hint=f"it has: {known}")
    jax_device = _of_jax(device)
    major, _, minor = str(getattr(jax_device, "compute_capability", "0.0")).partition(".")
    statistics: dict[str, Any] | None = jax_device.memory_stats()
    memory = (statistics or {}).get("bytes_limit", 0)
    cores = int(getattr(jax_device, "core_count", 0))
    return GPUProperties(device.number, int(major), int(minor or 0), cores, jax_device.device_kind, int(memory))


def _of_jax(device: Device) -> Any:
    from cntkpy.networks.arrays.lazy import jax

    return jax.devices(device.kind)[device.number]


class _Kind(type):
    """Lets devices that functions give be instances, and calls give such devices."""

    def __call__(cls, kind: str, number: int = 0) -> Any:
        """Return a device, see `Device`."""
        return Device(kind, number)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Device)


class DeviceDescriptor(Device, metaclass=_Kind):
    """See `cntkpy.readers.data_api.device.Device`; the functions of this module are its methods as well."""

    cpu_device = staticmethod(cpu)
    gpu_device = staticmethod(gpu)
    all_devices = staticmethod(all_devices)
    use_default_device = staticmethod(use_default_device)
    try_set_default_device = staticmethod(try_set_default_device)
    set_excluded_devices = staticmethod(set_excluded_devices)
    get_gpu_properties = staticmethod(get_gpu_properties)


__all__ = [
    "DeviceDescriptor", "DeviceKind", "all_devices", "cpu", "get_gpu_properties", "gpu", "set_excluded_devices",
    "try_set_default_device", "use_default_device",
]  # fmt: skip

__getattr__ = no_attribute("cntk.device", [*__all__, "set_default_device"])
