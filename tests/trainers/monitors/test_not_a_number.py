"""A criterion that is infinite or not a number: where it broke, and that nothing is trained after it."""

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

CONFIG = """
command = train
precision = double
deviceId = cpu
modelPath = run/m
train = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(1)
        y = Input(1)
        W = Parameter(1, 1, init=fixedValue, value=0.1)
        t = Times(W, x)
        inner = Exp(t)
        outer = Exp(inner)
        miss = SquareError(y, outer)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (miss)
        OutputNodes = (outer)
    ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 1 ; learningRatesPerSample = 0 ; momentumPerMB = 0
        minLearningRatePerSample = -1 ; numMBsToShowResult = 0 ]
    reader = [ readerType = CNTKTextFormatReader ; file = d.ctf ; randomize = none
        input = [ x = [ dim = 1 ; format = FORM ] ; y = [ dim = 1 ; format = dense ] ] ]
]
"""


@pytest.fixture(params=["dense", "sparse"])
def run(request: pytest.FixtureRequest, cntkpy):
    config = CONFIG.replace("FORM", request.param)
    index = "0:" if request.param == "sparse" else ""
    if index:
        config = config.replace("x = Input(1)", "x = SparseInput(1)")

    def run(*words: str, second: str = "1000"):
        numbers = {31: "1000", 32: second, 33: "1000", 34: "1000"}
        data = "".join(f"{sequence} |x {index}1 |y {y}\n" for sequence, y in numbers.items())
        return cntkpy("configFile=m.cntk", *words, files={"m.cntk": config, "d.ctf": data})

    return run


def after_one_update(rate: float) -> float:
    inner = math.exp(0.1)
    outer = math.exp(inner)
    return 0.1 - float(np.float32(rate)) * 2 * (outer - 1000) * outer * inner


@pytest.mark.parametrize(("rate", "name"), [(0.01, "outer"), (0.2, "inner"), (1e38, "inner")])
@pytest.mark.sampled
def test_the_first_node_that_is_not_finite(rate: float, name: str, run, tmp_path: Path) -> None:
    weight = after_one_update(rate)
    with np.errstate(over="ignore"):
        inner = np.exp(weight)
        assert name == ("outer" if np.isfinite(inner) else "inner") and np.isinf(np.exp(inner))
    got = run(f"train=[SGD=[learningRatesPerSample={rate}]]")
    assert got.code == 1
    assert "the training criterion 'miss' is not a number (epoch 1, minibatch 2)" in got.message
    assert "note: sequences in that minibatch: 32\n" in got.err
    assert f"note: first node that is not finite: {name} = Exp\n" in got.err
    assert "help: lower the learning rate" in got.err
    np.testing.assert_allclose(load_file(tmp_path / "run/m.0")["W"], 0.1)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["m.0"]


def test_a_parameter_that_is_not_finite(run) -> None:
    got = run("train=[SGD=[learningRatesPerSample=1#INF]]")
    assert "note: first node that is not finite: W = LearnableParameter (since the update before)\n" in got.err


def test_the_data(run) -> None:
    got = run("precision=float", second="1e300")
    assert "(epoch 1, minibatch 2)" in got.message, got.err
    assert "note: first node that is not finite: y = InputValue\n" in got.err


@pytest.mark.parametrize("rule", ["none", "adagrad", "rmsProp", "fsAdagrad"])
@pytest.mark.sampled
def test_nothing_is_trained_after_it(rule: str) -> None:
    """The stack continues after the minibatch that broke off, and so do later stacks; parameters stay."""
    from cntkpy.cntk_config import parse
    from cntkpy.networks.builders.build import build_network
    from cntkpy.networks.compile.evaluate import Settings
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.readers.minibatch import Layout, Minibatch
    from cntkpy.trainers.parameters.sgd import SGDParameters
    from cntkpy.trainers.rules.rules import update_rule
    from cntkpy.trainers.rules.update_step import Regularisation
    from cntkpy.trainers.step.state import EpochSettings
    from cntkpy.trainers.step.step import CompiledStep

    text = CONFIG.split("OutputNodes")[0].split("NDLNetworkBuilder")[1] + "]"
    network = build_network(parse("NDLNetworkBuilder" + text), "double", SeedCounter())
    network.validate()
    regularisation = Regularisation(l1=0.1, l2=0.1, noise=0.1, clipping=1e9)
    sgd = SGDParameters(parse(f"gradUpdateType={rule};useNAG={'true' if rule == 'none' else 'false'}"))
    trainer = CompiledStep(network, [network["miss"]], update_rule(sgd), regularisation)
    layout = Layout(1, 1, np.array([[0, 0, 0, 1]]))

    def groups(targets: list[float]):
        one = np.ones((1, 1, 1))
        every = [Minibatch({"x": one, "y": y * one}, {"x": layout, "y": layout}) for y in targets]
        return list(trainer.batcher(1).stacks(iter(every), lambda number: False))

    settings = EpochSettings(0.001, 0.5, Settings(), 1)
    (group,) = groups([1.0, 2.0])
    np.asarray(trainer.run(group, settings, 0))
    before = np.array(trainer.trained_values()["W"])
    assert before != 0.1
    for targets in ([np.inf, 1.0, 1.0], [1.0]):
        (group,) = groups(targets)
        np.asarray(trainer.run(group, settings, 2))
        np.testing.assert_array_equal(trainer.trained_values()["W"], before)
    trainer.forget()  # the next epoch
    np.asarray(trainer.run(group, settings, 0))
    assert trainer.trained_values()["W"] != before
