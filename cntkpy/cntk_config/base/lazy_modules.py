"""Modules that are imported when an attribute of them is first read.

The configuration tool runs without NumPy: declarations and checks of networks and readers are imported by it, their
computations are not run by it. A file that has both writes `from cntkpy.cntk_config.base.lazy_modules import np`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "np"]


class LazyModule:
    """A module that is imported when an attribute of it is first read.

    Args:
        name: of the module.
        prepare: called before the module is imported.
    """

    def __init__(self, name: str, prepare: Callable[[], None] | None = None) -> None:
        self._name, self._prepare = name, prepare

    def __getattr__(self, attribute: str) -> Any:
        if self._prepare is not None:
            self._prepare()
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")
