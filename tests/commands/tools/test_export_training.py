"""`cntkpy export --training`: the written program repeats a training."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def digits(tmp_path):
    """The digits in the order of their file, three epochs."""
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    path = tmp_path / "sample_configs/digits.cntk"
    text = path.read_text().replace("randomize  = true", "randomize  = false")
    path.write_text(text.replace("maxEpochs          = 12", "maxEpochs          = 3"))
    return tmp_path


def test_the_program(cntkpy, digits):
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--training", "--no-check")
    assert got.code == 0, got
    assert got.out.splitlines() == [
        "out: class Digits, 23 lines, 4 tensors",
        "files: model.py, weights.safetensors, README.md, train.py",
    ]
    text = (digits / "out/train.py").read_text()
    assert "def criteria(" in text
    assert "SIZES = [20, 20, 20]" in text
    assert max(map(len, text.splitlines())) <= 100
    compile(text, "train.py", "exec")


def test_what_is_not_written_is_listed(cntkpy, digits):
    got = cntkpy(
        "export", "sample_configs/brainscript_slots.cntk", "out", "--to", "pytorch", "--training", "--no-check"
    )
    assert got.code == 1
    assert "the training cannot be written as PyTorch source, because of:" in got.err
    assert "  networks that look along time" in got.err
    assert "  clippingThresholdPerSample" in got.err
    assert "  a reader other than CNTKTextFormatReader" in got.err
    assert not (digits / "out").exists()


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_three_epochs_are_repeated(cntkpy, digits):
    """Criteria and errors of each epoch, to 1e-4 relative."""
    pytest.importorskip("torch")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--training", "--check")
    assert got.code == 0, got
    done = subprocess.run([sys.executable, "out/train.py"], cwd=digits, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = [[float(word) for word in line.split()[2:]] for line in done.stdout.splitlines()]
    log = cntkpy("configFile=sample_configs/digits.cntk", "command=train")
    pattern = r"CrossEntropyWithSoftmax = ([\d.]+) \* 1400; EvalClassificationError = ([\d.]+) \* 1400"
    ours = [[float(word) for word in pair] for pair in re.findall(pattern, log.out + log.err)][:3]
    assert len(theirs) == len(ours) == 3
    for mine, other in zip(theirs, ours, strict=True):
        assert mine == pytest.approx(other, rel=1e-4)
