"""Options with which XLA compiles every program.

On CPUs, XLA's newer emitters of fusions take a third more time and a fifth more memory, and in loops they compute
padded images again for each element. Numbers: docs/decisions/2026-11-29-fusion-emitters.md.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import jax

if TYPE_CHECKING:
    from cntkpy.networks.arrays.lazy import Device

EMITTERS = "xla_cpu_use_fusion_emitters"


def compiler_options(devices: Sequence[Device]) -> dict[str, bool]:
    """Return the options for programs on these devices. What the user says in `XLA_FLAGS` stays."""
    if EMITTERS in os.environ.get("XLA_FLAGS", "") or any(device.platform != "cpu" for device in devices):
        return {}
    return _known_options()


@functools.cache
def _known_options() -> dict[str, bool]:
    """Return the options that this version of XLA knows."""
    options = {EMITTERS: False}
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=options)
    except jax.errors.JaxRuntimeError:
        return {}
    return options
