"""cntk.layers.sequence: layers along the steps of sequences."""

from networks.builders.python.decoders import UnfoldFrom
from networks.builders.python.layers import Delay, Fold, PastValueWindow, Recurrence, RecurrenceFrom

from ..missing import no_attribute

__all__ = ["Delay", "Fold", "PastValueWindow", "Recurrence", "RecurrenceFrom", "UnfoldFrom"]

__getattr__ = no_attribute("cntk.layers.sequence", __all__)
