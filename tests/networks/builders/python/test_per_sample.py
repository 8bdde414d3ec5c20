"""Criteria as values of each sample: the trainer's values, the trainer's gradients, and its checks of shapes."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.training import Trainer, input_variable, layers, learners, ops, parameter, placeholder

Z = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
LABELS = {
    "one-hot": np.eye(3)[[0, 2, 1, 0]],
    "none": np.zeros((4, 3)),
    "two": np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 0]]),
    "shares": np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.3, 0.4, 0.1], [1, 0, 0]]),
}


CRITERIA = {one.__name__: one for one in (ops.cross_entropy_with_softmax, ops.classification_error, ops.squared_error)}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.sampled
def test_values_and_gradients_are_those_of_the_criterion(name: str, labels: str) -> None:
    z, y, b = input_variable(3), input_variable(3), parameter(3, init=0.0)
    data = {z: Z, y: LABELS[labels].astype(np.float32)}
    criterion = CRITERIA[name](z + b, y)
    trained = name != "classification_error"
    trainer = Trainer(None, (criterion if trained else ops.squared_error(z + b, y), criterion), learners.sgd([b], 1.0))
    assert criterion.eval(data).mean() == pytest.approx(trainer.test_minibatch(data), rel=1e-5)
    if trained:
        gradient = (criterion * 1.0).grad(data, wrt=[b])
        trainer.train_minibatch(data)
        np.testing.assert_allclose(gradient / 4, -b.value, rtol=1e-4, atol=1e-6)


def test_labels_of_one_element_are_no_classes() -> None:
    x, y, hole = input_variable(2, name="x"), input_variable(1, name="y"), placeholder()
    z = layers.Dense(3)(x)
    message = r"cross_entropy_with_softmax: the output has the shape \(3,\), the target \(1,\)"
    with pytest.raises(UserError, match=message) as error:
        ops.cross_entropy_with_softmax(z, y)
    assert error.value.hint == "one_hot(target, 3)"
    with pytest.raises(UserError, match=message):
        ops.cross_entropy_with_softmax(z, hole)(y).eval({x: np.ones((2, 2)), y: np.ones((2, 1))})


def test_weights_are_numbers_of_samples() -> None:
    p, y, one, each = (input_variable(size, name=name) for size, name in ((3, "p"), (3, "y"), (1, "one"), (3, "each")))
    data = {p: np.full((2, 3), 0.25, np.float32), y: np.ones((2, 3), np.float32)}
    weighted = ops.weighted_binary_cross_entropy(p, y, one).eval({**data, one: np.array([[1], [2]], np.float32)})
    np.testing.assert_allclose(weighted, [[np.log(4)] * 3, [2 * np.log(4)] * 3], rtol=1e-6)
    by_element = ops.weighted_binary_cross_entropy(p, y, each).eval({**data, each: np.array([[1, 2, 3]] * 2)})
    np.testing.assert_allclose(by_element, [[np.log(4), 2 * np.log(4), 3 * np.log(4)]] * 2, rtol=1e-6)


OF_NUMBERS = {
    "cross_entropy_with_softmax": ([[1.0, 2.0, 3.0, 4.0]], [[0.35, 0.15, 0.05, 0.45]], 1.84019),
    "classification_error": ([1.0, 2.0, 4.0], [0.0, 1.0, 0.0], 1),
    "squared_error": ([1.0, 2.0], [3.0, 5.0], 13),
    "binary_cross_entropy": ([0.2, 0.8], [0.0, 1.0], [0.223144, 0.223144]),
    "cosine_distance": ([3.0, 4.0], [4.0, 3.0], 0.96),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_losses_of_numbers(name: str) -> None:
    output, target, expected = OF_NUMBERS[name]
    assert getattr(ops, name)(output, target).eval() == pytest.approx(expected, rel=1e-5)
