"""cntk.variables: inputs, parameters and constants. All are functions."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from networks.builders.python.functions.defaults import SINGLE, chosen_dtype
from networks.builders.python.functions.function import Function as Variable
from networks.builders.python.functions.variables import constant

from .missing import no_attribute
from .ops import parameter


class _Kind(type):
    """Lets a class make functions, and be what functions of a kind are instances of."""

    make: Callable[..., Variable]
    has: Callable[[Variable], bool]

    def __call__(cls, *given: Any, **named: Any) -> Any:
        """A function of this kind."""
        return cls.make(*given, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Variable) and cls.has(instance)


def _parameter(shape: Any = None, init: Any = None, dtype: Any = None, device: Any = None, name: str = "") -> Variable:
    return parameter(shape, init, _precision("parameter", dtype), device, name)


def _constant(value: Any = 0.0, shape: Any = None, dtype: Any = None, device: Any = None, name: str = "") -> Variable:
    return constant(value, shape, _precision("constant", dtype), device, name)


def _precision(leaf: str, dtype: Any) -> Any:
    """As given, else of `default_options`, else single: arrays are converted, unlike those of `parameter`."""
    return chosen_dtype(leaf, dtype) or SINGLE


class Parameter(metaclass=_Kind):
    """What training changes; see `parameter`. Without a dtype it is in single precision, whatever an array is in."""

    make = staticmethod(_parameter)
    has = attrgetter("is_parameter")


class Constant(metaclass=_Kind):
    """What never changes; see `constant`. Without a dtype it is in single precision, whatever an array is in."""

    make = staticmethod(_constant)
    has = attrgetter("is_constant")


__all__ = ["Constant", "Parameter", "Variable"]

__getattr__ = no_attribute("cntk.variables", __all__)
