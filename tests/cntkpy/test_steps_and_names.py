"""Calls of public programs and libraries: values of one sequence, losses of `cntk.ops`, private names of learners."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.compat.cntk import cntk_py
from cntkpy.readers.errors import ArgumentError


def test_the_steps_of_one_sequence_are_samples():
    x = C.input_variable(5, is_sparse=True)
    numbers = np.array([[4, 0, 2]])
    np.testing.assert_array_equal((x * 2).eval({x: C.Value.one_hot(numbers, 5)}), 2 * np.eye(5)[numbers[0]])
    with pytest.raises(ArgumentError, match="a sequence of 2 steps"):
        (x * 2).eval({x: C.Value.one_hot([[1, 2], [3, 4]], 5)})


def test_losses_and_metrics_of_betas():
    from cntkpy.compat.cntk import ops

    with pytest.warns(DeprecationWarning, match="cross_entropy_with_softmax is now cntk"):
        assert ops.cross_entropy_with_softmax is C.losses.cross_entropy_with_softmax
    with pytest.warns(DeprecationWarning, match="classification_error is now cntk"):
        assert ops.classification_error is C.classification_error
    with pytest.raises(AttributeError, match="cross_entropy_without_softmax"):
        _ = ops.cross_entropy_without_softmax


def test_functions_are_steps_of_recurrences():
    state, x = C.placeholder(name="state"), C.placeholder(name="x")
    sums = C.layers.Recurrence(state * 0.5 + x)(C.sequence.input_variable(1))
    np.testing.assert_allclose(sums.eval([np.array([[1], [2], [4]], np.float32)])[0], [[1], [2.5], [5.25]])


def test_schedules_and_options_of_learners():
    learners = C.learners
    rate, size = learners._infer_learning_rate_schedule_and_ref_minibatch_size(None, 32, 0.1, None)
    assert (rate[0], rate.minibatch_size, size) == (0.1, 32, 32)
    momentum = learners._infer_learning_parameter_schedule(0.9, None, None)
    assert learners._infer_learning_parameter_schedule(momentum, None, None) is momentum
    learners._verify_momentum_type(momentum)
    with pytest.raises(ArgumentError, match="is not a schedule"):
        learners._verify_momentum_type(0.9)
    options = cntk_py.AdditionalLearningOptions(l2_regularization_weight=0.01)
    options.dict_options[cntk_py.Learner._MINIBATCH_SIZE] = cntk_py.SizeTWrapper(16)
    learner = cntk_py.adam_learner(
        [C.parameter(2)], learners.learning_parameter_schedule(0.1), momentum, True, momentum, 1e-8, False, options
    )
    assert learner.minibatch_size == 16
