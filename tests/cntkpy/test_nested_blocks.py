"""Blocks in blocks, functions of several outputs, and functions as texts, as CNTK 2.7 has them (P16, P30)."""

from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

X = C.input_variable(2, name="x")


def wrapped(dim: int) -> Any:
    dense = C.layers.Dense(dim)

    @C.layers.BlockFunction("wrapped", "wrapped")
    def block(x: Any) -> Any:
        return dense(x)

    return block


def test_a_block_whose_value_is_a_block() -> None:
    z = C.layers.Sequential([C.layers.Dense(4), wrapped(3)])(X)
    expected = {
        0: ["wrapped: wrapped(", "Dense("],
        1: ["wrapped: wrapped(", "Dense(", "Dense("],
        2: ["wrapped: wrapped(", "Dense(", "Plus(", "Times(", "Dense("],
        -1: ["wrapped: wrapped(", "Dense(", "Plus(", "Times(", "Dense(", "Plus(", "Times("],
    }
    for depth, names in expected.items():
        functions = C.logging.graph.get_node_outputs(z, depth)
        assert [str(function).partition("(")[0] + "(" for function in functions] == names
    inner = z.root_function.block_root
    assert (inner.op_name, inner.name, inner.is_block) == ("Dense", "", True)
    assert (inner.block_root.op_name, inner.block_root.is_block) == ("Plus", False)
    copy = z.clone("clone", {X: C.input_variable(2, name="other")})
    assert copy.root_function.block_root.op_name == "Dense" and copy.arguments[0].name == "other"


def test_an_inner_block_keeps_its_name() -> None:
    hole = C.placeholder(name="p")
    block = C.as_block(C.layers.Dense(3, name="inside")(hole), [(hole, X)], "Outer", "instance")
    assert (block.name, block.root_function.block_root.name) == ("instance", "inside")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: X + 1, "Plus(x: Tensor[2]) -> Tensor[2]"),
        (lambda: C.relu(X + 1), "Composite(x: Tensor[2]) -> Tensor[2]"),
        (lambda: C.relu(X + 1).root_function, "ReLU(x: Tensor[2]) -> Tensor[2]"),
        (lambda: C.layers.Dense(3)(X), "Dense(x: Tensor[2]) -> Tensor[3]"),
        (lambda: C.layers.Dense(3), "Dense(x: Sequence[tensor]) -> Sequence[tensor]"),
        (lambda: C.top_k(X, 1, name="k"), "k: TopK(x: Tensor[2]) -> Tuple[Tensor[1], Tensor[1]]"),
        (lambda: C.combine([X + 1, X * 2], name="n"), "n: Composite(x: Tensor[2]) -> Tuple[Tensor[2], Tensor[2]]"),
    ],
)
def test_texts(make: Any, text: str) -> None:
    assert str(make()) == text


def test_functions_of_several_outputs_have_names_and_operands() -> None:
    both, best = C.combine(X + 1, X * 2, name="both"), C.top_k(X, 1, name="best")
    assert (both.name, both.op_name, best.name, best.op_name) == ("both", "Combine", "best", "TopK")
    assert best.root_function.inputs == (X,) and both.root_function.inputs == both.outputs
    assert both.clone("share", {X: C.input_variable(2)}).name == "both"
    table, numbers = C.parameter((3, 2), name="table"), C.input_variable(4, name="numbers")
    taken = C.gather(table, numbers, name="taken").root_function
    assert (taken.name, taken.op_name) == ("taken", "GatherOp")
    assert [operand.name for operand in taken.inputs] == ["numbers", "table"]


def test_arrays_of_pairs_pad() -> None:
    np.testing.assert_array_equal(C.pad(C.constant([1.0, 2.0]), np.array([[1, 2]])).eval(), [0, 1, 2, 0, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: C.layers.Convolution((3, 3), 3, groups=2), "3 filters do not divide into 2 groups"),
        (lambda: C.mean_variance_normalization(X, epsilon=-1), "epsilon"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def test_gradients_of_nce_are_sparse_and_draw_what_random_sample_draws() -> None:
    weights = np.arange(1, 11, dtype=np.float32)
    x, y = C.input_variable(2), C.input_variable(10)
    w, b = C.parameter((10, C.InferredDimension), init=0.1), C.parameter((10, 1))
    loss = C.nce_loss(w, b, x, y, weights, 4, seed=7)
    drawn = C.random_sample(weights, 4, True, seed=7)
    column = C.input_variable((10, 1))
    seen = set()
    for _ in range(4):
        data = {x: np.ones((1, 2), np.float32), y: np.eye(10, dtype=np.float32)[:1]}
        found = loss.grad(data, wrt=loss.parameters, as_numpy=False)
        assert all(value.is_sparse for value in found.values())
        rows = tuple(np.nonzero((column * 1).eval({column: found[b]}).ravel())[0].tolist())
        assert set(rows) == {0, *drawn.eval().argmax(1).tolist()}
        seen.add(rows)
    assert len(seen) > 1
    before, gradient = w.value, found[w].asarray().toarray().reshape(10, 2)
    C.sgd([w, b], C.learning_parameter_schedule_per_sample(0.5)).update(found, 1)
    np.testing.assert_allclose(before - w.value, 0.5 * gradient, rtol=1e-5, atol=1e-7)
