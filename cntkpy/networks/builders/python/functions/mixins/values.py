"""The value of a parameter or a constant."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.checks import as_array
from cntkpy.networks.builders.python.functions.defaults import SINGLE, kept_dtype
from cntkpy.networks.builders.python.functions.graph import Model
from cntkpy.networks.builders.python.functions.leaves import check_axes, filled
from cntkpy.networks.builders.python.functions.mixins.kinds import Kinds
from cntkpy.networks.builders.python.functions.nodes import has_value, users_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Valued(Kinds):
    """A function that may have a value of its own."""

    @property
    def model(self) -> Model:
        """Its network and the values of its nodes."""
        raise NotImplementedError

    @property
    def value(self) -> np.ndarray:
        """The value of a parameter or constant; that of now, during training."""
        cell = cell_of(self.root)
        array = cell.current()
        if array is None:
            if not has_value(self.root):
                raise UserError("NoValue", f"{self!r} has no value of its own; use eval")
            self._takes_size_of_users()
            array = self.model.nodes[self.root].value
        if array is None:
            raise UserError("NoValue", "the shape of this parameter is not known yet; use it in a function first")
        return np.array(array, cell.dtype or cell.alone or (SINGLE if self.is_constant else array.dtype))

    @value.setter
    def value(self, value: ArrayLike) -> None:
        if not has_value(self.root):
            raise UserError(
                "NoValue", f"{self!r} has no value of its own that could be set", hint="set that of a parameter"
            )
        cell = cell_of(self.root)
        dtype = cell.dtype or (SINGLE if cell.value is None else cell.value.dtype)
        array = as_array("a value", value, kept_dtype(dtype))
        previous = cell.current()
        if previous is not None:
            if array.ndim and filled(array.shape) != filled(previous.shape):
                raise UserError("BadShape", f"a value of shape {array.shape} for a parameter of shape {previous.shape}")
            array = array.reshape(previous.shape) if array.ndim else np.broadcast_to(array, previous.shape)
        else:
            check_axes("a value", array.shape, self.root)
        cell.set_value(array)

    def set_value(self, value: Any) -> None:
        """Give a parameter or constant another value: an array, or what has `asarray`."""
        self.value = value.asarray() if hasattr(value, "asarray") else value

    def asarray(self) -> np.ndarray:
        """`value`."""
        return self.value

    def as_parameter(self) -> Self:
        """Return the parameter itself.

        Raises:
            UserError: it is not one.
        """
        return self._as("parameter", self.is_parameter)

    def as_constant(self) -> Self:
        """Return the constant itself.

        Raises:
            UserError: it is not one.
        """
        return self._as("constant", self.is_constant)

    def _as(self, kind: str, holds: bool) -> Self:
        if not holds:
            raise CallError("NoFunction", f"{self!r} is not a {kind}", hint=f"f.{kind}s are those of a function")
        return self

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """`value` for `numpy.asarray(p)`; else NumPy would make an array of one object."""
        del copy  # the value is a copy
        if not (len(self.roots) == 1 and has_value(self.root)):
            raise UserError(
                "NoValue", f"{self!r} has no value of its own, so it is not an array", hint="eval gives values"
            )
        return self.value if dtype is None else self.value.astype(dtype)

    def _takes_size_of_users(self) -> bool:
        """Take the sizes to be inferred that an operation on this parameter says; False: none says them."""
        for user in users_of(self.root):
            with suppress(UserError):  # a placeholder is left, or shapes do not fit
                _ = self._of(user).model
            if cell_of(self.root).value is not None:
                return True
        return False
