"""cntk.layers.sequence: layers along the steps of sequences."""

from typing import Any

from cntkpy.networks.builders.python.decoders import UnfoldFrom
from cntkpy.networks.builders.python.layers import Delay, Fold, PastValueWindow, Recurrence, RecurrenceFrom

from .. import sequence as operators
from ..missing import no_attribute
from ..ops.functions import Function

__all__ = ["Delay", "Fold", "PastValueWindow", "Recurrence", "RecurrenceFrom", "UnfoldFrom"]


def _santize_step_function(f: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
    """Return the step of a recurrence as a function or a layer; CNTK spells it so."""
    return f if isinstance(f, Function) else Function(f)


_missing = no_attribute("cntk.layers.sequence", __all__)


def __getattr__(name: str) -> Any:
    """Operators on sequences, too, for programs that import all names of `cntk` and of `cntk.layers`."""
    return getattr(operators, name) if name in operators.__all__ else _missing(name)
