"""Device descriptors for programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class DeviceKind(IntEnum):
    """Values of `Device.type`."""

    CPU = 0
    GPU = 1


@dataclass(frozen=True)
class Device:
    """A device.

    Args:
        kind: "cpu" or "gpu".
        number: of a GPU.
    """

    kind: str
    number: int = 0

    def type(self) -> DeviceKind:
        """Return the kind: 0 for the CPU, 1 for a GPU."""
        return DeviceKind.GPU if self.kind == "gpu" else DeviceKind.CPU

    def is_locked(self) -> bool:
        """Return False: no process reserves a device for itself."""
        return False

    def id(self) -> int:
        """Return the number."""
        return self.number

    def __str__(self) -> str:
        return "CPU" if self.kind == "cpu" else f"GPU[{self.number}]"


CPU = Device("cpu")
"""Device of a program's data."""
