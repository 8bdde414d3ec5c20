"""`action=adapt`: training on from a model, with and without a frozen reference, against NumPy."""

from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

RATE = float(np.float32(0.1))

ADAPT = """
adapt = [ action = adapt ; origModelFileName = run/m ; refNodeName = p
    SGD = [ modelPath = run/a ; minibatchSize = 10 ; maxEpochs = 2 ; learningRatesPerSample = 0.1 ; momentumPerMB = 0
        adaptationRegType = KL ; adaptationRegWeight = 0.3 ] ]
test = [ action = test ; modelPath = run/a ]
"""


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained(files=actions.files(""))

    def run(*words: str, more: str = ADAPT):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(more))

    return run


def adapted(start: dict[str, np.ndarray], weight: float) -> tuple[dict[str, np.ndarray], list[float]]:
    """Two epochs of gradient descent on labels mixed with what the start model says, and the average criteria."""
    reference = actions.softmax(actions.X @ start["W"].T + start["b"].T)
    targets = weight * reference + (1 - weight) * actions.Y
    w, b, averages = start["W"].copy(), start["b"].copy(), []
    for _ in range(2):
        total = 0.0
        for begin in range(0, 40, 10):
            x, y = actions.X[begin : begin + 10], targets[begin : begin + 10]
            p = actions.softmax(x @ w.T + b.T)
            total -= (y * np.log(p)).sum()
            w, b = w - RATE * (p - y).T @ x, b - RATE * (p - y).sum(axis=0)[:, None]
        averages.append(total / 40)
    return {"W": w, "b": b}, averages


@pytest.mark.thorough
@pytest.mark.parametrize("weight", [0.3, 1.0, 0.0])
def test_kl_regularisation(weight: float, run, tmp_path: Path) -> None:
    got = run("command=train:adapt", f"adapt=[SGD=[adaptationRegWeight={weight}]]")
    assert got.code == 0, got.err
    expected, averages = adapted(actions.model(tmp_path / "run/m"), weight)
    found = actions.model(tmp_path / "run/a")
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)
    for epoch, average in enumerate(averages, 1):
        assert f"Finished Epoch[ {epoch} of 2]: [Training] ce = {average:.8f} * 40;" in got.err


@pytest.mark.thorough
def test_everything_from_the_reference_changes_nothing(run, tmp_path: Path) -> None:
    run("command=train:adapt", "adapt=[SGD=[adaptationRegWeight=1]]")
    before, after = actions.model(tmp_path / "run/m"), actions.model(tmp_path / "run/a")
    np.testing.assert_allclose(after["W"], before["W"], rtol=1e-12)


def test_plain_adaptation_needs_no_reference_and_takes_the_name_of_the_manual(run, tmp_path: Path) -> None:
    more = ADAPT.replace("origModelFileName", "originalModelFileName").replace(" ; refNodeName = p", "")
    got = run("command=train:adapt", "adapt=[SGD=[adaptationRegType=none]]", more=more)
    assert got.code == 0, got.err
    expected, _ = adapted(actions.model(tmp_path / "run/m"), 0)
    np.testing.assert_allclose(actions.model(tmp_path / "run/a")["W"], expected["W"], rtol=1e-9)
    assert (tmp_path / "run/a.0").exists()


@pytest.mark.thorough
def test_resume_and_finished(run, tmp_path: Path) -> None:
    run("command=train:adapt")
    whole = actions.model(tmp_path / "run/a")
    (tmp_path / "run/a").unlink()
    got = run("command=adapt")
    assert "Starting from checkpoint. Loading network from 'run/a.1'." in got.err
    np.testing.assert_array_equal(actions.model(tmp_path / "run/a")["W"], whole["W"])
    assert "Final model exists: run/a\n" in run("command=adapt").err
    assert "Finished Epoch[ 2 of 2]" in run("command=adapt", "adapt=[makeMode=false]").err


def test_validation_uses_the_labels_as_they_are(run, tmp_path: Path) -> None:
    got = run(
        "command=train:adapt",
        "adapt=[cvReader=[readerType=CNTKTextFormatReader;file=data.ctf;randomize=none;"
        "input=[x=[dim=2;format=dense];y=[dim=3;format=dense]]]]",
    )
    assert got.code == 0, got.err
    value = actions.criterion(actions.model(tmp_path / "run/a"))
    assert f"Finished Epoch[ 2 of 2]: [Validate] ce = {value:.8f} * 40" in got.err


@pytest.mark.thorough
def test_sparse_labels_become_dense(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "".join(
        f"|x {' '.join(map(str, x))} |y {int(y.argmax())}:1\n" for x, y in zip(actions.X, actions.Y, strict=True)
    )
    config = (actions.CONFIG + ADAPT).replace("y = Input(3)", "y = SparseInput(3)")
    config = config.replace("y = [ dim = 3 ; format = dense ]", "y = [ dim = 3 ; format = sparse ]")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sparse").mkdir()
    from cntkpy.commands.cli import main

    for name, text in (("m.cntk", config), ("data.ctf", data)):
        (tmp_path / "sparse" / name).write_text(text)
    assert main([f"currentDirectory={tmp_path / 'sparse'}", "configFile=m.cntk", "command=train:adapt"]) == 0
    expected, _ = adapted(actions.model(tmp_path / "sparse/run/m"), 0.3)
    np.testing.assert_allclose(actions.model(tmp_path / "sparse/run/a")["W"], expected["W"], rtol=1e-9)


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("adapt=[origModelFileName=default]", 2, "adapt needs the model to start from"),
        ("adapt=[refNodeName=default]", 2, "adaptationRegType=KL needs refNodeName"),
        ("adapt=[refNodeName=q]", 2, "no node 'q'"),
        ("adapt=[refNodeName=ce]", 2, "labels are Node 'y'"),
        ("adapt=[refNodeName=W]", 2, "labels are Node 'y'"),
        ("adapt=[SGD=[adaptationRegWeight=2]]", 2, "adaptationRegWeight lies between 0 and 1"),
        ("adapt=[SGD=[adaptationRegType=L2]]", 2, "'L2' is not one of none, kl, klReg"),
        ("adapt=[origModelFileName=none]", 1, "there is no model none"),
    ],
)
def test_errors(word: str, code: int, expected: str, run) -> None:
    got = run("command=train:adapt", word)
    assert got.code == code, got.err
    assert expected in got.message
