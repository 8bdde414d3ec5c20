"""In how many blocks arrays are computed."""

import numpy as np

from cntkpy.networks.arrays.blocks import BLOCK_ELEMENTS, SHORTEST, blocks_of, in_blocks


def test_few_elements_are_one_block_and_blocks_are_not_too_short() -> None:
    assert blocks_of(BLOCK_ELEMENTS, BLOCK_ELEMENTS) == 1
    assert blocks_of(BLOCK_ELEMENTS, BLOCK_ELEMENTS + 1) == 2
    assert blocks_of(1000, 9 * BLOCK_ELEMENTS) == 16
    assert blocks_of(4 * SHORTEST, 9 * BLOCK_ELEMENTS) == 4
    assert blocks_of(1, 9 * BLOCK_ELEMENTS) == 1


def test_blocks_are_padded_at_the_end() -> None:
    np.testing.assert_array_equal(in_blocks(np.arange(6), 2), [[0, 1, 2], [3, 4, 5]])
    found = in_blocks(np.arange(10).reshape(5, 2), 2, -1)
    np.testing.assert_array_equal(found, [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [-1, -1]]])
