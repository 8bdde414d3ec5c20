"""cntk.debugging.debug: checks, messages, times of nodes."""

from __future__ import annotations

from typing import Any

from cntkpy.cntk_config import UserError
from cntkpy.trainers.fronts.cntk2.timing import set_node_timing

from ..cntk_py import (
    force_deterministic_algorithms,
    set_checked_mode,
    set_computation_network_track_gap_nans,
    set_fixed_random_seed,
)
from ..logging import set_computation_network_trace_level
from ..missing import no_attribute
from .dumps import dump_function, dump_signature
from .stepping import debug_model


def force_deterministic(seed: int) -> None:
    """The same results in every run: the next random parameter has this seed, the one after it the next number."""
    set_fixed_random_seed(seed)
    force_deterministic_algorithms()


def save_as_legacy_model(root_op: Any, filename: str) -> None:
    """Not there: a model is saved in one format.

    Raises:
        UserError: always.
    """
    del root_op
    hint = "z.save(path); `cntkpy export` writes ONNX"
    raise UserError("NotSupported", f"{filename}: models of CNTK 1 are not written", hint=hint)


__all__ = [
    "debug_model", "dump_function", "dump_signature", "force_deterministic", "force_deterministic_algorithms",
    "save_as_legacy_model", "set_checked_mode", "set_computation_network_trace_level",
    "set_computation_network_track_gap_nans", "set_node_timing",
]  # fmt: skip

__getattr__ = no_attribute("cntk.debugging.debug", __all__)
