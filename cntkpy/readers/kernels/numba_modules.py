"""Numba and llvmlite, imported as a whole or not at all: every kernel takes them from here.

A signal that ends an import in its middle leaves modules without their package: every later import of Numba would fail
then, and so every kernel of the process. They are removed, so that the next import begins anew.
"""

from __future__ import annotations

import sys
from typing import Any

_BEFORE = frozenset(sys.modules)
_NUMBA = "numba", "llvmlite"

try:
    import numba
    from llvmlite import binding as _binding  # pyright: ignore[reportMissingTypeStubs]
    from llvmlite import ir as _ir  # pyright: ignore[reportMissingTypeStubs]
    from numba import extending
    from numba.core import cgutils as _cgutils
    from numba.core import config as _config
    from numba.core import types as _types
except BaseException:
    for _name in [name for name in list(sys.modules) if name not in _BEFORE]:
        if (_package := _name.partition(".")[0]) in _NUMBA or _package not in sys.modules:
            sys.modules.pop(_name, None)
    raise

__all__ = ["binding", "carray", "cgutils", "config", "extending", "ir", "numba", "types"]

# What Numba and llvmlite have no types for.
binding: Any = _binding
carray: Any = numba.carray  # pyright: ignore[reportPrivateImportUsage]
cgutils: Any = _cgutils
config: Any = _config
ir: Any = _ir
types: Any = _types
