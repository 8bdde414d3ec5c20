"""Operators on functions, losses and metrics: the library of BrainScript under the names that Python programs use."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

from cntk_config.base.diagnostics import UserError
from networks.builders.python.checks import check_flag, check_number, check_whole, is_whole, seed_option
from networks.builders.python.defaults import checked_dtype
from networks.builders.python.function import Function, Shape, as_node, dims, operator, to_operand
from networks.builders.python.graph import CASTS
from networks.builders.python.steps_of import steps_of

Operand = Any
"""A function, a number, an array or a list of numbers."""


class Axes(Enum):
    """What reductions take in the place of the number of an axis."""

    STATIC = "all axes of a sample"
    ALL = "all axes of a sample, and the minibatch"
    BATCH = "the minibatch"


def _rank(x: Function) -> int:
    return len(x.shape)


def _axis(x: Function, axis: int) -> int:
    """The axis as BrainScript counts it: from 1, the fastest first. `axis` counts as numpy does."""
    check_whole("an axis", axis)
    if axis < 0:
        return -axis
    rank = max(1, _rank(x))
    found = rank - axis
    if not 1 <= found <= rank + 8:
        raise UserError("BadIndex", f"there is no axis {axis} among {rank}")
    return found


def _split(more: tuple[Operand, ...], name: str) -> tuple[tuple[Operand, ...], str]:
    """Further operands, and the name, which may stand behind them."""
    return (more[:-1], more[-1]) if more and isinstance(more[-1], str) else (more, name)


def plus(left: Operand, right: Operand, *more: Operand, name: str = "") -> Function:
    """The sum."""
    more, name = _split(more, name)
    result = operator("Plus", as_node(left), as_node(right), label="" if more else name)
    return plus(result, *more, name=name) if more else result


def minus(left: Operand, right: Operand, name: str = "") -> Function:
    """The difference."""
    return operator("Minus", as_node(left), as_node(right), label=name)


def element_times(left: Operand, right: Operand, *more: Operand, name: str = "") -> Function:
    """The product, element by element."""
    more, name = _split(more, name)
    result = operator("ElementTimes", as_node(left), as_node(right), label="" if more else name)
    return element_times(result, *more, name=name) if more else result


def element_divide(left: Operand, right: Operand, name: str = "") -> Function:
    """The quotient, element by element."""
    return operator("ElementDivide", as_node(left), as_node(right), label=name)


def times(
    left: Operand, right: Operand, output_rank: int = 1, infer_input_rank_to_map: int = -1, name: str = ""
) -> Function:
    """The matrix product; the last `output_rank` axes of `right` are those of the result."""
    return operator(
        "Times",
        as_node(right),
        as_node(left),
        label=name,
        outputRank=output_rank,
        inferInputRankToMap=infer_input_rank_to_map,
    )


def times_transpose(left: Operand, right: Operand, name: str = "") -> Function:
    """The product with the transposed right matrix."""
    return operator("TransposeTimes", as_node(right), as_node(left), label=name)


def _unary(library: str, meaning: str) -> Any:
    def function(x: Operand, name: str = "") -> Function:
        return operator(library, as_node(x), label=name)

    function.__doc__ = meaning
    return function


negate = _unary("Negate", "-x")
reciprocal = _unary("Reciprocal", "1 / x")
abs = _unary("Abs", "|x|")
exp = _unary("Exp", "e^x")
log = _unary("Log", "The natural logarithm.")
floor = _unary("Floor", "The largest whole number that is not larger.")
ceil = _unary("Ceil", "The smallest whole number that is not smaller.")
round = _unary("Round", "The nearest whole number.")
sigmoid = _unary("Sigmoid", "1 / (1 + e^-x)")
tanh = _unary("Tanh", "The hyperbolic tangent.")
sqrt = _unary("Sqrt", "The square root.")
cos = _unary("Cosine", "The cosine.")
sin = _unary("Sin", "The sine.")
relu = _unary("RectifiedLinear", "max(x, 0)")
hardmax = _unary("Hardmax", "One-hot vector of the first largest element.")
alias = _unary("Pass", "x itself.")


def softmax(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """Softmax over all elements of a sample, or along one axis."""
    x = as_node(x)
    if axis is not None and _along(x, axis):
        return operator("Exp", log_softmax(x, axis), label=name)
    return operator("Softmax", x, label=name)


def _along(x: Function, axis: int | None) -> int:
    """The axis as BrainScript counts it; 0: all elements."""
    if axis is None:
        return 0
    found = _axis(x, axis)
    return 0 if _rank(x) == 1 else found


def log_softmax(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The logarithm of the softmax over all elements of a sample, or along one axis."""
    x = as_node(x)
    if axis is not None and _along(x, axis):
        return minus(x, reduce_log_sum_exp(x, axis), name)
    return operator("LogSoftmax", x, label=name)


def cast(node_input: Operand, dtype: Any, name: str = "") -> Function:
    """X in single or double precision: the network that it is part of has this precision.

    All that x depends on is computed in it, too.
    """
    found = alias(node_input, name)
    CASTS[found.root] = checked_dtype(dtype)
    return found


def square(x: Operand, name: str = "") -> Function:
    """x * x"""
    return element_times(x, x, name=name)


def leaky_relu(x: Operand, alpha: float = 0.01, name: str = "") -> Function:
    """X from 0 on, alpha x below; the gradient at 0 is 1."""
    x = as_node(x)
    return element_select(less(x, 0.0), element_times(alpha, x), x, name=name)


def clip(x: Operand, min_value: Operand, max_value: Operand, name: str = "") -> Function:
    """X limited to a range."""
    numbers = [one for one in (min_value, max_value) if isinstance(one, int | float)]
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        raise UserError("BadValue", f"clip: the least value, {min_value}, is larger than the greatest, {max_value}")
    return operator("Clip", as_node(min_value), as_node(max_value), as_node(x), label=name)


def dropout(x: Operand, dropout_rate: float = 0.0, seed: int | None = None, name: str = "") -> Function:
    """In training some elements are set to zero at random, and the others scaled up.

    Functions of the same seed have the same masks, others in every minibatch; without a seed the place in the network
    counts. The masks are the same in every run; `Trainer.seed` gives others.
    """
    if not 0 <= check_number("a dropout rate", dropout_rate) < 1:
        raise UserError("BadValue", f"a dropout rate lies from 0 to 1, it is not {dropout_rate}")
    result = operator("Dropout", as_node(x), label=name)
    result.root.options |= {"rate": float(dropout_rate), "seed": seed_option(seed)}
    return result


Along = int | Sequence[int] | Axes | None
"""The axes of a reduction: one, several, or all (None)."""


def reduce_sum(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """The sum over one axis, or over all elements of a sample."""
    return _reduced("ReduceSum", x, axis, *_kept(keepdims, name))


def reduce_mean(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """The mean over one axis, or over all elements of a sample."""
    return _reduced("ReduceMean", x, axis, *_kept(keepdims, name))


def reduce_max(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """The largest element along one axis, or of a sample."""
    return _reduced("ReduceMax", x, axis, *_kept(keepdims, name))


def reduce_min(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """The smallest element along one axis, or of a sample."""
    return _reduced("ReduceMin", x, axis, *_kept(keepdims, name))


def reduce_log_sum_exp(x: Operand, axis: Along = None, keepdims: bool | str = True, name: str = "") -> Function:
    """The logarithm of the sum of exponentials over one axis, or over all elements of a sample."""
    return _reduced("ReduceLogSum", x, axis, *_kept(keepdims, name))


def _kept(keepdims: bool | str, name: str) -> tuple[str, bool]:
    """The name and whether axes stay; the name may stand in the place of the other one, as in older programs."""
    if isinstance(keepdims, str):
        return keepdims, True
    return name, check_flag("keepdims", keepdims)


def _reduced(library: str, x: Operand, axis: Along, name: str, keepdims: bool = True) -> Function:
    """A reduction; the axes that it goes over have one element then, or are gone without `keepdims`."""
    x = as_node(x)
    if not keepdims and not isinstance(axis, Axes):
        rank = len(x.shape)
        over: Any = range(rank) if axis is None else axis if isinstance(axis, list | tuple) else [axis]
        for one in over:
            _axis(x, one)
        gone = {one % rank for one in over}
        kept = [size for at, size in enumerate(x.shape) if at not in gone]
        return reshape(_reduced(library, x, axis, ""), kept or (1,), name=name)
    if axis in (Axes.ALL, Axes.BATCH):
        return _over_minibatch(library, x, axis is Axes.ALL, name)
    if isinstance(axis, list | tuple):
        if not axis:
            raise UserError("BadIndex", "a reduction goes over one axis at least", hint="None: over all elements")
        for one in axis[:-1]:
            x = operator(library, x, axis=_axis(x, one))
        return _reduced(library, x, axis[-1], name)
    one: Any = axis
    along = None if one in (None, Axes.STATIC) else _axis(x, one)
    return operator(library, x, label=name, axis=along)


def _over_minibatch(library: str, x: Function, elements: bool, name: str) -> Function:
    """The sum or the mean over all samples of a minibatch, and over the elements of a sample if these are wanted."""
    if library not in ("ReduceSum", "ReduceMean"):
        hint = "the sum and the mean are there; numpy on what eval gives"
        raise UserError("NotSupported", "over the minibatch there is no largest and no smallest element", hint=hint)
    over = "SumElements" if elements else "_SumOverMinibatch"
    if library == "ReduceSum":
        return operator(over, x, label=name)
    total = operator(over, operator("ReduceMean", x) if elements else x)
    return element_divide(total, operator("SumElements", operator("BS.Constants.OnesLike", x)), name=name)


def splice(*operands: Operand, axis: int = -1, name: str = "") -> Function:
    """The operands, put together along an axis."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    several = [as_node(one) for one in given]
    if not several:
        raise UserError("WrongArguments", "splice needs an operand")
    return operator("Splice", several, label=name, axis=_axis(several[0], axis))


def reshape(
    x: Operand, shape: Shape, begin_axis: int | None = None, end_axis: int | None = None, name: str = ""
) -> Function:
    """The same elements in another shape, or with other axes from `begin_axis` to `end_axis` (exclusive).

    One axis of the shape may be 0 (or -1), to be inferred.
    """
    x = as_node(x)
    sizes: Any = shape if isinstance(shape, list | tuple) else (shape,)
    new = list(dims(tuple(0 if is_whole(one) and one == -1 else one for one in sizes)))
    if new.count(0) > 1:
        raise UserError("BadShape", f"one axis of {shape} can be inferred, not {new.count(0)}")
    if begin_axis is None and end_axis is None:
        return operator("NewReshape", x, new, label=name)
    rank = _rank(x)
    begin, end, _ = builtins.slice(begin_axis, end_axis).indices(rank)
    return operator("NewReshape", x, new, label=name, beginAxis=rank - end + 1, endAxis=rank - begin + 1)


def flatten(x: Operand, axis: int | str | None = None, name: str = "") -> Function:
    """The same elements along one axis; with `axis` along two: those in front of it, and those from it on."""
    if isinstance(axis, str):  # the name
        axis, name = None, axis
    if axis is None:
        return reshape(x, 0, name=name)
    x = as_node(x)
    check_whole("an axis", axis)
    begin = builtins.slice(0, axis).indices(len(x.shape))[1]
    return reshape(x, (math.prod(x.shape[:begin]), math.prod(x.shape[begin:])), name=name)


def swapaxes(x: Operand, axis1: int = 0, axis2: int = 1, name: str = "") -> Function:
    """Two axes exchanged."""
    x = as_node(x)
    return operator("TransposeDimensions", x, _axis(x, axis1), _axis(x, axis2), label=name)


def transpose(x: Operand, perm: int | Sequence[int] = (1, 0), axis2: int | None = None, name: str = "") -> Function:
    """The axes in another order: `perm` gives the axis of `x` for each axis of the result; or two axes exchanged."""
    x = as_node(x)
    if isinstance(perm, int):
        return swapaxes(x, perm, 1 if axis2 is None else axis2, name)
    rank = len(perm)
    wanted = [one % rank if is_whole(one) and -rank <= one < rank else -1 for one in perm]
    now = list(range(rank))
    if sorted(wanted) != now or rank != _rank(x):
        raise UserError("BadIndex", f"{tuple(perm)} is no order of the {_rank(x)} axes of {x!r}")
    result = x
    for place, axis in enumerate(wanted):
        at = now.index(axis)
        if at != place:
            result = swapaxes(result, place, at)
            now[place], now[at] = now[at], now[place]
    return alias(result, name) if name or result is x else result


def slice(x: Operand, axis: Any, begin_index: Any, end_index: Any, strides: Any = 1, name: str = "") -> Function:
    """The elements from `begin_index` to `end_index` (exclusive, 0: the end) along an axis, or along several.

    With a stride other than 1 each so many of them, from the last one on if it is negative.
    """
    result = as_node(x)
    several = isinstance(axis, list | tuple)
    steps = strides if isinstance(strides, list | tuple) else [strides] * (len(axis) if several else 1)
    parts = zip(axis, begin_index, end_index, strict=True) if several else [(axis, begin_index, end_index)]
    for (along, begin, end), step in zip(parts, steps, strict=True):
        if check_whole("the stride of a slice", step) != 1:
            _axis(result, along)
            kept = range(result.shape[along])[begin : end or None][:: int(step)]
            result = splice(*(slice(result, along, at, at + 1) for at in kept), axis=along, name=name)
            continue
        at = check_whole("the begin of a slice", begin), check_whole("the end of a slice", end)
        result = operator("Slice", *at, result, label=name, axis=_axis(result, along))
    return result


def _comparison(library: str, sign: str) -> Any:
    def function(left: Operand, right: Operand, name: str = "") -> Function:
        return operator(library, as_node(left), as_node(right), label=name)

    function.__doc__ = f"1 where left {sign} right, else 0."
    return function


less = _comparison("Less", "<")
equal = _comparison("Equal", "==")
greater = _comparison("Greater", ">")
greater_equal = _comparison("GreaterEqual", ">=")
not_equal = _comparison("NotEqual", "!=")
less_equal = _comparison("LessEqual", "<=")


def element_select(flag: Operand, value_if_true: Operand, value_if_false: Operand, name: str = "") -> Function:
    """One of two values, element by element: the first where the flag is not 0."""
    return operator("BS.Boolean.If", *map(as_node, (flag, value_if_true, value_if_false)), label=name)


def stop_gradient(x: Operand, name: str = "") -> Function:
    """X itself, through which no gradient flows: what it depends on is not trained by what depends on it."""
    return operator("_StopGradient", as_node(x), label=name)


# --------------------------------------------------------------------------------------------- losses and metrics


def cross_entropy_with_softmax(
    output_vector: Operand, target_vector: Operand, axis: int | None = None, name: str = ""
) -> Function:
    """Cross entropy of the target and the softmax of the output."""
    output, target = as_node(output_vector), as_node(target_vector)
    _same_elements("cross_entropy_with_softmax", output, target)
    return operator("CrossEntropyWithSoftmax", target, output, label=name, axis=_along(output, axis))


def classification_error(
    output_vector: Operand, target_vector: Operand, axis: int | None = None, topN: int = 1, name: str = ""
) -> Function:
    """Whether the target is not among the `topN` largest elements of the output."""
    output, target = as_node(output_vector), as_node(target_vector)
    _same_elements("classification_error", output, target)
    along = _along(output, axis)
    several = check_whole("topN", topN, 1) > 1 and not along
    classes = math.prod(output.shape) if several else 1
    if several and topN > classes:
        raise UserError("BadValue", f"topN is {topN}, there are {classes} classes")
    return operator("ClassificationError", target, output, label=name, axis=along, topN=topN)


def squared_error(output: Operand, target: Operand, name: str = "") -> Function:
    """The sum of the squared differences."""
    output, target = as_node(output), as_node(target)
    _same_elements("squared_error", output, target)
    return operator("SquareError", target, output, label=name)


def binary_cross_entropy(output: Operand, target: Operand, name: str = "") -> Function:
    """Cross entropy of a probability and a target of 0 or 1."""
    return operator("Logistic", as_node(target), as_node(output), label=name)


def weighted_binary_cross_entropy(output: Operand, target: Operand, weight: Operand, name: str = "") -> Function:
    """Weighted cross entropy of a probability and a target of 0 or 1."""
    return operator("WeightedLogistic", as_node(target), as_node(output), as_node(weight), label=name)


def cosine_distance(x: Operand, y: Operand, name: str = "") -> Function:
    """The cosine of two vectors."""
    return operator("CosDistance", as_node(x), as_node(y), label=name)


def lambda_rank(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """Loss of a ranking."""
    return operator("LambdaRank", *map(as_node, (gain, output, group)), label=name)


def ndcg_at_1(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """Gain of the document that is ranked first, relative to the best one of its query."""
    return operator("NDCG1Eval", *map(as_node, (gain, output, group)), label=name)


def _same_elements(what: str, output: Function, target: Function) -> None:
    """An error here says more than one when the network is made."""
    if not (target.is_input or target.is_parameter) or not (output.is_input or output.is_parameter):
        return
    if output.shape != target.shape:
        raise UserError("BadShape", f"{what}: the output has the shape {output.shape}, the target {target.shape}")


# --------------------------------------------------------------------------------------------- sequences


def past_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """The value `time_step` steps earlier in the sequence; before the first step the initial state (0).

    The initial state is a number, an array, a parameter, or a function with a value for each sequence.
    """
    return _shifted(x, initial_state, check_whole("time_step", time_step, 1), name)


def future_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """The value `time_step` steps later in the sequence; behind the last step the initial state (0)."""
    return _shifted(x, initial_state, -check_whole("time_step", time_step, 1), name)


def _shifted(x: Operand, initial: Operand, steps: int, name: str) -> Function:
    if isinstance(initial, Function) and initial.arguments:  # a value for each sequence
        if steps_of(x).is_placeholder:
            message = "the initial state of a placeholder's past or future values is the same for all sequences"
            raise UserError("NotSupported", message, hint="Recurrence(step, initial_state=...) takes any")
        outside = operator(f"BS.Loop.Is{'First' if steps > 0 else 'Last'}N", math.fabs(steps), steps_of(x))
        start = broadcast_as(initial, x, "initial_state")
        return element_select(outside, start, _shifted(x, None, steps, ""), name)
    state = 0.0 if initial is None else to_operand(initial)
    return operator("_Shifted", as_node(x), float(steps), state, label=name)


def first(seq: Operand, name: str = "") -> Function:
    """The first step of each sequence."""
    return operator("BS.Sequences.First", as_node(seq), label=name)


def last(seq: Operand, name: str = "") -> Function:
    """The last step of each sequence."""
    return operator("BS.Sequences.Last", as_node(seq), label=name)


def is_first(seq: Operand, name: str = "") -> Function:
    """1 in the first step of each sequence, else 0."""
    return operator("BS.Loop.IsFirst", steps_of(seq), label=name)


def is_last(seq: Operand, name: str = "") -> Function:
    """1 in the last step of each sequence, else 0."""
    return operator("BS.Loop.IsLast", steps_of(seq), label=name)


def gather(seq: Operand, condition: Operand, name: str = "") -> Function:
    """The steps whose condition is not 0."""
    return operator("BS.Sequences.Gather", as_node(condition), as_node(seq), label=name)


def scatter(seq: Operand, condition: Operand, name: str = "") -> Function:
    """The steps put where the condition is not 0, zeros elsewhere."""
    return operator("BS.Sequences.Scatter", as_node(condition), as_node(seq), label=name)


def broadcast_as(operand: Operand, broadcast_as_operand: Operand, name: str = "") -> Function:
    """One sample per sequence, in every step of another sequence."""
    return operator("BS.Sequences.BroadcastSequenceAs", steps_of(broadcast_as_operand), as_node(operand), label=name)


def sequence_slice(seq: Operand, begin_index: int, end_index: int, name: str = "") -> Function:
    """The steps from `begin_index` to `end_index` (exclusive; negative ones and 0 count from the end)."""
    return operator("Slice", begin_index, end_index, as_node(seq), label=name, axis=-1)


def reconcile_dynamic_axes(x: Operand, dynamic_axes_as: Operand, name: str = "") -> Function:
    """X, on the time axis of another function; their sequences must have the same lengths."""
    return operator("ReconcileDynamicAxis", as_node(x), as_node(dynamic_axes_as), label=name)


def cosine_distance_with_negative_samples(
    x: Operand, y: Operand, shift: int, num_negative_samples: int, name: str = ""
) -> Function:
    """The cosine of x and y, and behind it that of x and y of other samples of the minibatch.

    Args:
        x: vectors.
        y: vectors.
        shift: from so many samples further on are the others taken.
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
    """How often each class is expected among those of `random_sample`; see there."""
    return _sampled("_RandomSampleFrequency", weights, num_samples, allow_duplicates, seed, name)


def _sampled(
    library: str, weights: Operand, num_samples: int, allow_duplicates: bool, seed: int | None, name: str
) -> Function:
    result = operator(library, as_node(weights), int(num_samples), bool(allow_duplicates), label=name)
    result.root.options["seed"] = seed_option(seed)
    return result


def optimized_rnnstack(
    operand: Operand, weights: Operand, hidden_size: int, num_layers: int, bidirectional: bool = False,
    recurrent_op: str = "lstm", name: str = "",
) -> Function:  # fmt: skip
    """A stack of recurrent layers with all weights in one parameter, in cuDNN's order.

    Args:
        operand: the sequence.
        weights: the parameter; -1 or 0 stands for an axis of its shape that is to be inferred.
        hidden_size: elements of a state.
        num_layers: how many layers.
        bidirectional: layers go in both directions.
        recurrent_op: lstm, gru, rnnTanh or rnnReLU.
        name: names the result.
    """
    return operator(
        "OptimizedRNNStack", as_node(weights), as_node(operand), int(hidden_size), label=name,
        numLayers=int(num_layers), bidirectional=bool(bidirectional), recurrentOp=recurrent_op,
    )  # fmt: skip


def zeros_like(x: Operand, name: str = "") -> Function:
    """Zeros of the same shape."""
    return element_times(x, 0.0, name=name)


__all__ = [
    "Axes",
    "abs",
    "alias",
    "binary_cross_entropy",
    "broadcast_as",
    "cast",
    "ceil",
    "classification_error",
    "clip",
    "cos",
    "cosine_distance",
    "cosine_distance_with_negative_samples",
    "cross_entropy_with_softmax",
    "dropout",
    "element_divide",
    "element_select",
    "element_times",
    "equal",
    "exp",
    "first",
    "flatten",
    "floor",
    "future_value",
    "gather",
    "greater",
    "greater_equal",
    "hardmax",
    "is_first",
    "is_last",
    "lambda_rank",
    "last",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log_softmax",
    "minus",
    "ndcg_at_1",
    "negate",
    "not_equal",
    "optimized_rnnstack",
    "past_value",
    "plus",
    "random_sample",
    "random_sample_inclusion_frequency",
    "reciprocal",
    "reconcile_dynamic_axes",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "relu",
    "reshape",
    "round",
    "scatter",
    "sequence_slice",
    "sigmoid",
    "sin",
    "slice",
    "softmax",
    "splice",
    "sqrt",
    "square",
    "squared_error",
    "stop_gradient",
    "swapaxes",
    "tanh",
    "times",
    "times_transpose",
    "transpose",
    "weighted_binary_cross_entropy",
    "zeros_like",
]
