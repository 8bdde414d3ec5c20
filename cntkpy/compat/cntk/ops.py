"""cntk.ops: operators."""

from networks.builders.python.function import combine, constant, input_variable, parameter, placeholder
from networks.builders.python.operators import (
    abs,
    alias,
    ceil,
    clip,
    cos,
    dropout,
    element_divide,
    element_select,
    element_times,
    equal,
    exp,
    flatten,
    floor,
    greater,
    greater_equal,
    hardmax,
    leaky_relu,
    less,
    less_equal,
    log,
    log_softmax,
    minus,
    negate,
    not_equal,
    plus,
    reciprocal,
    reduce_log_sum_exp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    relu,
    reshape,
    round,
    sigmoid,
    sin,
    slice,
    softmax,
    splice,
    sqrt,
    square,
    swapaxes,
    tanh,
    times,
    times_transpose,
    transpose,
    zeros_like,
)

from . import sequence
from .missing import no_attribute

__all__ = [
    "abs", "alias", "ceil", "clip", "combine", "constant", "cos", "dropout", "element_divide", "element_select",
    "element_times", "equal", "exp", "flatten", "floor", "greater", "greater_equal", "hardmax", "input_variable",
    "leaky_relu", "less", "less_equal", "log", "log_softmax", "minus", "negate", "not_equal", "parameter",
    "placeholder", "plus", "reciprocal", "reduce_log_sum_exp", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum",
    "relu", "reshape", "round", "sequence", "sigmoid", "sin", "slice", "softmax", "splice", "sqrt", "square",
    "swapaxes", "tanh", "times", "times_transpose", "transpose", "zeros_like",
]  # fmt: skip

__getattr__ = no_attribute("cntk.ops", __all__)
