"""What a test took for what: counts and worst samples against NumPy, sparse labels, sequences, what is not counted."""

import json
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

SEQUENCES = """
command = train:test
deviceId = cpu
modelPath = m
train = [
    action = train
    BrainScriptNetworkBuilder = {
        x = Input{2} ; y = Input{3, sparse = true}
        z = RecurrentLSTMLayer{3}(x)
        ce = CrossEntropyWithSoftmax(y, z, tag = "criterion")
        err = ClassificationError(y, z, tag = "evaluation")
        featureNodes = (x) ; labelNodes = (y) ; outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.05 ]
]
test = [ action = test ; minibatchSize = 7 ]
write = [ action = write ; outputNodeNames = z ; outputPath = out ]
reader = [ readerType = CNTKTextFormatReader ; file = s.ctf ; randomize = none
    input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 3 ; format = sparse ] ] ]
"""


def confusion(path: Path) -> dict:
    return next(e for e in map(json.loads, path.read_text().splitlines()) if e["event"] == "confusion")


def expected(z: np.ndarray, classes: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    counts = [[int(((classes == i) & (z.argmax(1) == j)).sum()) for j in range(z.shape[1])] for i in range(z.shape[1])]
    return counts, np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), classes]


@pytest.mark.parametrize("size", [7, 1000])
def test_counts_and_worst_samples(cntkpy, tmp_path: Path, size: int) -> None:
    files = actions.files(f"test = [ action = test ; minibatchSize = {size} ]\n")
    assert cntkpy("configFile=m.cntk", "command=train:test", "logFormat=json", files=files).code == 0
    parameters = actions.model(tmp_path / "run/m")
    z, classes = actions.X @ parameters["W"].T + parameters["b"].T, actions.Y.argmax(axis=1)
    counts, loss = expected(z, classes)
    found = confusion(tmp_path / "cntkpy.jsonl")
    assert (found["command"], found["output"], found["counts"]) == ("test", "z", counts)
    order = np.argsort(-loss)[:20]
    assert [one["sequence"] for one in found["worst"]] == order.tolist()
    assert [one["loss"] for one in found["worst"]] == pytest.approx(loss[order])
    assert [one["label"] for one in found["worst"]] == classes[order].tolist()
    assert [one["takenFor"] for one in found["worst"]] == z.argmax(1)[order].tolist()
    assert {one["step"] for one in found["worst"]} == {0}


def test_sequences_and_sparse_labels(cntkpy, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lengths = [3, 1, 5, 2, 4]
    classes = [rng.integers(0, 3, length) for length in lengths]
    lines = [
        f"{number} |x {a:.3f} {b:.3f} |y {c}:1\n"
        for number, own in enumerate(classes)
        for c, (a, b) in zip(own, rng.normal(size=(len(own), 2)), strict=True)
    ]
    got = cntkpy(
        "configFile=s.cntk",
        "logFormat=json",
        "command=train:test:write",
        files={"s.cntk": SEQUENCES, "s.ctf": "".join(lines)},
    )
    assert got.code == 0, got.err
    z = np.array(
        [
            [float(word) for word in line.split()]
            for line in (tmp_path / "out.z").read_text().splitlines()
            if line.strip()
        ]
    )
    counts, loss = expected(z, np.concatenate(classes))
    found = confusion(tmp_path / "cntkpy.jsonl")
    assert found["counts"] == counts
    places = [(sequence, step) for sequence, length in enumerate(lengths) for step in range(length)]
    order = np.argsort(-loss)
    assert [(one["sequence"], one["step"]) for one in found["worst"]] == [places[i] for i in order]
    assert [one["loss"] for one in found["worst"]] == pytest.approx(loss[order], rel=1e-4)


def test_nothing_is_counted_without_an_event_file(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainers.evaluation import confusion as module

    monkeypatch.setattr(module, "ConfusionCount", None)  # a call would fail
    files = actions.files("test = [ action = test ]\n")
    assert cntkpy("configFile=m.cntk", "command=train:test", files=files).code == 0


def test_a_test_of_another_node_has_no_counts(cntkpy, tmp_path: Path) -> None:
    files = actions.files("test = [ action = test ; evalNodeNames = s ]\n")
    files["m.cntk"] = (
        files["m.cntk"].replace("ce =", "s = SquareError(y, z)\n        ce =").replace("(err)", "(err, s)")
    )
    assert cntkpy("configFile=m.cntk", "command=train:test", "logFormat=json", files=files).code == 0
    assert '"confusion"' not in (tmp_path / "cntkpy.jsonl").read_text()
