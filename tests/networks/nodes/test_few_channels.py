"""Convolutions whose channels are brought to a number for which XLA is fast have the values of a convolution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays.lazy import jnp
from cntkpy.networks.nodes.images import few_channels
from cntkpy.networks.nodes.images.windows import Window, convolve_by_xla


def by_formula(x, kernel, padding) -> np.ndarray:
    """Return the sum over elements of the kernel of what each sees of images (N, ..., C) times its weights."""
    drop = tuple(slice(max(0, -a), size - max(0, -b)) for (a, b), size in zip(padding, x.shape[1:3], strict=True))
    around = [(max(0, a), max(0, b)) for a, b in padding]
    x = np.pad(x[:, drop[0], drop[1]], ((0, 0), *around, (0, 0)))
    height, width = (size - taps + 1 for size, taps in zip(x.shape[1:3], kernel.shape, strict=False))
    cells = np.ndindex(kernel.shape[:2])
    return np.sum([x[:, row : row + height, column : column + width] @ kernel[row, column] for row, column in cells], 0)


def drawn(*sizes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-8, 9, sizes).astype(np.float32)


def plane(stride: int = 1, kernel_spread: int = 1) -> Window:
    return Window((stride,) * 2, ((1, 1), (1, 1)), (1, 1), (kernel_spread,) * 2)


@settings(max_examples=15)
@given(
    sizes=st.tuples(st.integers(4, 6), st.integers(4, 9)),
    taps=st.tuples(st.integers(1, 3), st.integers(2, 4)),
    padding=st.tuples(*[st.tuples(st.integers(-1, 4), st.integers(-1, 4))] * 2),
    count=st.sampled_from([2, 4]),
)
def test_neighbours(sizes, taps, padding, count: int) -> None:
    """Also rows that are no multiple of the neighbours, and elements that padding drops."""
    if any(size + sum(pair) < tap for size, pair, tap in zip(sizes, padding, taps, strict=True)):
        return
    x, kernel = drawn(2, *sizes, 3), drawn(*taps, 3, 4)
    ours = few_channels.convolve_together(
        jnp.asarray(x), jnp.asarray(kernel), Window((1, 1), padding, (1, 1), (1, 1)), count
    )
    np.testing.assert_array_equal(ours, by_formula(x, kernel, padding))


@pytest.mark.parametrize(
    "size, taps, channels, maps, window, count",
    [
        (28, 3, 16, 16, plane(), 2),
        (28, 3, 8, 8, plane(), 4),
        (28, 3, 3, 3, plane(), 8),
        (28, 3, 1, 1, plane(), 1),  # 32 neighbours would be too many
        (28, 3, 17, 16, plane(), 1),
        (28, 1, 16, 16, plane(), 1),
        (28, 3, 16, 16, plane(stride=2), 1),
        (28, 3, 16, 16, plane(kernel_spread=2), 1),
        (28, 26, 16, 16, plane(), 1),  # the gradient of a kernel
    ],
)
def test_neighbours_are_counted(size: int, taps: int, channels: int, maps: int, window: Window, count: int) -> None:
    x, kernel = jnp.zeros((2, size, size, channels), jnp.float32), jnp.zeros((taps, taps, channels, maps))
    assert few_channels.neighbours(x, kernel, window) == count


@pytest.mark.parametrize(
    "channels, maps, slow",
    [(3, 32, True), (3, 65, True), (3, 64, False), (3, 48, False), (15, 48, True), (3, 16, False), (1, 32, False)],
)
def test_odd_channels(channels: int, maps: int, slow: bool) -> None:
    assert few_channels.has_slow_channels(jnp.zeros((3, 3, channels, maps), jnp.float32)) == slow


def test_another_channel_changes_no_value() -> None:
    x, kernel = drawn(2, 5, 6, 3), drawn(3, 3, 3, 4)
    wider = few_channels.with_another_channel(jnp.asarray(x), jnp.asarray(kernel))
    assert wider[0].shape[-1] == wider[1].shape[-2] == 4
    ours = convolve_by_xla(*wider, plane())
    np.testing.assert_array_equal(ours, by_formula(x, kernel, plane().padding))
