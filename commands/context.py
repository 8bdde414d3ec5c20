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
    from trainers.parallel_link import Link

Precision = Literal["float", "double"]


@dataclass
class Device:
    """Where to compute: `deviceId` as it was asked for. Choosing is left until the first computation needs JAX."""

    request: str = "auto"
    value: ConfigValue | None = None

    @property
    def number(self) -> int | None:
        """The number of the GPU asked for, None for a negative number and for all words."""
        return int(self.request) if self.request.lstrip("-").isdigit() and int(self.request) >= 0 else None

    @property
    def count(self) -> int | None:
        """How many devices were asked for by `*N`."""
        return int(self.request[1:]) if self.request.startswith("*") else None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU was asked for."""
        return self.request == "cpu" or self.request.startswith("-")

    @property
    def key(self) -> str:
        """What two equal choices have in common: a word, or the number."""
        return "cpu" if self.is_cpu else self.request

    def visible(self, local_rank: int) -> list[int] | None:
        """The GPUs that one of several processes on a machine may use; None: all of them."""
        if self.number is not None:
            return [self.number]
        return [local_rank] if self.request == "auto" else None

    def prepare(self) -> None:
        """Tell JAX, before it is imported, not to look for GPUs if none is wanted."""
        if self.is_cpu:
            os.environ.setdefault("JAX_PLATFORMS", "cpu")

    def choose(self, devices: Sequence[Any]) -> list[Any]:
        """Return those of JAX's `devices` (with `.platform` and `.id`) which were asked for; none: the CPU by default.

        `auto` is the first GPU, `all` and `*N` are all or N of them, where there are none the same of the CPU's devices
        (one, unless XLA was told to make several). What is not there is an error which lists what is.
        """
        gpus = [device for device in devices if device.platform in ("gpu", "cuda", "rocm")]
        others = [device for device in devices if device not in gpus]
        if self.request == "auto":
            return (gpus or others)[:1]
        if self.is_cpu:
            return others[:1]
        if self.request == "all":
            return gpus or others
        if self.count is not None:
            if len(gpus or others) < self.count:
                raise self._missing(f"there are fewer than {self.count} devices", gpus, others)
            return (gpus or others)[: self.count]
        found = [device for device in gpus if getattr(device, "local_hardware_id", device.id) == self.number]
        if not found:
            raise self._missing(f"there is no GPU {self.number}", gpus, others)
        return found

    def _missing(self, what: str, gpus: list[Any], others: list[Any]) -> UserError:
        have = ", ".join(f"GPU {device.id} ({getattr(device, 'device_kind', '?')})" for device in gpus)
        install = "" if have else "; for NVIDIA GPUs install JAX's CUDA plugin: pip install 'cntkpy[cuda]'"
        cpus = f"no GPU, only the CPU ({len(others)} devices)" if len(others) > 1 else "no GPU, only the CPU"
        return UserError(
            f"{what} on this machine; JAX sees " + (have or cpus),
            span=self.value.span if self.value is not None else None,
            hint="use deviceId=auto or deviceId=cpu" + install,
            kind="NoSuchDevice",
        )

    @staticmethod
    def name(device: Any) -> str:
        """Return what the log calls a device of JAX: `CPU` or `GPU 0`."""
        return "CPU" if device is None or device.platform == "cpu" else f"GPU {device.id}"


def read_device(value: ConfigValue | None) -> Device:
    """Read `deviceId`: `auto`, `cpu`, `all` (any case), `*N`, or an integer; negative is the CPU."""
    if value is None:
        return Device()
    text = str(value).strip()
    if text.lower() in ("auto", "cpu", "all") or re.fullmatch(r"\*0*[1-9]\d*", text):
        return Device(text.lower(), value)
    if re.fullmatch(r"[+-]?\d+", text):
        return Device(str(int(text)), value)
    raise ConfigError(
        "BadDevice",
        f"deviceId is auto, cpu, all, *N or the number of a GPU, not '{text}'",
        span=value.span,
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
    link: "Link | None" = None
    """The other processes of the run, if it has any."""

    @property
    def seeds(self) -> "SeedCounter":
        """The counter of random initialisations; it goes on from command to command."""
        return self.seed_source.counter()
