"""cntk.logging: progress writers and the level of the log."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from networks.builders.python.function import Function
from trainers.session.progress import ProgressPrinter as OwnPrinter
from trainers.session.progress import ProgressWriter
from trainers.session.tensorboard import TensorBoardProgressWriter

from ..missing import no_attribute
from . import graph
from .graph import find_all_with_name, find_by_name, get_node_outputs, plot


class TraceLevel(IntEnum):
    """How much is logged."""

    Error = 0
    Warning = 1
    Info = 2


_level = [TraceLevel.Warning]


def set_trace_level(value: TraceLevel) -> None:
    """Keep a level; the programs of this package log little by themselves."""
    _level[0] = TraceLevel(value)


def get_trace_level() -> TraceLevel:
    """The level."""
    return _level[0]


class ProgressPrinter(OwnPrinter):
    """See `cntkpy.training.ProgressPrinter`; what it has besides CNTK's arguments changes nothing."""

    def __init__(
        self, freq: int | None = None, first: int = 0, tag: str = "", log_to_file: str | Path | None = None,
        rank: int | None = None, gen_heartbeat: bool = False, num_epochs: int | None = None,
        test_freq: int | None = None, test_first: int = 0, metric_is_pct: bool = True,
        distributed_freq: int | None = None, distributed_first: int = 0,
    ) -> None:  # fmt: skip
        del gen_heartbeat, distributed_freq, distributed_first
        super().__init__(freq, first, tag, log_to_file, rank, num_epochs, test_freq, test_first, metric_is_pct)


def set_computation_network_trace_level(value: int) -> None:
    """Accepted; the compiled network is not traced: see traceNodeNames of configurations."""
    del value


def log_number_of_parameters(model: Function, trace_level: int = 0) -> None:
    """Print how many parameters a function has."""
    parameters = model.parameters
    total = sum(one.value.size for one in parameters)
    print(f"Training {total} parameters in {len(parameters)} parameter tensors.")
    if trace_level > 0:
        for one in parameters:
            print(f"  {one.name or one.uid} {one.shape}")


__all__ = [
    "ProgressPrinter", "ProgressWriter", "TensorBoardProgressWriter", "TraceLevel", "find_all_with_name",
    "find_by_name", "get_node_outputs", "get_trace_level", "graph", "log_number_of_parameters", "plot",
    "set_computation_network_trace_level", "set_trace_level",
]  # fmt: skip

__getattr__ = no_attribute("cntk.logging", __all__)
