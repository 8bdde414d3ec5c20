"""cntk.tensor: arrays of CNTK, which are views of NumPy's here."""

from .core import NDArrayView
from .missing import no_attribute

ArrayMixin = NDArrayViewOpsMixin = NDArrayView

__all__ = ["ArrayMixin", "NDArrayViewOpsMixin"]

__getattr__ = no_attribute("cntk.tensor", __all__)
