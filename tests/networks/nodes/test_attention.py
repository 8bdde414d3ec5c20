"""Attention to the steps of another sequence, and longer time axes, against NumPy, sequence by sequence."""

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays import step_blocks
from cntkpy.networks.arrays.batch import Batch, Grid
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import compile_gradient, network_parameters, network_state
from cntkpy.networks.nodes.attention import kinds as attention_nodes
from tests.networks.nodes.test_several_axes_by_hand import X, Y, gradients_hold, made, matrix, same, values

ATTEND = "attend (w, keys, values, query, tag='') = new ComputationNode [ operation = 'AdditiveAttention' ;"
ATTEND += " inputs = (w : keys : values : query) ]\n"
WEIGHTS = "look (w, keys, query, tag='') = new ComputationNode [ operation = 'AttentionWeights' ;"
WEIGHTS += " inputs = (w : keys : query) ]\n"
PRODUCTS = "mean (keys, values, query, tag='') = new ComputationNode [ operation = 'DotProductAttention' ;"
PRODUCTS += " inputs = (keys : values : query) ]\n"
REPEAT = "repeat (x, factor, tag='') = new ComputationNode [ operation = 'RepeatSteps' ; inputs = x ]\n"
PARAMETERS = """
    w = ParameterTensor {(3), init='gaussian'} ; K = ParameterTensor {(3 : 2), init='gaussian'}
    Q = ParameterTensor {(3 : 2), init='gaussian'}
"""


def attended(weights, keys, values, query):
    """For each step of the query the weighted mean of the values of all steps of the keys."""
    result = []
    for q in query:
        scores = np.array([weights @ np.tanh(key + q) for key in keys])
        chosen = np.exp(scores - scores.max())
        result.append((chosen / chosen.sum()) @ values)
    return np.array(result)


def shares(weights, keys, query):
    """For each step of the query the weights of all steps of the keys."""
    scores = np.array([[weights @ np.tanh(key + q) for key in keys] for q in query])
    chosen = np.exp(scores - scores.max(axis=1, keepdims=True))
    return chosen / chosen.sum(axis=1, keepdims=True)


def softmax(scores):
    chosen = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return chosen / chosen.sum(axis=-1, keepdims=True)


@pytest.fixture(params=[False, True], ids=["at once", "in blocks"])
def blocks(request, monkeypatch):
    """Blocks of two steps, or none."""
    if request.param:
        monkeypatch.setattr(step_blocks, "BLOCK", 1)
        monkeypatch.setattr(step_blocks, "FEWEST", 2)


def weights_of(network):
    return np.ravel(network["w"].value), matrix(network, "K"), matrix(network, "Q")


@pytest.mark.parametrize("keys", ["x", pytest.param("y", marks=pytest.mark.thorough)])
def test_attention_to_another_axis_and_to_ones_own(keys, blocks):
    network = made(ATTEND + PARAMETERS + f"a = attend (w, K * {keys}, {keys}, Q * y) ; ce = SquareError (a, y)")
    w, k, q = weights_of(network)
    data = {"x": X, "y": Y}[keys]
    same(network, {"a": [attended(w, x @ k.T, x, y @ q.T) for x, y in zip(data, Y, strict=True)]})
    gradients_hold(network)


@pytest.mark.parametrize("keys", ["x", pytest.param("y", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kept", [None, pytest.param(0, marks=pytest.mark.thorough)])
def test_attention_inside_of_a_recurrence(keys, kept, monkeypatch):
    """The query depends on what was attended to before; what is not kept of a step is computed again."""
    monkeypatch.setattr(attention_nodes, "KEPT", attention_nodes.KEPT if kept is None else kept)
    network = made(
        ATTEND
        + PARAMETERS
        + f"a = attend (w, K * {keys}, {keys}, Q * (y + PastValue (2, a))) ; ce = SquareError (a, y)"
    )
    w, k, q = weights_of(network)
    expected = []
    for x, y in zip({"x": X, "y": Y}[keys], Y, strict=True):
        steps = [np.full(2, 0.1)]  # what a delay gives before the first step
        for row in y:
            steps.append(attended(w, x @ k.T, x, [q @ (row + steps[-1])])[0])
        expected.append(np.array(steps[1:]))
    same(network, {"a": expected})
    gradients_hold(network)


@pytest.mark.parametrize("keys", ["x", pytest.param("y", marks=pytest.mark.thorough)])
def test_attention_by_products(keys, blocks):
    network = made(PRODUCTS + PARAMETERS + f"a = mean (K * {keys}, {keys}, Q * y) ; ce = SquareError (a, y)")
    _, k, q = weights_of(network)
    data = {"x": X, "y": Y}[keys]
    same(network, {"a": [softmax(y @ q.T @ (x @ k.T).T) @ x for x, y in zip(data, Y, strict=True)]})
    gradients_hold(network)


@pytest.mark.thorough
def test_separate_attentions_by_products(blocks):
    """Two heads, of three elements each; values of one element."""
    network = made(
        PRODUCTS
        + """K = ParameterTensor {(3:2:2), init='gaussian'} ; Q = ParameterTensor {(3:2:2), init='gaussian'}
        ce = SquareError (FlattenDimensions (a, 1, 2), y)
        a = mean (Times (K, x, outputRank=2), SplitDimension (x, 1, 2), Times (Q, y, outputRank=2))"""
    )
    k, q = (np.asarray(network[name].value) for name in "KQ")  # (inputs, heads, elements)
    expected = []
    for x, y in zip(X, Y, strict=True):
        keys, query = np.einsum("ti,ihd->htd", x, k), np.einsum("ti,ihd->htd", y, q)
        shares = softmax(query @ keys.swapaxes(1, 2))
        expected.append(np.einsum("hut,th->uh", shares, x))
    same(network, {"a": expected})
    gradients_hold(network)


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [None, pytest.param(0, marks=pytest.mark.thorough)])
def test_attention_by_products_inside_of_a_recurrence(kept, monkeypatch):
    monkeypatch.setattr(attention_nodes, "KEPT", attention_nodes.KEPT if kept is None else kept)
    network = made(PRODUCTS + PARAMETERS + "a = mean (K * x, x, Q * (y + PastValue (2, a))) ; ce = SquareError (a, y)")
    _, k, q = weights_of(network)
    expected = []
    for x, y in zip(X, Y, strict=True):
        steps = [np.full(2, 0.1)]
        for row in y:
            steps.append(softmax((x @ k.T) @ (q @ (row + steps[-1]))) @ x)
        expected.append(np.array(steps[1:]))
    same(network, {"a": expected})
    gradients_hold(network)


def temporary_bytes(network, steps):
    """Of the program for values and gradients of one sequence."""
    step, there = np.arange(steps, dtype=np.int32)[:, None], np.ones((steps, 1), bool)
    grid = Grid(there, step, steps - 1 - step)
    batch = Batch({"y": np.zeros((steps, 1, 2))}, *grid, {"*": grid})
    function = jax.jit(compile_gradient(network, "ce"))
    compiled = function.lower(network_parameters(network), network_state(network), batch).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.thorough
@pytest.mark.optimised
@pytest.mark.parametrize(
    "attention",
    [
        "mean (K * y, y, Q * y)",
        pytest.param("attend (w, K * y, y, Q * y)", marks=pytest.mark.thorough),
        pytest.param("attend (w, K * y, y, Q * (y + PastValue (2, a)))", marks=pytest.mark.thorough),
    ],
)
def test_memory_grows_with_the_steps_and_not_with_their_square(attention, monkeypatch):
    """All products of 3,000 steps take 72 MB, those of one block 8; additive attention makes three times as many."""
    network = made(ATTEND + PRODUCTS + PARAMETERS + f"a = {attention} ; ce = SquareError (a, y)")
    assert temporary_bytes(network, 3000) < 36e6
    monkeypatch.setattr(attention_nodes, "KEPT", 1 << 30)
    monkeypatch.setattr(step_blocks, "BLOCK", 1 << 30)
    assert temporary_bytes(network, 3000) > 72e6


@pytest.mark.parametrize("keys", ["x", "y"])
def test_the_weights_of_attention(keys):
    network = made(WEIGHTS + PARAMETERS + f"p = look (w, K * {keys}, Q * y) ; ce = SquareError (y, y)")
    w, k, q = weights_of(network)
    found = values(network, ["p"])["p"]
    for x, y, one in zip({"x": X, "y": Y}[keys], Y, found, strict=True):
        expected = shares(w, x @ k.T, y @ q.T)
        np.testing.assert_allclose(one[:, : len(x)], expected, rtol=1e-9)
        assert (one[:, len(x) :] == 0).all() and one.shape[1] >= max(map(len, X if keys == "x" else Y))


def test_nothing_is_computed_from_the_weights():
    with pytest.raises(UserError, match=r"Sigmoid 's' of 'p'.*as many elements as a sequence has steps, so nothing"):
        made(WEIGHTS + PARAMETERS + "p = look (w, K * x, Q * y) ; s = Sigmoid (p)").validate()


def test_what_is_attended_to_lies_on_one_axis_outside_of_the_loop():
    with pytest.raises(UserError, match="mixes two time axes"):
        made(ATTEND + PARAMETERS + "a = attend (w, K * x, y, Q * y)").validate()
    with pytest.raises(UserError, match="looks at whole sequences of"):
        made(ATTEND + PARAMETERS + "a = attend (w, K * PastValue (2, a), x, Q * x)").validate()
    with pytest.raises(UserError, match="has 3 elements, the query 2"):
        made(ATTEND + PARAMETERS + "a = attend (w, K * x, x, y)").validate()
    with pytest.raises(UserError, match=r"has the shape \[3\], the query \[2\]"):
        made(PRODUCTS + PARAMETERS + "a = mean (K * x, x, y)").validate()
    with pytest.raises(UserError, match="their axes after the first, of separate attentions, must be the same"):
        made(PRODUCTS + PARAMETERS + "a = mean (K * x, SplitDimension (x, 1, 2), K * y)").validate()


@pytest.mark.parametrize("factor", [1.5, *(pytest.param(one, marks=pytest.mark.thorough) for one in (2, 0.4))])
def test_a_longer_axis(factor):
    network = made(REPEAT + f"n = repeat (x, {factor}) ; h = GatherPacked (PackedIndex (x, n), x)")
    counts = [int(np.ceil(round(len(x) * factor, 9))) for x in X]
    numbers = [np.array([int(step / factor) for step in range(count)]) for count in counts]
    same(network, {"n": [one[:, None] for one in numbers], "h": [x[n] for x, n in zip(X, numbers, strict=True)]})
    assert network["n"].axis == network["h"].axis != "t"


@pytest.mark.parametrize("factor", ["0", "2000000", "1e300"])
def test_a_factor_is_larger_than_0_and_not_too_large(factor):
    with pytest.raises(UserError, match="the factor must be larger than 0 and at most 1,000,000, not"):
        made(REPEAT + f"n = repeat (x, {factor})").validate()
