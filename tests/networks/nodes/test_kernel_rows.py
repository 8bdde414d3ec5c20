"""Strided convolutions of many channels, as a product for each row of a kernel, give what XLA's own code gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.images import kernel_rows
from cntkpy.networks.nodes.images.channels_last import channels_last
from cntkpy.networks.nodes.images.windows import Window

pytestmark = pytest.mark.usefixtures("on_cpu")

CHANNELS = kernel_rows.FEWEST_CHANNELS
axes = st.tuples(st.integers(5, 9), st.integers(2, 5), st.integers(1, 3), st.integers(-1, 6), st.integers(-1, 6))


def by_xla(window: Window, x, kernel):
    how = (window.stride, window.padding, window.spread, window.kernel_spread)
    return jax.lax.conv_general_dilated(x, kernel, *how, ("NDEC", "DEIO", "NDEC"), precision="highest")


@settings(max_examples=15)
@given(rows=axes, columns=axes, samples=st.integers(1, 4), at_once=st.sampled_from([1, 400, 2**20]))
def test_values(rows, columns, samples: int, at_once: int) -> None:
    """Also rows of windows that lie in the padding, elements that padding drops, and rounds of samples."""
    sizes, taps, steps, before, after = zip(rows, columns, strict=True)
    window = Window(steps, tuple(zip(before, after, strict=True)), (1, 1), (1, 1))
    if any(size + sum(pair) < count for size, pair, count in zip(sizes, window.padding, taps, strict=True)):
        return
    random = np.random.default_rng(0)
    x = jnp.asarray(random.integers(-8, 9, (samples, *sizes, 3)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (*taps, 3, 4)), np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_rows, "ELEMENTS_AT_ONCE", at_once)
        np.testing.assert_array_equal(kernel_rows.convolve(x, kernel, window), by_xla(window, x, kernel))


def plane(stride: int = 2, spread: int = 1, kernel_spread: int = 1) -> Window:
    return Window((stride,) * 2, ((1, 1), (1, 0)), (spread,) * 2, (kernel_spread,) * 2)


def test_networks_use_it_for_many_channels() -> None:
    """The values are products, no convolution; they and both gradients are those of a convolution."""
    random = np.random.default_rng(1)
    x = jnp.asarray(random.integers(-8, 9, (22, 7, 6, CHANNELS)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (3, 3, CHANNELS, CHANNELS)), np.float32)
    ours, theirs = channels_last(plane()), lambda x, kernel: by_xla(plane(), x, kernel)
    assert "convolution" not in jax.jit(ours).lower(x, kernel).as_text()
    values, back = jax.vjp(ours, x, kernel)
    expected, expected_back = jax.vjp(theirs, x, kernel)
    np.testing.assert_array_equal(values, expected)
    slopes = jnp.asarray(random.integers(-8, 9, expected.shape), np.float32)
    for gradient, reference in zip(back(slopes), expected_back(slopes), strict=True):
        np.testing.assert_array_equal(gradient, reference)


@pytest.mark.parametrize(
    ("window", "channels", "maps", "dtype", "samples"),
    [
        (plane(stride=1), CHANNELS, CHANNELS, np.float32, 16),
        (plane(stride=3), CHANNELS, CHANNELS, np.float32, 16),
        (plane(spread=2), CHANNELS, CHANNELS, np.float32, 16),
        (plane(kernel_spread=2), CHANNELS, CHANNELS, np.float32, 16),
        (plane(), CHANNELS - 1, CHANNELS, np.float32, 16),
        (plane(), CHANNELS, CHANNELS - 1, np.float32, 16),
        (plane(), CHANNELS, CHANNELS, jnp.bfloat16, 16),
        (plane(), CHANNELS, CHANNELS, np.float32, 15),
    ],
    ids=["stride 1", "windows apart", "spread", "dilation", "channels", "maps", "half precision", "few windows"],
)
def test_other_convolutions_stay(window: Window, channels: int, maps: int, dtype, samples: int) -> None:
    x = jnp.zeros((samples, 8, 8, channels), dtype)
    assert not kernel_rows.is_faster(x, jnp.zeros((3, 3, channels, maps), dtype), window)
    images, kernel = jnp.zeros((16, 8, 8, CHANNELS), np.float32), jnp.zeros((3, 3, CHANNELS, CHANNELS), np.float32)
    assert kernel_rows.is_faster(images, kernel, plane())
