"""Operators of cntk.ops that make axes of sequences of those of samples, against NumPy and finite differences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

RANDOM = np.random.default_rng(3)
DATA, LENGTHS = RANDOM.normal(size=(3, 4, 2)), np.array([2.0, 4.0, 1.0])
OTHER = [RANDOM.normal(size=(n, 3)) for n in (3, 1, 4)]
PRECISIONS = pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])


def same(found: Any, expected: Any, dtype: Any) -> None:
    """Values are equal, sequence by sequence."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == np.float32 else 1e-12)


def differences(total: Any, at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a number by finite differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[place] += sign * step
            ends.append(total(moved))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


@PRECISIONS
def test_to_sequence_has_the_steps_of_the_first_axis(dtype: Any) -> None:
    x, lengths = C.input_variable((4, 2), dtype), C.input_variable((), dtype)
    every, some = C.to_sequence(x, name="every"), C.to_sequence(x, lengths)
    assert every.shape == some.shape == (2,)
    assert every.name == "every"
    assert len(some.dynamic_axes) == 2
    same(every.eval({x: DATA}), DATA, dtype)
    same(some.eval({x: DATA, lengths: LENGTHS}), [DATA[0, :2], DATA[1], DATA[2, :1]], dtype)


def test_to_sequence_of_vectors_and_of_a_single_step() -> None:
    vectors, single = C.input_variable(3), C.input_variable((1, 2))
    same(C.to_sequence(vectors).eval([[1, 2, 3], [4, 5, 6]]), [[1, 2, 3], [4, 5, 6]], np.float32)
    same(C.to_sequence(single).eval(np.ones((2, 1, 2))), np.ones((2, 1, 2)), np.float32)


def recurrent(data: np.ndarray, lengths: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The last state of h' = tanh(x w + h), for each sequence."""
    found = []
    for one, length in zip(data, lengths, strict=True):
        state = np.zeros(w.shape[1])
        for row in one[: int(length)]:
            state = np.tanh(row @ w + state)
        found.append(state)
    return np.array(found)


def test_a_recurrence_along_what_was_made_and_its_gradients() -> None:
    x, lengths = C.input_variable((4, 2), np.float64), C.input_variable((), np.float64)
    start = RANDOM.normal(size=(2, 3))
    w = C.parameter(init=start, dtype=np.float64)
    steps = C.to_sequence(x, lengths)
    state = C.sequence.last(C.layers.Recurrence(lambda h, one: C.tanh(C.times(one, w) + h))(steps))
    given = {x: DATA, lengths: LENGTHS}
    np.testing.assert_allclose(state.eval(given), recurrent(DATA, LENGTHS, start), rtol=1e-10)
    found = C.reduce_sum(C.square(state)).grad(given, wrt=[x, w])
    of_data = differences(lambda data: np.square(recurrent(data, LENGTHS, start)).sum(), DATA)
    of_weights = differences(lambda array: np.square(recurrent(DATA, LENGTHS, array)).sum(), start)
    np.testing.assert_allclose(found[x], of_data, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[w], of_weights, rtol=1e-6, atol=1e-8)
    assert not found[x][0, 2:].any()


@PRECISIONS
def test_to_sequence_like_lies_on_the_axis_of_another_sequence(dtype: Any) -> None:
    x, like = C.input_variable((4, 2), dtype), C.sequence.input_variable(3, dtype)
    found = C.to_sequence_like(x, like, name="steps")
    given = {x: DATA, like: OTHER}
    same(found.eval(given), [one[: len(other)] for one, other in zip(DATA, OTHER, strict=True)], dtype)
    joined = C.splice(found, like)
    both = [np.hstack([one[: len(other)], other]) for one, other in zip(DATA, OTHER, strict=True)]
    same(joined.eval(given), both, dtype)
    gradient = C.reduce_sum(C.square(found)).grad(given, wrt=[x])
    kept = np.arange(4)[None, :, None] < np.array([3, 1, 4])[:, None, None]
    np.testing.assert_allclose(gradient, 2 * DATA * kept, rtol=1e-5)


def test_lengths_that_are_wrong_are_errors() -> None:
    x, lengths = C.input_variable((4, 2)), C.input_variable(())
    some = C.to_sequence(x, lengths)
    for wrong in ([0, 1, 2], [5, 1, 1], [1.5, 1, 1]):
        with pytest.raises(UserError, match="the length of a sequence that its data do not have") as error:
            some.eval({x: DATA, lengths: wrong})
        assert "from 1 to 4" in str(error.value.hint)
    like = C.sequence.input_variable(3)
    with pytest.raises(UserError, match="more steps than its data"):
        C.to_sequence_like(x, like).eval({x: DATA, like: [np.ones((5, 3)), *OTHER[1:]]})
    with pytest.raises(UserError, match="has a time axis already"):
        C.to_sequence(like).eval({like: OTHER})
    with pytest.raises(UserError, match="are numbers, which have no axis"):
        C.to_sequence(lengths).eval({lengths: LENGTHS})
    with pytest.raises(UserError, match="one number for each sequence"):
        C.to_sequence(x, C.input_variable(2)).eval({x: DATA})
    with pytest.raises(UserError, match="sequence_axis_name_prefix is a name"):
        C.to_sequence(x, None, 3)


@pytest.mark.parametrize("with_lengths", [True, False])
def test_training_on_what_was_made_counts_its_steps(with_lengths: bool) -> None:
    x, y, lengths = C.input_variable((4, 2)), C.input_variable((4, 1)), C.input_variable(())
    some = [lengths] if with_lengths else []
    steps = C.to_sequence(x, *some)
    w = C.parameter(init=np.ones((2, 1), np.float32))
    target = C.reconcile_dynamic_axes(C.to_sequence(y, *some), steps)
    loss = C.squared_error(C.times(steps, w), target)
    trainer = C.Trainer(None, (loss, loss), [C.sgd([w], C.learning_parameter_schedule(0.1))])
    given = {x: DATA, y: np.ones((3, 4, 1)), **({lengths: LENGTHS} if with_lengths else {})}
    trainer.train_minibatch(given)
    rows = np.concatenate([one[: int(n)] for one, n in zip(DATA, LENGTHS if with_lengths else [4] * 3, strict=True)])
    errors = rows.sum(axis=1, keepdims=True) - 1
    assert trainer.previous_minibatch_sample_count == len(rows)
    np.testing.assert_allclose(trainer.previous_minibatch_loss_average, np.square(errors).mean(), rtol=1e-5)
    np.testing.assert_allclose(w.value, 1 - 0.1 * 2 * rows.T @ errors / len(rows), rtol=1e-5)
    np.testing.assert_allclose(trainer.test_minibatch(given), np.square(rows @ w.value - 1).mean(), rtol=1e-5)


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    x, lengths = C.input_variable((4, 2), name="x"), C.input_variable((), name="lengths")
    C.to_sequence(x, lengths).save(tmp_path / "m")
    again = C.load_model(tmp_path / "m")
    same(again.eval({"x": DATA, "lengths": LENGTHS}), [DATA[0, :2], DATA[1], DATA[2, :1]], np.float32)


def test_to_sequence_of_a_placeholder() -> None:
    p, x = C.placeholder(), C.input_variable((4, 2))
    made = C.to_sequence(C.reshape(p, (2, 4)))
    same(made(x).eval({x: DATA}), DATA.reshape(3, 2, 4), np.float32)


# --------------------------------------------------------------------------------------- the axis of the minibatch


@PRECISIONS
def test_unpack_batch_is_one_value_of_all_samples(dtype: Any) -> None:
    x = C.input_variable(2, dtype)
    rows = C.unpack_batch(C.square(x), name="rows")
    assert (rows.shape, rows.dynamic_axes, rows.name) == ((C.FreeDimension, 2), (), "rows")
    w = C.parameter(init=np.array([[1.0], [2.0]], dtype))
    total = C.reduce_sum(C.times(rows, w))
    for count in (1, 4, 3):
        data = RANDOM.normal(size=(count, 2))
        found = rows.eval({x: data})
        assert found.shape == (count, 2)
        same(found, np.square(data), dtype)
        gradients = total.grad({x: data}, wrt=[x, w])
        np.testing.assert_allclose(gradients[x], 2 * data * [1, 2], rtol=1e-4)
        np.testing.assert_allclose(gradients[w], np.square(data).sum(axis=0)[:, None], rtol=1e-4)


def test_unpack_batch_of_one_step_of_each_sequence() -> None:
    x = C.sequence.input_variable(3)
    same(C.unpack_batch(C.sequence.last(x)).eval({x: OTHER}), [one[-1] for one in OTHER], np.float32)
    with pytest.raises(UserError, match="one dynamic axis is expected"):
        C.unpack_batch(x).eval({x: OTHER})
    with pytest.raises(UserError, match="one dynamic axis is expected"):
        C.unpack_batch(C.constant([1.0])).eval()


@PRECISIONS
def test_to_batch_of_a_value_that_all_share(dtype: Any) -> None:
    data = RANDOM.normal(size=(3, 4, 2))
    p, x = C.parameter(init=data.astype(dtype)), C.input_variable((3, 4, 2), dtype, dynamic_axes=[])
    for source, given in ((p, {}), (x, {x: data})):
        made = C.to_batch(C.square(source), name="samples")
        assert (made.shape, len(made.dynamic_axes), made.name) == ((4, 2), 1, "samples")
        same(made.eval(given), np.square(data), dtype)
        gradient = C.reduce_sum(made * made).grad(given, wrt=[source])
        np.testing.assert_allclose(gradient, 4 * data**3, rtol=1e-4)
        same(C.sequence.unpack(C.to_sequence(made), 0, True).eval(given), np.square(data), dtype)


def test_to_batch_meets_as_many_samples() -> None:
    p = C.parameter(init=np.arange(6, dtype=np.float32).reshape(3, 2))
    x, y = C.input_variable(2), C.sequence.input_variable(3)
    both = C.to_batch(p) + x
    data = RANDOM.normal(size=(3, 2))
    same(both.eval({x: data}), p.value + data, np.float32)
    np.testing.assert_allclose(C.reduce_sum(C.square(both)).grad({x: data}, wrt=[p]), 2 * (p.value + data), rtol=1e-5)
    joined = C.splice(C.to_batch(p), C.sequence.last(y))
    same(joined.eval({y: OTHER}), np.hstack([p.value, [one[-1] for one in OTHER]]), np.float32)
    with pytest.raises(UserError, match="is for minibatches of 3 samples"):
        both.eval({x: data[:2]})
    with pytest.raises(UserError, match="without dynamic axes is expected"):
        C.to_batch(x)
    with pytest.raises(UserError, match="minibatches of 2 and 3 samples"):
        (C.to_batch(p) + C.reduce_sum(C.to_batch(C.constant(1.0, shape=(2, 1))))).eval()


def test_there_and_back() -> None:
    x = C.input_variable(2)
    again = C.to_batch(C.unpack_batch(x) * 2)
    for count in (2, 5):
        data = RANDOM.normal(size=(count, 2))
        same(again.eval({x: data}), 2 * data, np.float32)


def test_training_on_what_all_samples_have_together() -> None:
    """Each sample is drawn towards the mean of its minibatch, whatever their number."""
    x = C.input_variable(2)
    w = C.parameter(init=np.ones(2, np.float32))
    rows = C.unpack_batch(x * w)
    loss = C.reduce_sum(C.square(x - C.reduce_mean(rows, axis=0, keepdims=False)))
    trainer = C.Trainer(None, (loss, None), [C.sgd([w], C.learning_parameter_schedule(0.1))])
    expected = np.ones(2)
    for count in (3, 2, 3, 4):
        data = RANDOM.normal(size=(count, 2))
        trainer.train_minibatch({x: data})
        mean = data.mean(axis=0)
        value = np.square(data - mean * expected).sum(axis=1).mean()
        np.testing.assert_allclose(trainer.previous_minibatch_loss_average, value, rtol=1e-4)
        expected = expected + 0.2 * ((data - mean * expected) * mean).mean(axis=0)
    np.testing.assert_allclose(w.value, expected, rtol=1e-5)


def test_training_through_the_axis_of_the_minibatch() -> None:
    """A product for all samples at once trains as one for each."""
    x, y = C.input_variable(2), C.input_variable(1)
    start = RANDOM.normal(size=(2, 1)).astype(np.float32)
    found = []
    for is_unpacked in (True, False):
        w = C.parameter(init=start)
        z = C.to_batch(C.times(C.unpack_batch(x), w)) if is_unpacked else C.times(x, w)
        error = C.squared_error(z, y)
        trainer = C.Trainer(z, (error, error), [C.adam([w], 0.05, 0.9)])
        losses = []
        for count in (3, 5, 2, 3):
            random = np.random.default_rng(count)
            given = {x: random.normal(size=(count, 2)), y: random.normal(size=(count, 1))}
            trainer.train_minibatch(given)
            losses += [trainer.previous_minibatch_loss_average, trainer.test_minibatch(given)]
        assert trainer.total_number_of_samples_seen == 13
        found.append((losses, w.value))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    assert not np.allclose(found[0][1], start)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: C.sequence.gather(x, y), [[1, 2, 3], [6]]),
        (lambda x, y: C.sequence.scatter(C.sequence.gather(x, y), y), [[1, 2, 3], [0, 6, 0]]),
        (lambda x, y: C.sequence.where(y), [[0, 1, 2], [1]]),
        (lambda x, y: C.sequence.gather(C.sequence.gather(x, y), C.sequence.gather(C.greater(x, 1), y)), [[2, 3], [6]]),
        (lambda x, y: C.sequence.broadcast_as(C.sequence.last(x), C.sequence.gather(x, y)), [[3, 3, 3], [7]]),
        (lambda x, y: C.sequence.past_value(C.sequence.gather(x, y)), [[0, 1, 2], [0]]),
        (lambda x, y: C.sequence.slice(C.sequence.gather(x, y), 0, 1), [1, 6]),
        (lambda x, y: C.sequence.last(C.sequence.gather(x, y)), [3, 6]),
        (lambda x, y: C.sequence.unpack(C.sequence.gather(x, y), -1, True), [[1, 2, 3], [6, -1, -1]]),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_what_is_kept_of_steps_of_samples_has_an_axis_of_its_own(function: Any, expected: Any) -> None:
    x, y = C.input_variable((3, 1)), C.input_variable((3, 1))
    made = function(C.to_sequence(x), C.to_sequence(y))
    values = {x: np.float32([[[1], [2], [3]], [[5], [6], [7]]]), y: np.float32([[[1], [1], [1]], [[0], [1], [0]]])}

    found = made.eval({one: values[one] for one in made.arguments})

    assert [np.ravel(one).tolist() for one in found] == [np.ravel(one).tolist() for one in expected]


@pytest.mark.parametrize("condition", [C.sequence.is_first, lambda s: C.sequence.is_last(s) * 1, C.sequence.is_last])
def test_selected_steps_have_a_sequence_axis(condition) -> None:
    """Also where each sequence has one such step; `sequence.first` and (0, 1) have none."""
    s = C.sequence.input_variable(2)
    data = [np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([[7, 8]], np.float32)]
    place = 0 if condition is C.sequence.is_first else -1
    steps = C.sequence.gather(s, condition(s), name="steps")
    assert len(steps.dynamic_axes) == 2 and steps.name == "steps"
    assert [sequence.tolist() for sequence in steps.eval({s: data})] == [data[0][[place]].tolist(), [[7, 8]]]
    numbers = C.sequence.where(condition(s))
    assert [sequence.tolist() for sequence in numbers.eval({s: data})] == [[0 if place == 0 else 2], [0]]
    without = C.sequence.gather(s, condition(s), (0, 1))
    assert len(without.dynamic_axes) == 1 and without.eval({s: data}).tolist() == [data[0][place].tolist(), [7, 8]]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, s: C.sequence.past_value(x, s), lambda v, s: np.vstack([s[:1], v[:-1]])),
        (lambda x, s: C.sequence.past_value(x, s, 2), lambda v, s: np.vstack([s[:2], v[:-2]])),
        (lambda x, s: C.sequence.future_value(x, s), lambda v, s: np.vstack([v[1:], s[-1:]])),
        (lambda x, s: C.sequence.delay(x, s, -1), lambda v, s: np.vstack([v[1:], s[-1:]])),
        (lambda x, s: C.layers.Recurrence(C.plus, initial_state=s)(x), lambda v, s: np.cumsum(v, 0) + s[0]),
        (lambda x, s: C.layers.RecurrenceFrom(C.plus)(s, x), lambda v, s: np.cumsum(v, 0) + s[0]),
        (lambda x, s: C.layers.Fold(C.plus, True, s)(x), lambda v, s: v.sum(0) + s[-1]),
        (lambda x, s: C.layers.UnfoldFrom(lambda h: h + x)(s, x), lambda v, s: np.cumsum(v, 0) + s[0]),
    ],
)
def test_an_initial_state_with_the_same_steps_counts_where_a_step_has_none_before_it(make: Any, expected: Any) -> None:
    x, start = C.sequence.input_variable(2), C.sequence.input_variable(2)
    arrays = [np.float32([[0, 1], [2, 3], [4, 5]]), np.float32([[10, 11], [12, 13]])]
    starts = [np.float32([[1, 2], [3, 4], [5, 6]]) * 100, np.float32([[7, 8], [9, 10]]) * 100]
    values = make(x, start).eval({x: arrays, start: starts})
    same(values, [expected(*pair) for pair in zip(arrays, starts, strict=True)], np.float32)
    state = C.sequence.input_variable(2, sequence_axis=C.Axis("other"))
    with pytest.raises(UserError, match="takes one sample of"):
        make(x, state).eval({x: arrays, state: starts})
