"""Convolutions of spread operands give what XLA's own code gives, which multiplies the zeros (W16)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.nodes.images import channels_last as channels_last_module
from cntkpy.networks.nodes.images import spread, windows
from cntkpy.networks.nodes.images.channels_last import _axes, channels_last, each_channel, few_terms
from cntkpy.networks.nodes.images.windows import Window

pytestmark = pytest.mark.usefixtures("on_cpu")

axis_options = st.tuples(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(-1, 4), st.integers(-1, 4)
)


def by_xla(window: Window, x, kernel, groups: int = 1):
    spatial = "DEF"[: x.ndim - 2]
    names = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        window.stride,
        window.padding,
        window.spread,
        window.kernel_spread,
        names,
        feature_group_count=groups,
        precision="highest",
    )


def assert_same_values(ours, theirs, *arrays) -> None:
    """Both are one program, which compiles in a fraction of the time of its operations."""
    for result, expected in zip(*jax.jit(lambda *arrays: (ours(*arrays), theirs(*arrays)))(*arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


def with_gradients(convolve, slopes=None):
    """The values and both gradients, of the values times `slopes`, or times themselves."""

    def values_and_gradients(x, kernel):
        values, backward = jax.vjp(convolve, x, kernel)
        return values, *backward(values if slopes is None else slopes)

    return values_and_gradients


@pytest.mark.parametrize("form", ["phases", "products"])
@settings(max_examples=10)
@given(options=st.lists(axis_options, min_size=1, max_size=2), seed=st.integers(0, 100))
def test_forms_agree_with_xla(form: str, options, seed: int) -> None:
    sizes, kernels, steps, distances, before, after = zip(*options, strict=True)
    if form == "products":
        distances = (1,) * len(sizes)
    window = Window((1,) * len(sizes), tuple(zip(before, after, strict=True)), steps, distances)
    axes = _axes(window, sizes, kernels)
    if any(axis.result < 1 for axis in axes):
        return
    random = np.random.default_rng(seed)
    x = random.integers(-8, 9, (2, *sizes, 3)).astype(np.float32)
    kernel = random.integers(-8, 9, (*kernels, 3, 4)).astype(np.float32)
    ours = spread._by_phases if form == "phases" else spread._by_products
    assert_same_values(lambda *both: [ours(*both, axes)], lambda *both: [by_xla(window, *both)], x, kernel)


@pytest.mark.parametrize(("size", "taps", "maps"), [(12, 9, 192), (16, 3, 32)], ids=["products", "phases"])
def test_the_gradients_of_a_strided_convolution(
    size: int, taps: int, maps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both gradients agree with those that JAX derives; the one towards the image goes by the cheaper form."""
    forms: list[str] = []
    for name in ("_by_products", "_by_phases"):
        form = getattr(spread, name)
        monkeypatch.setattr(spread, name, lambda *args, form=form, name=name: forms.append(name) or form(*args))
    window = Window((2, 2), ((1, 0), (0, 1)), (1, 1), (1, 1))
    random = np.random.default_rng(1)
    x = jnp.asarray(random.normal(size=(1, size, size, maps)), np.float32)
    kernel = jnp.asarray(random.normal(size=(taps, taps, maps, maps)), np.float32)
    ours, *gradients = jax.jit(with_gradients(channels_last(window)))(x, kernel)
    theirs, *expected = jax.jit(with_gradients(lambda *both: by_xla(window, *both), ours))(x, kernel)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
    for gradient, reference in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, reference, rtol=1e-4, atol=float(jnp.abs(reference).max()) * 1e-5)
    assert forms[0] == ("_by_products" if taps == 9 else "_by_phases")


def test_the_gradient_of_a_kernel_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 3x3 elements with stride 2 are products with their elements, a few samples at a time."""
    monkeypatch.setattr(windows, "ELEMENTS_AT_ONCE", 2 * 9 * 8 * 64)
    rounds: list[int] = []
    product = channels_last_module._gradient_by_product
    monkeypatch.setattr(
        channels_last_module, "_gradient_by_product", lambda x, *rest: rounds.append(len(x)) or product(x, *rest)
    )
    window = Window((2, 2), ((1, 1), (0, 1)), (1, 1), (1, 1))
    random = np.random.default_rng(2)
    x = jnp.asarray(random.integers(-8, 9, (6, 9, 8, 64)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (3, 3, 64, 128)), np.float32)
    slopes = random.integers(-8, 9, (6, 5, 4, 128)).astype(np.float32)

    def gradient(convolve):
        return lambda kernel: jax.vjp(lambda kernel: convolve(x, kernel), kernel)[1](slopes)

    assert_same_values(gradient(channels_last(window)), gradient(lambda *both: by_xla(window, *both)), kernel)
    assert set(rounds) == {2}


@settings(max_examples=6)
@given(options=st.lists(axis_options, min_size=1, max_size=3), maps=st.sampled_from([2, 30]), seed=st.integers(0, 100))
def test_values_and_gradients_agree_with_xla(options, maps: int, seed: int) -> None:
    """Sums of weighted images, planes of three axes, products for kernels of one element: all give what XLA gives."""
    sizes, kernels, steps, distances, before, after = zip(*options, strict=True)
    axes = len(sizes)
    window = Window(steps, tuple(zip(before, after, strict=True)), (1,) * axes, distances)
    if any(
        size + sum(pad) < (tap - 1) * far + 1
        for size, pad, tap, far in zip(sizes, window.padding, kernels, distances, strict=True)
    ):
        return
    random = np.random.default_rng(seed)
    x = jnp.asarray(random.integers(-8, 9, (2, *sizes, 3)), np.float64)
    kernel = jnp.asarray(random.integers(-8, 9, (*kernels, 3, maps)), np.float64)

    def ours(x, kernel):
        channels = with_gradients(each_channel(window))(x, kernel[..., 0])
        return *with_gradients(channels_last(window))(x, kernel), *channels

    def theirs(x, kernel):
        channels = with_gradients(lambda x, kernel: by_xla(window, x, kernel[..., None, :], 3))(x, kernel[..., 0])
        return *with_gradients(lambda *both: by_xla(window, *both))(x, kernel), *channels

    assert_same_values(ours, theirs, x, kernel)


@pytest.mark.parametrize(("samples", "rows"), [(12, 6), (12, 7), (1, 4)])
def test_the_gradient_of_kernels_of_channels_row_by_row(samples: int, rows: int) -> None:
    """Every product of an element and a slope counts once, and no product is kept for each place of the kernel."""
    window = Window((2, 1), ((1, 0), (1, 1)), (1, 1), (1, 1))
    random = np.random.default_rng(4)
    x = random.integers(-8, 9, (samples, 2 * rows, 9, 40)).astype(np.float32)
    slopes = random.integers(-8, 9, (samples, rows, 9, 40)).astype(np.float32)
    around = np.pad(x, ((0, 0), (1, 0), (1, 1), (0, 0)))
    expected = [
        [
            np.sum(around[:, row : row + 2 * rows - 1 : 2, column : column + 9] * slopes, (0, 1, 2))
            for column in range(3)
        ]
        for row in range(3)
    ]
    kernel = jnp.zeros((3, 3, 40), np.float32)
    gradient = jax.jit(lambda x, g: jax.vjp(lambda kernel: each_channel(window)(x, kernel), kernel)[1](g)[0])
    np.testing.assert_array_equal(gradient(x, slopes), expected)
    sums = 9 * slopes[0, 0].nbytes
    working = gradient.lower(x, slopes).compile().memory_analysis().temp_size_in_bytes
    assert working < around.nbytes + 2 * sums


@settings(max_examples=6)
@given(options=st.lists(axis_options, min_size=2, max_size=2), groups=st.sampled_from([1, 3]), seed=st.integers(0, 100))
def test_values_of_few_terms_are_a_sum(options, groups: int, seed: int) -> None:
    sizes, kernels, steps, distances, before, after = zip(*options, strict=True)
    window = Window(steps, tuple(zip(before, after, strict=True)), (1, 1), distances)
    axes = zip(sizes, window.padding, kernels, distances, strict=True)
    if any(size + sum(pad) < (taps - 1) * far + 1 for size, pad, taps, far in axes):
        return
    random = np.random.default_rng(seed)
    x = jnp.asarray(random.integers(-8, 9, (2, *sizes, 2 * groups)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (*kernels, 2, 3 * groups)), np.float32)
    values = few_terms(window, groups)
    assert "convolution" not in jax.jit(values).lower(x, kernel).as_text()
    theirs = with_gradients(lambda *both: by_xla(window, *both, groups))
    assert_same_values(with_gradients(values), theirs, x, kernel)


@pytest.mark.parametrize("groups", [1, 4])
def test_sums_see_images_that_were_padded_first(groups: int) -> None:
    """Without the barrier a training's loop pads again for each element of the kernel, in four times the time."""
    window = Window((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
    text = jax.jit(few_terms(window, groups)).lower(jnp.ones((2, 5, 5, 2 * groups)), jnp.ones((3, 3, 2, 8))).as_text()
    assert text.index("stablehlo.pad") < text.index("stablehlo.optimization_barrier") < text.index("stablehlo.multiply")


@pytest.mark.parametrize(
    ("window", "taps", "channels", "maps", "groups"),
    [
        pytest.param(Window((1, 1), ((1, 1), (2, 0)), (1, 1), (1, 1)), (3, 3), 12, 9, 3, id="groups of few channels"),
        pytest.param(
            Window((1, 1), ((1, 1), (2, -1)), (1, 1), (2, 1)), (3, 2), 7, 3, 1, id="twice as many channels as maps"
        ),
        pytest.param(Window((2, 3), ((0, 0), (0, 0)), (1, 1), (1, 1)), (2, 3), 4, 3, 1, id="windows apart, few maps"),
        pytest.param(Window((2, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), (2, 1), 2, 9, 1, id="windows apart, many maps"),
    ],
)
@pytest.mark.sampled
def test_gradients_in_other_forms(window: Window, taps, channels: int, maps: int, groups: int) -> None:
    """The sum with the turned kernel, slopes that slide over images, and a product give what XLA's code gives."""
    random = np.random.default_rng(1)
    x = jnp.asarray(random.integers(-8, 9, (3, 7, 6, channels)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (*taps, channels // groups, maps)), np.float32)
    convolve = few_terms(window, groups) if groups > 1 else channels_last(window)
    theirs = with_gradients(lambda *both: by_xla(window, *both, groups))
    assert_same_values(with_gradients(convolve), theirs, x, kernel)


@pytest.mark.parametrize("samples", [1, 16, 17, 24])
@pytest.mark.sampled
def test_the_gradient_of_kernels_of_channels_adds_all_samples(samples: int) -> None:
    window = Window((2, 1), ((1, 1), (0, 1)), (1, 1), (1, 2))
    random = np.random.default_rng(1)
    x = jnp.asarray(random.integers(-8, 9, (samples, 7, 6, 3)), np.float32)
    kernel = jnp.asarray(random.integers(-8, 9, (3, 2, 3)), np.float32)
    theirs = with_gradients(lambda x, kernel: by_xla(window, x, kernel[..., None, :], 3))
    assert_same_values(with_gradients(each_channel(window)), theirs, x, kernel)
