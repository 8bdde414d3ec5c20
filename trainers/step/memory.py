"""Memory of stacks of minibatches, which a CPU reads without a copy, and which other devices copy to their own.

A stack has room for more minibatches than it often holds. What is not filled costs nothing as long as nobody touches
it. A copy would touch it all, and so does filling it with zeros where the process uses its memory again.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from networks.arrays.lazy import default_device, jax

ALIGNED = 64
"""Bytes: XLA reads arrays that begin at a multiple of it where they are."""

MAX_COPIED_BYTES = 1 << 20
"""Bytes of a tree of arrays up to which a copy takes less time (a tenth of a millisecond) than lending them."""


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.zeros`, aligned for `lend`."""
    return _aligned(np.zeros(_room(shape, dtype), np.uint8), shape, dtype)


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """As `numpy.empty`, aligned for `lend`."""
    return _aligned(np.empty(_room(shape, dtype), np.uint8), shape, dtype)


def _room(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Bytes in which there is an aligned place for an array."""
    return math.prod(shape) * np.dtype(dtype).itemsize + ALIGNED


def _aligned(room: NDArray[np.uint8], shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """The array inside this memory."""
    start = -room.ctypes.data % ALIGNED
    return room[start : start + len(room) - ALIGNED].view(dtype).reshape(shape)


def lend(arrays: Any) -> Any:
    """Arrays of NumPy for a compiled program, in their own memory where the device can read it.

    Args:
        arrays: a tree of arrays, which nobody changes from now on.

    Returns:
        The tree with arrays of JAX; little data as they are, which the call of the program copies.
    """
    little = sum(leaf.nbytes for leaf in jax.tree.leaves(arrays)) <= MAX_COPIED_BYTES
    return arrays if little else jax.device_put(arrays, may_alias=True)


def place(arrays: Any, copies: bool) -> Any:
    """Arrays of NumPy, which nobody changes from now on, for a program: on their way to the device, or as `lend`."""
    return jax.device_put(arrays, may_alias=True) if copies else lend(arrays)


def has_own_memory() -> bool:
    """Whether the device computes in memory of its own, to which arrays have to be copied."""
    return default_device().platform != "cpu"
