"""The type of a function's value, as programs ask for it: `Function.type`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ValueType:
    """The type of a value; as a mapping, arguments of `input_variable`: `input_variable(**z.type)`.

    Attributes:
        shape: of a sample.
        dtype: of its elements.
        is_sparse: whether it is an input of sparse data.
        dynamic_axes: the axes that samples lie along.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_sparse: bool
    dynamic_axes: tuple[Any, ...]

    def keys(self) -> list[str]:
        """Those of the arguments."""
        return [one.name for one in fields(self)]

    def __getitem__(self, argument: str) -> Any:
        return getattr(self, argument)
