"""Checks of what programs pass to readers and minibatch sources: a wrong value is one clear message."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from cntkpy.readers.errors import ArgumentError


def whole_number(value: Any, name: str, least: int = 0) -> int:
    """Return an integer of any kind as an int.

    Raises:
        ArgumentError: for anything else, and below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, not {value!r}") from None
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, not {number}")
    return number


def check_size(minibatch_size: Any) -> int:
    """Return the size of a minibatch in samples."""
    number = whole_number(minibatch_size, "The minibatch size", -(2**63))
    if number < 1:
        raise ArgumentError("Requested minibatch size must be > 0")
    return number


def check_share(rank: Any, workers: Any, kind: str = "worker") -> None:
    """Worker `rank` of `workers`."""
    if not 0 <= whole_number(rank, f"the number of the {kind}", -(2**63)) < whole_number(workers, f"{kind}s", 1):
        raise ArgumentError(f"{kind} {rank} of {workers}", f"{kind}s are numbered from 0")


def state_field(state: Any, field: str) -> int:
    """Return a number of a checkpoint state."""
    if not isinstance(state, Mapping) or field not in state:
        raise ArgumentError(f"Checkpoint misses required field {field}", "give what get_checkpoint_state() returned")
    return whole_number(state[field], f"The field {field} of a checkpoint")
