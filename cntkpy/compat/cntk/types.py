"""Types of inputs, for signatures of criterion functions: what cntk.layers.typing has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cntkpy.cntk_config.base.diagnostics import CallError
from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.nodes import type_text
from cntkpy.networks.builders.python.functions.variables import input_variable, sequence_input

from .axis import Axis


@dataclass(frozen=True)
class Type:
    """The type of an input; as a mapping, arguments of `input_variable`.

    Args:
        shape: of a sample.
        sparse: whether only elements that are not zero are kept.
        axis: the name of the time axis; None: there is none.
    """

    shape: tuple[int, ...]
    sparse: bool = False
    axis: str | None = None

    def __str__(self) -> str:
        if not self.axis:
            return type_text(self.shape, self.sparse, self.axis is not None)
        return f"SequenceOver[{self.axis}][{type_text(self.shape, self.sparse, False)}]"

    def keys(self) -> list[str]:
        """Return the names of the arguments."""
        return ["shape", "is_sparse", "dynamic_axes"]

    def __getitem__(self, argument: str) -> Any:
        if argument == "dynamic_axes":
            return [Axis.default_batch_axis(), *([] if self.axis is None else [Axis(self.axis)])]
        return {"shape": self.shape, "is_sparse": self.sparse}[argument]

    def variable(self, name: str) -> Function:
        """Return an input of this type."""
        if self.axis is None:
            return input_variable(self.shape, is_sparse=self.sparse, name=name)
        return sequence_input(self.shape, is_sparse=self.sparse, sequence_axis=self.axis or None, name=name)


@dataclass(frozen=True)
class _Indexed:
    """Something that makes a type of what is in brackets after it."""

    make: Callable[[Any], Any]

    def __getitem__(self, item: Any) -> Any:
        return self.make(item)


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if is_several(shape) else (shape,)


class OpenType:
    """The type of an input of any shape and axes: a function with such a parameter is made when it is applied."""


tensor = OpenType()
"""`tensor`, `Sequence[tensor]`: anything, a sequence of anything."""


def _sequence(of: Any, axis: str = "") -> Type | OpenType:
    if isinstance(of, OpenType):
        return of
    if not isinstance(of, Type):
        raise CallError("WrongArguments", f"Sequence takes a type, not {of!r}", hint="Sequence[Tensor[10]]")
    return replace(of, axis=axis)


def _over(axis: Any) -> _Indexed:
    return _Indexed(lambda of: _sequence(of, axis.name if isinstance(axis, Axis) else str(axis)))


Tensor = _Indexed(lambda shape: Type(_shape(shape)))
"""`Tensor[10]`, `Tensor[3, 8, 8]`: a sample of that shape."""

SparseTensor = _Indexed(lambda shape: Type(_shape(shape), True))
"""The same, with only the elements that are not zero."""


class Sequence:
    """`Sequence[Tensor[10]]`: a sequence; a class, so that programs may derive from it."""

    def __class_getitem__(cls, item: Any) -> Any:
        return _sequence(item)


class SequenceOverMeta(type):
    """Lets `SequenceOver` take an axis in brackets."""

    def __getitem__(cls, axis: Any) -> _Indexed:
        return _over(axis)


class SequenceOver(metaclass=SequenceOverMeta):
    """`SequenceOver[axis][Tensor[10]]`: sequences with a time axis of their own."""


def Signature(*args: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator below `Function`: the types of the parameters."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        f.__annotations__ = {**dict(zip(inspect.signature(f).parameters, args, strict=False)), **kwargs}
        return f

    return decorate


__all__ = ["Sequence", "SequenceOver", "SequenceOverMeta", "Signature", "SparseTensor", "Tensor", "Type", "tensor"]
