"""`cntkpy export --training`: the written program repeats a training."""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def samples(tmp_path):
    """The samples, each with three epochs and the order of its file."""
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    for path in (tmp_path / "sample_configs").glob("*.cntk"):
        text = re.sub(r"maxEpochs( *)= *\d+", r"maxEpochs\1= 3", path.read_text())
        path.write_text(re.sub(r"randomize( *)= true", r"randomize\1= false", text))
    return tmp_path


def changed(folder, name, *changes):
    """Change the text of a sample; every change must change it."""
    path = folder / "sample_configs" / name
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def export(cntkpy, name, *options, check=False):
    words = ("export", f"sample_configs/{name}", "out", "--to", "pytorch", "--training", *options)
    return cntkpy(*words, "--check" if check else "--no-check")


def test_the_program(cntkpy, samples):
    got = export(cntkpy, "digits.cntk")
    assert got.code == 0, got
    assert got.out.splitlines() == [
        "out: class Digits, 23 lines, 4 tensors",
        "files: model.py, weights.safetensors, README.md, train.py",
    ]
    text = (samples / "out/train.py").read_text()
    assert "def criteria(" in text
    assert "SIZES = [20] * 3  # samples of a minibatch, of each epoch" in text
    assert "velocity.mul_(momentum).add_(gradient, alpha=(1 - momentum) * rate)" in text
    assert max(map(len, text.splitlines())) <= 100
    compile(text, "train.py", "exec")


def test_a_shuffled_order(cntkpy, samples):
    """Data of its own are shuffled by the program; with cntkpy's readers they come in the order of CNTK."""
    changed(samples, "digits.cntk", ("randomize  = false", "randomize  = true"))
    assert export(cntkpy, "digits.cntk").code == 0
    text = (samples / "out/train.py").read_text()
    assert "torch.randperm(count" in text
    assert "in another order, so that criteria differ" in text
    shutil.rmtree(samples / "out")
    assert export(cntkpy, "digits.cntk", "--data", "cntkpy").code == 0
    text = (samples / "out/train.py").read_text()
    assert "randperm" not in text
    assert "from cntkpy.readers import create_reader" in text


def test_rates_of_sgd_without_momentum_are_pytorchs(cntkpy, samples):
    changed(samples, "digits.cntk", ("momentumPerMB      = 0.5:0.9", "momentumPerMB = 0"))
    assert export(cntkpy, "digits.cntk").code == 0
    text = (samples / "out/train.py").read_text()
    assert "optimiser = torch.optim.SGD(model.parameters(), lr=0.0)" in text
    assert "class Sgd" not in text


def test_what_is_not_written_is_listed(cntkpy, samples):
    changed(
        samples,
        "brainscript_slots.cntk",
        ("maxEpochs                   = 3", "maxEpochs = 3 ; gaussianNoiseInjectStd = 0.1 ; truncated = true"),
    )
    got = export(cntkpy, "brainscript_slots.cntk")
    assert got.code == 1
    assert "the training cannot be written as PyTorch source, because of:" in got.err
    assert "  gaussianNoiseInjectStd: PyTorch draws other numbers than JAX" in got.err
    assert "  truncated: the states of a recurrence would go from one minibatch to the next" in got.err
    assert "  the reader LUSequenceReader: " in got.err
    assert "--data cntkpy reads all" in got.err
    assert not (samples / "out").exists()


def test_a_program_has_what_the_configuration_ignores(cntkpy, samples):
    assert export(cntkpy, "speech.cntk", "--data", "cntkpy").code == 0
    assert "`cvReader` is not written" in (samples / "out/README.md").read_text()


def test_statistics_of_the_data_are_computed_first(cntkpy, samples):
    from safetensors.numpy import load_file

    assert export(cntkpy, "speech.cntk", "--data", "cntkpy").code == 0
    tensors = load_file(samples / "out/weights.safetensors")
    assert any(abs(array).max() > 0 for name, array in tensors.items() if "mean" in name)


# ---- repeated trainings

BY_NORM = (
    "minibatchSize          = 32",
    "minibatchSize = 32 ; gradUpdateType = fsAdagrad ; L2RegWeight = 0.0001 ; epochSize = 1000\n"
    "        clippingThresholdPerSample = 0.05 ; gradientClippingWithTruncation = false",
)
PICTURES = (
    """\
        deserializers = ([
            type  = ImageDeserializer
            file  = "$DataDir$/shapes_train.map"
            input = [
                shape = [ transforms = (
                    [ type=Crop ; cropType=randomside ; sideRatio=0.8:1 ; jitterType=uniRatio ] :
                    [ type=Scale ; width=16 ; height=16 ; channels=3 ] :
                    [ type=Mean ; meanFile="$DataDir$/shapes_mean.xml" ] :
                    [ type=Transpose ] ) ]
                kind = [ labelDim = 4 ]
            ]
        ])
""",
    """\
        readerType = ImageReader ; file = "$DataDir$/shapes_train.map" ; randomize = none
        shape = [ width=16 ; height=16 ; channels=3 ; cropType=center ; sideRatio=0.9
                  meanFile="$DataDir$/shapes_mean.xml" ]
        kind  = [ labelDim = 4 ]
""",
)
SLOWLY = ("learningRatesPerMB = 0.1*20:0.02", "learningRatesPerMB = 0.05")
"""With 0.1, a change of the rate by 3e-6 changes the criterion of the second epoch by 4e-4."""
WORDS = ('file = "$DataDir$/words_train.ctf"', 'file = "$DataDir$/words_train.ctf" ; randomize = false')

REPEATED = {
    "digits": ("digits.cntk", [], (), []),
    "residual blocks": (
        "brainscript_resnet.cntk",
        [],
        (),
        [("epochSize          = 0                 #", "epochSize = 250 #")],
    ),
    "one answer per sequence": ("sequence_classifier.cntk", [], (), [WORDS]),
    "a language model": (
        "language_model.cntk",
        ["vocabulary"],
        ("--data", "cntkpy"),
        [("minibatchSize               = 50 ", "epochSize = 60 ; minibatchSize = 50 ")],
    ),
    "columns": (
        "label_map.cntk",
        ["labels"],
        (),
        [("minibatchSize          = 5", "minibatchSize = 5 ; gradUpdateType = rmsProp")],
    ),
    "columns, AdaGrad": (
        "label_map.cntk",
        ["labels"],
        (),
        [("minibatchSize          = 5", "minibatchSize = 5 ; gradUpdateType = adagrad ; epochSize = 13")],
    ),
    "speech": ("speech.cntk", [], ("--data", "cntkpy"), [BY_NORM]),
    "pictures": ("images.cntk", [], (), [PICTURES, SLOWLY]),
    "a tagger of shuffled sentences": (
        "brainscript_slots.cntk",
        [],
        ("--data", "cntkpy"),
        [("minibatchSize               = 50 ", "epochSize = 300 ; minibatchSize = 50 ")],
    ),
    "Nesterov": (
        "digits.cntk",
        [],
        (),
        [("minibatchSize      = 20", "minibatchSize = 30 ; useNAG = true ; L1RegWeight = 0.0001 ; epochSize = 500")],
    ),
}
"""Trainings: the sample, commands that come before, options, changes."""


def criteria_of_log(log):
    """The criteria of each epoch."""
    lines = re.findall(r"Finished Epoch\[ *(\d+) of 3\]: \[Training\] (.*)", log)
    return [[float(number) for number in re.findall(r" = ([\d.e+-]+) \*", line)] for _, line in lines]


def repeat(cntkpy, folder, name, options=()):
    """Export, train with the program, and with cntkpy; return the criteria of both."""
    got = export(cntkpy, name, *options, check=True)
    assert got.code == 0, got
    done = subprocess.run([sys.executable, "out/train.py"], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    theirs = [[float(word) for word in line.split()[2:]] for line in done.stdout.splitlines()]
    log = cntkpy(f"configFile=sample_configs/{name}", "command=train")
    assert log.code == 0, log
    return theirs, criteria_of_log(log.out + log.err)


@pytest.mark.torch
@pytest.mark.optimised
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", REPEATED)
def test_three_epochs_are_repeated(cntkpy, samples, case):
    """Criteria of each epoch, to 1e-4 relative."""
    pytest.importorskip("torch")
    name, before, options, changes = REPEATED[case]
    changed(samples, name, *changes)
    for command in before:
        assert cntkpy(f"configFile=sample_configs/{name}", f"command={command}").code == 0
    theirs, ours = repeat(cntkpy, samples, name, options)
    assert len(theirs) == len(ours) == 3
    for mine, other in zip(theirs, ours, strict=True):
        assert mine[: len(other)] == pytest.approx(other, rel=1e-4)
    assert_clean(samples / "out")


def assert_clean(folder):
    """The programs pass ruff, and its formatter changes nothing."""
    ruff = [f"{sys.prefix}/bin/ruff"]
    for words in (("check", "--select", "E,F,I,UP,B,W,C4"), ("format", "--diff")):
        call = [*ruff, *words, "--isolated", "--line-length", "100", folder.name]
        done = subprocess.run(call, cwd=folder.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


TAGGER = """\
command = train
precision = float
modelPath = "tagger.model"
train = [
    action = train
    BrainScriptNetworkBuilder = {
        words = SparseInput {12}
        tags  = Input {3}
        z     = Sequential (EmbeddingLayer {5} : RecurrentLSTMLayer {6} : DenseLayer {3}) (words)
        ce    = CrossEntropyWithSoftmax (tags, z)
        errs  = ClassificationError (tags, z)
        criterionNodes = (ce) ; evaluationNodes = (errs) ; outputNodes = (z)
    }
    SGD = [
        maxEpochs = 3 ; epochSize = 150 ; minibatchSize = 20:30 ; learningRatesPerSample = 0.05:0.03
        momentumAsTimeConstant = 50 ; clippingThresholdPerSample = 0.02 ; L2RegWeight = 0.001
    ]
    reader = [
        readerType = CNTKTextFormatReader ; file = "tags.ctf" ; randomize = false
        input = [ words = [ alias = w ; dim = 12 ; format = sparse ] ; tags = [ alias = t ; dim = 3 ; format = dense ] ]
    ]
]
"""


def tagged_sentences(count=40):
    """Sentences of one to seven words; the tag is that of the word before."""
    draw = random.Random(1)
    lines = []
    for number in range(count):
        last = 0
        for _ in range(draw.randint(1, 7)):
            word = draw.randrange(12)
            tag = " ".join("1" if place == last % 3 else "0" for place in range(3))
            lines.append(f"{number} |w {word}:1 |t {tag}")
            last = word
    return "\n".join(lines) + "\n"


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_a_tagger_of_sparse_sequences_is_repeated(cntkpy, samples):
    """Epochs end inside of the data, sizes and rates change, only words of a minibatch change their vectors."""
    pytest.importorskip("torch")
    (samples / "tags.ctf").write_text(tagged_sentences())
    (samples / "sample_configs/tagger.cntk").write_text(TAGGER)
    theirs, ours = repeat(cntkpy, samples, "tagger.cntk")
    assert len(theirs) == len(ours) == 3
    for mine, other in zip(theirs, ours, strict=True):
        assert mine[: len(other)] == pytest.approx(other, rel=1e-4)
    text = (samples / "out/train.py").read_text()
    assert 'FROZEN = ("lstm.bias_hh_l0",)' in text
    assert '"by_row": True' in text
