"""Types of kernel arguments, arrays by their elements: the type checker looks at every call of a kernel.

Docstrings of kernels have the shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = int | np.integer[Any]
"""In a kernel all integers are int64, whether they come from Python or out of an array."""
Real = float | np.floating[Any]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]
Ints = NDArray[np.integer[Any]]
"""Of several widths: there is machine code for each."""
Reals = NDArray[np.floating[Any]]
"""float32 or float64: there is machine code for each."""
