"""Convolutions with kernels of 3x3 elements, in fewer multiplications, give what XLA's own code gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.images import windows, winograd
from cntkpy.networks.nodes.images.channels_last import channels_last
from cntkpy.networks.nodes.images.windows import Window

pytestmark = pytest.mark.usefixtures("on_cpu")

pads = st.tuples(st.integers(-1, 3), st.integers(-1, 3))


def plane(*padding: tuple[int, int], stride: int = 1, spread: int = 1) -> Window:
    return Window((stride, stride), padding, (1, 1), (spread, spread))


def by_xla(window: Window, x, kernel):
    how = (window.stride, window.padding, window.spread, window.kernel_spread)
    return jax.lax.conv_general_dilated(x, kernel, *how, ("NDEC", "DEIO", "NDEC"), precision="highest")


OPTIONS = {
    "samples": st.integers(1, 5),
    "sizes": st.tuples(st.integers(4, 9), st.integers(4, 9)),
    "padding": st.tuples(pads, pads),
    "at_once": st.sampled_from([1, 400, 2**18]),
    "seed": st.integers(0, 100),
}


@settings(max_examples=6)
@given(**OPTIONS)
def test_values_and_the_gradient_of_the_kernel(**options) -> None:
    assert_values_and_gradient(**options)


@pytest.mark.thorough
@settings(max_examples=40)
@given(**OPTIONS)
def test_many_values_and_gradients_of_the_kernel(**options) -> None:
    assert_values_and_gradient(**options)


def assert_values_and_gradient(samples: int, sizes, padding, at_once: int, seed: int) -> None:
    window = plane(*padding)
    if any(size + sum(pair) < 3 for size, pair in zip(sizes, padding, strict=True)):
        return
    random = np.random.default_rng(seed)
    x = random.integers(-8, 9, (samples, *sizes, 3)).astype(np.float32)
    kernel = random.integers(-8, 9, (3, 3, 3, 4)).astype(np.float32)
    slopes = random.integers(-8, 9, jax.eval_shape(lambda: by_xla(window, x, kernel)).shape).astype(np.float32)

    @jax.jit
    def results_and_expected(x, kernel, slopes):
        expected, back = jax.vjp(lambda kernel: by_xla(window, x, kernel), kernel)
        results = winograd.convolve(x, kernel, window), winograd.to_kernel(x, slopes, window)
        return results, (expected, *back(slopes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "ELEMENTS_AT_ONCE", at_once)
        for result, expected in zip(*results_and_expected(x, kernel, slopes), strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("channels", "maps", "uses"), [(32, 48, 2), (128, 128, 3), (31, 64, 0)])
def test_networks_use_it_for_enough_channels(
    channels: int, maps: int, uses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values, both gradients of them, and no loss of precision; the gradient of the kernel from 128 channels on."""
    used: list[str] = []
    for name in ("convolve", "to_kernel"):
        function = getattr(winograd, name)
        monkeypatch.setattr(winograd, name, lambda *args, f=function, name=name: used.append(name) or f(*args))
    window = plane((1, 1), (0, 1))
    random = np.random.default_rng(0)
    x, kernel = random.normal(size=(2, 16, 17, channels)), random.normal(size=(3, 3, channels, maps))
    slopes = random.normal(size=(2, 16, 16, maps))

    def with_gradients(convolve, dtype):
        def values_and_gradients(x, kernel, slopes):
            values, back = jax.vjp(convolve, x, kernel)
            return values, *back(slopes)

        return jax.jit(values_and_gradients)(*(array.astype(dtype) for array in (x, kernel, slopes)))

    exact = with_gradients(lambda x, kernel: by_xla(window, x, kernel), np.float64)
    results = with_gradients(channels_last(window), np.float32)
    assert len(used) == uses
    for result, expected in zip(results, exact, strict=True):
        assert np.linalg.norm(result - expected) < 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("window", "kernel", "dtype"),
    [
        (plane((1, 1), (1, 1), stride=2), 3, np.float32),
        (plane((1, 1), (1, 1), spread=2), 3, np.float32),
        (plane((1, 1), (1, 1)), 5, np.float32),
        (plane((1, 1), (1, 1)), 3, jnp.bfloat16),
    ],
    ids=["stride", "dilation", "5x5", "half precision"],
)
def test_other_convolutions_stay(window: Window, kernel: int, dtype) -> None:
    x, weights = jnp.zeros((4, 32, 32, 64), dtype), jnp.zeros((kernel, kernel, 64, 64), dtype)
    assert not winograd.is_faster(x, weights, window)
    assert winograd.is_faster(jnp.zeros(x.shape), jnp.zeros((3, 3, 64, 64)), plane((1, 1), (1, 1)))
