"""cntk.tensor: arrays of CNTK, which are views of NumPy's here."""

from cntkpy.networks.builders.python.functions.mixins.overloads import Operators as TensorOpsMixin

from .core import NDArrayView
from .missing import no_attribute

ArrayMixin = NDArrayViewOpsMixin = NDArrayView

__all__ = ["ArrayMixin", "NDArrayViewOpsMixin", "TensorOpsMixin"]

__getattr__ = no_attribute("cntk.tensor", __all__)
