"""Large arrays computed block by block, so that what is computed on the way does not exist whole.

On processors only: other devices have more memory for it, and lose time where a loop starts many small computations.
"""

from cntkpy.networks.arrays.lazy import Array, default_device, jnp

BLOCK_ELEMENTS = 1 << 20
"""Elements of a block, 4 MiB of single precision; a loop over less costs time."""
SHORTEST = 8
"""Places along the first axis that a block has at least, so that little is added where they do not divide evenly."""


def blocks_of(length: int, elements: int) -> int:
    """Return the number of blocks that compute `length` places of `elements` elements: a power of two, 1 for few."""
    count = 1 << (max(0, elements - 1) // BLOCK_ELEMENTS).bit_length()
    while count > 1 and length < count * SHORTEST:
        count //= 2
    return count if count > 1 and default_device().platform == "cpu" else 1


def in_blocks(array: Array, count: int, padding: object = 0) -> Array:
    """Return the array (n, ...) as (count, n / count, ...), padded at its end where n is not a multiple."""
    missing = -len(array) % count
    if missing:
        array = jnp.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1), constant_values=padding)
    return array.reshape(count, -1, *array.shape[1:])
