"""Operators of cntk.ops that are made of others: straight_through_impl, eye_like, associative_multi_arg."""

import numpy as np
import pytest
from scipy.sparse import issparse

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError


def test_straight_through_impl_is_the_sign_and_its_gradient_is_one_near_zero():
    x = C.input_variable(6, needs_gradient=True)
    binary = C.straight_through_impl(x, name="binary")
    data = np.array([[-3.0, -1.0, -0.25, 0.0, 0.5, 4.0]], np.float32)
    np.testing.assert_allclose(binary.eval({x: data}), [[-1, -1, -1, -1, 1, 1]], atol=1e-7)
    weighted = binary * C.constant(np.arange(1.0, 7.0, dtype=np.float32))
    np.testing.assert_array_equal(weighted.grad({x: data}, wrt=[x])[:, [0, 2, 3, 4, 5]], [[0, 3, 4, 5, 0]])
    assert binary.name == "binary"


def test_straight_through_impl_of_huge_values():
    x = C.input_variable(2)
    np.testing.assert_array_equal(C.straight_through_impl(x).eval({x: [[-1e30, 1e30]]}), [[-1, 1]])


def test_eye_like_of_a_constant_and_of_an_input():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    value = C.eye_like(C.constant(matrix)).eval()
    assert issparse(value)
    np.testing.assert_array_equal(value.toarray(), np.eye(3, 4))
    x = C.input_variable((2, 3))
    found = C.eye_like(x, sparse_output=False, name="unit").eval({x: np.full((2, 2, 3), np.inf)})
    np.testing.assert_array_equal(found, [np.eye(2, 3)] * 2)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_eye_like_of_vectors_of_a_minibatch(count):
    x = C.input_variable(3)
    found = C.eye_like(x, sparse_output=False)
    np.testing.assert_array_equal(found.eval({x: np.full((count, 3), 7.0)}), np.eye(count, 3))
    steps = C.sequence.input_variable(2)
    both = C.combine([found, C.sequence.last(steps)])
    given = {x: np.zeros((count, 3)), steps: [np.ones((1 + at, 2)) for at in range(count)]}
    np.testing.assert_array_equal(both.eval(given)[found], np.eye(count, 3))
    np.testing.assert_array_equal((C.reduce_sum(found * x)).grad({x: np.ones((count, 3))}), np.eye(count, 3))


def test_sparse_outputs_are_sparse_matrices():
    x, data = C.input_variable(3), np.zeros((2, 3))
    unit = C.eye_like(x)
    assert unit.is_sparse and not C.eye_like(x, sparse_output=False).is_sparse
    value = unit.eval({x: data})
    assert issparse(value) and value.toarray().tolist() == np.eye(2, 3).tolist()
    assert C.times(unit, np.eye(3)).eval({x: data}).tolist() == np.eye(2, 3).tolist()
    numbers = C.sequence.input_variable(())
    (classes,) = C.one_hot(numbers, 4, sparse_output=True).eval({numbers: [np.array([2, 0])]})
    assert issparse(classes) and classes.toarray().tolist() == np.eye(4)[[2, 0]].tolist()


def test_eye_like_of_other_axes_is_an_error():
    for x in (C.sequence.input_variable(3), C.input_variable((2, 3, 4)), C.constant([1.0, 2.0])):
        with pytest.raises(UserError, match="two axes are expected"):
            C.eye_like(x)


def test_associative_multi_arg_folds_from_the_left():
    @C.ops.associative_multi_arg
    def largest(left, right, name=""):
        return C.element_max(left, right, name=name)

    found = largest([1.0, 5.0], [2.0, 1.0], [0.0, 9.0], name="most")
    np.testing.assert_array_equal(found.eval(), [2, 9])
    assert found.name == "most"
    assert largest([1.0], [2.0], "pair").name == "pair"


def test_assign_gives_a_constant_a_value_each_time_it_is_computed():
    target, source = C.constant(shape=(3, 4)), C.parameter(shape=(3, 4), init=2)
    given = C.assign(target, source, name="given")
    np.testing.assert_array_equal(given.eval(), np.full((3, 4), 2))
    np.testing.assert_array_equal(target.value, np.full((3, 4), 2))
    source.value = np.full((3, 4), 5.0)
    given.eval()
    np.testing.assert_array_equal(target.value, np.full((3, 4), 5))
    assert given.name == "given"


def test_assign_counts_after_the_functions_are_computed():
    count = C.parameter((1,), init=0)
    more = C.assign(count, count + 1)
    for number in range(1, 4):
        found = C.combine([more, count * 10]).eval()
        assert [float(one[0]) for one in found.values()] == [number, 10 * (number - 1)]
    assert count.value == [3]


def test_assign_of_what_depends_on_data():
    x, mean = C.input_variable(2), C.constant([0, 0])
    data = np.array([[1, 2], [3, 6]], np.float32)
    kept = C.assign(mean, C.reduce_mean(x, axis=C.Axis.default_batch_axis()))
    np.testing.assert_array_equal(kept.eval({x: data}), [2, 4])
    np.testing.assert_array_equal(mean.value, [2, 4])
    state, _ = kept.forward({x: data + 1}, keep_for_backward=kept.outputs)
    np.testing.assert_array_equal(mean.value, [2, 4])
    kept.backward(state, {kept.output: np.ones(2)}, [x])
    np.testing.assert_array_equal(mean.value, [3, 5])


def test_assign_in_training():
    x, count = C.input_variable(2), C.constant([0.0])
    weight = C.parameter((2, 1), init=1)
    loss = C.squared_error(C.times(x, weight), C.constant([0.0])) + C.assign(count, count + 1) * 0
    learner = C.sgd([weight], C.learning_parameter_schedule(0.01))
    trainer = C.Trainer(None, (C.reduce_sum(loss), None), [learner])
    for _ in range(3):
        trainer.train_minibatch({x: np.ones((4, 2), np.float32)})
    np.testing.assert_array_equal(count.value, [3])


def test_assign_in_a_test():
    x, count, latest = C.input_variable(2), C.constant([0.0]), C.parameter((2,), init=7)
    weight = C.parameter((2, 1), init=1)
    mean = C.reduce_mean(x, axis=C.Axis.default_batch_axis())
    metric = C.reduce_sum(C.times(x, weight)) + C.assign(count, count + 1) + C.reduce_sum(C.assign(latest, mean)) * 0
    total = C.reduce_sum(metric)
    trainer = C.Trainer(None, (total, total), [C.sgd([weight], C.learning_parameter_schedule(0.0))])
    data = np.array([[1, 2], [3, 4]], np.float32)
    for number in range(3):
        assert trainer.test_minibatch({x: data}) == pytest.approx(5 + number + 1)
    np.testing.assert_array_equal(count.value, [3])
    np.testing.assert_array_equal(latest.value, [2, 3])
    trainer.train_minibatch({x: data})
    assert trainer.previous_minibatch_loss_average == pytest.approx(5 + 4)
    assert trainer.test_minibatch({x: data + 1}) == pytest.approx(7 + 5)
    np.testing.assert_array_equal(count.value, [5])
    np.testing.assert_array_equal(latest.value, [3, 4])
    np.testing.assert_array_equal(weight.value, [[1], [1]])
    assert C.eval.Evaluator(C.reduce_sum(metric)).test_minibatch({x: data}) == pytest.approx(5 + 6)
    np.testing.assert_array_equal(count.value, [6])


def test_assign_to_what_is_no_parameter_or_of_each_sample_is_an_error():
    x = C.input_variable(2)
    with pytest.raises(UserError, match="to a parameter or a constant"):
        C.assign(x, [1.0, 2.0])
    with pytest.raises(UserError, match="one value for the whole minibatch"):
        C.assign(C.constant([0, 0]), x).eval({x: [[1, 2]]})
    with pytest.raises(UserError, match=r"a value of shape \(3,\) for .* of shape \(2,\)"):
        C.assign(C.constant([0, 0]), C.constant([1, 2, 3])).eval()


def test_assign_to_what_a_learner_trains_is_an_error():
    x, weight = C.input_variable(2), C.parameter((2,), init=1)
    loss = C.reduce_sum(x * weight + C.assign(weight, weight * 2))
    learner = C.sgd([weight], C.learning_parameter_schedule(0.01))
    with pytest.raises(UserError, match="which assign gives values"):
        C.Trainer(None, (loss, None), [learner]).train_minibatch({x: np.ones((4, 2), np.float32)})


def test_gather_and_scatter_know_about_lengths():
    x = C.sequence.input_variable(1)
    data = [np.array([[1.0], [0.0], [2.0]], np.float32), np.array([[0.0], [3.0]], np.float32)]
    same = C.sequence.gather(x, C.greater_equal(x, 0), new_sequence_axis_typeinfo=(1, 0), name="all") + x
    for found, expected in zip(same.eval({x: data}), data, strict=True):
        np.testing.assert_array_equal(found, 2 * expected)
    some = C.sequence.gather(x, C.greater(x, 0), (0, 1))
    np.testing.assert_array_equal(some.eval({x: data})[0], [[1], [2]])
    back = C.sequence.scatter(some, C.greater(x, 0), (1, 0), "back")
    for found, expected in zip(back.eval({x: data}), data, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert back.name == "back"
    with pytest.raises(UserError, match="a pair of whole numbers"):
        C.sequence.gather(x, x, "name")
