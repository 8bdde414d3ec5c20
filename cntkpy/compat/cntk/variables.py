"""cntk.variables: inputs, parameters and constants. All are functions."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from networks.builders.python.function import Function as Variable
from networks.builders.python.function import constant

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


class Parameter(metaclass=_Kind):
    """What training changes; see `parameter`."""

    make = staticmethod(parameter)
    has = attrgetter("is_parameter")


class Constant(metaclass=_Kind):
    """What never changes; see `constant`."""

    make = staticmethod(constant)
    has = attrgetter("is_constant")


__all__ = ["Constant", "Parameter", "Variable"]

__getattr__ = no_attribute("cntk.variables", __all__)
