"""Devices to compute on: `deviceId`, and the devices of JAX that it stands for."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cntkpy.cntk_config import ConfigError, ConfigValue, UserError
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.declare import Type
from cntkpy.networks.arrays.lazy import jax, number_of, prepare


@dataclass
class Device:
    """`deviceId` as it was asked for. Choosing is left until the first computation needs JAX."""

    request: str = "auto"
    value: ConfigValue | None = None

    @property
    def number(self) -> int | None:
        """The number of the GPU asked for, None for a negative number and for all words."""
        return int(self.request) if self.request.lstrip("-").isdigit() and int(self.request) >= 0 else None

    @property
    def count(self) -> int | None:
        """Number of devices that `*N` asks for."""
        return int(self.request[1:]) if self.request.startswith("*") else None

    @property
    def several(self) -> bool:
        """True if one process may use several devices."""
        return self.request == "all" or (self.count or 1) > 1

    @property
    def is_cpu(self) -> bool:
        """True if the CPU was asked for."""
        return self.request == "cpu" or self.request.startswith("-")

    @property
    def key(self) -> str:
        """Key that equal choices share: a word, or the number."""
        return "cpu" if self.is_cpu else self.request

    def visible(self, local_rank: int) -> list[int] | None:
        """Return the GPUs that one of several processes on a machine may use; None: all of them."""
        if self.number is not None:
            return [self.number]
        return [local_rank] if self.request == "auto" else None

    def prepare(self) -> None:
        """Tell JAX, before it is imported, not to look for GPUs; no command of the run may want one."""
        if self.is_cpu:
            os.environ.setdefault("JAX_PLATFORMS", "cpu")

    def here(self) -> list[Any]:
        """Return the devices of this process which were asked for.

        Raises:
            UserError: for those that are not there, or that JAX cannot use.
        """
        prepare()
        try:
            devices = jax.local_devices(backend="cpu" if self.is_cpu else None)
        except RuntimeError as error:
            hint = "use deviceId=cpu; of several workers on a machine each needs a GPU of its own"
            raise self._error(f"JAX cannot use its devices: {str(error).splitlines()[0]}", hint) from None
        return self.choose(devices)

    def choose(self, devices: Sequence[Any]) -> list[Any]:
        """Return those of JAX's `devices` (with `.platform` and `.id`) which were asked for.

        Whatever is not a CPU counts as a GPU. `auto` is the first GPU, `all` and `*N` are all or N of them, where there
        are none the same of the CPU's devices (one, unless XLA was configured to make several).

        Raises:
            UserError: if there is none that fits; it lists what there is.
        """
        gpus = [device for device in devices if device.platform != "cpu"]
        cpus = [device for device in devices if device.platform == "cpu"]
        if self.request == "auto":
            return (gpus or cpus)[:1]
        if self.is_cpu:
            result, reason = cpus[:1], "there is no CPU"
        elif self.request == "all":
            result, reason = gpus or cpus, ""
        elif self.count is not None:
            result, reason = (gpus or cpus)[: self.count], f"there are fewer than {self.count} devices"
        else:
            result, reason = [gpu for gpu in gpus if number_of(gpu) == self.number], f"there is no GPU {self.number}"
        if len(result) < (self.count or 1):
            raise self._missing(reason, gpus, cpus)
        return result

    def _missing(self, wanted: str, gpus: list[Any], cpus: list[Any]) -> UserError:
        have = ", ".join(f"{name_of(gpu)} ({gpu.device_kind})" for gpu in gpus)
        install = "" if have else f"; for NVIDIA GPUs {how_to_install('cuda')}"
        none = f"no GPU, only the CPU ({len(cpus)} devices)" if len(cpus) > 1 else "no GPU, only the CPU"
        return self._error(
            f"{wanted} on this machine; JAX sees {have or none}", "use deviceId=auto or deviceId=cpu" + install
        )

    def _error(self, message: str, hint: str) -> UserError:
        span = self.value.span if self.value is not None else None
        return UserError("NoSuchDevice", message, span=span, hint=hint)


def name_of(device: Any) -> str:
    """Return the name of a JAX device in the log: `CPU`, `GPU 0`, `TPU 1`."""
    if device.platform == "cpu":
        return "CPU"
    kind = "GPU" if device.platform in ("cuda", "rocm") else device.platform.upper()
    return f"{kind} {number_of(device)}"


def names_of(devices: Sequence[Any]) -> str:
    """Return the names of several devices in the log: `GPU 0, GPU 1` or `4 CPU devices`."""
    if len(devices) > 1 and all(device.platform == "cpu" for device in devices):
        return f"{len(devices)} CPU devices"
    return ", ".join(name_of(device) for device in devices)


def read_device(value: ConfigValue) -> Device:
    """Read `deviceId`: `auto`, `cpu`, `all` (any case), `*N`, or an integer; negative is the CPU.

    Raises:
        ConfigError: for anything else.
    """
    text = value.strip()
    asked = value if value.span is not None else None
    if text.lower() in ("auto", "cpu", "all") or re.fullmatch(r"\*0*[1-9][0-9]*", text):
        return Device(text.lower(), asked)
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return Device(str(int(text)), asked)
    message = f"deviceId is auto, cpu, all, *N or the number of a GPU, not '{text}'"
    raise ConfigError("BadDevice", message, span=value.span)


DEVICE: Type[Device] = Type("auto | cpu | all | *N | integer", read_device)
