"""Operators on functions, losses and metrics: the library of BrainScript under the names that Python programs use."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

from cntk_config.base.diagnostics import UserError
from networks.builders.python.function import Function, Shape, constant, dims, operator, to_operand

Operand = Any
"""A function, a number or an array."""


def _rank(x: Operand) -> int:
    return len(x.shape) if isinstance(x, Function) else 1


def _axis(x: Operand, axis: int) -> int:
    """The axis as BrainScript counts it: from 1, the fastest first. `axis` counts as numpy does."""
    rank = max(1, _rank(x))
    found = rank - axis if axis >= 0 else -axis
    if not 1 <= found <= max(rank, 1) + 8:
        raise UserError("BadIndex", f"there is no axis {axis} among {rank}")
    return found


def plus(left: Operand, right: Operand, *more: Operand, name: str = "") -> Function:
    """The sum."""
    result = operator("Plus", left, right, label="" if more else name)
    return plus(result, *more, name=name) if more else result


def minus(left: Operand, right: Operand, name: str = "") -> Function:
    """The difference."""
    return operator("Minus", left, right, label=name)


def element_times(left: Operand, right: Operand, *more: Operand, name: str = "") -> Function:
    """The product, element by element."""
    result = operator("ElementTimes", left, right, label="" if more else name)
    return element_times(result, *more, name=name) if more else result


def element_divide(left: Operand, right: Operand, name: str = "") -> Function:
    """The quotient, element by element."""
    return operator("ElementDivide", left, right, label=name)


def times(
    left: Operand, right: Operand, output_rank: int = 1, infer_input_rank_to_map: int = -1, name: str = ""
) -> Function:
    """The matrix product; the last `output_rank` axes of `right` are those of the result."""
    return operator(
        "Times", right, left, label=name, outputRank=output_rank, inferInputRankToMap=infer_input_rank_to_map
    )


def times_transpose(left: Operand, right: Operand, name: str = "") -> Function:
    """The product with the transposed right matrix."""
    return operator("TransposeTimes", right, left, label=name)


def _unary(library: str, meaning: str) -> Any:
    def function(x: Operand, name: str = "") -> Function:
        return operator(library, x, label=name)

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
    return operator("Softmax", x, label=name, axis=0 if axis is None or _rank(x) == 1 else _axis(x, axis))


def log_softmax(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The logarithm of the softmax over all elements of a sample."""
    if axis is not None and _rank(x) > 1:
        raise UserError("NotSupported", "log_softmax has no axis", hint="log(softmax(x, axis))")
    return operator("LogSoftmax", x, label=name)


def square(x: Operand, name: str = "") -> Function:
    """x * x"""
    return element_times(x, x, name=name)


def leaky_relu(x: Operand, alpha: float = 0.01, name: str = "") -> Function:
    """max(x, 0) + alpha * min(x, 0)"""
    return plus(relu(x), element_times(-alpha, relu(negate(x))), name=name)


def clip(x: Operand, min_value: Operand, max_value: Operand, name: str = "") -> Function:
    """X limited to a range."""
    return operator("Clip", min_value, max_value, x, label=name)


def dropout(x: Operand, dropout_rate: float = 0.0, seed: int | None = None, name: str = "") -> Function:
    """In training some elements are set to zero at random, and the others scaled up."""
    if seed is not None:
        raise UserError("NotSupported", "dropout has no seed of its own", hint="masks are those of the trainer's seed")
    if not 0 <= dropout_rate < 1:
        raise UserError("BadValue", f"a dropout rate lies from 0 to 1, it is not {dropout_rate}")
    result = operator("Dropout", x, label=name)
    result.root.options["rate"] = float(dropout_rate)
    return result


def reduce_sum(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The sum over one axis, or over all elements of a sample."""
    return _reduced("ReduceSum", x, axis, name)


def reduce_mean(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The mean over one axis, or over all elements of a sample."""
    return _reduced("ReduceMean", x, axis, name)


def reduce_max(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The largest element along one axis, or of a sample."""
    return _reduced("ReduceMax", x, axis, name)


def reduce_min(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The smallest element along one axis, or of a sample."""
    return _reduced("ReduceMin", x, axis, name)


def reduce_log_sum_exp(x: Operand, axis: int | None = None, name: str = "") -> Function:
    """The logarithm of the sum of exponentials over one axis, or over all elements of a sample."""
    return _reduced("ReduceLogSum", x, axis, name)


def _reduced(library: str, x: Operand, axis: int | None, name: str) -> Function:
    return operator(library, x, label=name, axis=None if axis is None else _axis(x, axis))


def splice(*operands: Operand, axis: int = -1, name: str = "") -> Function:
    """The operands, put together along an axis."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return operator("Splice", list(given), label=name, axis=_axis(given[0], axis))


def reshape(x: Operand, shape: Shape, name: str = "") -> Function:
    """The same elements in another shape; one axis may be 0 (or -1), to be inferred."""
    sizes = (shape,) if isinstance(shape, int) else shape
    return operator("NewReshape", x, list(dims([max(0, one) for one in sizes])), label=name)


def flatten(x: Operand, name: str = "") -> Function:
    """The same elements along one axis."""
    return reshape(x, 0, name)


def transpose(x: Operand, axis1: int = 0, axis2: int = 1, name: str = "") -> Function:
    """Two axes exchanged."""
    return operator("TransposeDimensions", x, _axis(x, axis1), _axis(x, axis2), label=name)


swapaxes = transpose


def slice(x: Operand, axis: int, begin_index: int, end_index: int, name: str = "") -> Function:
    """The elements from `begin_index` to `end_index` (exclusive, 0: the end) along an axis."""
    return operator("Slice", begin_index, end_index, x, label=name, axis=_axis(x, axis))


def _comparison(library: str, sign: str) -> Any:
    def function(left: Operand, right: Operand, name: str = "") -> Function:
        return operator(library, left, right, label=name)

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
    return operator("BS.Boolean.If", flag, value_if_true, value_if_false, label=name)


def stop_gradient(x: Operand, name: str = "") -> Function:
    """Not there: an error that says so."""
    raise UserError("NotSupported", "stop_gradient does not exist", hint="freeze parameters with clone('freeze')")


# --------------------------------------------------------------------------------------------- losses and metrics


def cross_entropy_with_softmax(
    output_vector: Operand, target_vector: Operand, axis: int | None = None, name: str = ""
) -> Function:
    """Cross entropy of the target and the softmax of the output."""
    _same_elements("cross_entropy_with_softmax", output_vector, target_vector)
    along = 0 if axis is None or _rank(output_vector) == 1 else _axis(output_vector, axis)
    return operator("CrossEntropyWithSoftmax", target_vector, output_vector, label=name, axis=along)


def classification_error(
    output_vector: Operand, target_vector: Operand, axis: int | None = None, topN: int = 1, name: str = ""
) -> Function:
    """Whether the target is not among the `topN` largest elements of the output."""
    _same_elements("classification_error", output_vector, target_vector)
    along = 0 if axis is None or _rank(output_vector) == 1 else _axis(output_vector, axis)
    return operator("ClassificationError", target_vector, output_vector, label=name, axis=along, topN=topN)


def squared_error(output: Operand, target: Operand, name: str = "") -> Function:
    """The sum of the squared differences."""
    _same_elements("squared_error", output, target)
    return operator("SquareError", target, output, label=name)


def binary_cross_entropy(output: Operand, target: Operand, name: str = "") -> Function:
    """Cross entropy of a probability and a target of 0 or 1."""
    return operator("Logistic", target, output, label=name)


def weighted_binary_cross_entropy(output: Operand, target: Operand, weight: Operand, name: str = "") -> Function:
    """Weighted cross entropy of a probability and a target of 0 or 1."""
    return operator("WeightedLogistic", target, output, weight, label=name)


def cosine_distance(x: Operand, y: Operand, name: str = "") -> Function:
    """The cosine of two vectors."""
    return operator("CosDistance", x, y, label=name)


def lambda_rank(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """Loss of a ranking."""
    return operator("LambdaRank", gain, output, group, label=name)


def ndcg_at_1(output: Operand, gain: Operand, group: Operand, name: str = "") -> Function:
    """Gain of the document that is ranked first, relative to the best one of its query."""
    return operator("NDCG1Eval", gain, output, group, label=name)


def _same_elements(what: str, output: Operand, target: Operand) -> None:
    """An error here says more than one when the network is made."""
    if not (isinstance(output, Function) and isinstance(target, Function)):
        return
    if not (target.is_input or target.is_parameter) or not (output.is_input or output.is_parameter):
        return
    if output.shape != target.shape:
        raise UserError("BadShape", f"{what}: the output has the shape {output.shape}, the target {target.shape}")


# --------------------------------------------------------------------------------------------- sequences


def past_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """The value `time_step` steps earlier in the sequence; before the first step the initial state (0)."""
    return _shifted(x, initial_state, time_step, name)


def future_value(x: Operand, initial_state: Operand = None, time_step: int = 1, name: str = "") -> Function:
    """The value `time_step` steps later in the sequence; behind the last step the initial state (0)."""
    return _shifted(x, initial_state, -time_step, name)


def _shifted(x: Operand, initial: Operand, steps: int, name: str) -> Function:
    state = 0.0 if initial is None else to_operand(initial)
    return operator("_Shifted", x, float(steps), state, label=name)


def first(seq: Operand, name: str = "") -> Function:
    """The first step of each sequence."""
    return operator("BS.Sequences.First", seq, label=name)


def last(seq: Operand, name: str = "") -> Function:
    """The last step of each sequence."""
    return operator("BS.Sequences.Last", seq, label=name)


def is_first(seq: Operand, name: str = "") -> Function:
    """1 in the first step of each sequence, else 0."""
    return operator("BS.Loop.IsFirst", seq, label=name)


def is_last(seq: Operand, name: str = "") -> Function:
    """1 in the last step of each sequence, else 0."""
    return operator("BS.Loop.IsLast", seq, label=name)


def gather(seq: Operand, condition: Operand, name: str = "") -> Function:
    """The steps whose condition is not 0."""
    return operator("BS.Sequences.Gather", condition, seq, label=name)


def scatter(seq: Operand, condition: Operand, name: str = "") -> Function:
    """The steps put where the condition is not 0, zeros elsewhere."""
    return operator("BS.Sequences.Scatter", condition, seq, label=name)


def broadcast_as(operand: Operand, broadcast_as_operand: Operand, name: str = "") -> Function:
    """One sample per sequence, in every step of another sequence."""
    return operator("BS.Sequences.BroadcastSequenceAs", broadcast_as_operand, operand, label=name)


def sequence_slice(seq: Operand, begin_index: int, end_index: int, name: str = "") -> Function:
    """The steps from `begin_index` to `end_index` (exclusive; negative ones and 0 count from the end)."""
    return operator("Slice", begin_index, end_index, seq, label=name, axis=-1)


def zeros_like(x: Operand, name: str = "") -> Function:
    """Zeros of the same shape."""
    return element_times(x, constant(0.0), name=name)
