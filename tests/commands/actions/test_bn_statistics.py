"""`action=bnstat`: means and variances against NumPy, two nodes over each other, every error."""

from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

NET = """
bn = [ action = train ; NDLNetworkBuilder = [ run = stack ] ; 
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.01 ]
    stack = [
        x = Input(2)
        y = Input(3)
        g1 = Parameter(2, 1, init=fixedValue, value=1.5)
        o1 = Parameter(2, 1, init=fixedValue, value=0.25)
        m1 = Parameter(2, 1, init=fixedValue, value=0, needGradient=false)
        v1 = Parameter(2, 1, init=fixedValue, value=1, needGradient=false)
        b1 = BatchNormalization(x, g1, o1, m1, v1, normalizationTimeConstant=100)
        W = Parameter(3, 2, init=uniform)
        h = Times(W, b1)
        g2 = Parameter(3, 1, init=fixedValue, value=1)
        o2 = Parameter(3, 1, init=fixedValue, value=0)
        m2 = Parameter(3, 1, init=fixedValue, value=0, needGradient=false)
        v2 = Parameter(3, 1, init=fixedValue, value=1, needGradient=false)
        z = BatchNormalization(h, g2, o2, m2, v2, normalizationTimeConstant=100)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x)
        LabelNodes = (y)
        CriterionNodes = (ce)
        OutputNodes = (z)
    ] ]
stat = [ action = bnstat ; minibatchSize = 10 ; itersPerNode = 8 ]
"""


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained("command=bn", files=actions.files(NET))

    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(NET))

    return run


def averages(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Plain averages over the minibatches of ten: of their means, and of their unbiased variances."""
    groups = values.reshape(-1, 10, values.shape[1])
    return groups.mean(axis=1).mean(axis=0), groups.var(axis=1, ddof=1).mean(axis=0)


@pytest.mark.thorough
def test_two_nodes_from_the_data_upwards(run, tmp_path: Path) -> None:
    got = run("command=bn:stat")
    assert got.code == 0, got.err
    assert "Estimating Statistics --> b1\nEstimating Statistics --> z\n" in got.err
    before, after = (actions.model(tmp_path / name) for name in ("run/m", "run/m.PBN"))
    mean, variance = averages(actions.X)
    np.testing.assert_allclose(after["m1"].ravel(), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after["v1"].ravel(), variance, rtol=1e-9)
    x = (actions.X - mean) / np.sqrt(variance + 1e-5) * before["g1"].T + before["o1"].T
    mean, variance = averages(x @ before["W"].T)
    np.testing.assert_allclose(after["m2"].ravel(), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after["v2"].ravel(), variance, rtol=1e-9)
    for name in ("W", "g1", "o1", "g2", "o2"):
        np.testing.assert_array_equal(after[name], before[name])


def test_traced_nodes_show_what_is_estimated_below_them(run, tmp_path: Path) -> None:
    got = run("command=bn:stat", "stat=[traceNodeNamesReal=h;distributedMBReading=true]", "traceLevel=1")
    assert got.code == 0, got.err
    blocks = got.err.split("Trace --> h = Times (W, b1) : [3 x 2], [2 x *] -> [3 x *]\n")[1:]
    assert len(blocks) == 8  # while z is estimated
    mean, variance = averages(actions.X)
    before = actions.model(tmp_path / "run/m")
    x = (actions.X - mean) / np.sqrt(variance + 1e-5) * before["g1"].T + before["o1"].T
    for k, block in enumerate(blocks):
        numbers = [float(line.split("\t")[-1]) for line in block.splitlines() if line.startswith("  ")]
        begin = 10 * k % 40
        np.testing.assert_allclose(numbers, (x[begin : begin + 10] @ before["W"].T).ravel(), atol=1e-9)
    assert got.err.count("bnstat: distributedMBReading has no effect. Ignored: ") == 1


def test_only_below_the_named_node(run, tmp_path: Path) -> None:
    got = run("command=bn:stat", "stat=[evalNodeNames=b1;newModelPath=run/deep/n]")
    assert got.code == 0, got.err
    before, after = (actions.model(tmp_path / name) for name in ("run/m", "run/deep/n"))
    assert not np.allclose(after["m1"], before["m1"])
    np.testing.assert_array_equal(after["v2"], before["v2"])


def test_the_options_of_nodes_stay(run, tmp_path: Path) -> None:
    run("command=bn:stat")
    from cntkpy.networks.files.model_file import load_model

    network = load_model(str(tmp_path / "run/m.PBN"))
    assert network["b1"].options["normalizationTimeConstant"] == 100
    assert network["b1"].options["blendTimeConstant"] == 0
    assert network["b1"].samples == 80


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["command=bn:stat", "stat=[itersPerNode=0]"], 2, "itersPerNode is at least 1"),
        (["command=bn:stat", "stat=[minibatchSize=0]"], 2, "minibatchSize is at least 1"),
        (["command=train:stat", "modelPath=run/plain"], 1, "the network has no BatchNormalization node"),
        (["command=stat", "modelPath=none"], 2, "there is no model none"),
    ],
)
def test_errors(words: list[str], code: int, expected: str, run) -> None:
    got = run(*words)
    assert got.code == code, got.err
    assert expected in got.message


def test_data_that_end(run, tmp_path: Path) -> None:
    from cntkpy.networks.files.model_file import load_model
    from cntkpy.readers.minibatch import Minibatch
    from cntkpy.trainers.evaluation.bn_statistics import estimate_statistics

    run("command=bn")

    class Empty:
        def start_minibatch_loop(self, *_: object) -> None:
            pass

        def get_minibatch(self) -> Minibatch | None:
            return None

    network = load_model(str(tmp_path / "run/m"))
    with pytest.raises(Exception, match="the data end after 0 of 5 minibatches for 'b1'"):
        estimate_statistics(network, [network["ce"]], Empty(), 10, 5)  # type: ignore[arg-type]
    assert network["b1"].options["normalizationTimeConstant"] == 100
