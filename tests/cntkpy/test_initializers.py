"""How parameters start: spreads by fan_in and fan_out of all ranks, truncated numbers, bilinear filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

SHAPE = (40, 30, 5, 4)
"""As of filters: outputs, inputs, height, width."""

FANS = {
    (): (4, 40 * 30 * 5),
    (2, None): (5 * 4, 40 * 30),
    (-1, 2): (40 * 20, 30 * 20),
    (1, 2): (30 * 20, 40 * 20),
    (-2, 1): (40 * 30 * 4, 5 * 4),
    (2, 1): (30 * 5 * 4, 40 * 4),
}
"""output_rank and filter_rank, and (fan_out, fan_in) as the definition has them for `SHAPE`."""

SPREADS = {
    "glorot_uniform": lambda o, i: math.sqrt(6 / (i + o)),
    "glorot_normal": lambda o, i: math.sqrt(2 / (i + o)),
    "he_uniform": lambda o, i: math.sqrt(6 / i),
    "he_normal": lambda o, i: math.sqrt(2 / i),
    "xavier": lambda o, i: math.sqrt(3 / i),
    "normal": lambda o, i: 1.0,
}


def spread(name: str, values: np.ndarray) -> float:
    """The limit of a uniform distribution, the deviation of a normal one, of 24,000 values."""
    return float(np.std(values)) * (1 if name.endswith("normal") else math.sqrt(3))


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("ranks", FANS)
@pytest.mark.parametrize("name", SPREADS)
def test_ranks_say_what_is_counted(name: str, ranks: Any, dtype: Any) -> None:
    named = dict(zip(("output_rank", "filter_rank"), ranks, strict=False))
    init = getattr(C, name)(scale=2.0, seed=3, **named)
    values = C.parameter(SHAPE, init=init, dtype=dtype).value
    assert values.dtype == dtype
    assert spread(name, values) == pytest.approx(2 * SPREADS[name](*FANS[ranks]), rel=0.02)
    if not name.endswith("normal"):
        assert np.abs(values).max() <= 2 * SPREADS[name](*FANS[ranks]) * (1 + 1e-6)


def test_arguments_have_the_order_of_cntk() -> None:
    values = C.parameter(SHAPE, init=C.glorot_uniform(1.0, -1, 2, 7)).value
    named = C.glorot_uniform(scale=1.0, output_rank=-1, filter_rank=2, seed=7)
    np.testing.assert_array_equal(values, C.parameter(SHAPE, init=named).value)


def test_ranks_given_later_stand_where_there_are_none() -> None:
    later = C.initializer_with_rank(C.he_normal(seed=3), output_rank=-1, filter_rank=2)
    values = C.parameter(SHAPE, init=later).value
    np.testing.assert_array_equal(values, C.parameter(SHAPE, init=C.he_normal(1.0, -1, 2, seed=3)).value)
    kept = C.initializer_with_rank(C.he_normal(1.0, -2, seed=3), output_rank=-1, filter_rank=1)
    values = C.parameter(SHAPE, init=kept).value
    np.testing.assert_array_equal(values, C.parameter(SHAPE, init=C.he_normal(1.0, -2, 1, seed=3)).value)
    assert C.initializer_with_rank(0.5, 1, 1) == 0.5
    inferred = C.he_normal(1.0, 2147483647, 2147483647, seed=3)  # CNTK's number for "not given"
    values = C.parameter(SHAPE, init=inferred).value
    np.testing.assert_array_equal(values, C.parameter(SHAPE, init=C.he_normal(seed=3)).value)


def test_layers_count_their_own_axes_unless_an_initializer_does() -> None:
    init = C.glorot_uniform(seed=1)
    filters = C.layers.Convolution2D((5, 4), 40, init=init)(C.input_variable((30, 8, 8))).W.value
    assert spread("", filters) == pytest.approx(math.sqrt(6 / (70 * 20)), rel=0.02)
    filters = C.layers.Convolution2D((5, 4), 60, init=init, groups=2)(C.input_variable((60, 8, 8))).W.value
    assert spread("", filters) == pytest.approx(math.sqrt(6 / (90 * 20)), rel=0.02)
    own = C.layers.Convolution2D((5, 4), 40, init=C.glorot_uniform(1.0, 1, 0, 1))(C.input_variable((30, 8, 8))).W
    assert spread("", own.value) == pytest.approx(math.sqrt(6 / (4 + 40 * 30 * 5)), rel=0.02)
    dense = C.layers.Dense((20, 30), init=init)(C.input_variable(40)).W
    assert dense.shape == (40, 20, 30)
    assert spread("", dense.value) == pytest.approx(math.sqrt(6 / (40 + 600)), rel=0.02)
    default = C.layers.Dense((20, 30))(C.input_variable(40)).W
    assert spread("", default.value) == pytest.approx(math.sqrt(6 / (40 + 600)), rel=0.02)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_truncated_numbers(dtype: Any) -> None:
    """Normal ones with a deviation of 0.5 up to 1: their own deviation is 0.8796 of that, by the density."""
    values = C.parameter((200, 150), init=C.truncated_normal(0.5, seed=5), dtype=dtype).value
    assert values.dtype == dtype
    assert 0.99 < np.abs(values).max() <= 1
    x = np.linspace(-2, 2, 4001)
    density = np.exp(-x * x / 2)
    deviation = math.sqrt((x * x * density).sum() / density.sum()) * 0.5
    assert np.std(values) == pytest.approx(deviation, rel=0.01)
    assert abs(np.mean(values)) < 0.01
    np.testing.assert_array_equal(values, C.parameter((200, 150), init=C.truncated_normal(0.5, 5), dtype=dtype).value)
    other = C.parameter((200, 150), init=C.truncated_normal(0.5), dtype=dtype).value
    assert not np.array_equal(values, other)


@pytest.mark.parametrize("init", [C.uniform(1.0, seed=1), C.normal(1.0, seed=1), C.truncated_normal(1.0, 1)])
def test_a_number_is_drawn_too(init: Any) -> None:
    assert C.parameter((), init=init).value.shape == ()


def test_truncated_numbers_of_layers() -> None:
    made = C.layers.Dense(50, init=C.truncated_normal(0.1), init_bias=C.truncated_normal(2.0, seed=1))
    made = made(C.input_variable(100))
    assert 0.15 < np.abs(made.W.value).max() <= 0.2 + 1e-7
    assert 2 < np.abs(made.b.value).max() <= 4


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_bilinear_filters_enlarge_pictures(dtype: Any) -> None:
    """Each channel for itself: inside, pixels lie between their neighbours."""
    x = C.input_variable((2, 4, 4), dtype=dtype)
    w = C.parameter((2, 2, 4, 4), init=C.bilinear(4, 4), dtype=dtype)
    profile = np.array([0.25, 0.75, 0.75, 0.25])
    for i, j in np.ndindex(2, 2):
        np.testing.assert_allclose(w.value[i, j], np.outer(profile, profile) * (i == j), rtol=1e-6)
    data = np.arange(32, dtype=dtype).reshape(1, 2, 4, 4)
    found = C.convolution_transpose(w, x, (2, 2), auto_padding=[False]).eval({x: data})[0]
    rows = np.arange(4, 6) / 2 - 0.75  # of the picture: rows 4 and 5 of 10
    columns = np.arange(3, 7) / 2 - 0.75
    for channel in range(2):
        expected = data[0, channel, 0, 0] + 4 * rows[:, None] + columns
        np.testing.assert_allclose(found[channel, 4:6, 3:7], expected, rtol=1e-6)
    layer = C.layers.ConvolutionTranspose2D(4, 2, strides=2, bias=False, init=C.bilinear(4, 4))(x)
    np.testing.assert_allclose(layer.W.value, w.value, rtol=1e-6)
    copy = layer.clone("clone")
    np.testing.assert_allclose(copy.W.value, w.value, rtol=1e-6)


WRONG = {
    "output_rank is a whole number, not 1.5": lambda: C.glorot_uniform(output_rank=1.5),
    "filter_rank is a whole number from 0 on, not -1": lambda: C.he_normal(filter_rank=-1),
    "the deviation of truncated_normal is a number from 0 on, not -1": lambda: C.truncated_normal(-1),
    "kernel_height is a whole number from 1 on, not 0": lambda: C.bilinear(3, 0),
    "bilinear needs equal kernelWidth and kernelHeight": lambda: C.parameter((2, 2, 3, 4), init=C.bilinear(4, 3)).value,
    "initFilterRank 3 and initOutputRank -1 need 4 axes": lambda: (
        C.parameter((3, 2), init=C.xavier(1.0, -1, 3, seed=1)).value
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(UserError) as error:
        WRONG[message]()
    assert message in str(error.value)
