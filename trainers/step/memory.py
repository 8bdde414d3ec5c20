"""Memory of stacks of minibatches, which the device of the machine reads without a copy.

A stack has room for more minibatches than it often holds. What is not filled costs nothing as long as nobody touches
it: the system gives zeros page by page. A copy would touch it all.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from networks.arrays.lazy import jax

ALIGNED = 64
"""Bytes: XLA reads arrays that begin at a multiple of it where they are."""


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.zeros`, aligned for `lend`."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    return room[start : start + size].view(dtype).reshape(shape)


def lend(arrays: Any) -> Any:
    """Arrays of NumPy as those of JAX, in their own memory where the device can read it.

    Args:
        arrays: a tree of arrays, which nobody changes from now on.
    """
    return jax.device_put(arrays, may_alias=True)
