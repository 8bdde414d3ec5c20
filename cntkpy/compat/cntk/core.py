"""cntk.core: data of minibatches."""

from typing import Any

from readers import Value

from .missing import no_attribute


def asvalue(variable: Any, data_array: Any) -> Value:
    """Data for an input, see `Value.create`."""
    return Value.create(variable, data_array)


__all__ = ["Value", "asvalue"]

__getattr__ = no_attribute("cntk.core", __all__)
