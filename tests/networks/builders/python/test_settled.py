"""Shapes are inferred once: building is linear in the number of operations, and gives what the whole network gives."""

from collections.abc import Callable

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.nodes import SETTLED
from cntkpy.networks.graph import validate
from cntkpy.networks.graph.node import Node


def shapes_asked(count: int) -> None:
    y = C.input_variable(4)
    for _ in range(count):
        y = C.relu(y + 1)
        assert y.shape == (4,) and len(y.dynamic_axes) == 1


def convolutions(count: int) -> None:
    y = C.input_variable((3, 8, 8))
    for _ in range(count):
        y = C.layers.Convolution2D((3, 3), 2, pad=True)(y)
    assert y.shape == (2, 8, 8)


def of_a_placeholder(count: int) -> None:
    x = y = C.placeholder()
    for _ in range(count):
        y = C.reshape(C.slice(y, 0, 0, 4), (4,)) + 1
    z = y.replace_placeholders({x: C.input_variable(5)})
    assert z.shape == (4,)


def beside_free_sizes(count: int) -> None:
    y = C.input_variable(4)
    for _ in range(count):
        y = C.relu(y + 1)
    for _ in range(3):
        assert C.reduce_sum(y - C.input_variable(C.FreeDimension), axis=0).shape == (1,)


@pytest.mark.parametrize("build", [shapes_asked, convolutions, of_a_placeholder, beside_free_sizes])
def test_building_is_linear(build: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    inferences = 0
    infer_shape = validate._infer_shape

    def counted(node: Node, guess: bool) -> bool:
        nonlocal inferences
        inferences += 1
        return infer_shape(node, guess)

    monkeypatch.setattr(validate, "_infer_shape", counted)
    counts: list[int] = []
    for count in (20, 80):
        inferences = 0
        build(count)
        counts.append(inferences)
    assert counts[1] < 5 * counts[0] + 100


def test_axes_of_settled_operations() -> None:
    x = C.sequence.input_variable(3)
    y = C.layers.Recurrence(C.layers.GRU(2))(x)
    assert y.shape == (2,) and len(y.dynamic_axes) == 2
    last = C.sequence.last(y)
    assert last.shape == (2,) and len(last.dynamic_axes) == 1
    assert last.root in SETTLED
    both = y + last
    assert len(both.dynamic_axes) == 2 and len(C.sequence.reduce_sum(both).dynamic_axes) == 1
    is_last = C.sequence.is_last(x)
    assert is_last.shape in ((), (1,))
    for operand in (x, y):  # the condition is looked at, whether its shape is known or not
        assert len(C.sequence.gather(operand, is_last).dynamic_axes) == 2
        assert C.sequence.gather(operand, C.sequence.is_first(x) + 0).eval({x: [np.ones((4, 3), "f")]})[0].shape[0] == 1


def test_parameters_get_their_sizes() -> None:
    x = C.input_variable(3)
    w = C.parameter((C.InferredDimension, 2), init=C.glorot_uniform(seed=1))
    y = C.times(x, w)
    z = C.tanh(y)
    assert z.shape == (2,) and w.shape == (3, 2)
    assert np.allclose(z.eval({x: np.ones((1, 3), "f")}), np.tanh(w.value.sum(0)), atol=1e-6)


def test_a_mistake_above_settled_operations_names_them() -> None:
    y = C.input_variable(4, name="x")
    for _ in range(15):
        y = C.relu(y + 1)
    assert y.shape == (4,)
    with pytest.raises(UserError, match=r"Plus.*\[4"):
        _ = (C.relu(y, name="upper") + C.input_variable(3, name="other")).shape


def test_a_placeholder_that_is_replaced_is_no_longer_waited_for() -> None:
    x = C.placeholder()
    y = C.slice(x, 0, 0, 2)
    with pytest.raises(UserError, match="placeholder"):
        _ = y.shape
    y.replace_placeholders({x: C.input_variable(5)})
    assert y.shape == (2,) and C.reshape(y, (1, 2)).shape == (1, 2)


@pytest.mark.parametrize("made", [lambda x: C.reduce_sum(x), lambda x: C.argmax(x, axis=0), lambda x: C.reshape(x, 6)])
def test_one_step_beside_all_steps_keeps_the_steps(made):
    one, steps = C.input_variable((2, 3)), C.sequence.input_variable(3)
    first, second = C.placeholder(), C.placeholder()
    later = made(C.less(first, second)).clone("share", {first: one, second: steps})
    assert later.output.dynamic_axes == made(C.less(one, steps)).dynamic_axes == steps.dynamic_axes


def test_operands_of_a_criterion_that_do_not_fit_are_refused_later():
    output, target = C.placeholder(), C.placeholder()
    error, inputs = C.squared_error(output, target), {output: C.input_variable(2), target: C.input_variable(())}
    with pytest.raises(UserError, match="the first two must have the same shape"):
        _ = error.clone("share", inputs).shape
