"""Functions of single time steps, computed in blocks of steps, so that what they make on the way is never kept for all.

A block is computed once more in the backward pass (M. Rabe and C. Staats, "Self-attention does not need O(n^2) memory",
2021). Memory then grows with the number of steps, not with its square, where a step has a value for each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cntkpy.networks.arrays.lazy import Array, default_device, jax, jnp
from cntkpy.networks.arrays.weighted_means import KEPT

BLOCK = 1 << 20
"""Elements of the largest value up to which all steps are computed at once, and that a block has about, on a CPU."""

MEMORY_OF_ELEMENT = 512
"""Bytes of a device's own memory for an element of a block. A block makes four arrays or so, and what is no block is
kept for the gradient: of 24 layers half of the memory. Smaller blocks take longer, because the host starts some twenty
kernels for each: docs/decisions/2026-11-29-on-an-h200.md."""

FEWEST, FEWEST_OF_ONE_SLOT = 32, 128
"""Steps of a block at least: with fewer, products take longer than the memory is worth. Of 16,000 steps in one slot, a
gradient takes 0.93 of the time with 128 instead of 32."""


def steps_of_block(steps: int, elements: int, one_slot: bool = False) -> int:
    """Return the number of steps a block has.

    Args:
        steps: all of them.
        elements: of the largest value that a step makes, over all slots.
        one_slot: whether there is one slot.

    Returns:
        `steps` where no blocks are needed; else a number for blocks of nearly equal size.
    """
    most = max(_elements_of_block() // max(elements, 1), FEWEST_OF_ONE_SLOT if one_slot else FEWEST)
    return math.ceil(steps / math.ceil(steps / most))


def _elements_of_block() -> int:
    """Return the elements of the largest value that a block has about, on the device that computes."""
    device = default_device()
    memory = None if device.platform == "cpu" else device.memory_stats()
    return max(BLOCK, (memory or {}).get("bytes_limit", 0) // MEMORY_OF_ELEMENT)


Tree = Any
"""Arrays, nested in tuples, lists and dictionaries."""


def in_blocks(function: Callable[[Tree, Array], Tree], sequences: Tree, size: int) -> Tree:
    """Apply a function to blocks of steps, and join the results.

    Args:
        function: `(sequences of a block, number of the block) -> arrays`, all with the steps of the block first. No
            step may depend on another one.
        sequences: a tree of arrays with all steps first.
        size: steps of a block. The last block is filled up with copies of the last step.
    """
    steps = jax.tree.leaves(sequences)[0].shape[0]
    count = math.ceil(steps / size)

    def cut(array: Array) -> Array:
        padded = jnp.pad(array, [(0, count * size - steps)] + [(0, 0)] * (array.ndim - 1), mode="edge")
        return padded.reshape(count, size, *array.shape[1:])

    def joined(array: Array) -> Array:
        return array.reshape(count * size, *array.shape[2:])[:steps]

    def block(pair: tuple[Tree, Array]) -> Tree:
        return function(*pair)

    policy = jax.checkpoint_policies.save_only_these_names(KEPT)
    once_more = jax.checkpoint(block, prevent_cse=False, policy=policy)
    result = jax.lax.map(once_more, (jax.tree.map(cut, sequences), jnp.arange(count)))
    return jax.tree.map(joined, result)
