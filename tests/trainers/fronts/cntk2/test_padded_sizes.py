"""Minibatches of many sizes share a few programs, and what is computed has no padding."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.trainers.fronts.cntk2 import padded_sizes
from cntkpy.trainers.fronts.cntk2.padded_sizes import PaddedSizes


def test_a_few_sizes() -> None:
    sizes = PaddedSizes()
    assert [sizes.of(samples) for samples in (100, 99, 51, 100, 50, 0)] == [100, 100, 100, 100, 64, 1]
    every = {samples: sizes.of(samples) for samples in range(1, 101)}
    assert all(samples <= size < 2 * samples for samples, size in every.items())
    assert len(set(every.values())) == 12


def test_a_program_is_compiled_for_a_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def of(self: PaddedSizes, samples: int) -> int:
        asked.append(own(self, samples))
        return asked[-1]

    own = PaddedSizes.of
    monkeypatch.setattr(padded_sizes.PaddedSizes, "of", of)
    x, y = C.input_variable(2, needs_gradient=True), C.input_variable(2)
    error = C.squared_error(x, y)
    test = C.Evaluator(error)
    for number in (4, 3, 2):
        data = np.arange(2.0 * number).reshape(number, 2).astype(np.float32)
        assert error.eval({x: data, y: 0 * data}) == pytest.approx((data**2).sum(1))
        assert error.grad({x: data, y: 0 * data}, wrt=[x]) == pytest.approx(2 * data)
        assert test.test_minibatch({x: data, y: 0 * data}) == pytest.approx((data**2).sum() / number)
    assert set(asked) == {4, 2}


def test_nothing_sees_the_padding() -> None:
    """Neither a mean over the minibatch nor a batch normalisation, whose statistics are those of the samples."""
    x = C.input_variable(2)
    mean = C.reduce_mean(x, axis=C.Axis.default_batch_axis())
    normal = C.layers.BatchNormalization(init_scale=1)(x)
    data = np.random.default_rng(0).normal(3, 2, size=(7, 2)).astype(np.float32)
    for number in (7, 5, 3, 6, 7):
        some = data[:number]
        assert mean.eval({x: some}) == pytest.approx(some.mean(0), rel=1e-5)
        _, found = normal.forward({x: some}, [normal.output], {normal.output})
        expected = (some - some.mean(0)) / some.std(0)
        assert found[normal.output] == pytest.approx(expected, abs=1e-3)
