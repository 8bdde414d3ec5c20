"""cntk.ops.functions: functions, and how Python functions become some."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from cntkpy.cntk_config.base.diagnostics import CallError
from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.networks.builders.python.functions.function import Function as OwnFunction
from cntkpy.networks.builders.python.functions.function import load_model
from cntkpy.networks.builders.python.layers import Layer
from cntkpy.networks.builders.python.operations.reshaping import alias
from cntkpy.trainers.fronts.cntk2.user.functions import UserFunction, register_deserializer

from ..clone import CloneMethod, ModelFormat
from ..missing import no_attribute
from ..types import OpenType, Signature, Type


class _Kind(type):
    """Lets `Function` be a decorator, and a class that functions and layers are of."""

    def __call__(cls, f: Callable[..., Any], name: str = "") -> Any:
        """Return a layer of a Python function; where all parameters have types, the function of inputs of these
        types.
        """
        types = [parameter.annotation for parameter in inspect.signature(f, eval_str=True).parameters.values()]

        @wraps(f)
        def apply(*arguments: Any, **named: Any) -> OwnFunction:
            return _joined(f(*arguments, **named))

        layer = Layer(apply, name)
        if types and all(isinstance(parameter, Type) for parameter in types):
            return layer(*_variables(f, types))
        return layer

    def __instancecheck__(cls, instance: object) -> bool:
        """Return whether it is a function or a layer; inputs, parameters, constants and placeholders are variables."""
        if isinstance(instance, OwnFunction):
            return not (instance.is_leaf or instance.is_placeholder)
        return isinstance(instance, Layer)


class Function(metaclass=_Kind):
    """`Function(f)` makes a layer of a Python function, `@Function` does so as a decorator."""

    load = OwnFunction.load
    register_udf_deserialize_callback = staticmethod(register_deserializer)

    @staticmethod
    def with_signature(*types: Any, **named: Any) -> Callable[[Callable[..., Any]], Any]:
        """Return a decorator that makes the function of inputs of these types of a Python function."""

        def decorate(f: Callable[..., Any]) -> Any:
            names = list(inspect.signature(f).parameters)
            annotations = {**dict(zip(names, types, strict=False)), **named}
            if len(types) > len(names) or set(annotations) != set(names):
                message = f"{len(types) + len(named)} types for the parameters {', '.join(names)}"
                raise CallError("WrongArguments", message, hint="give one for each of them")
            if any(isinstance(parameter, OpenType) for parameter in annotations.values()):
                f.__annotations__ = annotations
                return Function(f)
            return _joined(f(*_variables(f, [annotations[name] for name in names])))

        return decorate


def BlockFunction(op_name: str, name: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a layer of a Python function, as `Function` does; what it makes are blocks."""

    def decorate(f: Callable[..., Any]) -> Any:
        made = Function(f, name)
        if isinstance(made, Layer):
            made.kind = op_name
        return made

    return decorate


def _variables(f: Callable[..., Any], types: list[Any]) -> list[OwnFunction]:
    return [variable.variable(name) for name, variable in zip(inspect.signature(f).parameters, types, strict=True)]


def _joined(functions: Any) -> OwnFunction:
    """Return one function of what a Python function gave, which may be several."""
    if isinstance(functions, dict):  # each value has the name of its key
        named = cast("dict[str, Any]", functions)
        functions = tuple(alias(function, name) for name, function in named.items())
    several = functions if is_several(functions) else (functions,)
    return OwnFunction(root for function in several for root in function.roots)


__all__ = ["BlockFunction", "CloneMethod", "Function", "ModelFormat", "Signature", "UserFunction", "load_model"]

__getattr__ = no_attribute("cntk.ops.functions", __all__)
