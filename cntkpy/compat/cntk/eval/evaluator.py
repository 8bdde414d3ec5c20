"""cntk.eval.evaluator: tests of a function."""

from cntkpy.trainers.fronts.cntk2.tester import Tester as Evaluator

from ..missing import no_attribute

__all__ = ["Evaluator"]

__getattr__ = no_attribute("cntk.eval.evaluator", __all__)
