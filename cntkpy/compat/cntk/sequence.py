"""cntk.sequence: operators on sequences."""

from cntkpy.networks.builders.python.functions.variables import sequence_input as input_variable
from cntkpy.networks.builders.python.operations.dynamic import unpack
from cntkpy.networks.builders.python.operations.operators import (
    broadcast_as,
    first,
    future_value,
    is_first,
    is_last,
    last,
    past_value,
)
from cntkpy.networks.builders.python.operations.operators import sequence_slice as slice
from cntkpy.networks.builders.python.operations.selected import gather, scatter
from cntkpy.networks.builders.python.operations.sequences import delay, reduce_max, reduce_sum, softmax, where

from .missing import no_attribute

input = input_variable

__all__ = [
    "broadcast_as", "delay", "first", "future_value", "gather", "input", "input_variable", "is_first", "is_last",
    "last", "past_value", "reduce_max", "reduce_sum", "scatter", "slice", "softmax", "unpack", "where",
]  # fmt: skip

__getattr__ = no_attribute("cntk.sequence", __all__)
