"""cntk.core: data of minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers import Value
from cntkpy.readers.data_api.array_view import NDArrayView
from cntkpy.trainers.fronts.cntk2.user.functions import user_function

from .missing import no_attribute


def asarray(variable: Any, value: Any = None) -> Any:
    """Convert the `Value` of a variable to what `eval` returns for it.

    A value, a view, an array or a number alone becomes one array, of the type `value` if there is one.
    """
    if isinstance(value, Value):
        if len(variable.dynamic_axes) > 1:
            return value.as_sequences(variable)
        return value.as_csr() if value.is_sparse else value.asarray()
    array = variable.asarray() if isinstance(variable, Value | NDArrayView) else variable
    return np.asarray(array) if value is None else np.asarray(array, value)


def asvalue(variable: Any, data_array: Any) -> Value:
    """Data for an input, see `Value.create`."""
    return Value.create(variable, data_array)


DATATYPE = np.float32
"""The type of elements of what has none of its own."""

__all__ = ["DATATYPE", "NDArrayView", "Value", "asarray", "asvalue", "user_function"]

__getattr__ = no_attribute("cntk.core", __all__)
