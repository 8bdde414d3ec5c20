"""Operators on functions, losses and metrics: the library of BrainScript under the names that Python programs use."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.networks.builders.python.functions.axes import Axis, static_axis
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.checks import check_number, check_whole, seed_option
from cntkpy.networks.builders.python.functions.defaults import checked_dtype
from cntkpy.networks.builders.python.functions.deferring import deferred, needs_shapes
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import (
    Function,
    as_node,
    checked,
    in_written_order,
    operator,
    to_operand,
)
from cntkpy.networks.builders.python.functions.leaves import filled
from cntkpy.networks.builders.python.functions.nodes import CASTS
from cntkpy.networks.builders.python.functions.recipes import OpenShape, is_open
from cntkpy.networks.builders.python.operations.elements import over_axes
from cntkpy.networks.builders.python.operations.reshaping import (
    Operand,
    alias,
    flatten,
    number,
    reshape,
    slice,
    splice,
    steps_from,
    swapaxes,
    transpose,
)
from cntkpy.networks.builders.python.operations.steps_of import steps_of


def _split(operands: tuple[Operand, ...], name: str) -> tuple[tuple[Operand, ...], str]:
    """Further operands, and the name, which may follow them."""
    return (operands[:-1], operands[-1]) if operands and isinstance(operands[-1], str) else (operands, name)


def plus(left: Operand, right: Operand, *further: Operand, name: str = "") -> Function:
    """Return the sum."""
    further, name = _split(further, name)
    result = checked(operator("Plus", as_node(left), as_node(right), label="" if further else name))
    return plus(result, *further, name=name) if further else result


def minus(left: Operand, right: Operand, name: str = "") -> Function:
    """Return the difference."""
    return checked(operator("Minus", as_node(left), as_node(right), label=name))


def element_times(left: Operand, right: Operand, *further: Operand, name: str = "") -> Function:
    """Return the product, element by element."""
    further, name = _split(further, name)
    result = checked(operator("ElementTimes", as_node(left), as_node(right), label="" if further else name))
    return element_times(result, *further, name=name) if further else result


def element_divide(left: Operand, right: Operand, name: str = "") -> Function:
    """Return the quotient, element by element."""
    return checked(operator("ElementDivide", as_node(left), as_node(right), label=name))


def times(
    left: Operand, right: Operand, output_rank: int = 1, infer_input_rank_to_map: int = -1, name: str = ""
) -> Function:
    """Return the matrix product; the last `output_rank` axes of `right` are those of the result."""
    sizes = {"outputRank": output_rank, "inferInputRankToMap": infer_input_rank_to_map}
    return checked(operator("Times", as_node(right), as_node(left), label=name, **sizes))


def times_transpose(left: Operand, right: Operand, name: str = "") -> Function:
    """Return the product with the transposed right matrix."""
    return checked(operator("TransposeTimes", as_node(right), as_node(left), label=name))


def _unary(public: str, library: str, meaning: str) -> Callable[..., Function]:
    def function(x: Operand, name: str = "") -> Function:
        return operator(library, as_node(x), label=name)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = meaning
    return function


def _rounding(public: str, library: str, meaning: str) -> Callable[..., Function]:
    @described(library)
    def function(arg: Operand, name: str = "") -> Function:
        return operator(library, as_node(arg), label=name)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = meaning
    return function


negate = _unary("negate", "Negate", "-x")
reciprocal = _unary("reciprocal", "Reciprocal", "1 / x")
abs = _unary("abs", "Abs", "|x|")
exp = _unary("exp", "Exp", "e^x")
log = _unary("log", "Log", "The natural logarithm.")
floor = _rounding("floor", "Floor", "The largest whole number that is not larger.")
ceil = _rounding("ceil", "Ceil", "The smallest whole number that is not smaller.")
round = _rounding("round", "Round", "The nearest whole number.")
sigmoid = _unary("sigmoid", "Sigmoid", "1 / (1 + e^-x)")
tanh = _unary("tanh", "Tanh", "The hyperbolic tangent.")
sqrt = _unary("sqrt", "Sqrt", "The square root.")
cos = _unary("cos", "Cosine", "The cosine.")
sin = _unary("sin", "Sin", "The sine.")
relu = _unary("relu", "RectifiedLinear", "max(x, 0)")
hardmax = _unary("hardmax", "Hardmax", "One-hot vector of the first largest element.")


@described("Softmax", lambda of: {} if of["axis"] is None else {"axis": of["axis"]})
def softmax(x: Operand, axis: int | Axis | None = None, name: str = "") -> Function:
    """Softmax over all elements of a sample, or along one axis."""
    if axis is None:
        return operator("Softmax", as_node(x), label=name)
    return _softmax_along("softmax", as_node(x), axis, name)


@described("LogSoftmax", lambda of: {} if of["axis"] is None else {"axis": of["axis"]})
def log_softmax(x: Operand, axis: int | Axis | None = None, name: str = "") -> Function:
    """Return the logarithm of the softmax over all elements of a sample, or along one axis."""
    if axis is None:
        return operator("LogSoftmax", as_node(x), label=name)
    return _softmax_along("log_softmax", as_node(x), axis, name)


@needs_shapes
def _softmax_along(call: str, x: Function, axis: int | Axis, name: str) -> Function:
    is_logarithm = call == "log_softmax"
    if _is_whole_sample(call, x, axis):
        return operator("LogSoftmax" if is_logarithm else "Softmax", x, label=name)
    shifted = minus(x, stop_gradient(over_axes(call, "Max", x, [axis], True)))
    if is_logarithm:
        return minus(shifted, over_axes(call, "LogSum", shifted, [axis], True), name)
    powers = exp(shifted)
    return element_divide(powers, over_axes(call, "Sum", powers, [axis], True), name)


def _is_whole_sample(call: str, x: Function, axis: int | Axis | None) -> bool:
    """Return whether an axis is all there is of a sample, which has no other.

    Raises:
        UserError: there is no such axis.
        OpenShape: the shape is not known yet.
    """
    if axis is None or (isinstance(axis, Axis) and axis.kind == "all static"):
        return True
    rank = len(x.shape)
    static_axis(call, axis, max(1, rank))
    return rank <= 1


@described("Cast", lambda of: {"newDataType": np.dtype(of["dtype"]).name})
def cast(node_input: Operand, dtype: DTypeLike, name: str = "") -> Function:
    """X in half, single or double precision: the network that it is part of has this precision.

    All that x depends on is computed in it, too. A network with parts of half and of single precision is computed in
    half precision, and has values of single precision after a cast to it.
    """
    converted = alias(node_input, name)
    CASTS[converted.root] = checked_dtype(dtype)
    return converted


def square(x: Operand, name: str = "") -> Function:
    """x * x"""
    return element_times(x, x, name=name)


@described("LeakyReLU", lambda of: {"alpha": of["alpha"]})
def leaky_relu(x: Operand, alpha: float = 0.01, name: str = "") -> Function:
    """X from 0 on, alpha x below; the gradient at 0 is 1."""
    x = as_node(x)
    return element_select(less(x, 0.0), element_times(alpha, x), x, name=name)


def clip(x: Operand, min_value: Operand, max_value: Operand, name: str = "") -> Function:
    """X limited to a range."""
    numbers = [bound for bound in (min_value, max_value) if isinstance(bound, int | float)]
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        raise UserError("BadValue", f"clip: the least value, {min_value}, is larger than the greatest, {max_value}")
    return checked(operator("Clip", as_node(min_value), as_node(max_value), as_node(x), label=name))


def dropout(x: Operand, dropout_rate: float = 0.0, seed: int | None = None, name: str = "") -> Function:
    """In training some elements are set to zero at random, and the others scaled up.

    Functions of the same seed have the same masks, others in every minibatch; without a seed the place in the network
    counts. The masks are the same in every run, others in every trainer; `Trainer.seed` gives others.
    """
    rate = check_rate(dropout_rate)
    result = operator("Dropout", as_node(x), label=name)
    result.root.options |= {"rate": rate, "seed": seed_option(seed)}
    return result


def check_rate(rate: float) -> float:
    """Return a dropout rate.

    Raises:
        UserError: it is not a number from 0 to below 1.
    """
    if not 0 <= check_number("a dropout rate", rate) < 1:
        raise UserError("BadValue", f"a dropout rate lies from 0 to 1, it is not {rate}")
    return float(rate)


def _comparison(public: str, library: str, sign: str) -> Callable[..., Function]:
    def function(left: Operand, right: Operand, name: str = "") -> Function:
        return checked(operator(library, as_node(left), as_node(right), label=name))

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"1 where left {sign} right, else 0."
    return function


less = _comparison("less", "Less", "<")
equal = _comparison("equal", "Equal", "==")
greater = _comparison("greater", "Greater", ">")
greater_equal = _comparison("greater_equal", "GreaterEqual", ">=")
not_equal = _comparison("not_equal", "NotEqual", "!=")
less_equal = _comparison("less_equal", "LessEqual", "<=")


def element_select(flag: Operand, value_if_true: Operand, value_if_false: Operand, name: str = "") -> Function:
    """Return one of two values, element by element: the first where the flag is not 0."""
    return checked(operator("BS.Boolean.If", *map(as_node, (flag, value_if_true, value_if_false)), label=name))


def stop_gradient(input: Operand, name: str = "") -> Function:
    """Return the input itself, through which no gradient flows: what it depends on is not trained by what depends on
    it.
    """
    return operator("_StopGradient", as_node(input), label=name)


# --------------------------------------------------------------------------------------------- losses and metrics


def cross_entropy_with_softmax(
    output_vector: Operand, target_vector: Operand, axis: int | Axis = -1, name: str = ""
) -> Function:
    """Cross entropy of the target and the softmax of the output, along an axis.

    Args:
        output_vector: what the softmax is of.
        target_vector: the target, of the same shape.
        axis: the axis of the classes, -1: the last one. Of samples of one axis the result is a number; else the axis
            has one element then.
        name: names the result.
    """
    z, y = as_node(output_vector), as_node(target_vector)
    return _cross_entropy_along(z, y, axis, name)


@needs_shapes
def _cross_entropy_along(z: Function, y: Function, axis: int | Axis, name: str) -> Function:
    call, axes = "cross_entropy_with_softmax", [axis]
    if _is_whole_sample(call, z, axis):
        _same_elements(call, z, y)
        return operator("CrossEntropyWithSoftmax", y, z, label=name)
    likelihood = over_axes(call, "Sum", element_times(y, z), axes, True)
    return minus(over_axes(call, "LogSum", z, axes, True), likelihood, name)


def classification_error(
    output_vector: Operand, target_vector: Operand, axis: int | Axis = -1, topN: int = 1, name: str = ""
) -> Function:
    """Return 1 where the target is not among the `topN` largest elements of the output along an axis, else 0.

    Args:
        output_vector: the output.
        target_vector: the target, of the same shape.
        axis: the axis of the classes, -1: the last one, where the result has one element for each of the others; along
            an axis that is given by its number it is the mean over the others.
        topN: how many of the largest elements count.
        name: names the result.
    """
    z, y = as_node(output_vector), as_node(target_vector)
    check_whole("classification_error: topN", topN, 1)
    return _error_along(z, y, axis, topN, name)


@needs_shapes
def _error_along(z: Function, y: Function, axis: int | Axis, topN: int, name: str) -> Function:
    call, axes = "classification_error", [axis]
    if _is_whole_sample(call, z, axis):
        _same_elements(call, z, y)
        if topN > max(1, math.prod(z.shape)):
            raise UserError("BadValue", f"{call}: topN is {topN}, there are {math.prod(z.shape)} classes")
        return operator("ClassificationError", y, z, label=name, topN=topN)
    is_target = equal(y, over_axes(call, "Max", y, axes, True))
    target = over_axes(call, "Sum", element_times(z, is_target), axes, True)
    above = over_axes(call, "Sum", greater(z, target), axes, True)
    if axis == -1:
        return in_written_order(greater_equal(above, float(topN), name), z, y)
    return in_written_order(number(over_axes(call, "Mean", greater_equal(above, float(topN)), None, False), name), z, y)


def squared_error(output: Operand, target: Operand, name: str = "") -> Function:
    """Return the sum of the squared differences."""
    output, target = as_node(output), as_node(target)
    _same_elements("squared_error", output, target)
    return operator("SquareError", target, output, label=name)


@described("Logistic")
def binary_cross_entropy(output: Operand, target: Operand, name: str = "") -> Function:
    """Cross entropy of a probability and a target of 0 or 1, element by element."""
    p, y = as_node(output), as_node(target)
    return in_written_order(_binary_cross_entropy(p, y, None, name), p, y)


@needs_shapes
def _binary_cross_entropy(p: Function, y: Function, weight: Function | None, name: str) -> Function:
    if p.shape != y.shape:
        message = f"binary_cross_entropy: the output has the shape {p.shape}, the target {y.shape}"
        raise UserError("BadShape", message, hint="reshape one of them")
    likelihood = plus(element_times(y, log(p)), element_times(minus(1.0, y), log(minus(1.0, p))))
    return negate(likelihood, name) if weight is None else negate(element_times(weight, likelihood), name)


@described("Logistic")
def weighted_binary_cross_entropy(output: Operand, target: Operand, weight: Operand, name: str = "") -> Function:
    """Weighted cross entropy of a probability and a target of 0 or 1, element by element.

    The weight has a number for each element, or one for all.
    """
    p, y, w = as_node(output), as_node(target), as_node(weight)
    return in_written_order(_binary_cross_entropy(p, y, w, name), p, y, w)


@described("CosDistance")
def cosine_distance(x: Operand, y: Operand, name: str = "") -> Function:
    """Return the cosine of two vectors."""
    return number(operator("CosDistance", as_node(x), as_node(y)), name)


@described("LambdaRank")
def lambda_rank(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """Loss of a ranking: 100 n (1 - mean over groups of DCG / best DCG), DCG = sum of gain / ln (2 + rank from 0 on).

    C. Burges et al., "Learning to rank with nonsmooth cost functions", NIPS 2006, whose gradient of pairs it has.

    Args:
        output: the score of each sample.
        gain: that of each sample, an input; in a group the largest comes first.
        group: neighbouring samples of the same number are ranked together; an input.
        name: names the result.

    Returns:
        One number for the whole minibatch of n samples.
    """
    return number(operator("LambdaRank", *map(as_node, (gain, output, group))), name)


@described("NDCG")
def ndcg_at_1(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """100 n times the mean over groups of the gain of the largest output by the largest gain; see `lambda_rank`."""
    return number(operator("NDCG1Eval", *map(as_node, (gain, output, group))), name)


def _same_elements(call: str, output: Function, target: Function) -> None:
    """Check the shapes of the operands of a criterion now; later the error would name a node instead of the call.

    Raises:
        UserError: the shapes are known and differ in more than axes of 1.
    """
    try:
        shapes = output.shape, target.shape
    except OpenShape:
        return
    numbers = (output, target)
    is_number = any(operand.is_leaf and not operand.is_input and math.prod(operand.shape) == 1 for operand in numbers)
    if is_number or any(size < 0 for shape in shapes for size in shape):
        return
    if filled(shapes[0]) != filled(shapes[1]):
        hint = f"one_hot(target, {math.prod(shapes[0])})" if math.prod(shapes[1]) == 1 else "reshape one of them"
        message = f"{call}: the output has the shape {shapes[0]}, the target {shapes[1]}"
        raise UserError("BadShape", message, hint=hint)


# --------------------------------------------------------------------------------------------- sequences


def past_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """Return the value `time_step` steps earlier in the sequence; before the first step the initial state (0).

    The initial state is a number, an array, a parameter, or a function with a value for each sequence or for each step.
    """
    return _shifted_from(x, initial_state, check_whole("time_step", time_step, 1), name)


def future_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """Return the value `time_step` steps later in the sequence; after the last step the initial state (0)."""
    return _shifted_from(x, initial_state, -check_whole("time_step", time_step, 1), name)


def _shifted_from(x: Operand, initial: Operand, steps: int, name: str) -> Function:
    if isinstance(initial, Function) and (
        initial.placeholders or ((initial.data_arguments or initial.dynamic_axes) and _has_placeholder(x))
    ):
        shape = _known_shape(initial)  # the states have it as well
        return deferred(_shifted, (as_node(x), initial, steps, name), {}, closed=True, shape=shape)
    return _shifted(x, initial, steps, name)


def _known_shape(initial: Function) -> tuple[int, ...] | None:
    """Return the shape of an initial state as nodes count axes; None if it is a number, unknown or free."""
    try:
        shape = initial.shape
    except OpenShape:
        return None
    return tuple(reversed(shape)) if shape and all(size > 0 for size in shape) else None


def _has_placeholder(x: Operand) -> bool:
    """Return whether a function waits for its input, whose steps are not known before."""
    return bool(as_node(x).placeholders) and bool(steps_of(x).placeholders)


def _shifted(x: Operand, initial: Operand, steps: int, name: str) -> Function:
    if isinstance(initial, Function) and initial.data_arguments:  # a value for each sequence
        outside = operator(f"BS.Loop.Is{'First' if steps > 0 else 'Last'}N", math.fabs(steps), steps_of(x))
        return element_select(outside, state_along(initial, steps_of(x)), _shifted(x, None, steps, ""), name)
    is_number = isinstance(initial, int | float)
    state = 0.0 if initial is None else float(initial) if is_number else to_operand(as_node(initial))
    return operator("_Shifted", as_node(x), float(steps), state, label=name)


def state_along(initial: Function, x: Function) -> Function:
    """Return an initial state for the steps of x: it has a value for each of them, or one for each sequence."""
    if not is_open(initial.root) and len(initial.dynamic_axes) == 2 and initial.dynamic_axes == x.dynamic_axes:
        return initial
    return broadcast_as(initial, x, "initial_state")


@described("Sequence::First")
def first(seq: Operand, name: str = "") -> Function:
    """Return the first step of each sequence."""
    return operator("BS.Sequences.First", as_node(seq), label=name)


@described("Sequence::Last")
def last(seq: Operand, name: str = "") -> Function:
    """Return the last step of each sequence."""
    return operator("BS.Sequences.Last", as_node(seq), label=name)


@described("Sequence::IsFirst")
def is_first(seq: Operand, name: str = "") -> Function:
    """1 in the first step of each sequence, else 0."""
    return number(operator("BS.Loop.IsFirst", steps_of(seq)), name)


@described("Sequence::IsLast")
def is_last(seq: Operand, name: str = "") -> Function:
    """1 in the last step of each sequence, else 0."""
    return number(operator("BS.Loop.IsLast", steps_of(seq)), name)


def gather(seq: Operand, condition: Operand, name: str = "") -> Function:
    """Return the steps whose condition is not 0."""
    return operator("BS.Sequences.Gather", as_node(condition), as_node(seq), label=name)


def scatter(seq: Operand, condition: Operand, name: str = "") -> Function:
    """Return the steps put where the condition is not 0, zeros elsewhere."""
    return operator("BS.Sequences.Scatter", as_node(condition), as_node(seq), label=name)


@described("Sequence::BroadcastAs")
def broadcast_as(operand: Operand, broadcast_as_operand: Operand, name: str = "") -> Function:
    """Return one sample per sequence, in every step of another sequence."""
    x, like = as_node(operand), steps_of(broadcast_as_operand)
    try:
        return _in_every_step(x, like, x.shape == (), name)
    except OpenShape:
        return deferred(broadcast_as, (x, like, name), {})


def _in_every_step(x: Function, like: Function, is_number: bool, name: str) -> Function:
    if is_number:  # the library chooses by numbers of the shape (1,)
        return number(_in_every_step(reshape(x, (1,)), like, False, ""), name)
    return operator("BS.Sequences.BroadcastSequenceAs", like, x, label=name)


@described("Sequence::Slice", lambda of: {"beginIndex": of["begin_index"], "endIndex": of["end_index"]})
def sequence_slice(seq: Operand, begin_index: int, end_index: int, name: str = "") -> Function:
    """Return the steps from `begin_index` to `end_index` (exclusive; negative ones and 0 count from the end)."""
    begin, end = (check_whole("sequence.slice: an index", index) for index in (begin_index, end_index))
    return steps_from("sequence.slice", as_node(seq), begin, end, name)


def reconcile_dynamic_axes(x: Operand, dynamic_axes_as: Operand, name: str = "") -> Function:
    """X, on the time axis of another function; their sequences must have the same lengths."""
    return operator("ReconcileDynamicAxis", as_node(x), as_node(dynamic_axes_as), label=name)


def cosine_distance_with_negative_samples(
    x: Operand, y: Operand, shift: int, num_negative_samples: int, name: str = ""
) -> Function:
    """Return the cosine of x and y, and after it that of x and y of other samples of the minibatch.

    Args:
        x: vectors.
        y: vectors.
        shift: from this many samples further on are the others taken.
        num_negative_samples: how many.
        name: names the result.
    """
    counts = as_node(float(shift)), as_node(float(num_negative_samples))
    return operator("CosDistanceWithNegativeSamples", as_node(x), as_node(y), *counts, label=name)


def random_sample(
    weights: Operand, num_samples: int, allow_duplicates: bool, seed: int | None = None, name: str = ""
) -> Function:
    """Classes drawn at random for every minibatch, as one-hot rows (num_samples, classes).

    Args:
        weights: how often each class is drawn, a parameter or a constant.
        num_samples: how many.
        allow_duplicates: a class may be drawn twice.
        seed: functions of the same seed draw the same classes, each time they are computed others; None: the place in
            the network counts.
        name: names the result.
    """
    return _sampled("_RandomSample", weights, num_samples, allow_duplicates, seed, name)


def random_sample_inclusion_frequency(
    weights: Operand, num_samples: int, allow_duplicates: bool, seed: int | None = None, name: str = ""
) -> Function:
    """Return the expected count of each class among those of `random_sample`; see there."""
    return _sampled("_RandomSampleFrequency", weights, num_samples, allow_duplicates, seed, name)


def _sampled(
    library: str, weights: Operand, num_samples: int, allow_duplicates: bool, seed: int | None, name: str
) -> Function:
    drawn = as_node(weights)
    if drawn.is_constant or (drawn.is_parameter and cell_of(drawn.root).value is not None):
        array = drawn.value
        if not (np.isfinite(array) & (array >= 0)).all() or not array.any():
            message = (
                f"weights of classes are numbers from 0 on, one of them above 0, not {shorten(repr(array.tolist()))}"
            )
            raise UserError("BadValue", message)
    count = check_whole("the number of samples", num_samples, 1)
    result = operator(library, drawn, count, bool(allow_duplicates), label=name)
    result.root.options["seed"] = seed_option(seed)
    return result


_STACKS = ("lstm", "gru", "rnnTanh", "rnnReLU")
"""The layers that `optimized_rnnstack` has."""


def optimized_rnnstack(
    operand: Operand,
    weights: Operand,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool = False,
    recurrent_op: str = "lstm",
    name: str = "",
) -> Function:
    """Return a stack of recurrent layers with all weights in one parameter, in cuDNN's order.

    Args:
        operand: the sequence.
        weights: the parameter; -1 or 0 stands for an axis of its shape that is to be inferred.
        hidden_size: elements of a state.
        num_layers: how many layers.
        bidirectional: layers go in both directions.
        recurrent_op: lstm, gru, rnnTanh or rnnReLU.
        name: names the result.
    """
    if recurrent_op not in _STACKS:
        message = f"optimized_rnnstack: recurrent_op is one of {', '.join(_STACKS)}, not {shorten(repr(recurrent_op))}"
        raise UserError("BadValue", message)
    return operator(
        "OptimizedRNNStack",
        as_node(weights),
        as_node(operand),
        int(hidden_size),
        label=name,
        numLayers=int(num_layers),
        bidirectional=bool(bidirectional),
        recurrentOp=recurrent_op,
    )


@described("ConstantOp", lambda of: {"fillValue": 0.0})
def zeros_like(x: Operand, name: str = "") -> Function:
    """Zeros of the same shape, whatever x is: also where it is infinite or no number."""
    x = as_node(x)
    return less(x, x, name)


__all__ = [
    "abs", "alias", "binary_cross_entropy", "broadcast_as", "cast", "ceil", "classification_error", "clip", "cos",
    "cosine_distance", "cosine_distance_with_negative_samples", "cross_entropy_with_softmax", "dropout",
    "element_divide", "element_select", "element_times", "equal", "exp", "first", "flatten", "floor", "future_value",
    "gather", "greater", "greater_equal", "hardmax", "is_first", "is_last", "lambda_rank", "last", "leaky_relu", "less",
    "less_equal", "log", "log_softmax", "minus", "ndcg_at_1", "negate", "not_equal", "optimized_rnnstack", "past_value",
    "plus", "random_sample", "random_sample_inclusion_frequency", "reciprocal", "reconcile_dynamic_axes", "relu",
    "reshape", "round", "scatter", "sequence_slice", "sigmoid", "sin", "slice", "softmax", "splice", "sqrt", "square",
    "squared_error", "stop_gradient", "swapaxes", "tanh", "times", "times_transpose", "transpose",
    "weighted_binary_cross_entropy", "zeros_like",
]  # fmt: skip
