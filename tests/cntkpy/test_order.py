"""The order of arguments, parameters, constants and inputs: that of a walk, as CNTK 2.7 has it (W2, P16)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C


def names(functions: Any) -> str:
    """The names of some functions, a space between them."""
    return " ".join(one.name for one in functions)


def inputs(text: str, shape: Any = 2) -> list[Any]:
    """Inputs with these names, made in this order."""
    return [C.input_variable(shape, name=name) for name in text.split()]


def test_arguments_are_fed_as_the_operands_were_written() -> None:
    y, x = inputs("y x", 1)
    f = C.minus(x, y)
    assert names(f.arguments) == "x y"
    assert f(C.constant([5.0]), C.constant([3.0])).eval().tolist() == [2.0]


def test_the_walk_is_depth_first() -> None:
    a, b, c = inputs("a b c")
    assert names(((c - a) / b).arguments) == "c a b"
    assert names((b / (c - a)).arguments) == "b c a"
    assert names((a * (b + a) - c).arguments) == "a b c"
    assert names(C.combine([b - c, a]).arguments) == "b c a"


OPERATORS: list[tuple[Callable[..., Any], str]] = [
    (lambda a, b, c, n, s: C.times(C.reshape(b, (1, 2)), C.reshape(a, (2, 1))), "b a"),
    (lambda a, b, c, n, s: C.times_transpose(b, C.reshape(a, (1, 2))), "b a"),
    (lambda a, b, c, n, s: C.cross_entropy_with_softmax(b, a), "b a"),
    (lambda a, b, c, n, s: C.cross_entropy_with_softmax(b, a) * 2, "b a"),
    (lambda a, b, c, n, s: C.classification_error(b, a), "b a"),
    (lambda a, b, c, n, s: C.squared_error(b, a), "b a"),
    (lambda a, b, c, n, s: C.binary_cross_entropy(b, a), "b a"),
    (lambda a, b, c, n, s: C.weighted_binary_cross_entropy(c, b, a), "c b a"),
    (lambda a, b, c, n, s: C.clip(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.element_select(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.element_max(b, a), "b a"),
    (lambda a, b, c, n, s: C.param_relu(b, a), "b a"),
    (lambda a, b, c, n, s: C.gather(b, a), "b a"),
    (lambda a, b, c, n, s: C.splice(c, a, b), "c a b"),
    (lambda a, b, c, n, s: C.sum([c, a, b]), "c a b"),
    (lambda a, b, c, n, s: C.pow(b, a), "b a"),
    (lambda a, b, c, n, s: C.log_add_exp(b, a), "b a"),
    (lambda a, b, c, n, s: C.cosine_distance(b, a), "b a"),
    (lambda a, b, c, n, s: C.sequence.gather(s, n), "s n"),
    (lambda a, b, c, n, s: C.sequence.scatter(s, n), "s n"),
    (lambda a, b, c, n, s: C.sequence.broadcast_as(a, s), "a s"),
    (lambda a, b, c, n, s: C.sequence.past_value(s, a), "s a"),
]


@pytest.mark.parametrize(("function", "expected"), OPERATORS)
def test_operands_come_from_left_to_right(function: Callable[..., Any], expected: str) -> None:
    a, b, c = inputs("a b c")
    n, s = C.sequence.input_variable((), name="n"), C.sequence.input_variable(2, name="s")
    assert names(function(a, b, c, n, s).arguments) == expected


LAYERS: list[tuple[Any, Any, list[tuple[int, ...]]]] = [
    (lambda: C.layers.Dense(3), 2, [(2, 3), (3,)]),
    (lambda: C.layers.Sequential([C.layers.Dense(3), C.layers.Dense(4)]), 2, [(3, 4), (4,), (2, 3), (3,)]),
    (lambda: C.layers.Convolution2D((3, 3), 4), (2, 8, 8), [(4, 2, 3, 3), (4, 1, 1)]),
    (lambda: C.layers.ConvolutionTranspose2D((3, 3), 4), (2, 8, 8), [(2, 4, 3, 3), (4, 1, 1)]),
]


@pytest.mark.parametrize(("layer", "shape", "expected"), LAYERS)
def test_weights_come_before_biases_and_a_block_before_its_operands(layer: Any, shape: Any, expected: Any) -> None:
    assert [one.shape for one in layer()(C.input_variable(shape)).parameters] == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [(C.layers.RNNStep, "b W H"), (C.layers.LSTM, "b W H"), (C.layers.GRU, "b W H H1")],
)
def test_parameters_of_recurrences(cell: Any, expected: str) -> None:
    assert names(C.layers.Recurrence(cell(3))(C.sequence.input_variable(2)).parameters) == expected


def test_parameters_of_normalisation() -> None:
    z = C.layers.BatchNormalization()(C.input_variable(2))
    assert names(z.parameters) == "scale bias" and names(z.constants) == "aggregate_mean aggregate_variance"


def test_blocks_are_one_operation() -> None:
    p, q = C.placeholder(name="p"), C.input_variable(1, name="q")
    w, b, more = (C.parameter(shape, init=1, name=name) for name, shape in (("w", (1, 1)), ("b", 1), ("more", 1)))
    block = C.as_block(C.times(p, w) + b, [(p, q)], "dense")
    assert names(block.root_function.inputs) == "w b q"
    assert names((block + more).parameters) == "w b more"
    assert names((more + block).parameters) == "more w b"


def test_inputs_of_a_function_are_leaves_and_those_of_its_root_are_operands() -> None:
    x, w, b = C.input_variable(2, name="x"), C.parameter((2, 2), name="w"), C.parameter(2, name="b")
    z = C.plus(C.times(x, w), b)
    assert names(z.inputs) == "x w b"
    product, other = z.root_function.inputs
    assert product.is_output and other == b
    assert names(product.owner.inputs) == "x w"


def test_placeholders_and_python_functions() -> None:
    p, q = C.placeholder(name="p"), C.placeholder(name="q")
    assert names((q - p).placeholders) == "q p"
    assert (q - p)(C.constant(5.0), C.constant(3.0)).eval() == 2
    f = C.Function(lambda p, q: q - p)
    assert names(f.signature) == "p q"
    assert f(C.constant(5.0), C.constant(3.0)).eval() == -2
    a, b = inputs("b a")
    assert names(f(a, b).arguments) == "b a"  # a Python function keeps the order of its parameters


@pytest.mark.parametrize("method", ["clone", "share", "freeze"])
def test_clones_keep_the_order(method: str) -> None:
    a, b, c = inputs("a b c")
    z = C.cross_entropy_with_softmax(C.layers.Dense(2)(c) / b, a)
    copy = z.clone(method)
    assert names(copy.arguments) == names(z.arguments) == "c b a"
    assert names(copy.parameters or copy.constants) == names(z.parameters) == "W b"


def test_model_files_keep_the_order(tmp_path: Path) -> None:
    a, b = inputs("a b")
    z = C.layers.Dense(2, name="upper")(C.layers.Dense(2)(b) - a)
    z.save(str(tmp_path / "m"))
    again = C.load_model(str(tmp_path / "m"))
    assert names(again.arguments) == names(z.arguments) == "b a"
    for one, other in zip(again.parameters, z.parameters, strict=True):
        np.testing.assert_array_equal(one.value, other.value)
