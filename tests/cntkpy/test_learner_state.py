"""States and sizes of learners, as programs that update by hand ask for them."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

MOMENTUM = C.momentum_schedule(0.9)
RULES: dict[str, Callable[..., Any]] = {
    "sgd": lambda p, **options: C.sgd(p, 0.1, **options),
    "momentum_sgd": lambda p, **options: C.momentum_sgd(p, 0.1, MOMENTUM, **options),
    "nesterov": lambda p, **options: C.nesterov(p, 0.1, MOMENTUM, **options),
    "adagrad": lambda p, **options: C.adagrad(p, 0.1, **options),
    "adam": lambda p, **options: C.adam(p, 0.1, MOMENTUM, **options),
    "rmsprop": lambda p, **options: C.rmsprop(p, 0.1, 0.9, 1.1, 0.9, 1.5, 0.8, **options),
    "adadelta": lambda p, **options: C.adadelta(p, **options),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.sampled
def test_a_learner_resumes_from_its_checkpoint(name: str) -> None:
    """Two learners have noise of their own; one that takes a checkpoint has that of the other."""
    values = [C.parameter((3,), init=1.0) for _ in range(3)]
    first, second, third = (RULES[name]([value], gaussian_noise_injection_std_dev=0.5) for value in values)
    for step in range(3):
        checkpoint = first.create_checkpoint()
        gradient = np.arange(3, dtype=np.float32) + step
        first.update({values[0]: gradient}, 2)
        second.update({values[1]: gradient}, 2)
        third.restore_from_checkpoint(checkpoint)
        third.update({values[2]: gradient}, 2)
        assert not np.allclose(values[0].value, values[1].value, rtol=0, atol=1e-6)
        assert np.array_equal(values[0].value, values[2].value)
    assert third.total_number_of_samples_seen == 6


def test_a_checkpoint_of_another_learner_is_refused() -> None:
    weights = C.parameter((3,), init=1.0)
    momentum, adam = RULES["momentum_sgd"]([weights]), RULES["adam"]([weights])
    momentum.update({weights: np.ones(3, np.float32)}, 1)
    with pytest.raises(UserError, match="the checkpoint is not one of adam"):
        adam.restore_from_checkpoint(momentum.create_checkpoint())


def test_the_state_of_a_learner_in_a_trainer_is_in_the_trainers_checkpoint() -> None:
    x = C.input_variable(2)
    z = C.layers.Dense(1)(x)
    learner = C.sgd(z.parameters, 0.1)
    C.Trainer(z, C.squared_error(z, 1), [learner]).train_minibatch({x: np.ones((1, 2), np.float32)})
    with pytest.raises(UserError, match="belongs to its trainer"):
        learner.create_checkpoint()


class Settings(C.cntk_py.ProgressWriter):
    """Keeps what it is told to write."""

    def __init__(self) -> None:
        super().__init__(1, 0, 1, 0, sys.maxsize, 0)
        self.lines: list[tuple[str, object]] = []
        self.__disown__()

    def write(self, key: str, value: object) -> None:
        self.lines.append((key, value))


def trained(make: Callable[[Any], Any], writer: Any, minibatches: int = 6) -> None:
    x, w = C.input_variable(1), C.parameter((1,), init=1.0)
    trainer = C.Trainer(x * w, C.squared_error(x * w, 1), [make([w])], writer)
    for _ in range(minibatches):
        trainer.train_minibatch({x: [[2.0]]})


def test_writers_get_rates_and_momenta_when_they_change() -> None:
    writer = Settings()
    rate = C.learning_parameter_schedule_per_sample([0.3, 0.2, 0.1, 0], epoch_size=1)
    trained(lambda p: C.momentum_sgd(p, rate, C.momentum_schedule([0.6, 0.7], 1)), writer)
    rates, momenta = "Learning rate per 1 samples", "Momentum per minibatch"
    assert writer.lines == [(rates, 0.3), (momenta, 0.6), (rates, 0.2), (momenta, 0.7), (rates, 0.1), (rates, 0)]
    writer = Settings()
    trained(lambda p: C.sgd(p, C.learning_parameter_schedule(0.5, 32)), writer)
    assert writer.lines == [("Learning rate per 32 samples", 0.5)]


def test_a_printer_prints_the_rate_below_the_head_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    trained(lambda p: C.sgd(p, 0.25), C.logging.ProgressPrinter(freq=0), 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].strip() == "-" * 54 and lines[3] == "Learning rate per minibatch: 0.25"
    assert [len(line.split()) for line in lines[4:]] == [5]


def test_a_trainer_counts_in_every_unit() -> None:
    x, w = C.input_variable(1), C.parameter((1,), init=1.0)
    trainer = C.Trainer(x * w, C.squared_error(x * w, 1), [C.sgd([w], 0.1)])
    for last in (False, True):
        trainer.train_minibatch({x: [[2.0], [1.0]]}, is_sweep_end=last)
    units = C.train.DataUnit.sample, C.train.DataUnit.minibatch, C.train.DataUnit.sweep
    assert [trainer.total_number_of_units_seen(unit) for unit in units] == [4, 2, 1]


def test_a_trainer_without_metric_tests_nothing() -> None:
    x, w = C.input_variable(1), C.parameter((1,), init=1.0)
    trainer = C.Trainer(x * w, C.squared_error(x * w, 1), [C.sgd([w], 0.1)])
    with pytest.raises(UserError, match="the trainer has no metric to test"):
        trainer.test_minibatch({x: [[2.0]]})


SIZES: list[tuple[dict[str, Any], tuple[bool, int, int]]] = [
    ({"lr": 0.1, "minibatch_size": 25}, (False, 25, 25)),
    ({"lr": C.learning_parameter_schedule(0.1)}, (False, 0, 0)),
    ({"lr": C.learning_parameter_schedule(0.1, 20), "minibatch_size": 25}, (False, 25, 20)),
    ({"lr": C.learning_parameter_schedule(0.1), "minibatch_size": C.learners.IGNORE}, (True, 0, 0)),
    ({"lr": 0.1, "use_mean_gradient": True}, (True, 0, 0)),
]


@pytest.mark.parametrize(("options", "expected"), SIZES)
def test_a_learner_says_which_minibatches_its_rate_is_for(
    options: dict[str, Any], expected: tuple[bool, int, int]
) -> None:
    """Without a size it trains on sums of gradients; with IGNORE on means."""
    learner = C.sgd([C.parameter((1,))], **options)
    sizes = learner.minibatch_size, learner.learning_rate_schedule.minibatch_size
    assert (learner.is_compatible_mode(), *sizes) == expected
    assert learner.learning_rate() == 0.1
