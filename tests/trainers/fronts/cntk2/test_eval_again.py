"""`eval` takes the values of a network again only where some have changed."""

from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.trainers.evaluation import evaluator
from cntkpy.trainers.fronts.cntk2.data import Arguments


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


def test_data_of_the_same_shapes_are_only_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a minibatch nor its layout is made again; values, types and padding are those of a first call."""
    made: list[int] = []
    minibatch = Arguments.minibatch

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        made.append(1)
        return minibatch(self, *arguments, **options)

    monkeypatch.setattr(Arguments, "minibatch", counted)
    x, y = C.input_variable((2, 3)), C.input_variable(())
    z: Any = C.reduce_sum(x, axis=(0, 1)) * y
    random = np.random.default_rng(1)
    for number, size in enumerate([17, 15, 17, 15]):
        a, b = random.normal(size=(size, 3, 2)).astype(np.float32), random.integers(0, 9, size)
        np.testing.assert_allclose(z.eval({x: a.transpose(0, 2, 1), y: b}).ravel(), a.sum((1, 2)) * b, rtol=1e-5)
        assert len(made) == min(number + 1, 2)
    z.eval({x: np.ones((17, 2, 3)), y: np.ones(17, int)})  # another type
    assert len(made) == 3
    with pytest.raises(Exception, match="there are no data for the input"):
        z.eval({x: np.ones((17, 2, 3))})


def test_sequences_of_the_same_lengths_are_only_copied() -> None:
    """A list of equal arrays, one of single steps, an array of one sequence: each is what it is at the first call."""
    x = C.sequence.input_variable(2)
    z: Any = C.layers.Recurrence(C.plus)(x)
    for factor in (1.0, 2.0):
        ones = factor * np.ones((3, 2), np.float32)
        cases: list[tuple[Any, Any]] = [
            ([ones, ones], [np.cumsum(ones, 0)] * 2),
            ([ones, ones[:1]], [np.cumsum(ones, 0), ones[:1]]),
            ([ones[0], ones[1]], [ones[:1]] * 2),
            (ones, [np.cumsum(ones, 0)]),
            (np.stack([ones[:2], ones[:2]]), [np.cumsum(ones[:2], 0)] * 2),
        ]
        for given, expected in cases:
            values = z.eval({x: given})
            assert [value.tolist() for value in values] == [value.tolist() for value in expected]


def test_results_do_not_change_with_the_data() -> None:
    """Data may lie in memory that the program reads, see `lend`; results are apart from it."""
    x = C.input_variable(1 << 10)
    z: Any = C.combine([x * 1, C.reshape(x, (2, 512))])
    data = np.ones((1 << 9, 1 << 10), np.float32)
    earlier_values = [value for _ in range(4) for value in z.eval({x: data}).values()]
    data[:] = 2
    assert all((value == 1).all() for value in earlier_values)
    assert all((value == 2).all() for value in z.eval({x: data}).values())


def test_sequences_resume_from_a_call_with_truth_values_only() -> None:
    x = C.sequence.input_variable(1)
    z: Any = C.layers.Recurrence(C.plus)(x)
    ones = np.ones((1, 2, 1), np.float32)
    assert z.eval({x: ones})[0].ravel().tolist() == [1, 2]
    assert z.eval({x: (ones, [True])})[0].ravel().tolist() == [1, 2]
    assert z.eval({x: (ones, [False])})[0].ravel().tolist() == [3, 4]
    assert z.eval({x: ones})[0].ravel().tolist() == [1, 2]
    with pytest.raises(Exception, match="cannot resume"):
        z.eval({x: (ones, [False])})


def test_from_the_third_call_on_only_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the state of the network nor a stack is made again until a parameter changes."""
    runs: list[int] = []
    run = evaluator.Evaluator.run

    def counted(self: evaluator.Evaluator, stack: Any) -> Any:
        runs.append(1)
        return run(self, stack)

    monkeypatch.setattr(evaluator.Evaluator, "run", counted)
    x, w = C.input_variable(2), C.parameter((2, 1), init=1.0)
    z = C.layers.BatchNormalization(init_scale=2, epsilon=1)(C.times(x, w))  # running mean 0, variance 0
    for number in range(5):
        assert z.eval({x: np.array([[number, 2], [1, 1]], np.float32)}).tolist() == [[2 * number + 4], [4]]
        assert len(runs) == min(number + 1, 2)
    w.value = np.array([[1], [2]], np.float32)
    for number in range(4):
        assert z.eval({x: np.array([[number, 2], [1, 1]], np.float32)}).tolist() == [[2 * number + 8], [6]]
    assert len(runs) == 3


def test_random_numbers_differ_from_call_to_call() -> None:
    x = C.input_variable(3)
    z: Any = x + C.random.uniform(3)
    values = {tuple(z.eval({x: np.zeros((1, 3), np.float32)}).ravel()) for _ in range(4)}
    assert len(values) == 4


def test_sequences_are_looked_at_in_each_call() -> None:
    """The condition keeps no step in the last call."""
    x = C.sequence.input_variable(1)
    z = C.sequence.gather(x, C.greater(x, 0))
    for number in range(3):
        assert z.eval({x: np.array([[[number + 1], [-1]]], np.float32)})[0].tolist() == [[number + 1]]
    with pytest.raises(Exception, match="keeps no step"):
        z.eval({x: np.array([[[-1], [-1]]], np.float32)})


def test_sequences_that_share_slots_with_gaps_are_no_full_layout() -> None:
    x = C.sequence.input_variable(1)
    z: Any = C.layers.Recurrence(C.plus)(x)
    data = [np.array([[1], [2], [3]], np.float32), np.array([[4]], np.float32), np.array([[5], [6]], np.float32)]
    for _ in range(4):
        assert [value.ravel().tolist() for value in z.eval({x: data})] == [[1, 3, 6], [4], [5, 11]]
