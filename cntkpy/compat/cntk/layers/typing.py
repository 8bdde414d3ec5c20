"""cntk.layers.typing: types of inputs, for signatures of criterion functions."""

from ..missing import no_attribute
from ..types import Sequence, SequenceOver, SequenceOverMeta, Signature, SparseTensor, Tensor, tensor

__all__ = ["Sequence", "SequenceOver", "SequenceOverMeta", "Signature", "SparseTensor", "Tensor", "tensor"]

__getattr__ = no_attribute("cntk.layers.typing", __all__)
