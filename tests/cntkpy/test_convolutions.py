"""Convolutions of CNTK 2: values and gradients against loops in NumPy and finite differences, in both precisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.function import operator

PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])


def slid(x: np.ndarray, w: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """Filters (O, I, ...) slid over a sample (C, ...), one element of the filters at a time.

    how: strides, auto_padding, dilation as a value for each axis; groups.
    """
    groups, rank = how.get("groups", 1), x.ndim - 1
    steps, pads, far = (how.get(key, default) for key, default in DEFAULTS.items())
    firsts, counts, margins = [], [], []
    for axis in range(rank):
        n, reach = x.shape[1 + axis], (w.shape[2 + axis] - 1) * far[axis] + 1
        count, first = (n - reach) // steps[axis] + 1, 0
        if pads[axis]:
            count = -(-n // steps[axis])
            first = (n - 1 - (count - 1) * steps[axis]) // 2 - (reach - 1) // 2
        before, end = max(-first, 0), first + (count - 1) * steps[axis] + reach
        firsts.append(first + before)
        counts.append(count)
        margins.append((before, max(end - n, 0)))
    padded = np.pad(x, [(0, 0), *margins])
    filters = w.reshape(groups, -1, *w.shape[1:])
    out = np.zeros((*filters.shape[:2], *counts))
    for at in np.ndindex(w.shape[2:]):
        begins = [firsts[a] + at[a] * far[a] for a in range(rank)]
        where = (slice(b, b + (counts[a] - 1) * steps[a] + 1, steps[a]) for a, b in enumerate(begins))
        cells = padded[(slice(None), *where)].reshape(groups, -1, *counts)
        out += np.einsum("goi,gi...->go...", filters[(..., *at)], cells)
    return out.reshape(len(w), *counts)


DEFAULTS = {"strides": (1,) * 3, "auto_padding": (True,) * 3, "dilation": (1,) * 3}


@dataclass(frozen=True)
class Case:
    """A convolution.

    Attributes:
        sample: shape of a sample, in sequences without the axis of steps.
        filters: shape of the filters.
        how: arguments by name, with tuples for `slid`.
        lengths: of sequences; none: there are two samples.
        channels: whether samples have channels.
    """

    sample: tuple[int, ...]
    filters: tuple[int, ...]
    how: dict[str, Any] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    channels: bool = True

    def data(self) -> list[np.ndarray]:
        random = np.random.default_rng(3)
        if self.lengths:
            return [random.normal(size=(n, *self.sample)) for n in self.lengths]
        return list(random.normal(size=(2, *self.sample)))

    def expected(self, data: list[np.ndarray], w: np.ndarray) -> list[np.ndarray]:
        found = []
        for one in data:
            if not self.channels:
                one = one[:, None] if self.lengths else one[None]
                w = w.reshape(len(w), 1, *w.shape[-(one.ndim - 1) :])
            if self.lengths:
                found.append(np.moveaxis(slid(np.moveaxis(one, 0, 1), w, self.how), 1, 0))
            else:
                found.append(slid(one, w, self.how))
        return found

    def function(self, x: Any, w: Any) -> Any:
        return C.convolution(w, x, sequential=bool(self.lengths), reduction_rank=int(self.channels), **self.how)

    def leaf(self, dtype: Any) -> Any:
        return (C.sequence.input_variable if self.lengths else C.input_variable)(self.sample, dtype=dtype)


CASES = {
    "groups": Case((4, 4, 5), (6, 2, 3, 2), {"groups": 2, "strides": (1, 2)}),
    "each channel": Case((3, 4, 4), (3, 1, 3, 3), {"groups": 3}),
    "each channel twice": Case((3, 4, 4), (6, 1, 2, 2), {"groups": 3, "auto_padding": (False, True)}),
    "dilated": Case((2, 6, 5), (2, 2, 3, 2), {"dilation": (2, 3)}),
    "dilated groups": Case((4, 6, 5), (4, 2, 2, 2), {"dilation": (2, 1), "groups": 2, "auto_padding": (False, False)}),
    "long steps": Case((2, 6, 9), (2, 2, 1, 2), {"strides": (3, 4)}),
    "along one axis": Case((2, 7), (3, 2, 3), {"strides": (2,), "auto_padding": (False,)}),
    "no channels": Case((4, 5), (2, 3, 2), {"strides": (1, 2)}, channels=False),
    "no channels, an axis for them": Case((4, 5), (2, 1, 3, 2), {"auto_padding": (False, False)}, channels=False),
    "sequences": Case((2,), (3, 2, 3), {}, (5, 3)),
    "sequences inside": Case((2,), (3, 2, 3), {"auto_padding": (False,)}, (5, 3)),
    "sequences of pictures": Case(
        (2, 4), (3, 2, 2, 3), {"auto_padding": (False, True), "strides": (1, 2), "dilation": (2, 1)}, (5, 3)
    ),
    "sequences by long steps": Case((2,), (2, 2, 4), {"strides": (3,)}, (6, 4, 8)),
    "sequences by two steps inside": Case((2,), (2, 2, 2), {"strides": (2,), "auto_padding": (False,)}, (5, 2, 4)),
    "sequences of groups": Case((4,), (4, 2, 3), {"groups": 2}, (4, 2)),
    "sequences without channels": Case((3,), (2, 3, 2), {"auto_padding": (True, False)}, (4, 3), channels=False),
    "sequences of numbers": Case((), (2, 3), {}, (4, 3), channels=False),
}


def checked(case: Case, dtype: Any) -> tuple[Any, Any, Any, dict[Any, Any], np.ndarray]:
    x, data = case.leaf(dtype), case.data()
    filters = np.random.default_rng(4).normal(size=case.filters)
    w = C.parameter(init=filters.astype(dtype))
    given = {x: [one.astype(dtype) for one in data] if case.lengths else np.array(data, dtype)}
    return x, w, case.function(x, w), given, filters


@PRECISIONS
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled
def test_values(name: str, dtype: Any) -> None:
    case = CASES[name]
    _, _, made, given, filters = checked(case, dtype)
    found = made.eval(given)
    expected = case.expected(case.data(), filters)
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == dtype
        assert one.shape == wanted.shape
        assert made.shape == wanted.shape[bool(case.lengths) :]
        np.testing.assert_allclose(one, wanted, rtol=1e-12 if dtype == np.float64 else 2e-5, atol=1e-6)


@PRECISIONS
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled
def test_gradients(name: str, dtype: Any) -> None:
    """Those of a weighted sum of the results, with respect to the filters and to the operand."""
    case = CASES[name]
    x, w, made, given, filters = checked(case, dtype)
    data = case.data()

    def weight(shape: tuple[int, ...]) -> np.ndarray:
        return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape) + 1.5

    def total(data: list[np.ndarray], filters: np.ndarray) -> float:
        found = case.expected(data, filters)
        return sum(float((one * weight(one.shape[bool(case.lengths) :])).sum()) for one in found)

    weighted = C.reduce_sum(made * C.constant(weight(made.shape).astype(dtype)))
    one = C.sequence.reduce_sum(weighted) if case.lengths else weighted
    found = one.grad(given, wrt=[x, w])
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    # The sum is linear in each operand: its slope along an element is its value for one 1 among zeros.
    slopes = np.zeros_like(filters)
    for at in np.ndindex(filters.shape):
        unit = np.zeros_like(filters)
        unit[at] = 1
        slopes[at] = total(data, unit)
    np.testing.assert_allclose(found[w], slopes, **tolerance)
    for number, sample in enumerate(data):
        slopes = np.zeros_like(sample)
        for at in np.ndindex(sample.shape):
            unit = np.zeros_like(sample)
            unit[at] = 1
            slopes[at] = total([unit], filters)
        np.testing.assert_allclose(found[x][number], slopes, **tolerance)


@pytest.mark.parametrize("name", ["groups", "sequences of pictures", "no channels", "sequences by long steps"])
@pytest.mark.sampled
def test_clones_and_files(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    x, _, made, given, _ = checked(case, np.float64)
    expected = made.eval(given)
    other = case.leaf(np.float64)
    for copy in (made.clone("clone"), made.clone("freeze", {x: other})):
        found = copy.eval({copy.arguments[0]: given[x]})
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, wanted)
    made.save(str(tmp_path / "model"))
    loaded = C.load_model(str(tmp_path / "model"))
    for one, wanted in zip(loaded.eval({loaded.arguments[0]: given[x]}), expected, strict=True):
        np.testing.assert_array_equal(one, wanted)


def test_a_function_of_a_placeholder_takes_the_shape_of_its_input() -> None:
    case = CASES["sequences inside"]
    x, w, made, given, _ = checked(case, np.float32)
    later = case.function(C.placeholder(), w)
    later = later.replace_placeholders({later.placeholders[0]: x})
    for one, wanted in zip(later.eval(given), made.eval(given), strict=True):
        np.testing.assert_array_equal(one, wanted)


def test_a_filter_of_as_many_axes_slides_along_all_of_them() -> None:
    x = C.input_variable((2, 4, 4))
    filters = np.random.default_rng(1).normal(size=(2, 3, 3)).astype(np.float32)
    data = np.random.default_rng(2).normal(size=(1, 2, 4, 4)).astype(np.float32)
    found = C.convolution(filters, x).eval({x: data})
    padded = np.pad(data[0], ((0, 1), (1, 1), (1, 1)))  # of two channels, the filter ends behind the last one
    expected = np.zeros((2, 4, 4))
    for place in np.ndindex(2, 4, 4):
        window = padded[tuple(slice(at, at + size) for at, size in zip(place, (2, 3, 3), strict=True))]
        expected[place] = (window * filters).sum()
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
    one = C.convolution(filters, x, auto_padding=[False, True, True])
    assert one.shape == (1, 4, 4)
    np.testing.assert_allclose(one.eval({x: data})[0], slid(data[0], filters[None], {}), rtol=1e-4, atol=1e-5)
    steps = C.sequence.input_variable((2,))
    assert C.convolution(filters[..., 0], steps, sequential=True).shape == (1,)


def test_the_channels_of_filters_may_be_inferred() -> None:
    w = C.parameter((4, C.InferredDimension, 3, 3), init=1.0)
    made = C.convolution(w, C.input_variable((6, 5, 5)), groups=2, auto_padding=[False])
    assert made.shape == (4, 3, 3)
    assert w.shape == (4, 3, 3, 3)


@pytest.mark.parametrize(
    "how",
    [
        {"auto_padding": [False, True, False], "strides": (1, 2, 1)},
        {"auto_padding": [True, True, False], "strides": (2, 1)},
        {"auto_padding": [True, False], "strides": [1, 2, 1], "dilation": (1, 1, 1)},
    ],
)
def test_lists_may_name_the_channels(how: dict[str, Any]) -> None:
    """Filters have all channels: a flag of theirs pads nothing, and a step leads nowhere."""
    x = C.input_variable((3, 5, 6))
    w = np.random.default_rng(1).normal(size=(2, 3, 3, 2)).astype(np.float32)
    data = np.random.default_rng(2).normal(size=(1, 3, 5, 6)).astype(np.float32)
    last = {"strides": tuple(how["strides"])[-2:], "auto_padding": tuple(how["auto_padding"])[-2:]}
    found = C.convolution(w, x, **how).eval({x: data})
    np.testing.assert_allclose(found[0], slid(data[0], w, last), rtol=1e-4, atol=1e-5)


def test_one_flag_does_not_concern_the_channels() -> None:
    assert C.convolution(np.ones((4, 3, 3, 3), np.float32), C.input_variable((3, 5, 5))).shape == (4, 5, 5)


def test_arguments_have_the_order_of_cntk() -> None:
    """strides, sharing, auto_padding, sequential, dilation, reduction_rank, groups, max_temp_mem_size, name."""
    x = C.input_variable((4, 6, 6))
    w = np.ones((2, 2, 3, 3), np.float32)
    made = C.convolution(w, x, (2, 2), [True], [False], False, (2,), 1, 2, 100, "c")
    assert (made.shape, made.name) == ((2, 1, 1), "c")
    back = np.ones((4, 3, 3, 3), np.float32)
    made = C.convolution_transpose(back, x, (2, 2), [True], [False], (3, 13, 14), (1,), 1, 100, "t")
    assert (made.shape, made.name) == ((3, 13, 14), "t")


@PRECISIONS
@pytest.mark.parametrize("channels", [True, False])
def test_the_transposed_one_is_the_gradient(channels: bool, dtype: Any) -> None:
    """It spreads what the other one gathers: <conv(y), x> = <y, transposed(x)>, with dilation and padding, too."""
    random = np.random.default_rng(7)
    how = {"strides": (2, 1), "auto_padding": (False, True), "dilation": (2, 2)}
    w = random.normal(size=(3 if channels else 1, 2, 3, 2))
    given = random.normal(size=(3, 2, 5) if channels else (2, 5))
    x = C.input_variable(given.shape, dtype=dtype)
    filters = (w if channels else w[0]).astype(dtype)
    made = C.convolution_transpose(filters, x, reduction_rank=int(channels), **how)
    assert made.shape == (2, 7, 5)
    found = made.eval({x: given[None].astype(dtype)})[0]
    expected = np.zeros(made.shape)
    for at in np.ndindex(made.shape):
        y = np.zeros(made.shape)
        y[at] = 1
        gathered = slid(y, w, how)
        expected[at] = (gathered * (given if channels else given[None])).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-4, atol=1e-5)


@dataclass(frozen=True)
class LayerCase:
    """A layer; `how` is what `slid` is given, with the weights that the layer has."""

    make: Any
    sample: tuple[int, ...]
    weights: tuple[int, ...]
    bias: tuple[int, ...]
    how: dict[str, Any]
    lengths: tuple[int, ...] = ()
    channels: bool = True


INSIDE = {"auto_padding": (False,) * 3}
LAYERS = {
    "groups": LayerCase(
        lambda: C.layers.Convolution2D((3, 2), 6, groups=2), (4, 5, 5), (6, 2, 3, 2), (6, 1, 1), {**INSIDE, "groups": 2}
    ),
    "depthwise": LayerCase(
        lambda: C.layers.Convolution((3, 3), 4, groups=4, pad=True, strides=(1, 2)),
        (4, 5, 5), (4, 1, 3, 3), (4, 1, 1), {"strides": (1, 2), "groups": 4},
    ),
    "dilated": LayerCase(
        lambda: C.layers.Convolution1D(3, 2, dilation=2, pad=True), (3, 7), (2, 3, 3), (2, 1), {"dilation": (2,)}
    ),
    "a cube": LayerCase(
        lambda: C.layers.Convolution3D(2, 2, strides=(1, 2, 1)),
        (1, 3, 4, 3), (2, 1, 2, 2, 2), (2, 1, 1, 1), {**INSIDE, "strides": (1, 2, 1)},
    ),
    "long steps": LayerCase(
        lambda: C.layers.Convolution((2, 2), 2, pad=[True, False], strides=3),
        (2, 6, 8), (2, 2, 2, 2), (2, 1, 1), {"strides": (3, 3), "auto_padding": (True, False)},
    ),
    "no channels": LayerCase(
        lambda: C.layers.Convolution2D((3, 3), 2, reduction_rank=0, pad=True),
        (4, 5), (2, 1, 3, 3), (2, 1, 1), {}, channels=False,
    ),
    "sequences": LayerCase(
        lambda: C.layers.SequentialConvolution(3, 4, pad=True), (2,), (4, 2, 3), (4,), {}, (5, 2)
    ),
    "sequences of pictures": LayerCase(
        lambda: C.layers.Convolution((2, 3), 4, sequential=True, pad=(False, True), strides=(2, 1)),
        (2, 4), (4, 2, 2, 3), (4, 1), {"auto_padding": (False, True), "strides": (2, 1)}, (5, 3),
    ),
    "sequences without channels": LayerCase(
        lambda: C.layers.SequentialConvolution((2, 2), 3, reduction_rank=0, dilation=(2, 1)),
        (4,), (3, 1, 2, 2), (3, 1), {**INSIDE, "dilation": (2, 1)}, (5, 3), channels=False,
    ),
}  # fmt: skip


@PRECISIONS
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.sampled
def test_layers(name: str, dtype: Any) -> None:
    """The filters that a layer has, slid over its input, and its bias."""
    one = LAYERS[name]
    case = Case(one.sample, one.weights, one.how, one.lengths, one.channels)
    with C.default_options(init_bias=C.uniform(0.5, seed=5), dtype=dtype):
        made = one.make()(case.leaf(dtype))
    assert (made.W.shape, made.b.shape) == (one.weights, one.bias)
    assert np.ptp(made.b.value) > 0.1
    data = case.data()
    given = [a.astype(dtype) for a in data] if one.lengths else np.array(data, dtype)
    found = made.eval({made.arguments[0]: given})
    for sample, wanted in zip(found, case.expected(data, made.W.value), strict=True):
        assert sample.dtype == dtype
        np.testing.assert_allclose(sample, wanted + made.b.value, rtol=2e-5, atol=1e-6)


def test_a_layer_along_sequences_is_trained() -> None:
    """It finds where a pattern of three steps is, which no layer of single steps can."""
    random = np.random.default_rng(0)
    x, y = C.sequence.input_variable(1), C.sequence.input_variable(1)
    model = C.layers.SequentialConvolution(3, 1, pad=True)(x)
    loss = C.squared_error(model, y)
    trainer = C.Trainer(model, loss, C.adam(model.parameters, 0.05, 0.9, minibatch_size=C.learners.IGNORE))
    pattern = np.array([1.0, -2.0, 1.0])
    for _ in range(150):
        steps = [random.normal(size=n) for n in (7, 4, 6)]
        wanted = [np.convolve(one, pattern[::-1], "same") for one in steps]
        trainer.train_minibatch(
            {x: [s[:, None].astype(np.float32) for s in steps], y: [s[:, None].astype(np.float32) for s in wanted]}
        )
    np.testing.assert_allclose(model.W.value.ravel(), pattern, atol=0.05)


def test_layers_along_sequences_of_one_number_of_filters() -> None:
    x = C.sequence.input_variable((2, 5))
    assert C.layers.SequentialConvolution((3, 3))(x).shape == (3,)
    stack = C.layers.Sequential([C.layers.SequentialConvolution((3, 3), 4), C.layers.SequentialConvolution((2, 2), 3)])
    assert stack(x).shape == (3, 2)


def test_arrays_of_filters_lack_the_axes_that_samples_lack() -> None:
    """A filter of three steps of numbers: (3,), or (1, 3) for one filter with an axis, (1, 1, 3) as it is kept."""
    x = C.sequence.input_variable(())
    data = [np.array([2, 6, 4, 8, 6], np.float32)]
    for count, start in ((None, [4, 2, 1]), (1, [[4, 2, 1]]), ((1,), [[[4, 2, 1]]]), ((), [[4, 2, 1]])):
        layer = C.layers.Convolution(
            3, count, sequential=True, init=np.array(start, np.float32), reduction_rank=0, bias=False
        )
        made = layer(x)
        assert made.W.shape == (1, 1, 3)
        assert made.shape == (() if count in (None, ()) else (1,))
        np.testing.assert_array_equal(np.ravel(made.eval({x: data})), [24, 40, 38])
    picture = C.layers.Convolution2D((2, 2), init=np.ones((3, 2, 2)), bias=False)(C.input_variable((3, 3, 3)))
    assert picture.W.shape == (1, 3, 2, 2)
    np.testing.assert_array_equal(picture.eval(np.ones((1, 3, 3, 3), np.float32)), np.full((1, 2, 2), 12))


def test_transposed_layers_take_dilation_and_samples_without_channels() -> None:
    x = C.input_variable((5,))
    made = C.layers.ConvolutionTranspose1D(3, 2, strides=2, dilation=2, reduction_rank=0, init_bias=[[0.5], [0.25]])(x)
    data = np.arange(1, 6, dtype=np.float32)
    expected = np.repeat([[0.5], [0.25]], 13, axis=1)
    for channel, place, at in np.ndindex(2, 5, 3):
        expected[channel, 2 * place + 2 * at] += data[place] * made.W.value[0, channel, at]
    np.testing.assert_allclose(made.eval({x: data[None]})[0], expected, rtol=1e-5)


def test_defaults_of_one_layer() -> None:
    x = C.input_variable((1, 5, 5))
    with C.layers.default_options_for(C.layers.Convolution2D, pad=True):
        assert C.layers.Convolution2D((3, 3), 2)(x).shape == (2, 5, 5)
        assert C.layers.Convolution((3, 3), 2)(x).shape == (2, 3, 3)


def pooled(x: np.ndarray, kind: str, size: tuple[int, int], strides: tuple[int, int], how: dict[str, Any]) -> Any:
    """Windows of pictures (n, channels, height, width), cell by cell; cells outside are left out, or count as 0."""
    places = []
    for n, k, s in zip(x.shape[2:], size, strides, strict=True):
        if how.get("auto_padding"):
            count = -(-n // s)
            first = (n - 1 - (count - 1) * s) // 2 - (k - 1) // 2
        else:
            rest = n - k
            count, first = (-(-rest // s) if how.get("ceil_out_dim") else rest // s) + 1, 0
        places.append([[first + i * s + j for j in range(k)] for i in range(count)])
    out = np.zeros((*x.shape[:2], len(places[0]), len(places[1])))
    for i, j in np.ndindex(out.shape[2:]):
        rows, columns = ([a for a in p[at] if 0 <= a < n] for p, at, n in zip(places, (i, j), x.shape[2:], strict=True))
        cells = x[:, :, rows][..., columns]
        if kind == C.MAX_POOLING:
            out[:, :, i, j] = cells.max(axis=(2, 3))
        else:
            count = size[0] * size[1] if how.get("include_pad") else len(rows) * len(columns)
            out[:, :, i, j] = cells.sum(axis=(2, 3)) / count
    return out


POOLINGS = [
    {},
    {"ceil_out_dim": True},
    {"ceil_out_dim": True, "include_pad": True},
    {"auto_padding": [True]},
    {"auto_padding": [True], "include_pad": True},
]


@PRECISIONS
@pytest.mark.parametrize("how", POOLINGS)
@pytest.mark.parametrize("kind", [C.MAX_POOLING, C.AVG_POOLING])
@pytest.mark.sampled
def test_poolings(kind: str, how: dict[str, Any], dtype: Any, tmp_path: Path) -> None:
    size, strides = (3, 2), (3, 2)
    data = np.random.default_rng(5).normal(size=(2, 2, 7, 5))
    x = C.input_variable((2, 7, 5), dtype=dtype)
    made = C.pooling(x, kind, size, strides, **how)
    expected = pooled(data, kind, size, strides, how)
    found = made.eval({x: data.astype(dtype)})
    assert found.dtype == dtype
    assert made.shape == expected.shape[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    weight = np.cos(np.arange(expected[0].size)).reshape(made.shape)
    gradient = C.reduce_sum(made * C.constant(weight.astype(dtype))).grad({x: data.astype(dtype)})
    steps = 1e-6 * np.eye(data[0].size).reshape(-1, *data[0].shape)
    slopes = np.empty_like(data)
    for number, sample in enumerate(data):
        above, below = (pooled(sample + sign * steps, kind, size, strides, how) for sign in (1, -1))
        slopes[number] = ((above - below) * weight).sum(axis=(1, 2, 3)).reshape(sample.shape) / 2e-6
    np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-5)
    made.save(str(tmp_path / "model"))
    loaded = C.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.eval({loaded.arguments[0]: data.astype(dtype)}), found)
    np.testing.assert_array_equal(made.clone("clone").eval(data.astype(dtype)), found)


@PRECISIONS
def test_what_was_pooled_is_put_back(dtype: Any) -> None:
    """Each value at the place of the maximum of its window, by the operator and by the layer."""
    data = np.random.default_rng(6).normal(size=(1, 2, 4, 6))
    x, y = C.input_variable((2, 4, 6), dtype=dtype), C.input_variable((2, 2, 3), dtype=dtype)
    values = np.arange(1.0, 13).reshape(1, 2, 2, 3)
    expected = np.zeros_like(data)
    for c, i, j in np.ndindex(2, 2, 3):
        cells = data[0, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        row, column = np.unravel_index(cells.argmax(), (2, 2))
        expected[0, c, 2 * i + row, 2 * j + column] = values[0, c, i, j]
    given = {x: data.astype(dtype), y: values.astype(dtype)}
    made = C.unpooling(y, x, C.MAX_UNPOOLING, (2, 2), (2, 2))
    np.testing.assert_array_equal(made.eval(given), expected)
    layer = C.layers.MaxUnpooling((2, 2), strides=(2, 2))(y, x)
    np.testing.assert_array_equal(layer.eval(given), expected)
    gradient = C.reduce_sum(made * C.constant(data[0].astype(dtype))).grad(given, wrt=[y])
    peaks = pooled(data, C.MAX_POOLING, (2, 2), (2, 2), {})
    np.testing.assert_allclose(gradient, peaks, rtol=1e-6)


def regions(x: np.ndarray, rois: np.ndarray, grid: tuple[int, int], scale: float, what: Any) -> np.ndarray:
    """By Fast R-CNN: corners scaled and rounded, both inside; each cell from its floor to its ceiling."""
    out = np.zeros((len(rois), len(x), *grid))
    for r, corners in enumerate(rois):
        x1, y1, x2, y2 = (int(np.floor(one * scale + 0.5)) for one in corners)
        wide, high = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
        for j, i in np.ndindex(grid):
            rows = range(max(y1 + j * high // grid[0], 0), min(y1 - -(j + 1) * high // grid[0], x.shape[1]))
            columns = range(max(x1 + i * wide // grid[1], 0), min(x1 - -(i + 1) * wide // grid[1], x.shape[2]))
            if len(rows) and len(columns):
                out[r, :, j, i] = what(x[:, rows.start : rows.stop, columns.start : columns.stop], axis=(1, 2))
    return out


ROIS = np.array([[0, 0, 60, 40], [16, 8, 47, 79], [70, 70, 79, 79], [40, 40, 20, 20], [90, 90, 200, 200]], float)
"""Corners of regions of pictures of 80 x 80; the last but one ends before it begins, the last one lies outside."""


@PRECISIONS
@pytest.mark.parametrize(("kind", "what"), [(C.MAX_POOLING, np.max), (C.AVG_POOLING, np.mean)])
def test_regions_of_interest(kind: str, what: Any, dtype: Any) -> None:
    data = np.random.default_rng(2).normal(size=(2, 3, 5, 5))
    rois = np.array([ROIS, ROIS[::-1]])
    x, r = C.input_variable((3, 5, 5), dtype=dtype), C.input_variable(ROIS.shape, dtype=dtype)
    made = C.roipooling(x, r, kind, (2, 3), 1 / 16, "pooled")
    assert (made.shape, made.name) == ((5, 3, 2, 3), "pooled")
    given = {x: data.astype(dtype), r: rois.astype(dtype)}
    found = made.eval(given)
    assert found.dtype == dtype

    def expected(data: np.ndarray) -> np.ndarray:
        return np.array([regions(*pair, (2, 3), 1 / 16, what) for pair in zip(data, rois, strict=True)])

    np.testing.assert_allclose(found, expected(data), rtol=1e-6)
    assert (expected(data)[0, 4] == 0).all()
    weight = np.cos(np.arange(90)).reshape(made.shape)
    slopes = np.zeros_like(data)
    for at in np.ndindex(data.shape):
        step = np.zeros_like(data)
        step[at] = 1e-6
        slopes[at] = ((expected(data + step) - expected(data - step)) * weight).sum() / 2e-6
    gradient = C.reduce_sum(made * C.constant(weight.astype(dtype))).grad(given, wrt=[x, r])
    np.testing.assert_allclose(gradient[x], slopes, rtol=1e-4, atol=1e-5)
    assert (gradient[r] == 0).all()


@pytest.mark.parametrize(("kind", "what"), [(C.MAX_POOLING, np.max), (C.AVG_POOLING, np.mean)])
def test_regions_of_one_picture(kind: str, what: Any) -> None:
    """A picture that all samples share is trained by all of them; regions may be constant, too."""
    picture = np.random.default_rng(3).normal(size=(2, 4, 4))
    rois = np.array([[[0, 0, 1, 1], [1, 1, 3, 3]], [[2, 2, 3, 3], [0, 0, 3, 3]]], float)
    w, r, x = C.parameter(init=picture), C.input_variable((2, 4), np.float64), C.input_variable((2, 4, 4), np.float64)
    made = C.roipooling(w, r, kind, (2, 2), 1.0)

    def expected(picture: np.ndarray) -> np.ndarray:
        return np.array([regions(picture, one, (2, 2), 1.0, what) for one in rois])

    np.testing.assert_allclose(made.eval({r: rois}), expected(picture))
    slopes = np.zeros_like(picture)
    for at in np.ndindex(picture.shape):
        step = np.zeros_like(picture)
        step[at] = 1e-6
        slopes[at] = (expected(picture + step) ** 2 - expected(picture - step) ** 2).sum() / 2e-6
    np.testing.assert_allclose(C.reduce_sum(C.square(made)).grad({r: rois}, wrt=[w]), slopes, rtol=1e-5, atol=1e-6)
    fixed = C.roipooling(x, C.constant(rois[0]), kind, (2, 2), 1.0)
    np.testing.assert_allclose(fixed.eval({x: picture[None]})[0], expected(picture)[0])
    alone = C.roipooling(w, C.constant(rois[0]), kind, (2, 2), 1.0)
    np.testing.assert_allclose(alone.eval(), expected(picture)[0])


def test_equal_elements_of_a_region_leave_the_gradient_to_the_first() -> None:
    x = C.input_variable((1, 2, 3))
    made = C.roipooling(x, C.constant(np.array([[0, 0, 2, 1]], np.float32)), C.MAX_POOLING, (1, 1), 1.0)
    gradient = made.grad({x: np.array([[[[0, 1, 5], [5, 5, 0]]]], np.float32)})
    np.testing.assert_array_equal(gradient[0, 0], [[0, 0, 1], [0, 0, 0]])


def test_regions_relative_to_the_image_are_those_of_brainscript() -> None:
    """A model of BrainScript has the meaning before CNTK 2.1 without spatialScale, else the later one."""
    data = np.random.default_rng(2).normal(size=(1, 1, 4, 4)).astype(np.float32)
    x, r = C.input_variable((1, 4, 4)), C.input_variable((1, 4))
    pixels = C.roipooling(x, r, C.MAX_POOLING, (1, 1), 0.5).eval({x: data, r: [[[0, 0, 3, 7]]]})
    np.testing.assert_array_equal(pixels.ravel(), data[0, 0, :4, :3].max())
    relative = operator("ROIPooling", x, r, [1, 1])
    found = relative.eval({x: data, r: [[[0.5, 0.0, 0.5, 1.0]]]})
    np.testing.assert_array_equal(found.ravel(), data[0, 0, :, 2:].max())
    later = operator("ROIPooling", x, r, [1, 1], spatialScale=0.5)
    np.testing.assert_array_equal(later.eval({x: data, r: [[[0, 0, 3, 7]]]}), pixels)


X, S = C.input_variable((4, 5, 5)), C.sequence.input_variable((4,))
W = np.ones((4, 2, 3, 3), np.float32)

WRONG = {
    "convolution: groups is a whole number from 1 on, not 0": lambda: C.convolution(W, X, groups=0),
    "the 4 channels of the input are not 3 groups": lambda: C.convolution(W, X, groups=3).shape,
    "the 3 maps are not 2 groups": lambda: C.convolution(W[:3], X, groups=2).shape,
    "reduction_rank is 0 or 1, not 2": lambda: C.convolution(W, X, reduction_rank=2),
    "filters are the same at all places": lambda: C.convolution(W, X, sharing=[False]),
    "3 values for filters that slide along 1 axes": lambda: C.convolution(W[..., 0], S, (1, 1, 1), sequential=True),
    "sequential=True needs a sequence": lambda: C.convolution(W, X, sequential=True),
    "filters of the shape (4, 2, 3, 3) for samples of the shape (4,)": lambda: C.convolution(W, S, sequential=True),
    "convolution: dilation is a whole number from 1 on, not 0": lambda: C.convolution(W, X, dilation=0, groups=2),
    "Convolution: pad is True or False, not 'same'": lambda: C.layers.Convolution2D((3, 3), 2, pad="same"),
    "groups is a whole number from 1 on, not -1": lambda: C.layers.Convolution2D((3, 3), 2, groups=-1),
    "pooling: ceil_out_dim is True or False, not 'up'": lambda: C.pooling(X, C.MAX_POOLING, (2, 2), ceil_out_dim="up"),
    "pooling: pooling_type is MAX_POOLING or AVG_POOLING, not 2": lambda: C.pooling(X, 2, (2, 2)),
    "a window would lie wholly in the padding": lambda: (
        C.pooling(X, C.MAX_POOLING, (1, 1), (3, 3), ceil_out_dim=True).shape
    ),
    "spatial_scale is larger than 0": lambda: C.roipooling(X, X, C.MAX_POOLING, (2, 2), 0),
    "pooling_type is MAX_POOLING or AVG_POOLING, not 'most'": lambda: C.roipooling(X, X, "most", (2, 2), 1),
    "each region has four numbers: x1, y1, x2 and y2": lambda: (
        C.roipooling(X, C.input_variable((2, 5)), C.MAX_POOLING, (2, 2), 1 / 16).shape
    ),
    "a window of 3 elements with the dilation 3 takes 7 elements, more than the 5": lambda: (
        C.convolution(W, X, dilation=3, groups=2, auto_padding=[False]).shape
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(UserError) as error:
        WRONG[message]()
    assert message in str(error.value)
