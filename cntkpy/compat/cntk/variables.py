"""cntk.variables: inputs, parameters and constants. All are functions."""

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from cntkpy.networks.builders.python.functions.defaults import SINGLE, chosen_dtype
from cntkpy.networks.builders.python.functions.function import Function as VariableMixin
from cntkpy.networks.builders.python.functions.variables import constant, input_variable
from cntkpy.readers import Record

from .axis import Axis
from .missing import no_attribute
from .ops import parameter


class _Kind(type):
    """Lets a class make functions, and be what functions of a kind are instances of."""

    make: Callable[..., VariableMixin]
    has: Callable[[VariableMixin], bool]

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        """Return a function of this kind."""
        return cls.make(*arguments, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, VariableMixin) and cls.has(instance)


def _parameter(
    shape: Any = None, init: Any = None, dtype: Any = None, device: Any = None, name: str = ""
) -> VariableMixin:
    return parameter(shape, init, _precision("parameter", dtype), device, name)


def _constant(
    value: Any = 0.0, shape: Any = None, dtype: Any = None, device: Any = None, name: str = ""
) -> VariableMixin:
    return constant(value, shape, _precision("constant", dtype), device, name)


def _variable(
    shape: Any = None,
    dtype: Any = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    dynamic_axes: Any = None,
    name: str = "",
) -> VariableMixin:
    axes = (Axis.default_batch_axis(), Axis.default_dynamic_axis()) if dynamic_axes is None else dynamic_axes
    return input_variable(() if shape is None else shape, dtype, needs_gradient, is_sparse, axes, name)


def _is_one(function: VariableMixin) -> bool:
    """Return whether it has one output."""
    return len(function.roots) == 1


def _precision(leaf: str, dtype: Any) -> Any:
    """As given, else of `default_options`, else single: arrays are converted, unlike those of `parameter`."""
    return chosen_dtype(leaf, dtype) or SINGLE


class Variable(metaclass=_Kind):
    """A function of one output: an input, a parameter, a constant or a result. As a call, an input of sequences."""

    make = staticmethod(_variable)
    __signature__ = inspect.signature(_variable)
    has = staticmethod(_is_one)


class Parameter(metaclass=_Kind):
    """A parameter; see `parameter`. Without a dtype it is in single precision, whatever an array is in."""

    make = staticmethod(_parameter)
    __signature__ = inspect.signature(_parameter)
    has = attrgetter("is_parameter")


class Constant(metaclass=_Kind):
    """A constant; see `constant`. Without a dtype it is in single precision, whatever an array is in."""

    make = staticmethod(_constant)
    __signature__ = inspect.signature(_constant)
    has = attrgetter("is_constant")


__all__ = ["Constant", "Parameter", "Record", "Variable", "VariableMixin"]

__getattr__ = no_attribute("cntk.variables", __all__)
