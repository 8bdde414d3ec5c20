"""What a test took for what: counts and worst samples against NumPy, sparse labels, sequences, what is not counted."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

from cntkpy.trainers.evaluation.sample_pictures import cells, picture

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


@pytest.mark.thorough
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
    from cntkpy.trainers.evaluation import confusion as module

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


def test_pictures_of_the_worst_samples() -> None:
    """Blue, green and red planes of CNTK's order become rows of red, green and blue, from 0 to 255."""
    planes = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)  # channels, height, width
    found = picture(planes.ravel(), (5, 4, 3))
    assert (found["width"], found["height"], found["channels"]) == (5, 4, 3)
    pixels = np.frombuffer(base64.b64decode(found["pixels"]), np.uint8).reshape(4, 5, 3)
    assert pixels[0, 0].tolist() == [round(255 * value / 59) for value in (40, 20, 0)]
    assert pixels[3, 4].tolist() == [round(255 * value / 59) for value in (59, 39, 19)]
    large = picture(np.zeros(100 * 60), (100, 60, 1))
    assert (large["width"], large["height"]) == (34, 20) and set(base64.b64decode(large["pixels"])) == {0}
    assert set(base64.b64decode(picture(np.full(16, np.nan), (4, 4, 1))["pixels"])) == {0}


def test_only_the_cells_that_are_wanted() -> None:
    values = np.arange(24).reshape(3, 4, 2)
    assert cells(values, [(2, 1), (0, 3)], 20).tolist() == [[18, 19], [6, 7]]


IMAGES = """
command = train:test
deviceId = cpu
modelPath = m
train = [
    action = train
    BrainScriptNetworkBuilder = {
        x = Input{4:4:1} ; y = Input{2}
        z = LinearLayer{2}(x)
        ce = CrossEntropyWithSoftmax(y, z, tag = "criterion")
        featureNodes = (x) ; labelNodes = (y) ; outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 1e-6 ]
]
test = [ action = test ; minibatchSize = 7 ]
reader = [ readerType = CNTKTextFormatReader ; file = s.ctf ; randomize = none
    input = [ x = [ dim = 16 ; format = dense ] ; y = [ dim = 2 ; format = dense ] ] ]
"""


def test_every_picture_is_that_of_its_sample(cntkpy, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pixels, classes = rng.integers(0, 256, (50, 16)), rng.integers(0, 2, 50)
    pixels[:, 0], pixels[:, 1] = 0, 255  # so that bytes are values
    lines = [
        f"|x {' '.join(map(str, row))} |y {' '.join(map(str, np.eye(2, dtype=int)[c]))}\n"
        for row, c in zip(pixels, classes, strict=True)
    ]
    got = cntkpy("configFile=s.cntk", "logFormat=json", files={"s.cntk": IMAGES, "s.ctf": "".join(lines)})
    assert got.code == 0, got.err
    worst = confusion(tmp_path / "cntkpy.jsonl")["worst"]
    assert len(worst) == 20
    for one in worst:
        assert list(base64.b64decode(one["picture"]["pixels"])) == pixels[one["sequence"]].tolist()
        assert one["label"] == classes[one["sequence"]]
