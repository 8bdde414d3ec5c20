"""What a stream of a chunk tells of its samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.readers.common import chunk
from cntkpy.readers.common.chunk import MANY_VALUES, Chunk, StreamData, in_bytes


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_streams_of_pixels_are_bytes(dtype: type) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, MANY_VALUES + 3).astype(dtype)

    def kept(values: np.ndarray, indices: np.ndarray | None = None) -> np.ndarray:
        data = StreamData(1, values, np.arange(len(values)), np.array([0, len(values)]), indices=indices)
        return in_bytes(Chunk({"x": data})).streams["x"].values

    assert kept(pixels).dtype == np.uint8
    np.testing.assert_array_equal(kept(pixels), pixels)
    assert kept(pixels[: MANY_VALUES - 1]).dtype == dtype, "little is gained"
    assert kept(pixels, np.zeros(len(pixels), np.int32)).dtype == dtype, "sparse"
    for other in (-0.0, 0.5, 256.0, -1.0, np.nan, np.inf, 1e30):
        with_other = pixels.copy()
        with_other[-1] = other
        assert kept(with_other) is with_other


def test_streams_share_bytes_as_they_share_values() -> None:
    values = np.zeros(MANY_VALUES, np.float32)
    streams = {name: StreamData(1, values, np.arange(9), np.array([0, 9])) for name in "xy"}
    shared = in_bytes(Chunk(streams)).streams
    assert shared["x"].values is shared["y"].values
    assert shared["x"].values.dtype == np.uint8
