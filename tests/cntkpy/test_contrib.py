"""Parts of `cntk.contrib`: factored layers, losses and networks of agents."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.contrib.deeprl.agent.shared.cntk_utils import negative_of_entropy_with_softmax
from cntkpy.compat.cntk.contrib.deeprl.agent.shared.customized_models import conv_dqn, huber_loss
from cntkpy.compat.cntk.contrib.deeprl.agent.shared.models import Models
from cntkpy.compat.cntk.contrib.netopt import factorization

DATA = np.array([[1, -2, 3, 0.5], [0, 1, 1, -1]], np.float32)


def model() -> Any:
    layers = C.layers
    dense = [layers.Dense(6, C.tanh, init_bias=0.3, name="first"), layers.Dense(5, C.relu, bias=False, name="second")]
    return layers.Sequential([*dense, layers.Dense(3, name="third")])(C.input_variable(4))


def factored(z: Any) -> list[Any]:
    return C.logging.graph.depth_first_search(z, lambda part: getattr(part, "op_name", "") == "DenseFactored")


def test_factors_of_the_full_rank_change_no_value() -> None:
    z = model()
    small = factorization.factor_dense(z, projection_function=lambda w: min(w.shape))
    assert np.allclose(small.eval(DATA), z.eval(DATA), atol=1e-5)
    assert sorted(block.name for block in factored(small)) == ["first", "second", "third"]
    assert {name: p.shape for p in small.first.parameters for name in [p.name]} == {
        "W1": (4, 4), "W2": (4, 6), "b": (6,),
    }  # fmt: skip


def test_a_lower_rank_is_the_closest_matrix() -> None:
    z = model()
    weights = z.second.W.value
    small = factorization.factor_dense(
        z, projection_function=lambda w: 2, filter_function=lambda block: block.name == "second"
    )
    (block,) = factored(small)
    left, right = block.W1.value, block.W2.value
    assert (left.shape, right.shape) == ((6, 2), (2, 5))
    singular = np.linalg.svd(weights, compute_uv=False)
    assert np.isclose(np.linalg.norm(weights - left @ right), np.linalg.norm(singular[2:]), atol=1e-5)
    hidden = np.tanh(DATA @ z.first.W.value + 0.3)
    expected = np.maximum(hidden @ left @ right, 0) @ z.third.W.value
    assert np.allclose(small.eval(DATA), expected, atol=1e-5)


def test_factors_of_the_program() -> None:
    small = factorization.factor_dense(
        model(), lambda w: 1, lambda w, k: (np.ones((w.shape[0], k)), np.zeros((k, w.shape[1])))
    )
    assert np.array_equal(small.eval(DATA), np.zeros((2, 3)))


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: factorization.factor_dense(model()), "needs the rank of each layer"),
    (lambda: factorization.factor_dense(model(), lambda w: 99), "is 1 to 4, not 99"),
    (lambda: factorization.factor_dense(model(), lambda w: 2, lambda w, k: (w, w)), "the factors have the shapes"),
    (lambda: factorization.dense_factored((2, 3)), "init has the start of both matrices"),
    (lambda: factorization.dense_factored((2, 3), init={"W1": 1, "W2": 1}, map_rank=1), "is of vectors"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_mistakes_of_factors(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        mistake()


def test_a_factored_layer() -> None:
    x = C.input_variable(2)
    z = factorization.dense_factored((1, 2), C.relu, {"W1": [[1.0], [2.0]], "W2": [[1.0, -1.0]]}, init_bias=1)(x)
    assert np.array_equal(z.eval({x: np.array([[1, 1]], np.float32)}), [[4, 0]])


def test_huber_loss_is_a_line_beyond_delta() -> None:
    y = C.input_variable(3, needs_gradient=True)
    data = np.array([[0.5, -1, 4]], np.float32)
    loss = huber_loss(y, C.constant([0.0, 0.0, 0.0]), 1.0)
    assert np.allclose(loss.eval({y: data}), [0.125 + 0.5 + 3.5])
    assert np.allclose(loss.grad({y: data}, wrt=[y]), [[0.5, -1, 1]])


def test_networks_of_agents() -> None:
    plain = Models.feedforward_network(4, 3, [5], huber_loss_of_one)
    assert plain["f"].shape == (3,) and [p.shape for p in plain["f"].parameters] == [(5, 3), (3,), (4, 5), (5,)]
    values = plain["f"].eval({plain["inputs"]: DATA})
    assert np.allclose(plain["loss"].eval({plain["inputs"]: DATA, plain["outputs"]: values}), 0)
    dueling = Models.dueling_network((4,), 3, [[5], [4], []])
    assert np.ptp(dueling["f"].eval({dueling["inputs"]: DATA})) > 0
    assert conv_dqn((4, 84, 84), 6)["f"].shape == (6,)


def huber_loss_of_one(y: Any, y_hat: Any) -> Any:
    return huber_loss(y, y_hat, 1.0)


def test_the_entropy_of_a_softmax_has_the_opposite_sign() -> None:
    x = C.input_variable(2)
    assert np.allclose(
        negative_of_entropy_with_softmax(x).eval({x: [[0, 0], [0, np.log(3)]]}).ravel(), [-0.693147, -0.562335]
    )
