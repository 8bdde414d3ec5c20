"""cntk.ops: operators."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.function import Function as OwnFunction
from cntkpy.networks.builders.python.functions.function import combine
from cntkpy.networks.builders.python.functions.variables import constant, input_variable, placeholder
from cntkpy.networks.builders.python.functions.variables import parameter as own_parameter
from cntkpy.networks.builders.python.operations.alignments import forward_backward, labels_to_graph
from cntkpy.networks.builders.python.operations.composed import (
    acos,
    asin,
    asinh,
    atan,
    atanh,
    batch_normalization,
    cosh,
    element_and,
    element_max,
    element_min,
    element_not,
    element_or,
    element_xor,
    elu,
    hard_sigmoid,
    log_add_exp,
    mean,
    ones_like,
    param_relu,
    per_dim_mean_variance_normalize,
    pow,
    selu,
    sinh,
    softplus,
    softsign,
    sum,
    tan,
)
from cntkpy.networks.builders.python.operations.convolutions import (
    AVG_POOLING,
    MAX_POOLING,
    MAX_UNPOOLING,
    convolution,
    convolution_transpose,
    pooling,
    roipooling,
    unpooling,
)
from cntkpy.networks.builders.python.operations.dynamic import to_batch, to_sequence, to_sequence_like, unpack_batch
from cntkpy.networks.builders.python.operations.elements import argmax, argmin, one_hot, top_k
from cntkpy.networks.builders.python.operations.elements import take as gather
from cntkpy.networks.builders.python.operations.images import (
    CONSTANT_PAD,
    REFLECT_PAD,
    SYMMETRIC_PAD,
    crop_automatic,
    crop_automatic_with_ancestors,
    crop_manual,
    depth_to_space,
    image_scaler,
    local_response_normalization,
    mean_variance_normalization,
    pad,
    space_to_depth,
)
from cntkpy.networks.builders.python.operations.more import (
    assign,
    associative_multi_arg,
    eye_like,
    straight_through_impl,
)
from cntkpy.networks.builders.python.operations.operators import (
    abs,
    alias,
    cast,
    ceil,
    clip,
    cos,
    cosine_distance,
    dropout,
    element_divide,
    element_select,
    element_times,
    equal,
    exp,
    floor,
    future_value,
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
    optimized_rnnstack,
    past_value,
    plus,
    random_sample,
    random_sample_inclusion_frequency,
    reciprocal,
    reconcile_dynamic_axes,
    relu,
    round,
    sigmoid,
    sin,
    softmax,
    sqrt,
    square,
    stop_gradient,
    tanh,
    times,
    times_transpose,
    zeros_like,
)
from cntkpy.networks.builders.python.operations.reductions import (
    reduce_l1,
    reduce_l2,
    reduce_log_sum_exp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reduce_sum_square,
)
from cntkpy.networks.builders.python.operations.reshaping import (
    expand_dims,
    flatten,
    reshape,
    slice,
    splice,
    squeeze,
    swapaxes,
    transpose,
)
from cntkpy.networks.builders.python.operations.structured import as_block, as_composite
from cntkpy.trainers.fronts.cntk2.user.functions import output_variable, user_function

from ..missing import no_attribute
from . import functions, sequence
from .functions import BlockFunction, Function


def parameter(
    shape: Any = None, init: Any = None, dtype: Any = None, device: Any = None, name: str = ""
) -> OwnFunction:
    """Return a parameter; without `init` it starts with zeros.

    Raises:
        UserError: neither a shape nor a value says its shape.
    """
    if shape is None and init is None:
        raise UserError("MissingParameter", "a parameter needs a shape or a start value", hint="parameter((2, 3))")
    return own_parameter(shape, 0.0 if init is None else init, dtype, device, name)


TIMES_NO_INFERRED_INPUT_RANK = -1
"""The `infer_input_rank_to_map` of `times` that infers no axes."""

input = input_variable
placeholder_variable = placeholder

__all__ = [
    "AVG_POOLING",
    "CONSTANT_PAD",
    "MAX_POOLING",
    "MAX_UNPOOLING",
    "REFLECT_PAD",
    "SYMMETRIC_PAD",
    "TIMES_NO_INFERRED_INPUT_RANK",
    "BlockFunction",
    "Function",
    "abs",
    "acos",
    "alias",
    "argmax",
    "argmin",
    "as_block",
    "as_composite",
    "asin",
    "asinh",
    "assign",
    "associative_multi_arg",
    "atan",
    "atanh",
    "batch_normalization",
    "cast",
    "ceil",
    "clip",
    "combine",
    "constant",
    "convolution",
    "convolution_transpose",
    "cos",
    "cosh",
    "cosine_distance",
    "crop_automatic",
    "crop_automatic_with_ancestors",
    "crop_manual",
    "depth_to_space",
    "dropout",
    "element_and",
    "element_divide",
    "element_max",
    "element_min",
    "element_not",
    "element_or",
    "element_select",
    "element_times",
    "element_xor",
    "elu",
    "equal",
    "exp",
    "expand_dims",
    "eye_like",
    "flatten",
    "floor",
    "forward_backward",
    "functions",
    "future_value",
    "gather",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "hardmax",
    "image_scaler",
    "input",
    "input_variable",
    "labels_to_graph",
    "leaky_relu",
    "less",
    "less_equal",
    "local_response_normalization",
    "log",
    "log_add_exp",
    "log_softmax",
    "mean",
    "mean_variance_normalization",
    "minus",
    "negate",
    "not_equal",
    "one_hot",
    "ones_like",
    "optimized_rnnstack",
    "output_variable",
    "pad",
    "param_relu",
    "parameter",
    "past_value",
    "per_dim_mean_variance_normalize",
    "placeholder",
    "placeholder_variable",
    "plus",
    "pooling",
    "pow",
    "random_sample",
    "random_sample_inclusion_frequency",
    "reciprocal",
    "reconcile_dynamic_axes",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
    "relu",
    "reshape",
    "roipooling",
    "round",
    "selu",
    "sequence",
    "sigmoid",
    "sin",
    "sinh",
    "slice",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "splice",
    "sqrt",
    "square",
    "squeeze",
    "stop_gradient",
    "straight_through_impl",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "times",
    "times_transpose",
    "to_batch",
    "to_sequence",
    "to_sequence_like",
    "top_k",
    "transpose",
    "unpack_batch",
    "unpooling",
    "user_function",
    "zeros_like",
]

_missing = no_attribute("cntk.ops", __all__)


def __getattr__(name: str) -> Any:
    """Return a loss or a metric, which betas of CNTK 2.0 had here.

    Warns:
        DeprecationWarning: Always.
    """
    for module in ("losses", "metrics"):
        home = importlib.import_module(f"cntkpy.compat.cntk.{module}")
        if name in home.__all__:
            warnings.warn(f"cntk.ops.{name} is now cntk.{module}.{name}", DeprecationWarning, stacklevel=2)
            return getattr(home, name)
    return _missing(name)
