"""Layers of models that write sequences: attention, and a generator that resumes from what it has written."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.checks import check_callable, check_number, is_whole
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.functions.leaves import Initializer, Shape, dims
from cntkpy.networks.builders.python.functions.variables import layer_parameter, placeholder
from cntkpy.networks.builders.python.layers import Dense, Layer, Stabilizer, weights_start
from cntkpy.networks.builders.python.operations import operators
from cntkpy.networks.builders.python.operations.reshaping import Operand
from cntkpy.networks.builders.python.operations.sequences import accumulated
from cntkpy.networks.builders.python.operations.steps_of import remember, take_steps


def AttentionModel(
    attention_dim: Shape,
    attention_span: int | None = None,
    attention_axis: int | None = None,
    init: Initializer | ArrayLike | None = DEFAULT,
    go_backwards: bool = DEFAULT,
    enable_self_stabilization: bool = DEFAULT,
    name: str = "",
) -> Layer:
    """Applied to a sequence and to the state of a decoder: the mean of the sequence, weighted by a network.

    The score of a step t is v . tanh (W h(t) + U s) with the state s; weights are the softmax of the scores over all
    steps (D. Bahdanau et al., "Neural machine translation by jointly learning to align and translate", ICLR 2015). The
    sequence may lie on another time axis than the state, which may be that of a step of a `Recurrence`.

    Args:
        attention_dim: elements of W h and U s.
        attention_span: number of last steps to look at; None: all steps.
        attention_axis: accepted where there is a span; it changes nothing.
        init: how W, U and v start; glorot_uniform.
        go_backwards: with a span: look at the first steps instead.
        enable_self_stabilization: operands are scaled by learned numbers; True.
        name: names the result.
    """
    size = dims(attention_dim)
    if len(size) != 1:
        raise UserError("BadShape", f"attention_dim is a number, not {attention_dim}")
    if attention_span is None and attention_axis is not None:
        raise CallError("WrongArguments", "AttentionModel: an attention_axis without attention_span says nothing")
    if attention_span is not None and (not is_whole(attention_span) or attention_span < 1):
        raise UserError("BadValue", f"an attention_span is 1 or more, not {attention_span!r}")
    if attention_span is not None and attention_axis is None:
        message = "AttentionModel: an attention_span needs an attention_axis"
        raise CallError("WrongArguments", message, hint="AttentionModel(128, attention_span=20, attention_axis=-3)")
    start = weights_start(chosen("AttentionModel", "init", init, None))
    backwards = bool(chosen("AttentionModel", "go_backwards", go_backwards, False))
    stable = bool(chosen("AttentionModel", "enable_self_stabilization", enable_self_stabilization, True))
    stabilizers = [Stabilizer(enable_self_stabilization=stable) for _ in range(4)]
    of_sequence, of_state = (Dense(size[0], None, start, bias=False, name=label) for label in ("keys", "query"))
    weights = layer_parameter((size[0], 1), start, name="weights")

    def apply(sequence: Operand, state: Operand) -> Function:
        values = as_node(sequence)
        if attention_span is not None:
            bounds = (0, attention_span) if backwards else (-attention_span, 0)
            values = operators.sequence_slice(values, *bounds)
        keys, query = of_sequence(stabilizers[0](values)), of_state(stabilizers[1](state))
        return stabilizers[3](operator("_AdditiveAttention", stabilizers[2](weights), keys, values, query))

    return Layer(apply, name)


def UnfoldFrom(
    generator_function: Callable[[Function], object],
    until_predicate: Callable[[Function], object] | None = None,
    length_increase: float = 1,
    name: str = "",
) -> Layer:
    """Return a sequence that a function generates, each step from the one before: `layer(initial_state,
    dynamic_axes_like)`.

    The initial state is a constant, a parameter, or a value for each sequence.

    Args:
        generator_function: gives the value of a step, of the value of the step before; or value and state, of the state
            of the step before.
        until_predicate: is 1 for the value of the last step, else 0; without it, or where it never is 1, the sequence
            ends with the axis.
        length_increase: how many steps there are at most, for each step of `dynamic_axes_like`.
        name: names the result.
    """

    hint = "UnfoldFrom(lambda history: model(history))"
    check_callable("the generator of UnfoldFrom", generator_function, hint)
    if until_predicate is not None:
        check_callable("until_predicate", until_predicate, "lambda value: value[..., end]")
    if check_number("length_increase", length_increase) <= 0:
        raise UserError("BadValue", f"length_increase is a number above 0, not {length_increase}")

    def apply(initial_state: Operand, dynamic_axes_like: Operand) -> Function:
        like, start = as_node(dynamic_axes_like), as_node(initial_state)
        if length_increase != 1:
            like = operator("_RepeatSteps", like, float(length_increase))
        if start.data_arguments:
            start = operators.state_along(start, like)
        history = placeholder(start.shape)
        remember(history, like)
        generated = generator_function(history)
        several: list[Any] = list(generated) if isinstance(generated, tuple) else list(as_node(generated).outputs)
        if not 1 <= len(several) <= 2:
            raise CallError("WrongArguments", f"a generator gives a value, or value and state, not {len(several)}")
        output, state = as_node(several[0]), as_node(several[-1])
        earlier = operators.element_select(operators.is_first(like), start, operators.past_value(state))
        both = Function((output.root, state.root))
        take_steps(both, like)
        both = both.replace_placeholders({history: earlier})
        result = both.outputs[0]
        if until_predicate is None:
            return operators.alias(result)
        ends = operators.past_value(as_node(until_predicate(result)))
        goes_on = accumulated(
            lambda kept: operators.element_select(
                operators.is_first(like), 1.0, operators.element_times(kept, 1.0 - ends)
            )
        )
        return operators.gather(result, goes_on)

    return Layer(apply, name)
