"""What an action is told beside its section: the run around it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cntk_config import ConfigError, ConfigValue, UserError
from commands.progress import NoProgress, Progress, ProgressTracing

if TYPE_CHECKING:
    from networks.initialize import SeedCounter

Precision = Literal["float", "double"]


@dataclass
class Device:
    """Where to compute: `deviceId` as it was asked for. Choosing is left until the first computation needs JAX."""

    request: str = "auto"
    value: ConfigValue | None = None

    @property
    def number(self) -> int | None:
        """The number of the GPU asked for, None for `cpu`, a negative number, or `auto`."""
        return int(self.request) if self.request not in ("auto", "cpu") and int(self.request) >= 0 else None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU was asked for."""
        return self.request != "auto" and self.number is None

    @property
    def key(self) -> str:
        """What two equal choices have in common: `auto`, `cpu`, or the number."""
        return "cpu" if self.is_cpu else self.request

    def prepare(self) -> None:
        """Tell JAX, before it is imported, not to look for GPUs if none is wanted."""
        if self.is_cpu:
            os.environ.setdefault("JAX_PLATFORMS", "cpu")

    def choose(self, devices: Sequence[Any]) -> Any:
        """Return the one of JAX's `devices` (with `.platform` and `.id`) which was asked for.

        `auto` is the first GPU, or the CPU if there is none. A GPU that is not there is an error which lists those that
        are.
        """
        gpus = [device for device in devices if device.platform in ("gpu", "cuda", "rocm")]
        others = [device for device in devices if device not in gpus]
        if self.request == "auto":
            return (gpus or others)[0]
        if self.number is None:
            return others[0] if others else None
        for device in gpus:
            if device.id == self.number:
                return device
        have = ", ".join(f"GPU {device.id} ({getattr(device, 'device_kind', '?')})" for device in gpus)
        install = "" if have else "; for NVIDIA GPUs install JAX's CUDA plugin: pip install 'cntkpy[cuda]'"
        raise UserError(
            f"there is no GPU {self.number} on this machine; JAX sees " + (have or "no GPU, only the CPU"),
            span=self.value.span if self.value is not None else None,
            hint="use deviceId=auto or deviceId=cpu" + install,
            kind="NoSuchDevice",
        )

    @staticmethod
    def name(device: Any) -> str:
        """Return what the log calls a JAX device: `CPU` or `GPU 0`."""
        return "CPU" if device is None or device.platform == "cpu" else f"GPU {device.id}"


def read_device(value: ConfigValue | None) -> Device:
    """Read `deviceId`: `auto`, `cpu` (any case) or an integer; negative is the CPU."""
    if value is None:
        return Device()
    text = str(value).strip()
    if text.lower() in ("auto", "cpu"):
        return Device(text.lower(), value)
    if re.fullmatch(r"[+-]?\d+", text):
        return Device(str(int(text)), value)
    raise ConfigError(
        "BadDevice",
        f"deviceId is auto, cpu, or the number of a GPU, not '{text}'",
        span=value.span,
        hint="cntkpy computes on one device per process" if text == "all" or text.startswith("*") else None,
    )


class Seeds:
    """The counter of random parameter initialisations: one per process, made when a network is first built."""

    def __init__(self, constant: bool = False):
        self.constant = constant
        self._counter: SeedCounter | None = None

    def counter(self) -> "SeedCounter":
        """Return the counter."""
        if self._counter is None:
            from networks.initialize import SeedCounter

            self._counter = SeedCounter(constant=self.constant)
        return self._counter


@dataclass
class RunContext:
    """Given to every action beside its section."""

    command: str
    """The name of the section being run."""
    action: str
    """The name of the action, as written."""
    precision: Precision = "float"
    trace_level: int = 0
    """The section's `traceLevel`."""
    make_mode: bool = True
    """Whether work that is done already is left alone: `makeMode`."""
    deterministic: bool = False
    """`forceDeterministicAlgorithms`."""
    device: Device = field(default_factory=Device)
    progress: Progress = field(default_factory=NoProgress)
    """The progress bar: start, update, finish."""
    progress_tracing: ProgressTracing = field(default_factory=ProgressTracing)
    """The `PROGRESS:` lines: point, keep_alive."""
    seed_source: Seeds = field(default_factory=Seeds)

    @property
    def seeds(self) -> "SeedCounter":
        """The counter of random initialisations; it goes on from command to command."""
        return self.seed_source.counter()
