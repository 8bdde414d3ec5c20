"""Whole trainings: values against NumPy, contradictions, where a training ends, which files it keeps.

CNTK's numbers for the same network and data are goldens: `tests/goldens/readers/sgd`.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

GOLDENS = Path(__file__).parents[3] / "goldens/readers/sgd"
DATA = GOLDENS / "data"
BUILTIN = """
reader = [ readerType = CNTKTextFormatReader ; traceLevel = 0 ; file = "$DataDir$/train.ctf" ; randomize = false
    input = [ features = [ alias = x ; dim = 2 ; format = dense ] ; labels = [ alias = y ; dim = 3 ; format = dense ]
    ] ]
builtin = [
    action = train
    SimpleNetworkBuilder = [
        layerSizes = 2:6:3 ; layerTypes = Sigmoid ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ; applyMeanVarNorm = true ; needPrior = true ; uniformInit = true
        initValueScale = 4
    ]
    SGD = [
        minibatchSize = 20 ; maxEpochs = 2 ; epochSize = 0 ; learningRatesPerMB = 0.2 ; momentumPerMB = 0.9
        dropoutRate = 0:0 ; numMBsToShowResult = 5
    ]
]
test = [ action = test ; minibatchSize = 64 ; numMBsToShowResult = 2 ]
"""
"""A network of SimpleNetworkBuilder on the same data."""
NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def run(cntkpy, *words: str):
    config = f"configFile={GOLDENS / 'sgd.cntk'}+builtin.cntk"
    return cntkpy(config, f"DataDir={DATA}", "RunDir=run", *words, files={"builtin.cntk": BUILTIN})


def assert_same(expected: str, got: str, tolerance: float) -> None:
    """Equal words, equal whole numbers, other numbers within a relative tolerance."""
    assert NUMBER.sub("#", expected).split() == NUMBER.sub("#", got).split()
    for one, other in zip(NUMBER.findall(expected), NUMBER.findall(got), strict=True):
        if "." not in one:
            assert one == other, got
        else:
            assert float(other) == pytest.approx(float(one), rel=tolerance, abs=2e-7), got


@pytest.mark.thorough
def test_the_built_in_network_with_normalisation_and_prior(cntkpy) -> None:
    got = run(cntkpy, "command=builtin:test", "precision=float")
    assert got.code == 0, got.err
    lines = [
        line.split("CrossEntropyWithSoftmax = ")[1] for line in got.err.splitlines() if line.startswith("Finished")
    ]
    for expected, line in zip(["1.09362000 * 200", "1.08681549 * 200"], lines, strict=True):
        assert_same(expected, line.split(";")[0], 1e-6)
    final = [line for line in got.err.splitlines() if line.startswith("Final Results: Minibatch[1-4]: ")]
    assert_same(
        "EvalClassificationError = 0.48000000 * 200; CrossEntropyWithSoftmax = 1.08345520 * 200; "
        "perplexity = 2.95487161",
        final[0].split("]: ")[1],
        1e-6,
    )
    assert "Model has 20 nodes. Using CPU." in got.err
    assert "Precomputing --> 3 PreCompute nodes found." in got.err
    assert "Training 39 parameters in 4 out of 4 parameter tensors and 10 nodes with gradient:" in got.err


@pytest.mark.thorough
@pytest.mark.optimised
def test_the_built_in_network_in_double_precision_against_numpy(cntkpy, tmp_path: Path) -> None:
    assert run(cntkpy, "command=builtin", "precision=double", "builtin=[SGD=[minibatchSize=30]]").code == 0
    first, last = (load_file(tmp_path / f"run/m.dnn{suffix}") for suffix in (".0", ""))
    data = [re.findall(r"\|[xy] ([-\d. ]+)", line) for line in (DATA / "train.ctf").read_text().splitlines()]
    x, y = (np.array([row[i].split() for row in data], float) for i in (0, 1))
    x = (x - first["MeanOfFeatures"]) * first["InvStdOfFeatures"]
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-6)
    weights = {name: first[name] for name in ("W0", "B0", "W1", "B1")}
    velocity = dict.fromkeys(weights, 0.0)
    for _ in range(2):
        for begin in range(0, 200, 30):
            a, b = x[begin : begin + 30].T, y[begin : begin + 30].T
            hidden = 1 / (1 + np.exp(-(weights["W0"] @ a + weights["B0"])))
            scores = np.exp(weights["W1"] @ hidden + weights["B1"])
            top = scores / scores.sum(0) - b
            below = weights["W1"].T @ top * hidden * (1 - hidden)
            gradients = {"W1": top @ hidden.T, "B1": top.sum(1, keepdims=True), "W0": below @ a.T}
            gradients["B0"] = below.sum(1, keepdims=True)
            momentum = float(np.float32(0.9)) ** (a.shape[1] / 30)
            rate = float(np.float32(0.2) / np.float32(30))
            for name, gradient in gradients.items():
                velocity[name] = momentum * velocity[name] + (1 - momentum) * rate * gradient
                weights[name] = weights[name] - velocity[name]
    for name, value in weights.items():
        np.testing.assert_allclose(last[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train=[SGD=[momentumPerSample=0.95]]"], "momentumPerMB and momentumPerSample exclude each other"),
        (["train=[SGD=[momentumPerMB=1]]"], "momentum must be at least 0 and below 1"),
        (["train=[SGD=[learningRatesPerMB=0.1]]"], "learningRatesPerMB and learningRatesPerSample exclude each other"),
        (["train=[SGD=[learningRatesPerSample=default]]"], "no learning rate is given"),
        (["train=[SGD=[epochSize=10]]"], "epochSize 10 is smaller than the minibatch size 20"),
        (["train=[SGD=[dropoutRate=0.5:1]]"], "dropout rate 1 of epoch 2"),
        (["train=[SGD=[minibatchSize=0]]"], "at least one sample"),
        (["train=[SGD=[gradUpdateType=adam]]"], "'adam' is not one of"),
        (["train=[SGD=[trainCriterionNodeName=nothere]]"], "no node 'nothere'"),
        (["train=[SGD=[evalCriterionNodeName=er]]"], "no node 'er'"),
        (["train=[SGD=[AutoAdjust=[learnRateDecreaseFactor=1.5]]]"], "learnRateDecreaseFactor lies between 0 and 1"),
        (["train=[SGD=[gradientcheck=true]]", "precision=float"], "gradientcheck needs double precision"),
    ],
)
def test_contradictions_are_refused_at_their_place(words: list[str], message: str, cntkpy) -> None:
    got = run(cntkpy, *words)
    assert got.code == 2
    assert message in got.message
    assert "  --> " in got.err and "^" in got.err
    assert "Starting Epoch" not in got.err


def test_a_criterion_that_is_not_a_number_stops_the_run(cntkpy, tmp_path: Path) -> None:
    got = run(cntkpy, "train=[SGD=[learningRatesPerSample=1e160;momentumPerMB=0;numMBsToShowResult=1]]")
    assert got.code == 1
    assert "'ce' is not a number (epoch 1, minibatch 2)" in got.message
    assert "note: sequences in that minibatch: 20, 21, 22, 23, 24, 25, 26, 27 and 12 more" in got.err
    assert "note: first node that is not finite: " in got.err
    assert (tmp_path / "run/m.dnn.0").exists() and not (tmp_path / "run/m.dnn.1").exists()


def test_the_rate_below_the_smallest_ends_training(cntkpy, tmp_path: Path) -> None:
    got = run(cntkpy, "train=[action=train;SGD=[learningRatesPerSample=0.02:0.01:1e-12;maxEpochs=4]]")
    assert got.code == 0
    assert "Learn Rate Per Sample for Epoch[3] = 1e-12 is less than minLearningRatePerSample 9.9999997e-10" in got.err
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "m.dnn.0",
        "m.dnn.1",
        "m.dnn.2",
        "m.dnn.2.ckp",
    ]


def test_kept_checkpoints(cntkpy, tmp_path: Path) -> None:
    assert run(cntkpy, "train=[action=train;SGD=[keepCheckPointFiles=true]]").code == 0
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["m.dnn", "m.dnn.0", "m.dnn.1", "m.dnn.1.ckp", "m.dnn.2", "m.dnn.2.ckp", "m.dnn.ckp"]
