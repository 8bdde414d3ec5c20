"""The gradient of kernels as one product, with one axis of the kernel in each operand, is that of a convolution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.images import kernel_axes
from cntkpy.networks.nodes.images.channels_last import channels_last
from cntkpy.networks.nodes.images.windows import Window

pytestmark = pytest.mark.usefixtures("on_cpu")

CHANNELS = kernel_axes.FEWEST_CHANNELS
axes = st.tuples(st.integers(5, 9), st.integers(2, 5), st.integers(-1, 6), st.integers(-1, 6))


def by_formula(x, g, taps, window: Window) -> np.ndarray:
    """Return the sum over samples and windows of each slope times the element that it saw."""
    above, beside = ((max(0, a), max(0, b)) for a, b in window.padding)
    drop = tuple(
        slice(max(0, -a), size - max(0, -b)) for (a, b), size in zip(window.padding, x.shape[1:3], strict=True)
    )
    x = np.pad(x[:, drop[0], drop[1]], ((0, 0), above, beside, (0, 0)))
    rows, columns = (range(0, count * step, step) for count, step in zip(taps, window.kernel_spread, strict=True))
    down, right = (stride * np.arange(size) for stride, size in zip(window.stride, g.shape[1:3], strict=True))
    seen = [[x[:, r + down][:, :, c + right] for c in columns] for r in rows]
    return np.array([[np.tensordot(part, g, ((0, 1, 2), (0, 1, 2))) for part in row] for row in seen])


@settings(max_examples=25)
@given(
    rows=axes,
    columns=axes,
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    spread=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    samples=st.integers(1, 4),
    at_once=st.sampled_from([1, 400, 2**17]),
)
def test_gradient(rows, columns, stride, spread, samples: int, at_once: int) -> None:
    """Also elements that padding drops, windows that lie in the padding, rounds of samples; strides or dilation."""
    sizes, taps, before, after = zip(rows, columns, strict=True)
    padding = tuple(zip(before, after, strict=True))
    window = Window(stride, padding, (1, 1), spread if stride == (1, 1) else (1, 1))
    reaches = [(count - 1) * step for count, step in zip(taps, window.kernel_spread, strict=True)]
    spaces = [size + sum(pair) - reach - 1 for size, pair, reach in zip(sizes, padding, reaches, strict=True)]
    results = [space // step + 1 for space, step in zip(spaces, stride, strict=True)]
    if min(results) < 1:
        return
    random = np.random.default_rng(0)
    x = random.integers(-8, 9, (samples, *sizes, 3)).astype(np.float32)
    g = random.integers(-8, 9, (samples, *results, 4)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_axes, "ELEMENTS_AT_ONCE", at_once)
        ours = kernel_axes.to_kernel(jnp.asarray(x), jnp.asarray(g), taps, window)
    np.testing.assert_array_equal(ours, by_formula(x, g, taps, window))


def plane(stride: int = 1, spread: int = 1, kernel_spread: int = 1) -> Window:
    return Window((stride,) * 2, ((1, 1), (1, 0)), (spread,) * 2, (kernel_spread,) * 2)


@pytest.mark.parametrize(
    ("window", "images"),
    [(plane(), (4, 64, 65)), (plane(stride=2), (24, 64, 65)), (plane(spread=2), (24, 32, 33))],
    ids=["stride 1", "stride 2", "transposed"],
)
def test_networks_use_it_for_many_windows(window: Window, images) -> None:
    """The gradient is that of differences of values, exact for small integers: values are linear in the kernel."""
    random = np.random.default_rng(1)
    x = jnp.asarray(random.integers(-2, 3, (*images, CHANNELS)), np.float32)
    kernel = jnp.asarray(random.integers(-2, 3, (3, 2, CHANNELS, CHANNELS)), np.float32)
    values, back = jax.vjp(lambda kernel: channels_last(window)(x, kernel), kernel)
    slopes = jnp.asarray(random.integers(-2, 3, values.shape), np.float32)
    assert "convolution" not in jax.jit(back).lower(slopes).as_text()
    (gradient,) = back(slopes)
    for place in ((0, 0, 0, 0), (2, 1, 3, 31), (1, 0, 17, 2)):
        moved = channels_last(window)(x, kernel.at[place].add(1))
        assert gradient[place] == jnp.sum((moved - values) * slopes)


@pytest.mark.parametrize(
    ("window", "taps", "channels", "maps", "dtype", "samples"),
    [
        (plane(stride=2), (3, 3), CHANNELS, CHANNELS, np.float32, 383),
        (plane(stride=2, kernel_spread=2), (3, 3), CHANNELS, CHANNELS, np.float32, 512),
        (plane(stride=2), (9, 9), 8, 16, np.float32, 64),
        (plane(kernel_spread=2), (9, 9), 8, 16, np.float32, 64),
        (plane(spread=2), (3, 3), CHANNELS, CHANNELS, np.float32, 256),
        (plane(), (3, 1), CHANNELS, CHANNELS, np.float32, 256),
        (plane(), (3, 3), CHANNELS - 1, CHANNELS, np.float32, 256),
        (plane(), (3, 3), CHANNELS, CHANNELS - 1, np.float32, 256),
        (plane(), (3, 3), CHANNELS, CHANNELS, jnp.bfloat16, 256),
        (plane(), (3, 3), CHANNELS, CHANNELS, np.float32, 255),
        (plane(), (2, 5), CHANNELS, 99, np.float32, 82),
        (plane(), (2, 2), CHANNELS, CHANNELS, np.float32, 95),
        (plane(), (9, 8), 8, 16, np.float32, 64),
        (plane(), (9, 9), 7, 16, np.float32, 64),
        (plane(), (9, 9), 8, 17, np.float32, 64),
        (plane(), (9, 9), 8, 16, np.float32, 63),
    ],
    ids=str,
)
def test_other_convolutions_stay(window: Window, taps, channels: int, maps: int, dtype, samples: int) -> None:
    images, slopes = jnp.zeros((samples, 8, 8, channels), dtype), jnp.zeros((samples, 8, 8, maps), dtype)
    assert not kernel_axes.is_faster(images, slopes, taps, window)


@pytest.mark.parametrize(
    ("window", "taps", "channels", "maps", "samples"),
    [
        (plane(), (3, 3), CHANNELS, CHANNELS, 256),
        (plane(), (2, 5), CHANNELS, 99, 83),
        (plane(), (2, 2), CHANNELS, CHANNELS, 96),
        (plane(kernel_spread=2), (3, 3), CHANNELS, CHANNELS, 256),
        (plane(stride=2), (4, 4), CHANNELS, CHANNELS, 384),
        (plane(), (9, 11), 8, 16, 64),
        (plane(), (9, 9), 16, 8, 64),
    ],
    ids=str,
)
def test_these_are_products(window: Window, taps, channels: int, maps: int, samples: int) -> None:
    images, slopes = jnp.zeros((samples, 8, 8, channels), np.float32), jnp.zeros((samples, 8, 8, maps), np.float32)
    assert kernel_axes.is_faster(images, slopes, taps, window)
