"""cntk.core: data of minibatches."""

from readers import Value

from .missing import no_attribute

__all__ = ["Value"]

__getattr__ = no_attribute("cntk.core", __all__)
