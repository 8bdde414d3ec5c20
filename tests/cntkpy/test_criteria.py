"""Criteria of CNTK 2 that look at whole sequences, draw classes, or have parameters of their own."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError

DTYPES = [(np.float64, 1e-9), pytest.param(np.float32, 1e-4, marks=pytest.mark.thorough)]
BLANK = 2
LABELS = [
    np.array([[2, 0, 0], [1, 0, 0], [0, 2, 0], [0, 1, 0]]),
    np.array([[2, 0, 0], [2, 0, 0], [1, 0, 0]]),
    np.array([[0, 2, 0]]),
    np.array([[0, 0, 1], [0, 0, 1]]),
]
TOKENS = [[0, 1], [0, 0], [1], []]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def all_paths(z: np.ndarray, tokens: list[int]) -> float:
    """- ln of the sum over all sequences of rows that are these tokens."""
    p, found = softmax(z), 0.0
    for path in itertools.product(range(z.shape[1]), repeat=len(z)):
        if [row for row, _ in itertools.groupby(path) if row != BLANK] == tokens:
            found += np.prod(p[np.arange(len(z)), path])
    return -np.log(found)


def differences(function: Any, array: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function of an array."""
    found = np.zeros(array.shape)
    for at in np.ndindex(array.shape):
        ends = []
        for sign in (1, -1):
            moved = np.array(array, float)
            moved[at] += sign * step
            ends.append(function(moved))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("sparse", [False, True])
def test_ctc(dtype: Any, tolerance: float, sparse: bool) -> None:
    random = np.random.default_rng(0)
    scores = [random.normal(size=one.shape) for one in LABELS]
    labels = C.sequence.input_variable(3, dtype=dtype, is_sparse=sparse)
    z = C.sequence.input_variable(3, dtype=dtype, needs_gradient=True)
    loss = C.forward_backward(C.labels_to_graph(labels), z, BLANK, name="ctc")
    assert (loss.shape, loss.dynamic_axes, loss.name, loss.dtype) == ((), (), "ctc", dtype)
    given = [sp.csr_matrix(one.astype(dtype)) if sparse else one.astype(dtype) for one in LABELS]
    data = {labels: given, z: [one.astype(dtype) for one in scores]}
    expected = sum(all_paths(*pair) for pair in zip(scores, TOKENS, strict=True))
    np.testing.assert_allclose(loss.eval(data), expected, rtol=tolerance)
    for found, one, tokens in zip(loss.grad(data, wrt=[z]), scores, TOKENS, strict=True):
        slopes = differences(lambda moved, tokens=tokens: all_paths(moved, tokens), one)
        np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-6)


def test_labels_to_graph_gives_the_labels() -> None:
    labels = C.sequence.input_variable(3)
    (found,) = C.labels_to_graph(labels).eval({labels: LABELS[0].astype(np.float32)})
    np.testing.assert_array_equal(found, LABELS[0])


@pytest.mark.thorough
def test_a_network_learns_by_ctc_to_read_what_is_not_aligned() -> None:
    """Two tokens of two frames each; labels say their order only."""
    x, labels = C.sequence.input_variable(3), C.sequence.input_variable(3)
    init = C.glorot_uniform(seed=3)  # whichever tests came before
    z = C.layers.Dense(3, init=init)(C.layers.Recurrence(C.layers.LSTM(8, init=init))(x))
    graph = C.labels_to_graph(labels)
    loss = C.forward_backward(graph, z, BLANK)
    error = C.edit_distance_error(graph, z, squashInputs=True, tokensToIgnore=[BLANK])
    trainer = C.Trainer(z, (loss, error), [C.adam(z.parameters, 0.05, 0.9, minibatch_size=C.learners.IGNORE)])
    shown = [np.eye(3, dtype=np.float32)[[2, 0, 0, 2, 1, 1]], np.eye(3, dtype=np.float32)[[1, 1, 2, 2, 0]]]
    order = [np.zeros((6, 3), np.float32), np.zeros((5, 3), np.float32)]
    for one, (first, second) in zip(order, [(0, 1), (1, 0)], strict=True):
        one[0, first], one[1, second], one[2:, second] = 2, 2, 1
    data = {x: shown, labels: order}
    before = trainer.test_minibatch(data)
    for _ in range(60):
        trainer.train_minibatch(data)
    assert before > 0.2
    assert trainer.test_minibatch(data) == 0
    assert trainer.previous_minibatch_loss_average < 0.05


def test_tokens_that_do_not_fit_into_the_frames_are_an_error() -> None:
    labels, z = C.sequence.input_variable(3), C.sequence.input_variable(3)
    loss = C.forward_backward(C.labels_to_graph(labels), z, BLANK)
    data = {labels: np.array([[2, 0, 0], [2, 0, 0]], np.float32), z: np.zeros((2, 3), np.float32)}
    with pytest.raises(UserError, match="fewer frames than its tokens need") as caught:
        loss.eval(data)
    assert "a blank between two equal tokens needs one" in str(caught.value.hint)


WRONG = {
    "blankTokenId is a whole number from 0 on, not -1": lambda a, b: C.forward_backward(a, b, -1),
    "from 0 to 2, not 3": lambda a, b: C.forward_backward(a, b, 3).eval({a: LABELS[0], b: LABELS[0]}),
    "delayConstraint is a whole number from -1 on": lambda a, b: C.forward_backward(a, b, 0, delayConstraint=-2),
    "subPen is a number, not 'x'": lambda a, b: C.edit_distance_error(a, b, "x"),
    "squashInputs is True or False, not 3": lambda a, b: C.edit_distance_error(a, b, 1, 1, 1, 3),
    "tokensToIgnore is a whole number": lambda a, b: C.edit_distance_error(a, b, 1, 1, 1, True, ["blank"]),
    "weights are of 4 classes, labels of 3": lambda a, b: C.nce_loss(
        C.parameter((4, 3)), C.parameter((4, 1)), a, b, np.ones(4)
    ),
    "num_samples is a whole number from 1 on": lambda a, b: C.nce_loss(
        C.parameter((3, 3)), C.parameter((3, 1)), a, b, np.ones(3), 0
    ),
    "beta is a number from 0 on, not -1": lambda a, b: C.fmeasure(a, b, -1),
    r"output has the shape \(3,\), the target \(3, 1\)": lambda a, b: C.fmeasure(a, C.reshape(b, (3, 1))),
    "label_dim is a whole number from 1 on": lambda a, b: C.hierarchical_softmax_layer(a, b, 0),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_say_what_is_expected(message: str) -> None:
    with pytest.raises(UserError, match=message):
        WRONG[message](C.sequence.input_variable(3), C.sequence.input_variable(3))


# ---- edit distances


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_the_documented_example_of_edit_distances(dtype: Any) -> None:
    a, b = C.input_variable(2, dtype=dtype), C.input_variable(2, dtype=dtype)
    error = C.metrics.edit_distance_error(a, b, 0, 1, 1, True, [1], name="error")
    assert (error.shape, error.name, error.dtype) == ((), "error", dtype)
    assert error.eval({a: [[1, 3], [2, 0]], b: [[2, 0], [2, 0]]}) == 1


def test_edit_distances_of_squashed_sequences() -> None:
    """'1-12-' and '-11--122' are both 112, the example of CNTK's reference."""
    rows = {"-": 0, "1": 1, "2": 2}
    one, other = ([rows[token] for token in text] for text in ("1-12-", "-11--122"))
    a, b = C.sequence.input_variable(3), C.sequence.input_variable(3, sequence_axis=C.Axis("hypothesis"))
    data = {a: np.eye(3, dtype=np.float32)[one], b: np.eye(3, dtype=np.float32)[other]}
    assert C.edit_distance_error(a, b, squashInputs=True, tokensToIgnore=[0]).eval(data) == 0
    assert C.edit_distance_error(a, b, squashInputs=True).eval(data) == pytest.approx(5 * 2 / 5)
    assert C.edit_distance_error(b, a, tokensToIgnore=[0]).eval(data) == pytest.approx(8 * 2 / 5)


# ---- noise contrastive estimation


def nce(x: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray, drawn: np.ndarray, expected: np.ndarray) -> Any:
    """For each sample: binary cross entropies of the label and of the classes that were drawn."""
    logits = x @ w.T + b.reshape(-1) - np.log(expected)
    of_label = (logits * y).sum(axis=1)
    of_noise = logits @ drawn.T
    return np.log1p(np.exp(-of_label)) + np.log1p(np.exp(of_noise)).sum(axis=1)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("sparse", [False, True])
def test_nce_loss(dtype: Any, tolerance: float, sparse: bool) -> None:
    random = np.random.default_rng(1)
    q, x0, rows = np.arange(1.0, 8.0), random.normal(size=(4, 3)), [0, 3, 6, 3]
    y0 = np.eye(7)[rows]
    x = C.input_variable(3, dtype=dtype, needs_gradient=True)
    y = C.input_variable(7, dtype=dtype, is_sparse=sparse)
    w0, b0 = random.normal(size=(7, 3)), random.normal(size=(7, 1))
    w, b = C.parameter(init=w0.astype(dtype), dtype=dtype), C.parameter(init=b0.astype(dtype), dtype=dtype)
    loss = C.nce_loss(w, b, x, y, q.astype(dtype), num_samples=5, seed=4, name="nce")
    drawn = C.random_sample(q.astype(dtype), 5, True, seed=4)
    assert (loss.shape, loss.name, loss.dtype) == ((), "nce", dtype)
    data = {x: x0.astype(dtype), y: sp.csr_matrix(y0.astype(dtype)) if sparse else y0.astype(dtype)}
    gradients, values = loss.grad(data, wrt=[x, w, b], outputs=[loss, drawn])
    sample, expected = np.asarray(values[drawn], float), 5 * q / q.sum()
    assert sample.shape == (5, 7)
    np.testing.assert_allclose(values[loss], nce(x0, y0, w0, b0, sample, expected), rtol=tolerance)
    leaves = {x: x0, w: w0, b: b0}
    for at, (leaf, array) in enumerate(leaves.items()):
        arrays = list(leaves.values())

        def moved_loss(moved: np.ndarray, at: int = at, arrays: list[np.ndarray] = arrays) -> float:
            one, two, three = (moved if place == at else array for place, array in enumerate(arrays))
            return nce(one, y0, two, three, sample, expected).sum()

        np.testing.assert_allclose(gradients[leaf], differences(moved_loss, array), rtol=1e-3, atol=1e-5)


def test_the_documented_example_of_nce() -> None:
    """Shapes are inferred; values are near those that CNTK's other random numbers give."""
    x, y = C.input_variable(10), C.input_variable(100, is_sparse=True)
    b, w = C.parameter((100, 1), init=-np.log(100)), C.parameter((100, C.InferredDimension))
    loss = C.nce_loss(w, b, x, y, np.arange(100, dtype=np.float32) + 1, seed=98052)
    classes = sp.csr_matrix((np.ones(4, np.float32), [10, 20, 30, 40], range(5)), shape=(4, 100))
    data = {x: np.arange(40, dtype=np.float32).reshape(4, 10) / 40, y: classes}
    assert w.shape == (100, 10)
    assert np.abs(loss.eval(data) - [2.385, 3.035, 3.886, 3.868]).max() < 1


def test_nce_without_duplicates_expects_what_is_drawn_how_often() -> None:
    q = np.array([1.0, 2, 3, 4])
    x, y = C.input_variable(2, dtype=np.float64), C.input_variable(4, dtype=np.float64)
    w, b = C.parameter((4, 2), init=0.0, dtype=np.float64), C.parameter((4, 1), init=0.0, dtype=np.float64)
    loss = C.nce_loss(w, b, x, y, q, num_samples=2, allow_duplicates=False, seed=3)
    others = C.random_sample(q, 2, False, seed=3), C.random_sample_inclusion_frequency(q, 2, False, seed=3)
    data = {x: np.ones((2, 2)), y: np.eye(4)[[0, 2]]}
    values = C.combine([loss, *others]).eval(data)
    drawn, expected = (np.asarray(values[one]) for one in others)
    found = nce(data[x], data[y], np.zeros((4, 2)), np.zeros(4), drawn, expected.reshape(-1))
    np.testing.assert_allclose(values[loss], found, rtol=1e-9)


# ---- a softmax of two levels


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_hierarchical_softmax(dtype: Any, tolerance: float) -> None:
    """The probability of the class times that of the label in it, and the gradient of all parameters."""
    random = np.random.default_rng(2)
    x, index = C.input_variable(3, dtype=dtype, needs_gradient=True), C.input_variable(1, dtype=dtype)
    x0, i0 = random.normal(size=(5, 3)), np.array([[0.0], [3], [4], [7], [9]])
    label, classes, parts = C.hierarchical_softmax_layer(x, index, 10)
    assert (label.shape, classes.shape, [one.shape for one in parts]) == ((1,), (4,), [(3,)] * 4)
    data = {x: x0.astype(dtype), index: i0.astype(dtype)}
    label.eval(data)
    names = ["hsoftmax_w1", "hsoftmax_b1", "hsoftmax_w2s", "hsoftmax_b2s"]
    parameters = [label.find_by_name(name) for name in names]
    start = [random.normal(size=one.shape) for one in parameters]
    for one, value in zip(parameters, start, strict=True):
        one.value = value.astype(dtype)

    def expected(x0: np.ndarray, w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray) -> Any:
        of_class = softmax(x0 @ w1 + b1)
        inside = softmax(np.einsum("ni,ico->nco", x0, w2) + b2)
        rows = i0[:, 0].astype(int)
        samples = np.arange(len(rows))
        return of_class[samples, rows // 3] * inside[samples, rows // 3, rows % 3], of_class, inside

    one, two, three = expected(x0, *start)
    np.testing.assert_allclose(label.eval(data)[:, 0], one, rtol=tolerance)
    np.testing.assert_allclose(classes.eval({x: data[x]}), two, rtol=tolerance)
    found = np.stack([part.eval({x: data[x]}) for part in parts], axis=1)
    np.testing.assert_allclose(found, two[:, :, None] * three, rtol=tolerance)
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1, rtol=tolerance)
    gradients = C.negate(C.log(label)).grad(data, wrt=[x, *parameters])
    for at, leaf in enumerate([x, *parameters]):
        arrays = [x0, *start]

        def moved_loss(moved: np.ndarray, at: int = at, arrays: list[np.ndarray] = arrays) -> float:
            given = [moved if place == at else array for place, array in enumerate(arrays)]
            return -np.log(expected(*given)[0]).sum()

        np.testing.assert_allclose(gradients[leaf], differences(moved_loss, arrays[at]), rtol=1e-3, atol=1e-5)


# ---- rankings


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_the_documented_example_of_rankings(dtype: Any) -> None:
    group, gain = C.input_variable(1, dtype=dtype), C.input_variable(1, dtype=dtype)
    score = C.input_variable(1, dtype=dtype, needs_gradient=True)
    data = {group: np.array([[1], [1], [2], [2]]), score: np.array([[1], [2], [3], [4]])}
    data[gain] = np.array([[7], [1], [3], [1]])
    data = {one: array.astype(dtype) for one, array in data.items()}
    loss, first = C.lambda_rank(score, gain, group), C.ndcg_at_1(score, gain, group)
    found = loss.grad(data, wrt=[score])
    np.testing.assert_allclose(found.reshape(-1), [-0.2121, 0.2121, -0.1486, 0.1486], atol=5e-5)
    best = [(7 / np.log(2) + 1 / np.log(3)), (3 / np.log(2) + 1 / np.log(3))]
    other = [(1 / np.log(2) + 7 / np.log(3)), (1 / np.log(2) + 3 / np.log(3))]
    expected = 400 * (1 - np.mean(np.divide(other, best)))
    np.testing.assert_allclose(loss.eval(data), expected, rtol=1e-5)
    np.testing.assert_allclose(first.eval(data), 400 * np.mean([1 / 7, 1 / 3]), rtol=1e-6)
    assert (loss.shape, first.shape) == ((), ())


# ---- inputs that are given later


def test_criteria_of_placeholders() -> None:
    """The same values as of the inputs themselves; shapes of parameters follow when these are given."""
    w, b = C.parameter((4, C.InferredDimension)), C.parameter((4, 1), init=0.5)
    x, y, labels = C.sequence.input_variable(3), C.sequence.input_variable(4), C.sequence.input_variable(3)
    makers: list[Any] = [
        lambda x, y, labels: C.nce_loss(w, b, x, y, np.arange(4) + 1.0, 3, seed=1),
        lambda x, y, labels: C.fmeasure(x, labels),
        lambda x, y, labels: C.forward_backward(C.labels_to_graph(labels), x, BLANK),
        lambda x, y, labels: C.edit_distance_error(labels, x),
    ]
    data = {x: np.arange(9, dtype=np.float32).reshape(3, 3) ** 2 % 5, y: np.eye(4, dtype=np.float32)[:3]}
    data[labels] = np.eye(3, dtype=np.float32)[[0, 1, 2]]
    for make in makers:
        later = [C.placeholder() for _ in range(3)]
        given = dict(zip(later, (x, y, labels), strict=True))
        made = make(*later)
        found = made.replace_placeholders({one: given[one] for one in made.placeholders})
        expected = make(x, y, labels)
        values = [
            np.ravel(one.eval({leaf: data[leaf] for leaf in one.arguments})).tolist() for one in (found, expected)
        ]
        assert values[0] == values[1]
        assert found.shape == expected.shape
    assert w.shape == (4, 3)


TARGET = np.array([0.5, 0.25, 0.25], np.float32)


CRITERIA_OF_CONSTANTS = [
    lambda z: C.cross_entropy_with_softmax(z, TARGET),
    lambda z: C.classification_error(z, C.constant(TARGET)),
    lambda z: C.classification_error(z, C.constant(TARGET), topN=2),
    lambda z: C.squared_error(C.constant(TARGET), z),
    lambda z: C.squared_error(z, 0.5),
    lambda z: C.squared_error(z, C.parameter(3, init=2.0)),
    lambda z: C.binary_cross_entropy(C.sigmoid(z), C.constant(TARGET)),
    lambda z: C.weighted_binary_cross_entropy(C.sigmoid(z), C.constant(TARGET), C.constant(3.0)),
    lambda z: C.cross_entropy_with_softmax(C.constant(TARGET), C.constant(TARGET)),
]


@pytest.mark.parametrize("make", [C.input_variable, C.sequence.input_variable])
def test_criteria_of_constants_are_saved_and_loaded(tmp_path: Path, make: Any) -> None:
    data = np.arange(6, dtype=np.float32).reshape((2, 3) if make is C.input_variable else (1, 2, 3))
    z = C.layers.Dense(3, init=0.3)(make(3))
    _compare_saved(tmp_path / "model", C.combine([*(criterion(z) for criterion in CRITERIA_OF_CONSTANTS), z]), data)
    for number, criterion in enumerate(CRITERIA_OF_CONSTANTS):
        criterion(z).save(tmp_path / f"{number}")
        assert len(C.Function.load(tmp_path / f"{number}").arguments) == len(criterion(z).arguments)


def test_a_criterion_of_a_constant_and_a_free_size_is_saved_and_loaded(tmp_path: Path) -> None:
    z = C.input_variable((C.FreeDimension,)) * C.parameter((), init=0.3)
    _compare_saved(tmp_path / "model", C.combine([C.squared_error(z, 0.5), z]), np.eye(3, dtype=np.float32))


def _compare_saved(path: Path, function: Any, data: np.ndarray) -> None:
    function.save(path)
    loaded = C.Function.load(path)
    values = [f.eval({f.arguments[0]: data}) for f in (function, loaded)]
    for number, outputs in enumerate(zip(function.outputs, loaded.outputs, strict=True)):
        first, second = (of[output] for of, output in zip(values, outputs, strict=True))
        np.testing.assert_allclose(first, second, rtol=1e-6, err_msg=f"output {number}")
        if not outputs[1].owner.arguments:
            np.testing.assert_allclose(outputs[1].owner.eval(), first, rtol=1e-6)
    function.restore(path)
