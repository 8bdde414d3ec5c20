"""Wrong arguments of programs that make networks: each is one error that says what was expected."""

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.networks.builders.python import decoders, layers
from cntkpy.networks.builders.python.functions.function import combine, load_model
from cntkpy.networks.builders.python.functions.variables import constant, input_variable, parameter, sequence_input
from cntkpy.networks.builders.python.operations import (
    composed,
    elements,
    images,
    operators,
    random,
    reductions,
    reshaping,
    sequences,
)

x, image, steps = input_variable(5, name="x"), input_variable((3, 8, 6), name="image"), sequence_input(4, name="s")
y = input_variable(5, name="y")
z = layers.Dense(3, name="d")(x)

LAYERS = {
    "10.5 is not a shape": lambda: layers.Dense(10.5),
    "None is not a shape": lambda: layers.Dense(None),
    "'10' is not a shape": lambda: layers.Dense("10"),
    "an activation is a function, not 'relu'": lambda: layers.Dense(3, "relu"),
    "activation is a function, not 'tanh'": lambda: layers.Activation("tanh"),
    "init is a number or an array of numbers, not 'glorot'": lambda: layers.Dense(3, init="glorot"),
    "init is an initializer, a number or an array, not <function": lambda: layers.Dense(3, init=layers.he_normal),
    "init_bias is a number or an array of numbers, not 'a'": lambda: layers.Dense(3, init_bias="a"),
    "bias is True or False, not 'no'": lambda: layers.Dense(3, bias="no"),
    "a layer is applied to functions, not to None": lambda: layers.Dense(3)(None),
    "a name is a text, not 5": lambda: layers.Dense(3, name=5),
    "a name is a text, not Dense": lambda: layers.Sequential(layers.Dense(3), layers.Dense(4)),
    "pad is True or False, not 'same'": lambda: layers.Convolution((3, 3), 4, pad="same"),
    "num_filters is a whole number from 1 on, not 4.5": lambda: layers.Convolution((3, 3), 4.5),
    "a stride or a size is a whole number from 1 on, not 0": lambda: layers.MaxPooling((2, 2), strides=0),
    "a dropout rate is a number, not 'a'": lambda: layers.Dropout("a")(x),
    "normalization_time_constant is a number from 0 on, not -5": lambda: layers.BatchNormalization(None, 1.0, -5),
    "epsilon is a number from 0 on, not 'a'": lambda: layers.LayerNormalization(epsilon="a"),
    "go_backwards is True or False, not 'yes'": lambda: layers.Recurrence(layers.LSTM(3), go_backwards="yes"),
    "an initial state is a number or an array": lambda: layers.Recurrence(layers.LSTM(3), initial_state="0"),
    "a step takes 2 states and the input, not 1 arguments": lambda: layers.LSTM(3)(steps),
    "GRU has no cell of another shape than its state": lambda: layers.GRU(3, cell_shape=4),
    "For goes over a range, not 3": lambda: layers.For(3, lambda: layers.Dense(3)),
    "Dense has no default 'foo'": lambda: layers.default_options_for(layers.Dense, foo=1).__enter__(),
    "T is a whole number, not 1.5": lambda: layers.Delay(1.5),
    "a step of a recurrence gives functions, not None": lambda: layers.Recurrence(lambda h, x: None)(steps),
    "gives nothing, not a function": lambda: layers.Sequential([lambda x: None])(x),
    "the scale of an initializer is a number from 0 on, not 'a'": lambda: layers.glorot_uniform("a"),
    "a seed is a whole number from 0 on, not 1.5": lambda: layers.normal(seed=1.5),
    "an attention_span is 1 or more, not 2.5": lambda: decoders.AttentionModel(3, 2.5, -3),
    "the generator of UnfoldFrom is a function, not 'x'": lambda: decoders.UnfoldFrom("x"),
    "length_increase is a number above 0, not -1": lambda: decoders.UnfoldFrom(layers.identity, None, -1),
    "need sequences, the input 'y' has none": lambda: decoders.AttentionModel(3)(y, y).shape,
}

OPERATORS = {
    "an operand is a number or an array of numbers, not None": lambda: operators.times(x, None),
    "an operand is a number or an array of numbers, not 'a'": lambda: x + "a",
    "an axis is a whole number, not 'a'": lambda: reductions.reduce_sum(x, axis="a"),
    "an axis is a whole number, not 0.5": lambda: reductions.reduce_sum(x, axis=0.5),
    "softmax: there is no axis 3; the operand has the axes -1 to 0": lambda: operators.softmax(x, axis=3),
    "keepdims is True or False, not 2": lambda: reductions.reduce_sum(image, 0, 2),
    "splice needs an operand": reshaping.splice,
    "a sum or a mean needs an operand": composed.sum,
    "reshape: a shape is made of whole numbers from 1 on": lambda: reshaping.reshape(x, "a"),
    r"one axis of \(-1, -1\) can be inferred, not 2": lambda: reshaping.reshape(image, (-1, -1)),
    r"transpose: there is no axis 5; the operand has the axes -3 to 2": lambda: reshaping.transpose(image, (0, 1, 5)),
    r"\(0, 1, 1\) is not a permutation of the 3 axes": lambda: reshaping.transpose(image, (0, 1, 1)),
    "slice: a number of begin_index is a whole number, not 0.5": lambda: reshaping.slice(x, 0, 0.5, 2),
    "1.5 is not an index": lambda: x[1.5],
    "None is not an index": lambda: x[None],
    "topN is a whole number from 1 on, not 0": lambda: operators.classification_error(x, x, topN=0),
    "topN is 99, there are 5 classes": lambda: operators.classification_error(x, x, topN=99),
    "the least value, 1, is larger than the greatest, -1": lambda: operators.clip(x, 1, -1),
    "time_step is a whole number from 1 on, not -1": lambda: operators.past_value(steps, time_step=-1),
    "the input 'x' has none": lambda: layers.Recurrence(layers.LSTM(3))(x).shape,
    "sequences need sequences": lambda: sequences.reduce_sum(x).shape,
    "on sequences need sequences, the input 'x' has none": lambda: (
        reshaping.splice(operators.last(steps), operators.past_value(x)).shape
    ),
    "time_step is a whole number, not '1'": lambda: sequences.delay(steps, time_step="1"),
    "num_classes is a whole number from 1 on, not 'a'": lambda: elements.one_hot(x, "a"),
    "a pattern is made of pairs, not of 'a'": lambda: images.pad(x, "a"),
    "depth_radius is a whole number from 0 on, not -1": lambda: images.local_response_normalization(image, -1, 1, 1, 1),
    "the deviation is a number from 0 on, not -1": lambda: random.normal_like(x, scale=-1),
    "an argument of uniform is a number, not 'a'": lambda: random.uniform_like(x, "a"),
    "5.5 is not a shape": lambda: input_variable(5.5),
    "a dtype is numpy.float16, numpy.float32 or numpy.float64, not 'foo'": lambda: input_variable(5, "foo"),
    "is_sparse is True or False, not 'no'": lambda: input_variable(5, is_sparse="no"),
    "a name is a text, not 3": lambda: input_variable(5, name=3),
    "a start value is a number or an array of numbers, not 'x'": lambda: parameter(3, init="x"),
    "a start value is a number or an array of numbers, not None": lambda: constant(None),
}

FUNCTIONS = {
    r"a value of shape \(3, 5\) for a parameter of shape \(5, 3\)": lambda: setattr(z.W, "value", np.zeros((3, 5))),
    "a value is a number or an array of numbers, not None": lambda: setattr(z.W, "value", None),
    "has no value of its own that could be set": lambda: setattr(x, "value", 3),
    "outputs: 'd' is not a function": lambda: z.eval({x: np.zeros((1, 5))}, outputs="d"),
    "a name is a text, not None": lambda: z.find_by_name(None),
    r"Input\('s', .*\) is not a part of the function": lambda: z.clone("clone", {steps: x}),
    "substitutions are a dictionary": lambda: z.clone("clone", [x]),
    "is not a part of the function, so nothing": lambda: z.clone().replace_placeholders({steps: x}),
    "the name of a model file is a text or a path, not None": lambda: z.save(None),
    "the name of a model file is a text or a path, not 3": lambda: load_model(3),
    "the operands of combine: None is not a function": lambda: combine([z, None]),
    "combine needs a function": lambda: combine(),
}


@pytest.mark.parametrize("message", [*LAYERS, *OPERATORS, *FUNCTIONS])
def test_wrong_arguments(message: str) -> None:
    with pytest.raises(UserError, match=message):
        {**LAYERS, **OPERATORS, **FUNCTIONS}[message]()
