"""Random expressions: what functions say about their values is so, with placeholders as well; errors are ours."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cntkpy.compat.cntk as C
from cntk_config import UserError

BATCH, STEPS = C.Axis.default_batch_axis(), C.Axis.default_dynamic_axis()
LEAVES: dict[str, Any] = {
    "number": C.input_variable((), name="number"),
    "vector": C.input_variable(3, name="vector"),
    "matrix": C.input_variable((2, 3), name="matrix"),
    "cube": C.input_variable((4, 2, 3), name="cube"),
    "steps": C.sequence.input_variable(3, name="steps"),
    "pages": C.sequence.input_variable((2, 3), name="pages"),
    "tokens": C.sequence.input_variable((), name="tokens"),
    "other": C.sequence.input_variable(2, sequence_axis=C.Axis("other"), name="other"),
    "parameter": C.parameter((2, 3), init=np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5),
    "constant": C.constant(np.array([0.5, -1, 2], np.float32)),
}


def _data(leaf: Any, random: np.random.Generator) -> Any:
    def some(*front: int) -> np.ndarray:
        return random.integers(-2, 4, (*front, *leaf.shape)).astype(np.float32)

    return some(2) if len(leaf.dynamic_axes) == 1 else [some(3), some(2)]


DATA = {one: _data(one, np.random.default_rng(at)) for at, one in enumerate(LEAVES.values()) if one.is_input}


class Arguments(NamedTuple):
    """What operators take beside their operands; each takes some of it."""

    axis: Any
    axes: Any
    shape: Any
    begin: int
    end: int
    step: int
    flag: bool


Operator = Callable[[Arguments, Any, Any], Any]

OPERATORS: dict[str, Operator] = {
    "plus": lambda a, x, y: x + y,
    "minus": lambda a, x, y: C.minus(x, y),
    "element_times": lambda a, x, y: C.element_times(x, y),
    "element_max": lambda a, x, y: C.element_max(x, y),
    "element_select": lambda a, x, y: C.element_select(C.greater(x, 0), x, y),
    "log_add_exp": lambda a, x, y: C.log_add_exp(x, y),
    "less": lambda a, x, y: C.less(x, y),
    "tanh": lambda a, x, y: C.tanh(x),
    "relu": lambda a, x, y: C.relu(x),
    "hardmax": lambda a, x, y: C.hardmax(x),
    "zeros_like": lambda a, x, y: C.zeros_like(x),
    "softmax": lambda a, x, y: C.softmax(x, a.axis),
    "log_softmax": lambda a, x, y: C.log_softmax(x, a.axis),
    "reduce_sum": lambda a, x, y: C.reduce_sum(x, a.axes, a.flag),
    "reduce_mean": lambda a, x, y: C.reduce_mean(x, a.axes, a.flag),
    "reduce_max": lambda a, x, y: C.reduce_max(x, a.axes, a.flag),
    "reduce_min": lambda a, x, y: C.reduce_min(x, a.axes, a.flag),
    "reduce_log_sum_exp": lambda a, x, y: C.reduce_log_sum_exp(x, a.axes, a.flag),
    "reduce_prod": lambda a, x, y: C.reduce_prod(x, a.axes, a.flag),
    "reduce_l1": lambda a, x, y: C.reduce_l1(x, a.axes, a.flag),
    "argmax": lambda a, x, y: C.argmax(x, a.axis),
    "argmin": lambda a, x, y: C.argmin(x, a.axis),
    "top_k": lambda a, x, y: C.top_k(x, a.end, a.axis)[int(a.flag)],
    "one_hot": lambda a, x, y: C.one_hot(x, 4, axis=a.axis),
    "gather": lambda a, x, y: C.gather(x, C.greater(y, 0), a.axis),
    "gather a constant": lambda a, x, y: C.gather(x, np.array([1.0, 0.0, 1.0]), a.axis),
    "reshape": lambda a, x, y: C.reshape(x, a.shape),
    "reshape axes": lambda a, x, y: C.reshape(x, a.shape, a.begin, a.axis),
    "flatten": lambda a, x, y: C.flatten(x, a.axis),
    "expand_dims": lambda a, x, y: C.expand_dims(x, a.axis),
    "squeeze": lambda a, x, y: C.squeeze(x, a.axis),
    "swapaxes": lambda a, x, y: C.swapaxes(x, a.begin, a.axis),
    "transpose": lambda a, x, y: C.transpose(x, a.shape),
    "transpose all": lambda a, x, y: C.transpose(x, tuple(reversed(range(a.step)))),
    "slice": lambda a, x, y: C.slice(x, a.axis, a.begin, a.end, a.step),
    "slice axes": lambda a, x, y: C.slice(x, [a.begin, a.axis], [0, a.begin], [1, a.end]),
    "index": lambda a, x, y: x[a.begin],
    "index of two": lambda a, x, y: x[a.begin : a.end : a.step, ..., a.begin],
    "splice": lambda a, x, y: C.splice(x, y, axis=a.axis),
    "splice of itself": lambda a, x, y: C.splice(x, x * 2, axis=a.axis),
    "times": lambda a, x, y: C.times(x, y),
    "times_transpose": lambda a, x, y: C.times_transpose(x, y),
    "matrix": lambda a, x, y: C.times(x, C.constant(np.ones((3, 2), np.float32))),
    "pad": lambda a, x, y: C.pad(x, [(1, 0)] * len(a.shape)),
    "reflect": lambda a, x, y: C.pad(x, [(1, 1)] * len(a.shape), C.ops.REFLECT_PAD),
    "cross_entropy": lambda a, x, y: C.cross_entropy_with_softmax(x, y, a.axis),
    "classification_error": lambda a, x, y: C.classification_error(x, y, a.axis),
    "squared_error": lambda a, x, y: C.squared_error(x, y),
    "cosine_distance": lambda a, x, y: C.cosine_distance(x, y),
    "depth_to_space": lambda a, x, y: C.depth_to_space(x, a.step),
    "space_to_depth": lambda a, x, y: C.space_to_depth(x, a.step),
    "past_value": lambda a, x, y: C.sequence.past_value(x, time_step=a.step),
    "past_value from": lambda a, x, y: C.sequence.past_value(x, y),
    "delay": lambda a, x, y: C.sequence.delay(x, time_step=a.begin),
    "first": lambda a, x, y: C.sequence.first(x),
    "last": lambda a, x, y: C.sequence.last(x),
    "is_last": lambda a, x, y: C.sequence.is_last(x),
    "sequence.slice": lambda a, x, y: C.sequence.slice(x, a.begin, a.end),
    "sequence.gather": lambda a, x, y: C.sequence.gather(x, y),
    "sequence.reduce_sum": lambda a, x, y: C.sequence.reduce_sum(x),
    "sequence.reduce_max": lambda a, x, y: C.sequence.reduce_max(x),
    "sequence.softmax": lambda a, x, y: C.sequence.softmax(x),
    "broadcast_as": lambda a, x, y: C.sequence.broadcast_as(x, y),
    "dense": lambda a, x, y: C.layers.Dense(2, init=0.25, map_rank=a.begin if a.flag else None)(x),
    "pooling": lambda a, x, y: C.pooling(x, C.MAX_POOLING, (2, 1), (a.step, 1)),
    "convolution": lambda a, x, y: C.convolution(np.ones((2, 4, 2, 2), np.float32), x, auto_padding=[a.flag]),
}

STATIC = [0, 0, 0, 1, 1, -1, -1, 2, -2, 3, -4]
AXES = [None, C.Axis(1), C.Axis.all_static_axes(), C.Axis.new_leading_axis(), STEPS, BATCH]
SIZES = [-1, 0, 1, 2, 2, 3, 3, 4, 6]

Steps = list[tuple[str, int, int, Arguments]]
"""Operators with the numbers of their operands among all functions that were made before, and other arguments."""


def expression(seed: int) -> tuple[list[str], Steps]:
    """Leaves, and operators on them. The numbers of a seed show more than Hypothesis draws one after the other."""
    random = Random(seed)
    leaves = random.sample(sorted(LEAVES), 3)

    def axis() -> Any:
        return random.choice(STATIC if random.random() < 0.8 else AXES)

    def arguments() -> Arguments:
        several = random.choice([axis, lambda: [axis() for _ in range(random.randint(0, 3))], C.Axis.all_axes])
        shape = random.choices(SIZES, k=random.randint(0, 3))
        begin, end, step = random.randint(-2, 2), random.randint(-1, 3), random.choice([1, 1, 2, 3, -1, 0])
        return Arguments(axis(), several(), shape, begin, end, step, random.random() < 0.5)

    names = sorted(OPERATORS)
    return leaves, [(random.choice(names), random.randint(0, 5), random.randint(0, 5), arguments()) for _ in range(8)]


def built(leaves: list[Any], steps: Steps) -> tuple[list[Any], Steps, Steps]:
    """All functions that the steps make, each of two functions before it; the steps; and those that are refused."""
    known, good, refused = list(leaves), Steps(), Steps()
    for step in steps:
        name, first, second, arguments = step
        places = len(known) - 1 - first % len(known), len(known) - 1 - second % len(known)
        try:
            made = OPERATORS[name](arguments, *(known[at] for at in places))
            _ = made.shape
        except UserError:
            refused.append((name, *places, arguments))
        else:
            known.append(made)
            good.append((name, *places, arguments))
    return known, good, refused


def check_declared(function: Any, value: Any) -> None:
    """The shape and the dynamic axes of a function are those of its value."""
    dynamic = len(function.dynamic_axes)
    if dynamic == 2:
        assert isinstance(value, list)
        assert {one.shape[1:] for one in value} == {function.shape}
    else:
        assert value.shape == ((2,) if dynamic else ()) + function.shape


def check_expression(names: list[str], steps: Steps) -> None:
    leaves = [LEAVES[one] for one in names]
    known, good, refused = built(leaves, steps)
    placeholders = [C.placeholder() for _ in leaves]
    later = list[Any](placeholders)
    for name, first, second, arguments in good:
        later.append(OPERATORS[name](arguments, later[first], later[second]))
    replaced = C.combine([later[-1]]).clone("share", _given(later[-1], placeholders, leaves)).output
    assert (replaced.shape, replaced.dynamic_axes) == (known[-1].shape, known[-1].dynamic_axes)
    try:
        found = C.combine([known[-1], replaced]).eval({one: DATA[one] for one in known[-1].arguments})
    except UserError:  # sequences of which nothing is left, ...
        found = {}
    for function, value in found.items():
        check_declared(function, value)
    if len(found) == 2:
        np.testing.assert_allclose(*map(_flat, found.values()), rtol=1e-5, atol=1e-6)
    for name, first, second, arguments in refused:
        with pytest.raises(UserError):
            made = OPERATORS[name](arguments, later[first], later[second])
            _ = made.clone("share", _given(made, placeholders, leaves)).shape


def _flat(value: Any) -> np.ndarray:
    return np.concatenate([one.reshape(-1) for one in value]) if isinstance(value, list) else value


def _given(function: Any, placeholders: list[Any], leaves: list[Any]) -> dict[Any, Any]:
    return {one: leaf for one, leaf in zip(placeholders, leaves, strict=True) if one in function.placeholders}


SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(max_examples=20)
def test_expressions_are_what_they_say(seed: int) -> None:
    check_expression(*expression(seed))


@pytest.mark.thorough
@given(SEEDS)
@settings(max_examples=2000, phases=[Phase.generate])
def test_many_expressions_are_what_they_say(seed: int) -> None:
    check_expression(*expression(seed))
