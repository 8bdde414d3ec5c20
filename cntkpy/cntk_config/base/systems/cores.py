"""The cores of this machine, which of them this process may use, and how they lie together.

Linux lets cores be chosen. On macOS and Windows a process may use all of them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

TOPOLOGY = Path("/sys/devices/system/cpu")
DESCRIPTION = Path("/proc/cpuinfo")
CHANGES_CODE = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU ")
"""The lines of `DESCRIPTION` that tell processors apart for which other code is compiled."""


def of_process() -> list[int]:
    """Return the cores that this process may use."""
    if can_be_chosen():
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def count() -> int:
    """Return the number of cores this process may use."""
    return len(of_process())


def can_be_chosen() -> bool:
    """Return whether the system lets processes have cores of their own."""
    return hasattr(os, "sched_setaffinity")


def choose(cores: Collection[int]) -> None:
    """Let this process, and those that it starts, use these cores only, where the system lets them be chosen."""
    if can_be_chosen():
        with suppress(OSError):  # not all systems that have cores let them be chosen
            os.sched_setaffinity(0, cores)


def place(core: int) -> tuple[int, int, int]:
    """Return a sort key of a core: processor, physical core, number."""
    folder = TOPOLOGY / f"cpu{core}" / "topology"
    try:
        package, physical = (
            int((folder / name).read_text(encoding="ascii")) for name in ("physical_package_id", "core_id")
        )
    except (OSError, ValueError):
        return 0, core, core
    return package, physical, core


def description() -> list[Any]:
    """Return all facts that compiled code depends on: the machine, the system, the number of cores, the processor's
    instructions."""
    machine = [platform.machine(), platform.system(), count()]
    try:
        with DESCRIPTION.open(encoding="utf-8") as file:
            return machine + [line for line in takewhile(str.strip, file) if line.startswith(CHANGES_CODE)]
    except OSError:
        return [*machine, platform.processor()]
