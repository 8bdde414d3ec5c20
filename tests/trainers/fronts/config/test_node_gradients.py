"""`nodeUnitTest`: values and gradients of inputs and parameters against NumPy, every error."""

from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

MORE = """
twice = [ action = write ; nodeUnitTest = true ; outputNodeNames = z ; outputPath = run/w ; minibatchSize = 40
    format = [ precisionFormat = ".12" ]
    NDLNetworkBuilder = [ run = net2 ]
    net2 = [
        x = Input(2)
        W = Parameter(3, 2, init=fixedValue, value=0.5)
        t = Times(W, x)
        u = Times(W, x)
        z = Plus(t, u)
        FeatureNodes = (x)
        OutputNodes = (z)
    ] ]
out = [ action = write ; nodeUnitTest = true ; outputNodeNames = ce ; outputPath = run/g ; minibatchSize = 20
    format = [ prologue = "P" ; epilogue = "E" ; precisionFormat = ".12" ] ]
"""


@pytest.fixture
def run(cntkpy):

    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(MORE))

    return run


def numbers(path: Path) -> np.ndarray:
    text = path.read_text().removeprefix("P").removesuffix("E")
    return np.array([[float(word) for word in line.split()] for line in text.splitlines()])


def test_gradients_of_the_criterion(run, tmp_path: Path) -> None:
    got = run("command=train:out")
    assert got.code == 0, got.err
    parameters = actions.model(tmp_path / "run/m")
    z = actions.X @ parameters["W"].T + parameters["b"].T
    delta = actions.softmax(z) - actions.Y
    files = {path.name for path in (tmp_path / "run").glob("g.*")}
    assert files == {"g.ce", "g.W.grad", "g.b.grad", "g.x.grad", "g.y.grad"}
    expected = {
        "x": delta @ parameters["W"],
        "y": -np.log(actions.softmax(z)),
        # one matrix per minibatch, a line for every column
        "W": np.concatenate([(delta[i : i + 20].T @ actions.X[i : i + 20]).T for i in (0, 20)]),
        "b": np.stack([delta[i : i + 20].sum(axis=0) for i in (0, 20)]),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(numbers(tmp_path / f"run/g.{name}.grad"), values, atol=1e-11)
    values = -(actions.Y * np.log(actions.softmax(z))).sum(axis=1)
    np.testing.assert_allclose(
        numbers(tmp_path / "run/g.ce").ravel(), [values[:20].sum(), values[20:].sum()], rtol=1e-10
    )
    assert (tmp_path / "run/g.ce").read_text()[0] == "P"
    assert (tmp_path / "run/g.b.grad").read_text()[0] != "P"
    assert (tmp_path / "run/g.b.grad").read_text()[-1] == "E"
    assert "Written to run/g*\nTotal Samples Evaluated = 40\n" in got.err


def test_an_input_and_a_parameter_that_feed_two_nodes(run, tmp_path: Path) -> None:
    got = run("command=twice")
    assert got.code == 0, got.err
    np.testing.assert_allclose(numbers(tmp_path / "run/w.x.grad"), np.full((40, 2), 3 * (0.5 + 0.5)), atol=1e-11)
    sums = 2 * actions.X[:40].sum(axis=0)
    np.testing.assert_allclose(numbers(tmp_path / "run/w.W.grad"), np.tile(sums[:, None], 3), atol=1e-11)


@pytest.mark.parametrize("node", ["z", "t"])
def test_of_a_node_with_several_elements(node: str, run, tmp_path: Path) -> None:
    got = run("command=train:out", f"out=[outputNodeNames={node}]")
    assert got.code == 0, got.err
    parameters = actions.model(tmp_path / "run/m")
    column = np.tile(parameters["W"].sum(axis=0), (40, 1))
    np.testing.assert_allclose(numbers(tmp_path / "run/g.x.grad"), column, atol=1e-11)
    assert (tmp_path / "run/g.b.grad").exists() == (node == "z")


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("out=[outputNodeNames=z:ce]", 2, "nodeUnitTest needs exactly one output node, there are 2"),
        ("out=[outputNodeNames=err]", 1, "ClassificationError 'err' has no gradient"),
    ],
)
def test_errors(word: str, code: int, expected: str, run) -> None:
    got = run("command=train:out", word)
    assert got.code == code, got.err
    assert expected in got.message
