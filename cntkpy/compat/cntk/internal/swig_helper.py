"""cntk.internal.swig_helper: in CNTK it gives objects of C++ their Python classes; here they have them already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..missing import no_attribute

F = TypeVar("F", bound=Callable[..., Any])


def typemap(f: F) -> F:
    """Return the function itself: its results have their classes."""
    return f


def map_if_possible(obj: Any) -> None:
    """Nothing: objects have their classes."""


__all__ = ["map_if_possible", "typemap"]

__getattr__ = no_attribute("cntk.internal.swig_helper", __all__)
