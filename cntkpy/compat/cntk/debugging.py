"""cntk.debugging: what programs call of it. JAX has a profiler of its own."""

from __future__ import annotations

from typing import Any

from cntk_config import UserError

from .cntk_py import force_deterministic_algorithms, set_fixed_random_seed
from .logging import set_computation_network_trace_level
from .missing import no_attribute


def _no_profiler() -> UserError:
    return UserError("NotSupported", "there is no profiler of CNTK", hint="use jax.profiler.trace(folder)")


def start_profiler(*options: Any, **more: Any) -> None:
    """Not there.

    Raises:
        UserError: always.
    """
    raise _no_profiler()


def enable_profiler() -> None:
    """Not there, see `start_profiler`."""
    raise _no_profiler()


def stop_profiler() -> None:
    """Nothing: no profiler runs."""


def disable_profiler() -> None:
    """Nothing: no profiler runs."""


def set_checked_mode(enable: bool) -> None:
    """Nothing: shapes are always checked, and a criterion that is not a number always names the node."""


def force_deterministic(seed: int) -> None:
    """The same results in every run: the next random parameter has this seed, the one after it the next number."""
    set_fixed_random_seed(seed)


__all__ = [
    "disable_profiler",
    "enable_profiler",
    "force_deterministic",
    "force_deterministic_algorithms",
    "set_checked_mode",
    "set_computation_network_trace_level",
    "start_profiler",
    "stop_profiler",
]

__getattr__ = no_attribute("cntk.debugging", __all__)
