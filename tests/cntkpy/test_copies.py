"""Copies of functions whose shapes are not known yet: start values, parameters of their own."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.compat.cntk import layers

FLAT, STEPS, PICTURE = (4,), "sequence", (3, 5, 5)

LAYERS = {
    "dense": (lambda: layers.Dense(3), FLAT),
    "two of them": (lambda: layers.Sequential([layers.Dense(3, activation=C.tanh), layers.Dense(2)]), FLAT),
    "embedding": (lambda: layers.Embedding(3), FLAT),
    "a parameter": (lambda: C.times(C.placeholder(), C.parameter((0, 3), init=C.glorot_uniform())), FLAT),
    "recurrence": (lambda: layers.Recurrence(layers.LSTM(3)), STEPS),
    "convolution": (lambda: layers.Convolution2D((3, 3), 2), PICTURE),
    "what looks at shapes": (lambda: layers.ConvolutionTranspose2D((3, 3), 2), PICTURE),
    "a function that looks at shapes": (
        lambda: layers.Sequential([layers.Dense(3), lambda y: C.reshape(y, (*y.shape, 1)), layers.Dense(2)]),
        FLAT,
    ),
}


def applied(function, kind):
    return function(C.sequence.input_variable(4) if kind == STEPS else C.input_variable(kind))


@pytest.mark.parametrize("name", LAYERS)
def test_a_copy_of_a_layer_that_was_not_applied(name: str) -> None:
    """It has the start values of the first and parameters of its own; a frozen one has constants."""
    make, kind = LAYERS[name]
    layer = make()
    copy, frozen = layer.clone("clone"), layer.clone(C.CloneMethod.freeze)
    first, second, third = (applied(one, kind) for one in (layer, copy, frozen))
    own, other = first.parameters, second.parameters
    assert len(own) == len(other) >= 1
    assert not set(own) & set(other)
    assert third.parameters == ()
    assert any(np.ptp(one.value) > 0 for one in own)
    for one, copied in zip(own, other, strict=True):
        np.testing.assert_array_equal(one.value, copied.value)
        assert any(np.array_equal(one.value, constant.value) for constant in third.constants)


def test_training_one_copy_leaves_the_other() -> None:
    layer = layers.Sequential([layers.Dense(3), lambda y: C.reshape(y, (*y.shape, 1)), layers.Dense(1)])
    x, y = C.input_variable(2), C.input_variable(1)
    copy, z = layer.clone("clone"), layer(x)
    before = [one.value for one in z.parameters]
    trainer = C.Trainer(z, C.squared_error(z, y), C.sgd(z.parameters, 0.1))
    trainer.train_minibatch({x: np.ones((4, 2), np.float32), y: np.ones((4, 1), np.float32)})
    for one, trained, start in zip(copy(x).parameters, z.parameters, before, strict=True):
        np.testing.assert_array_equal(one.value, start)
        assert not np.array_equal(one.value, trained.value)


def test_seeds_of_layers_that_are_made_after_a_copy() -> None:
    """A copy draws no seed of its own."""

    def start(copied: bool) -> np.ndarray:
        C.cntk_py.set_fixed_random_seed(5)
        first, second = layers.Dense(3), layers.Dense(3)
        if copied:
            first.clone("clone")
        x = C.input_variable(4)
        return np.array([first(x).W.value, second(x).W.value])

    np.testing.assert_array_equal(start(True), start(False))
