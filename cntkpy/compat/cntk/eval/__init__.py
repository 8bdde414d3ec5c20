"""cntk.eval: tests of a function."""

from ..missing import no_attribute
from . import evaluator
from .evaluator import Evaluator

__all__ = ["Evaluator", "evaluator"]

__getattr__ = no_attribute("cntk.eval", __all__)
