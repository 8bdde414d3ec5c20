"""cntk.variables: inputs, parameters and constants. All are functions."""

from networks.builders.python.function import Function as Variable
from networks.builders.python.function import constant as Constant

from .missing import no_attribute
from .ops import parameter as Parameter

__all__ = ["Constant", "Parameter", "Variable"]

__getattr__ = no_attribute("cntk.variables", __all__)
