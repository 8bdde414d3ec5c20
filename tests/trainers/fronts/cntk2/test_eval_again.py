"""`eval` takes the values of a network again only where some have changed."""

from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.trainers.evaluation import evaluator


def test_values_are_taken_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []

    def counted(self: evaluator.Evaluator, start: Any = None) -> None:
        loads.append(1)
        load(self, start)

    load = evaluator.Evaluator.load
    monkeypatch.setattr(evaluator.Evaluator, "load", counted)
    x, w = C.input_variable(2), C.parameter((2, 1), init=1.0)
    scale = C.constant(np.ones(1, np.float32), name="scale")
    z = C.times(x, w) * scale
    data = np.float32([[1, 2]])
    assert [z.eval({x: data}).item() for _ in range(3)] == [3, 3, 3]
    assert len(loads) == 1
    w.value = np.float32([[1], [2]])
    assert [z.eval({x: data}).item() for _ in range(2)] == [5, 5]
    assert len(loads) == 2
    trainer = C.Trainer(z, z, C.sgd([w], C.learning_parameter_schedule_per_sample(1.0)))
    for _ in range(2):
        trainer.train_minibatch({x: data})
    assert [z.eval({x: data}).item() for _ in range(2)] == [-5, -5]
    assert w.value.tolist() == [[-1], [-2]]
    trainer.train_minibatch({x: data})
    assert [z.eval({x: data}).item() for _ in range(2)] == [-10, -10]
    assert len(loads) == 4


def test_running_statistics_are_taken_again() -> None:
    x = C.input_variable(2)
    z = C.layers.BatchNormalization()(x)
    data = np.float32([[1, 2], [3, 6]])
    before = z.eval({x: data})
    z.forward({x: data}, keep_for_backward=z.outputs)
    after = z.eval({x: data})
    assert (before != after).any()
    np.testing.assert_array_equal(z.eval({x: data}), after)
