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
from cntkpy.networks.builders.python.operations import composed, convolutions, images, more
from cntkpy.networks.builders.python.operations.alignments import forward_backward, labels_to_graph
from cntkpy.networks.builders.python.operations.composed import *  # noqa: F403
from cntkpy.networks.builders.python.operations.convolutions import *  # noqa: F403
from cntkpy.networks.builders.python.operations.dynamic import to_batch, to_sequence, to_sequence_like, unpack_batch
from cntkpy.networks.builders.python.operations.elements import argmax, argmin, one_hot, top_k
from cntkpy.networks.builders.python.operations.elements import take as gather
from cntkpy.networks.builders.python.operations.images import *  # noqa: F403
from cntkpy.networks.builders.python.operations.more import *  # noqa: F403
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

__all__: list[str] = [
    "TIMES_NO_INFERRED_INPUT_RANK", "BlockFunction", "Function", "abs", "alias", "argmax", "argmin", "as_block",
    "as_composite", "cast", "ceil", "clip", "combine", "constant", "cos", "cosine_distance", "dropout",
    "element_divide", "element_select", "element_times", "equal", "exp", "expand_dims", "flatten", "floor",
    "forward_backward", "functions", "future_value", "gather", "greater", "greater_equal", "hardmax", "input",
    "input_variable", "labels_to_graph", "leaky_relu", "less", "less_equal", "log", "log_softmax", "minus", "negate",
    "not_equal", "one_hot", "optimized_rnnstack", "output_variable", "parameter", "past_value", "placeholder",
    "placeholder_variable", "plus", "random_sample", "random_sample_inclusion_frequency", "reciprocal",
    "reconcile_dynamic_axes", "reduce_l1", "reduce_l2", "reduce_log_sum_exp", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_sum", "reduce_sum_square", "relu", "reshape", "round", "sequence", "sigmoid", "sin", "slice",
    "softmax", "splice", "sqrt", "square", "squeeze", "stop_gradient", "swapaxes", "tanh", "times", "times_transpose",
    "to_batch", "to_sequence", "to_sequence_like", "top_k", "transpose", "unpack_batch", "user_function", "zeros_like",
]  # fmt: skip
__all__ += composed.__all__
__all__ += convolutions.__all__
__all__ += images.__all__
__all__ += more.__all__

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
