"""cntk.cntk_py: what programs use of CNTK's native module."""

from __future__ import annotations

from networks.builders.python.functions.graph import set_seed

from .missing import no_attribute


def set_fixed_random_seed(value: int) -> None:
    """Let the next random parameter have this seed, the one after it the next number."""
    set_seed(value)


def reset_random_seed(value: int = 1) -> None:
    """The same."""
    set_seed(value)


def force_deterministic_algorithms() -> None:
    """Nothing: on CPUs results are the same in every run; on GPUs see docs/training-from-python.md."""


__all__ = ["force_deterministic_algorithms", "reset_random_seed", "set_fixed_random_seed"]

__getattr__ = no_attribute("cntk.cntk_py", __all__)
