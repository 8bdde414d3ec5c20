"""The index of the largest element, against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cntkpy.networks.arrays.largest import first_largest

FEW = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


@given(arrays(np.float32, (3, 4), elements=FEW))
def test_first_largest(x: np.ndarray) -> None:
    np.testing.assert_array_equal(first_largest(x), np.argmax(x, axis=-1))
