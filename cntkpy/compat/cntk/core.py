"""cntk.core: data of minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.readers import Value
from cntkpy.readers.data_api.array_view import NDArrayView
from cntkpy.trainers.fronts.cntk2.user.functions import user_function

from .missing import no_attribute


def asarray(value: Any, dtype: Any = None) -> NDArray[Any]:
    """Convert a value, a view, an array or a number to a NumPy array."""
    array = value.asarray() if isinstance(value, Value | NDArrayView) else value
    return np.asarray(array) if dtype is None else np.asarray(array, dtype)


def asvalue(variable: Any, data_array: Any) -> Value:
    """Data for an input, see `Value.create`."""
    return Value.create(variable, data_array)


DATATYPE = np.float32
"""The type of elements of what has none of its own."""

__all__ = ["DATATYPE", "NDArrayView", "Value", "asarray", "asvalue", "user_function"]

__getattr__ = no_attribute("cntk.core", __all__)
