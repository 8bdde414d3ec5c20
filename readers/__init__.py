"""Data in and out: formats, orders, packing, minibatches. Imports neither JAX nor Numba until data are read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import DataError
    from .minibatch import Layout, Minibatch
    from .reader import Reader, create_reader
    from .streams import StreamInformation

_WHERE = {
    "DataError": "errors",
    "Layout": "minibatch",
    "Minibatch": "minibatch",
    "Reader": "reader",
    "StreamInformation": "streams",
    "create_reader": "reader",
}
__all__ = ["DataError", "Layout", "Minibatch", "Reader", "StreamInformation", "create_reader"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'readers' has no attribute '{name}'")
    return getattr(importlib.import_module(f"readers.{_WHERE[name]}"), name)
