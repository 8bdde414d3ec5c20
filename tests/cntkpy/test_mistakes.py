"""Mistakes that CNTK 2.7 refuses where they are made, not when the function is computed."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError


def dense() -> tuple[C.Function, C.Function]:
    x = C.input_variable(3, name="x")
    return x, C.times(x, C.parameter((3, 2)))


def cloned(other: C.Function) -> C.Function:
    x, z = dense()
    return z.clone("share", {x: other})


def picture() -> C.Function:
    return C.input_variable((3, 8, 8))


def earlier_value() -> C.Value:
    """Return a value of a forward pass that another one has followed."""
    x = C.input_variable(2)
    f = x * 2
    _, values = f.forward({x: [[1, 2]]}, as_numpy=False)
    f.forward({x: [[3, 4]]}, as_numpy=False)
    return values[f.output]


MISTAKES: dict[str, Callable[[], object]] = {
    "a dropout rate lies from 0 to 1, it is not 1.5": lambda: C.layers.Dropout(1.5),
    "a dropout rate lies from 0 to 1, it is not -1": lambda: C.layers.Dropout(keep_prob=2),
    "Embedding: weights are not trained": lambda: C.layers.Embedding(weights=np.ones((3, 2)), init=C.normal(1)),
    "filters (4, 2, 3, 3) have 2 channels, samples (3, 8, 8) 3": lambda: C.convolution(
        C.parameter((4, 2, 3, 3)), picture()
    ),
    "filters (4, 5, 3, 3) have 5 channels": lambda: C.convolution(C.parameter((4, 5, 3, 3)), picture()),
    "filters (3, 3, 3, 3) have 3 channels, samples (3, 8, 8) 3 in 3 groups": lambda: C.convolution(
        C.parameter((3, 3, 3, 3)), picture(), groups=3
    ),
    "inner dimensions do not match": lambda: cloned(C.input_variable(4)),
    "a network has one precision": lambda: cloned(C.input_variable(3, dtype=np.float64)),
    "cross_entropy_with_softmax: the output has the shape (2,), the target (5,)": lambda: C.cross_entropy_with_softmax(
        dense()[1], C.input_variable(5)
    ),
    "classification_error: the output has the shape (2,)": lambda: C.classification_error(
        C.layers.Dense(2)(C.input_variable(3)), C.input_variable(3) * 2
    ),
    "squared_error: the output has the shape (2,), the target (3,)": lambda: C.squared_error(
        dense()[1], C.input_variable(3) + 1
    ),
    "Dense: samples have 3 axes or more, not the shape (3,)": lambda: C.layers.Dense(4, input_rank=3)(dense()[0]),
    "outputs: ElementTimes is not a part of Times": lambda: dense()[1].eval(
        {}, outputs=[C.input_variable(2) * C.input_variable(2)]
    ),
    "replace_placeholder: Plus has 2 placeholders, not one": lambda: (
        (C.placeholder() + C.placeholder()).clone("share").replace_placeholder(dense()[0])
    ),
    "assign: a value of shape (3,) for": lambda: C.assign(C.parameter((2,)), C.constant([1.0, 2.0, 3.0])),
    "sequence.unpack: 'x' has no sequence axis": lambda: C.sequence.unpack(dense()[0], 0),
    "ToSequence": lambda: C.to_sequence(C.input_variable(())),
    "Crop": lambda: C.crop_manual(picture(), C.input_variable((3, 9, 9)), 0, 0),
    "the number of samples is a whole number from 1 on, not 0": lambda: C.random_sample([1.0, 2.0], 0, True),
    "combine needs a function": lambda: C.combine([]),
    "this Value has no data any more": lambda: earlier_value().asarray(),
    "Input('x', [#], [3]) is not a placeholder": lambda: (lambda x, z: z.replace_placeholders({x: x}))(*dense()),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_refused_where_it_is_made(message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        MISTAKES[message]()


def test_an_operator_says_its_name() -> None:
    with pytest.raises(TypeError, match=r"^hardmax\(\) missing 1 required positional argument: 'x'$"):
        C.hardmax()
    with pytest.raises(TypeError, match=r"^less\(\) missing"):
        C.less(1)


def test_the_shape_of_a_product_that_is_unpacked_and_reshaped() -> None:
    a, b = C.sequence.input_variable((3, 5, 2)), C.sequence.input_variable((3, 2, 1))
    left = C.to_sequence(C.reshape(C.sequence.unpack(a, 0, True), (-1, 5, 2)))
    right = C.to_sequence_like(C.reshape(C.sequence.unpack(b, 0, True), (-1, 2, 1)), left)
    products = C.reshape(C.sequence.unpack(C.times(left, right), 0, True), (-1, 3, 5, 1))
    assert products.shape == (-3, 3, 5, 1) and C.to_sequence_like(products, a).shape == (3, 5, 1)
    data = {a: [np.ones((4, 3, 5, 2), np.float32)], b: [np.ones((4, 3, 2, 1), np.float32)]}
    (value,) = C.to_sequence_like(products, a).eval(data)
    assert value.shape == (4, 3, 5, 1) and (value == 2).all()


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, TypeError])
def test_calls_with_arguments_that_do_not_fit_are_errors_of_all_kinds_that_programs_catch(kind: type) -> None:
    f = C.Function(lambda x, y: x + y)
    f.update_signature(2, 2)
    x = C.input_variable(2)
    for call in (
        lambda: f(x, x, x),
        lambda: f(z=x),
        lambda: C.Trainer(f, 3, []),
        lambda: f.clone("share", [x]),
        lambda: C.layers.Dense(2)(x, x),
        lambda: C.layers.Dense(2, input_rank=1, map_rank=1),
        lambda: C.layers.AttentionModel(2, attention_span=5),
    ):
        with pytest.raises(kind):
            call()


def test_errors_of_networks_are_those_that_programs_catch() -> None:
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match="inner dimensions"):
            C.times(C.input_variable(3), C.parameter((4, 2)))
    with pytest.raises(ValueError, match="needs a shape or a start value"):
        C.parameter()
    for layer in (C.layers.MaxPooling((2, 2)), C.layers.AveragePooling((2, 2)), C.layers.Convolution2D((2, 2), 4)):
        with pytest.raises(ValueError, match="samples have 2 axes or more"):
            layer(C.input_variable(3))
    assert C.layers.Convolution2D((2, 2), 4, reduction_rank=0)(C.input_variable((5, 5))).shape == (4, 4, 4)


def test_windows_that_do_not_fit_are_refused() -> None:
    layers, x = C.layers, C.input_variable((2, 5, 5))
    for layer in (
        layers.Convolution((7, 3), 3),
        layers.Convolution((3, 3), 3, dilation=(1, 3)),
        layers.Convolution((3, 7), 3, pad=(True, False)),
        layers.MaxPooling((3, 6)),
        layers.AveragePooling((6, 1), pad=(False, True)),
    ):
        with pytest.raises(ValueError, match="do not fit into samples"):
            layer(x)
    assert layers.Convolution((3, 3), 3, pad=True)(x).shape == (3, 5, 5)
    assert layers.Convolution((5, 5), 3, pad=[False, True])(x).shape == (3, 1, 5)
    assert layers.MaxPooling((5, 5), pad=[False])(x).shape == (2, 1, 1)
