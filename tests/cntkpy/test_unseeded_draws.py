"""Random numbers without a seed: others in each network and each trainer, the same again after the same seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C

X = C.input_variable(200)
ONES = {X: np.ones((2, 200), np.float32)}
WEIGHTS = np.arange(1, 9, dtype=np.float32)


def _mask(function: Any) -> np.ndarray:
    return function.forward(ONES, function.outputs, function.outputs)[1][function.output]


def _values(function: Any) -> np.ndarray:
    return function.eval(ONES if function.arguments else {})


def _of_sizes(low: float) -> Any:
    free = C.input_variable(C.FreeDimension)
    return (free + C.random.uniform_like(free, low)).eval({free: ONES[X]})


def _tested(number: int) -> float:
    """Return the metric of a test: a sum of 200 random numbers."""
    return C.eval.Evaluator(C.reduce_sum(C.random.normal_like(X)) + number).test_minibatch(ONES) - number


def _trained(rate: float) -> np.ndarray:
    """Return the rows of a parameter that dropout has let through in two minibatches."""
    parameter = C.parameter(200, init=0)
    trainer = C.Trainer(
        None,
        C.reduce_sum(C.dropout(X, rate) * parameter),
        [C.sgd([parameter], C.learning_parameter_schedule_per_sample(-1))],
    )
    for _ in range(2):
        trainer.train_minibatch(ONES)
    return parameter.value


def _noise(rate: float) -> np.ndarray:
    """Return a parameter that only the noise of its learner has moved."""
    parameter = C.parameter(200, init=0)
    learner = C.sgd([parameter], C.learning_parameter_schedule(rate, 1), gaussian_noise_injection_std_dev=1.0)
    C.Trainer(None, C.reduce_sum(X * 0 * parameter), [learner]).train_minibatch(ONES)
    return parameter.value / rate


DRAWN: dict[str, Callable[[float], Any]] = {
    "numbers": lambda number: _values(C.random.normal(200) + number) - number,
    "numbers like data": lambda number: _values(X + C.random.uniform_like(X) + number) - number,
    "classes": lambda number: _values(C.random_sample(WEIGHTS, 50, True) + number) - number,
    "masks": lambda number: _mask(C.dropout(X, 0.5) + number) - number,
    "numbers of a training pass": lambda number: _mask(X + C.random.bernoulli_like(X) + number) - number,
    "numbers like data of any size": lambda number: _of_sizes(0.0),
    "masks of trainers": lambda number: _trained(0.5),
    "noise of learners": lambda number: _noise(0.5),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_networks_draw_other_numbers_and_the_same_after_a_seed(kind: str) -> None:
    draw = DRAWN[kind]
    C.cntk_py.set_fixed_random_seed(4)
    first = [draw(0), draw(1), draw(2)]
    C.cntk_py.set_fixed_random_seed(4)
    again = [draw(0), draw(1), draw(2)]
    np.testing.assert_allclose(first, again, atol=1e-5)
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert np.abs(np.asarray(first[a]) - first[b]).max() > 0.05


@pytest.mark.parametrize("kind", ["numbers", "masks of trainers"])
def test_numbers_depend_on_the_seed(kind: str) -> None:
    drawn = []
    for seed in (4, 9):
        C.cntk_py.set_fixed_random_seed(seed)
        drawn.append(DRAWN[kind](0))
    assert np.abs(drawn[0] - drawn[1]).max() > 0.05


def test_networks_with_a_seed_draw_the_same() -> None:
    """A seed of its own decides, whatever else draws."""
    drawn = [_values(C.random.normal(200, seed=7) * factor) / factor for factor in (1, 2, 4)]
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=1e-6)
    np.testing.assert_allclose(drawn[2], drawn[0], rtol=1e-6)


def test_a_seed_of_a_function_decides_in_each_trainer() -> None:
    """Masks with a seed are those of another trainer's functions with this seed."""
    trained = []
    for _ in range(2):
        parameter = C.parameter(200, init=0)
        loss = C.reduce_sum(C.dropout(X, 0.5, seed=3) * parameter)
        trainer = C.Trainer(None, loss, [C.sgd([parameter], C.learning_parameter_schedule_per_sample(-1))])
        trainer.train_minibatch(ONES)
        trained.append(parameter.value)
    np.testing.assert_array_equal(trained[0], trained[1])


def test_trainers_test_with_other_numbers() -> None:
    assert abs(_tested(0) - _tested(1)) > 1e-3


def test_a_trainer_that_resumes_has_the_masks_of_the_one_before(tmp_path: Path) -> None:
    """The seed of masks is in a checkpoint, so that a trainer made later continues with them."""

    def trainer() -> tuple[Any, Any]:
        parameter = C.parameter(200, init=0)
        loss = C.reduce_sum(C.dropout(X, 0.5) * parameter)
        return parameter, C.Trainer(None, loss, [C.sgd([parameter], C.learning_parameter_schedule_per_sample(-1))])

    whole, first = trainer()
    resumed, second = trainer()
    first.train_minibatch(ONES)
    first.save_checkpoint(str(tmp_path / "c"))
    first.train_minibatch(ONES)
    second.train_minibatch(ONES)
    second.restore_from_checkpoint(str(tmp_path / "c"))
    second.train_minibatch(ONES)
    np.testing.assert_array_equal(resumed.value, whole.value)
