"""One label per sequence, and streams of different lengths: trained, tested, written; what does not fit is refused."""

import random
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

DATA = """
reader = { readerType = CNTKTextFormatReader ; file = data.ctf ; randomize = false
    input = { x = { dim = 2 ; format = dense } ; l = { dim = 2 ; format = dense } } }
"""

BRAINSCRIPT = """
command = train:test:write
precision = double
deviceId = -1
modelPath = m.dnn
train = {
    action = train
    BrainScriptNetworkBuilder = {
        AXIS
        h = RecurrentLSTMLayer {4} (x)
        z = Sequential (BS.Sequences.Last : DenseLayer {2}) (h)
        ce = CrossEntropyWithSoftmax (l, JOINED, tag='criterion')
        errs = ClassificationError (l, JOINED, tag='evaluation')
        outputNodes = (z)
    }
    SGD = { epochSize = 0 ; minibatchSize = 12 ; learningRatesPerSample = 0.3 ; maxEpochs = EPOCHS ; MORE }
}
test = { action = test ; minibatchSize = 20 }
write = { action = write ; minibatchSize = 20 ; outputPath = out }
"""

TWO_AXES = "t = DynamicAxis () ; x = Input {2, dynamicAxis=t} ; l = Input {2}"
ONE_LABEL = "x = Input {2} ; l = Input {2, dynamicAxis='#'}"

NDL = """
command = train:write
precision = double
deviceId = -1
modelPath = m.dnn
train = [
    action = train
    NDLNetworkBuilder = [ run = net
        net = [
            x = Input(2, dynamicAxis=steps, tag=feature)
            l = Input(2, tag=label)
            W = Parameter(4, 2)
            R = Parameter(4, 4)
            past = PastValue(4, 1, h, timeStep=1, defaultHiddenActivity=0)
            h = Tanh(Plus(Times(W, x), Times(R, past)))
            zero = Scale(Constant(0), RowSlice(0, 1, h))
            isLast = FutureValue(1, 1, zero, timeStep=1, defaultHiddenActivity=1)
            last = GatherPacked(PackedIndex(h, Where(isLast)), h)
            V = Parameter(2, 4)
            z = Times(V, last, tag=output)
            ce = CrossEntropyWithSoftmax(l, ReconcileDynamicAxis(z, l), tag=criterion)
        ]
    ]
    SGD = [ epochSize = 0 ; minibatchSize = 12 ; learningRatesPerSample = 0.3 ; maxEpochs = 3 ]
]
write = [ action = write ; minibatchSize = 20 ; outputPath = out ]
"""


def data(labels: int = 1) -> str:
    """Sequences of 1 to 5 steps; the label says whether the sum of the first elements is positive."""
    draw = random.Random(5)
    lines: list[str] = []
    for key in range(12):
        steps = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(draw.randrange(1, 6))]
        label = "1 0" if sum(a for a, _ in steps) > 0 else "0 1"
        for t, (a, b) in enumerate(steps):
            lines.append(f"{key} |x {a:.3f} {b:.3f}" + (f" |l {label}" if t < labels else ""))
    return "\n".join(lines) + "\n"


@pytest.fixture
def run(cntkpy):

    def run(
        config: str,
        *arguments: str,
        text: str = "",
        epochs: int = 3,
        more: str = "",
        axis: str = TWO_AXES,
        reader: str = DATA,
    ):
        joined = "z" if axis == ONE_LABEL else "ReconcileDynamicAxis (z, l)"
        for old, new in (("AXIS", axis), ("JOINED", joined), ("EPOCHS", str(epochs)), ("MORE", more)):
            config = config.replace(old, new)
        return cntkpy("configFile=a.cntk", *arguments, files={"a.cntk": config + reader, "data.ctf": text or data()})

    return run


def criteria(stderr: str) -> list[str]:
    return [line.split("[Training] ")[1].split(";")[0] for line in stderr.splitlines() if "Finished Epoch" in line]


@pytest.mark.thorough
@pytest.mark.parametrize("axis", [TWO_AXES, ONE_LABEL])
def test_a_classifier_is_trained_tested_and_written(run, tmp_path: Path, axis: str) -> None:
    got = run(BRAINSCRIPT, axis=axis)
    assert got.code == 0, got.err
    found = criteria(got.err)
    assert all(line.endswith("* 12") for line in found)  # labels count, not steps
    assert float(found[-1].split()[2]) < float(found[0].split()[2])
    assert "* 12" in got.err.split("Final Results")[1]
    assert len((tmp_path / "out.z").read_text().splitlines()) == 12  # one line per sequence


@pytest.mark.thorough
def test_pieces_give_the_same_numbers(run) -> None:
    whole = criteria(run(BRAINSCRIPT, "command=train", "modelPath=a.dnn").err)
    in_pieces = criteria(run(BRAINSCRIPT, "command=train", "modelPath=b.dnn", more="numSubminibatches = 3").err)
    assert len(whole) == 3
    assert [line[:15] for line in in_pieces] == [line[:15] for line in whole]


@pytest.mark.thorough
def test_the_network_description_language_has_time_axes(run, tmp_path: Path) -> None:
    got = run(NDL)
    assert got.code == 0, got.err
    assert criteria(got.err)[0].endswith("* 12")
    assert len((tmp_path / "out.z").read_text().splitlines()) == 12


@pytest.mark.parametrize(
    ("axis", "labels", "message"),
    [
        (TWO_AXES, 2, "joins sequences of different lengths: sequence"),
        (ONE_LABEL, 2, "the input 'l' has 2 samples in sequence"),
        (TWO_AXES, 0, "the input 'l' has no sample in sequence"),
    ],
)
def test_labels_of_the_wrong_length(run, axis: str, labels: int, message: str) -> None:
    text = data(labels) if labels else _without_the_first_label()
    got = run(BRAINSCRIPT, "command=train", axis=axis, text=text)
    assert got.code == 1
    assert message in got.err


def _without_the_first_label() -> str:
    first, rest = data().split("\n", 1)
    return first.split(" |l")[0] + "\n" + rest


def test_mixed_axes_are_found_before_data_are_read(run, cntkpy) -> None:
    config = BRAINSCRIPT.replace("z = Sequential", "mixed = h + l\n        z = Sequential")
    for got in (run(config), cntkpy("check", "configFile=a.cntk")):
        assert got.code == 2, got.err
        text = got.err + got.out
        assert "Plus 'mixed' mixes two time axes:" in text
        assert "(from the input 'x')" in text and "'l' has the default time axis" in text
        assert "a.cntk:11" in text


@pytest.mark.thorough
def test_labels_meet_the_last_step(run, cntkpy) -> None:
    """The tutorials of CNTK leave ReconcileDynamicAxis out."""
    said = run(BRAINSCRIPT, "command=train", "modelPath=a.dnn")
    config = BRAINSCRIPT.replace("JOINED", "z")
    got = run(config, "modelPath=b.dnn")
    assert criteria(got.err) == criteria(said.err)
    assert "* 12" in got.err.split("Final Results")[1]
    assert cntkpy("check", "configFile=a.cntk").code == 0
    got = run(config, "command=train", "modelPath=c.dnn", text=data(2))
    assert got.code == 1
    assert "the input 'l' has 2 samples in sequence" in got.err and "but takes one per sequence" in got.err


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("x = Input {2, dynamicAxis='u'} ; l = Input {2}", "the network has no DynamicAxis 'u'"),
        ("x = Input {2, dynamicAxis=l} ; l = Input {2}", "is not a DynamicAxis but InputValue"),
        ("x = Input {2, dynamicAxis=DynamicAxis ()} ; l = Input {2}", "is not a member of the network"),
    ],
)
def test_an_axis_that_is_none(run, axis: str, message: str) -> None:
    got = run(BRAINSCRIPT, axis=axis)
    assert got.code == 2
    assert message in got.err and "a.cntk:9" in got.err


TAGGER = """
command = train
precision = double
deviceId = -1
modelPath = m.dnn
train = {
    action = train
    BrainScriptNetworkBuilder = {
        AXIS
        h = RecurrentLSTMLayer {3} (x)
        held = { first = BS.Loop.IsFirst (h) ; y = BS.Boolean.If (first, h, PastValue (3, y)) }.y
        z = DenseLayer {2} (h + held)
        ce = CrossEntropyWithSoftmax (l, JOINED, tag='criterion')
    }
    SGD = { epochSize = 0 ; minibatchSize = 6 ; learningRatesPerSample = 0.3 ; maxEpochs = EPOCHS ; MORE }
}
"""
PIECES = """
truncated = true
reader = { truncated = true ; truncationLength = 2 ; randomize = false ; deserializers = (
    { type = CNTKTextFormatDeserializer ; module = CNTKTextFormatReader ; file = data.ctf
      input = { x = { dim = 2 ; format = dense } ; l = { dim = 2 ; format = dense } } }) }
"""


@pytest.mark.thorough
def test_pieces_of_sequences_on_two_axes(run) -> None:
    """Cut alike, they train as on one axis; so does a state that is carried on, and the first step that is repeated."""
    several = criteria(run(TAGGER, "modelPath=a.dnn", text=data(9), reader=PIECES).err)
    one = criteria(
        run(TAGGER, "modelPath=b.dnn", text=data(9), reader=PIECES, axis="x = Input {2} ; l = Input {2}").err
    )
    whole = criteria(run(TAGGER, "modelPath=c.dnn", text=data(9)).err)
    assert len(one) == 3
    assert several == one != whole


def test_whole_sequences_that_the_reader_cuts(run) -> None:
    got = run(BRAINSCRIPT, "command=train", text=data(9), reader=PIECES)
    assert got.code == 1
    assert "selects steps of whole sequences, but truncated=true cuts them into pieces" in got.err
    assert "^" in got.err


@pytest.mark.thorough
def test_a_sequence_of_which_nothing_is_kept(run) -> None:
    config = BRAINSCRIPT.replace("BS.Sequences.Last :", "(h => BS.Sequences.Last (Slice (3, 0, h, axis=-1))) :")
    got = run(config, "command=train")
    assert got.code == 1
    assert "keeps no step of a sequence" in got.err


@pytest.mark.thorough
def test_the_sample(cntkpy, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    got = cntkpy("configFile=sample_configs/sequence_classifier.cntk")
    assert got.code == 0, got.err
    assert float(re.findall(r"^Final Results: .*errs = ([\d.]+)%", got.err, re.MULTILINE)[0]) < 5
    assert len((tmp_path / "sample_configs/output/languages.z").read_text().splitlines()) == 300
