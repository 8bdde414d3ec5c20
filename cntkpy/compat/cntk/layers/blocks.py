"""cntk.layers.blocks: steps of recurrences."""

from cntkpy.networks.builders.python.layers import GRU, LSTM, RNNStep, RNNUnit, Stabilizer, identity
from cntkpy.networks.builders.python.operations.structured import ForwardDeclaration

from ..missing import no_attribute
from ..ops.functions import BlockFunction

__all__ = ["GRU", "LSTM", "BlockFunction", "ForwardDeclaration", "RNNStep", "RNNUnit", "Stabilizer", "identity"]

__getattr__ = no_attribute("cntk.layers.blocks", __all__)
