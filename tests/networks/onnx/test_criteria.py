"""Criteria and other sums over a minibatch as ONNX, on labels, probabilities and rankings."""

import re

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import as_fed, run
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.model import to_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

BOUNDS = {"float": 1e-5, "double": 1e-10}
STEPS, BATCH = 4, 3
LENGTHS = np.array([4, 1, 3])


def one_hot(random, size):
    return np.eye(size)[random.integers(0, size, (STEPS, BATCH))]


def words(random):
    """(word, class, first word, last + 1): classes 0, 1 and 2 of 2 words each."""
    word = random.integers(0, 6, (STEPS, BATCH))
    return np.stack([word, word // 2, word // 2 * 2, word // 2 * 2 + 2], axis=-1)


INPUTS = {
    "y": (4, lambda random: one_hot(random, 4)),
    "z": (4, lambda random: random.integers(-2, 3, (STEPS, BATCH, 4)) / 2),
    "p": (4, lambda random: random.uniform(0.1, 0.9, (STEPS, BATCH, 4))),
    "b": (4, lambda random: random.integers(0, 2, (STEPS, BATCH, 4))),
    "h": (3, lambda random: random.normal(size=(STEPS, BATCH, 3))),
    "c": (4, words),
    "s": (3, lambda random: random.normal(size=(STEPS, BATCH, 3))),
    "w": (1, lambda random: random.uniform(0.5, 2, (STEPS, BATCH, 1))),
    "gain": (1, lambda random: random.integers(0, 4, (STEPS, BATCH, 1))),
    "score": (1, lambda random: random.integers(-2, 3, (STEPS, BATCH, 1)) / 2),
    "query": (1, lambda random: np.sort(random.integers(0, 4, STEPS * BATCH)).reshape(STEPS, BATCH, 1)),
}

SUMS = {
    "cross entropy with softmax": "CrossEntropyWithSoftmax(y, z)",
    "cross entropy": "CrossEntropy(y, p)",
    "square error": "SquareError(y, z)",
    "square error of a parameter": "SquareError(y, Plus(ElementTimes(y, Constant(0)), Parameter(4)))",
    "logistic": "Logistic(b, p)",
    "weighted logistic": "Logistic(b, p, w)",
    "errors": "ClassificationError(y, z)",
    "errors among two": "ClassificationError(y, z, Constant(2))",
    "words in classes": "ClassBasedCrossEntropyWithSoftmax(c, h, Parameter(3, 6), s)",
    "objective": "DummyCriterion(y, p, z)",
    "sum": "SumElements(z)",
    "absolute values": "MatrixL1Reg(z)",
    "norm": "MatrixL2Reg(z)",
    "diagonal": "Diagonal(ReduceMinibatch(TransposeTimes(y, z), reductionOp=Mean))",
}
COMPARED = {
    "ranking": "LambdaRank(gain, score, query)",
    "first of a ranking": "NDCG1Eval(gain, score, query)",
    "negative samples": "CosDistanceWithNegativeSamples(h, s, Constant(1), Constant(2))",
}


def delayed(formula):
    """The formula with a delay, which makes a network of sequences."""
    return re.sub(r"\b(z|p|s|score)\b", lambda found: f"PastValue({INPUTS[found[0]][0]}, {found[0]})", formula)


def compared(formula, precision, ends=None, **settings):
    """Raise AssertionError unless onnxruntime has our value; the value."""
    used = [name for name in INPUTS if name in re.findall(r"\w+", formula)]
    text = "".join(f"{name} = Input({INPUTS[name][0]}, tag=feature)\n" for name in used) + f"found = {formula}\n"
    network = parse_ndl(text, precision=precision, diagnostics=[]).validate()
    random = np.random.default_rng(5)
    for node in network.nodes.values():
        if node.trainable:
            node.value = random.normal(size=node.value.shape).astype(network.dtype)
    exported = export(
        network,
        ours.constants,
        Settings(("found",), double=precision == "double", lengths=ends is not None, **settings),
    )
    model = to_model(exported, "0", {})
    onnx.checker.check_model(model, full_check=True)
    data = {name: INPUTS[name][1](random).astype(network.dtype) for name in used}
    axis = next(one.axis for one in exported.inputs)
    if len(exported.axes) == 1:
        data = {name: one.reshape(1, STEPS * BATCH, -1) for name, one in data.items()}
    known = {} if ends is None else {axis: ends}
    batch = ours.minibatch(network, ["found"], data, known)
    ((expected, mask),) = ours.masked_values(network, ["found"], batch).values()
    feeds = {node.name: as_fed(exported, node, data[node.name]) for node in exported.inputs}
    got = run(model.SerializeToString(), feeds | {exported.lengths[key]: one for key, one in known.items()})["found"]
    expected = as_fed(exported, network.find("found"), expected)
    if mask is not None and len(exported.axes) == 2:
        there = mask.T if settings.get("batch_first") else mask
        got, expected = got[there], expected[there]
    assert got.shape == expected.shape and np.isfinite(expected).all()
    np.testing.assert_allclose(got, expected, rtol=BOUNDS[precision], atol=BOUNDS[precision])
    return expected


@pytest.mark.parametrize("precision", ["float", pytest.param("double", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", [*SUMS, *COMPARED])
@pytest.mark.sampled
def test_samples(name, precision):
    found = compared((SUMS | COMPARED)[name], precision)
    assert (np.abs(found) > 1e-3).any()


MORE = [
    name for name in SUMS if name not in ("weighted logistic", "square error of a parameter", "objective", "diagonal")
]


@pytest.mark.parametrize(
    "name", ["weighted logistic", *(pytest.param(one, marks=pytest.mark.thorough) for one in MORE)]
)
def test_what_is_behind_the_ends_of_sequences_does_not_count(name):
    formula = delayed(SUMS[name])
    whole, parts = compared(formula, "double"), compared(formula, "double", LENGTHS)
    assert np.abs(whole - parts).max() > 1e-3


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("ends", [None, LENGTHS])
def test_numbers_of_samples(ends, batch_first):
    compared("Plus(SampleNumber(h), PastValue(3, h))", "float", ends, batch_first=batch_first)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("ends", [None, LENGTHS])
def test_weights_of_attention(ends, batch_first):
    found = compared("AttentionWeights(Parameter(1, 3), h, s)", "float", ends, batch_first=batch_first)
    assert found.shape[-2:] == (STEPS, 1)
    np.testing.assert_allclose(found.sum(axis=-2), 1, rtol=1e-5)


def test_labels_that_are_no_words_give_no_number():
    text = "c = Input(4, tag=feature)\nh = Input(3, tag=feature)\ns = Input(3, tag=feature)\n"
    text += f"found = {SUMS['words in classes']}\n"
    network = parse_ndl(text, precision="float", diagnostics=[]).validate()
    exported = export(network, ours.constants, Settings(("found",)))
    ones = np.ones((2, 3), np.float32)
    feeds = {"c": np.array([[1, 0, 0, 2], [5, 2, 0, 2]], np.float32), "h": ones, "s": ones}
    assert np.isnan(run(to_model(exported, "0", {}).SerializeToString(), feeds)["found"]).all()


@pytest.mark.parametrize("name", COMPARED)
def test_samples_are_not_compared_with_what_is_behind_the_ends(name):
    with pytest.raises(UserError, match="it would compare samples with padding"):
        compared(delayed(COMPARED[name]), "float", LENGTHS)
