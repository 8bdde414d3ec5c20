"""Criteria where CNTK's own values are wrong: one sample per minibatch, regularisation as part of the criterion."""

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

CONFIG = """
modelPath = run/m
precision = double
traceLevel = 1
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(2)
        y = Input(1)
        W = Parameter(1, 2, init=fixedValue, value=0.25)
        V = Parameter(1, 2, init=fixedValue, value=-0.5)
        a = Times(W, x)
        b = Times(V, x)
        z = Plus(a, b)
        loss = SquareError(y, z)
        two = MatrixL2Reg(W)
        one = MatrixL1Reg(V)
        both = Plus(Scale(Constant(0.3), two), Scale(Constant(0.7), one))
        cost = Plus(loss, both)
        q = Sigmoid(z)
        xent = Logistic(y, q)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (cost)
        EvalNodes = (xent)
        OutputNodes = (z)
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 1 ; learningRatesPerSample = 0.0625 ; momentumPerMB = 0 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf ; randomize = false
        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 1 ; format = dense ] ] ]
]
"""


def test_one_column_at_a_time_with_regularisation_in_the_criterion(cntkpy, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(size=(5, 2)).round(2), random.integers(0, 2, 5)
    lines = "".join(f"|x {a} {b} |y {c}\n" for (a, b), c in zip(x.tolist(), y.tolist(), strict=True))
    got = cntkpy("configFile=main.cntk", files={"main.cntk": CONFIG, "train.ctf": lines})
    assert got.code == 0, got.err
    w, v, cost, logistic = np.full(2, 0.25), np.full(2, -0.5), 0.0, 0.0
    for sample, label in zip(x, y, strict=True):
        z = (w + v) @ sample
        p = 1 / (1 + np.exp(-z))
        cost += (label - z) ** 2 + 0.3 * np.linalg.norm(w) + 0.7 * np.abs(v).sum()
        logistic -= np.log(2 * p * label + (1 - label) - p)
        common = 2 * (z - label) * sample
        w, v = (w - 0.0625 * (common + 0.3 * w / np.linalg.norm(w)), v - 0.0625 * (common + 0.7 * np.sign(v)))
    line = re.search(r"\[Training\] cost = ([\d.]+) \* 5; xent = ([\d.]+) \* 5", got.err)
    assert line and [float(value) for value in line.groups()] == pytest.approx([cost / 5, logistic / 5], abs=1e-8)
    trained = load_file(tmp_path / "run/m")
    np.testing.assert_allclose(trained["W"][0], w, rtol=1e-12)
    np.testing.assert_allclose(trained["V"][0], v, rtol=1e-12)
