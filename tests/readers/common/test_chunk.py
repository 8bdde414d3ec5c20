"""What a stream of a chunk tells of its samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.readers.common import chunk
from cntkpy.readers.common.chunk import StreamData


@given(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2), st.integers(2, 9), st.integers(0, 8), st.booleans())
def test_even_samples(begin: int, apart: int, entries: int, samples: int, odd: int, moved: bool) -> None:
    starts, counts = begin + apart * np.arange(samples), np.full(samples, entries, np.int32)
    none = np.empty(0, np.float32)

    def even() -> tuple[int, int, int] | None:
        return StreamData(9, none, starts, np.array([0, samples]), counts, np.empty(0, np.int32)).even

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "_BLOCK", 3)
        assert even() == (begin, apart, entries)
        (starts if moved else counts)[odd % samples] += 1
        assert even() is None or (moved and samples == 2)


def test_one_sample_and_dense_samples_are_not_even() -> None:
    starts, ends = np.array([0]), np.array([0, 1])
    assert StreamData(3, np.ones(3), starts, ends, np.ones(1, np.int32), np.ones(3, np.int32)).even is None
    assert StreamData(3, np.ones(6), np.array([0, 3]), np.array([0, 2])).even is None
