"""cntk.layers.blocks: steps of recurrences."""

from networks.builders.python.layers import GRU, LSTM, RNNStep, RNNUnit, Stabilizer, identity

from ..missing import no_attribute

__all__ = ["GRU", "LSTM", "RNNStep", "RNNUnit", "Stabilizer", "identity"]

__getattr__ = no_attribute("cntk.layers.blocks", __all__)
