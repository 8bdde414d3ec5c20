"""CTC in a configuration: trained on sequences whose labels are not aligned, tested; what does not fit is refused."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

CONFIG = """
command = train:test
precision = PRECISION
deviceId = -1
modelPath = m.dnn
train = {
    action = train
    BrainScriptNetworkBuilder = {
        x = Input {3} ; l = Input {3}
        z = LinearLayer {3} (x)
        graph = LabelsToGraph (l)
        ctc = ForwardBackward (graph, z, 2, tag='criterion')
        err = EditDistanceError (graph, z, squashInputs=true, tokensToIgnore=2, tag='evaluation')
        outputNodes = (z)
    }
    SGD = {
        epochSize = 0 ; minibatchSize = 40 ; maxEpochs = 50
        learningRatesPerSample = 0.05 ; gradUpdateType = fsAdaGrad
    }
}
test = { action = test ; minibatchSize = 40 }
READER
"""

STREAMS = "input = { x = { dim = 3 ; format = dense } ; l = { dim = 3 ; format = FORMAT } }"
WHOLE = "reader = { readerType = CNTKTextFormatReader ; file = data.ctf ; randomize = false ; STREAMS }"
PIECES = """truncated = true
reader = { truncated = true ; truncationLength = 2 ; randomize = false ; deserializers = (
    { type = CNTKTextFormatDeserializer ; module = CNTKTextFormatReader ; file = data.ctf ; STREAMS }) }"""


def data(sparse: bool = False) -> str:
    """Sequences of 4 to 8 steps with one or two tokens at random places; labels say their order."""
    draw, lines = random.Random(3), list[str]()
    for key in range(24):
        steps, tokens = draw.randrange(4, 9), [draw.randrange(2) for _ in range(draw.randrange(1, 3))]
        shown = [tokens[0], 2, tokens[0]] if tokens[1:] == tokens[:1] else tokens  # else they are squashed to one
        places = dict(zip(sorted(draw.sample(range(0, steps, 2), len(tokens))), tokens, strict=True))
        for step in range(steps):
            x = [0.0, 0, 0]
            x[places.get(step, 2)] = 1.0
            label, row = (2, shown[step]) if step < len(shown) else (1, shown[-1])
            dense = " ".join(str(label * (row == at)) for at in range(3))
            lines.append(f"{key} |x {' '.join(map(str, x))} |l {f'{row}:{label}' if sparse else dense}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def trained(cntkpy, tmp_path: Path) -> Callable[..., object]:
    def run(text: str, reader: str = WHOLE, labels: str = "dense", precision: str = "float"):
        (tmp_path / "data.ctf").write_text(text)
        reader = reader.replace("STREAMS", STREAMS.replace("FORMAT", labels))
        config = CONFIG.replace("READER", reader).replace("PRECISION", precision)
        (tmp_path / "c.cntk").write_text(config)
        return cntkpy("configFile=c.cntk")

    return run


@pytest.mark.parametrize(
    ("labels", "precision"), [pytest.param("dense", "float", marks=pytest.mark.thorough), ("sparse", "double")]
)
def test_tokens_are_learned_that_are_not_aligned(trained, labels: str, precision: str) -> None:
    got = trained(data(labels == "sparse"), labels=labels, precision=precision)
    assert got.code == 0, got.err
    rates = [float(found) for found in re.findall(r"err = ([\d.]+) \* 1\d\d", got.err)]
    assert len(rates) == 51
    assert rates[0] > 0.3
    assert rates[-1] < 0.02


def test_pieces_of_sequences_are_refused(trained) -> None:
    got = trained(data(), PIECES)
    assert got.code == 1
    assert "ForwardBackward 'ctc' compares whole sequences, but truncated=true cuts them into pieces" in got.err


def test_labels_that_need_more_frames_are_refused(trained) -> None:
    got = trained(data() + "24 |x 1 0 0 |l 2 0 0\n24 |x 1 0 0 |l 2 0 0\n")
    assert got.code == 1
    assert "ForwardBackward 'ctc' cannot align the labels of a sequence: it has fewer frames than its tokens" in got.err
    assert "a blank between two equal tokens needs one; leave the sequence out" in got.err
