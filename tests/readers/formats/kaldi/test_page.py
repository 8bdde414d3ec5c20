"""docs/kaldi.md: its example runs; and the training log with Kaldi data is that with HTK data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.formats.kaldi.archive import open_table
from cntkpy.readers.formats.kaldi.matrices import read_matrices

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs/kaldi.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def block(beginning: str) -> str:
    """The block of the page that begins so."""
    return next(text for _, text in BLOCKS if text.lstrip().startswith(beginning))


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in text.splitlines()]


TIMES = re.compile(r"^.*?(?=Epoch|Finished)|(time|totalTime|epochTime|SamplesPerSecond)\w* ?= ?[\d.]+s?|[\d.]+s\b")


def lines_of_training(log: str) -> list[str]:
    """The lines with criteria, without times."""
    return [TIMES.sub("", line) for line in log.splitlines() if "CrossEntropyWithSoftmax = " in line]


@pytest.mark.thorough
def test_the_example_runs_and_trains_as_with_htk(tmp_path: Path, cntkpy) -> None:
    def run_page(*words: str) -> str:
        got = cntkpy(*words)
        assert got.code == 0, got.err
        return got.out + got.err

    (tmp_path / "sample_configs").symlink_to(ROOT / "sample_configs")
    (tmp_path / "kaldi.cntk").write_text(block("command   = train:write"))
    for words in commands(block("cntkpy convert sample_configs")):
        run_page(*words)
    preview, run, convert = commands(block("cntkpy preview"))
    assert "features: dense, 143" in run_page(*preview)
    ours = lines_of_training(run_page(*run))
    htk = 'features=[dim=13;contextWindow=11;scpFile="sample_configs/data/speech_{0}.scp"]'
    states = 'mlfFile="sample_configs/data/speech_train.mlf";labelMappingFile="sample_configs/data/speech.states"'
    text = block("command   = train:write").replace("Kaldi2Reader", "HTKMLFReader").replace("kaldi.model", "htk.model")
    text = re.sub(r"features = \[ dim = 13 .*train.counts.*\]", htk.format("train"), text)
    text = re.sub(r"labels   = \[.*\]", f"labels=[labelDim=9;{states}]", text)
    (tmp_path / "htk.cntk").write_text(text)
    theirs = lines_of_training(run_page("configFile=htk.cntk", "command=train"))
    assert len(theirs) >= 2 and ours == theirs
    like = dict(read_matrices(f"ark:{tmp_path}/like.ark"))
    counts = dict(line.split() for line in (tmp_path / "test.counts").read_text().splitlines())
    assert {key: str(len(rows)) for key, rows in like.items()} == counts
    assert all(rows.shape[1] == 9 and np.isfinite(rows).all() for rows in like.values())
    run_page(*convert)
    assert (tmp_path / "like.ctf").read_text().count("\n") == sum(map(int, counts.values()))


def test_the_error_about_a_command_is_that_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = block("error: labels.rx")
    command = re.search(r"labels\.rx: '(.*)' is a shell", shown)
    assert command is not None
    with pytest.raises(UserError) as error:
        open_table(f"ark:{command[1]}", 1, "labels.rx: ", "labels")
    found = f"error: {error.value.diagnostic.message}\nhelp: {error.value.diagnostic.hint}\n"
    assert found == shown


@pytest.mark.parametrize(
    ("old", "new", "place", "told"),
    [
        ("ark:train.ark", "ark:copy-feats scp:f.scp ark:- |", "train:reader:features:rx", "is a shell command"),
        ("ark:train.labels.ark", "pipe", "train:reader:labels:mlfFile", "pipe: 'ali-to-pdf m ark:- |' is a shell"),
        ("ark:like.ark", "ark:| gzip", "write:writer:ScaledLogLikelihood:Kaldicmd", "'| gzip' is a shell command"),
        ("ark:train.ark", "arc:f", "train:reader:features:rx", "'arc:f': no such file"),
        ("ark:train.labels.ark", "ark:no:3", "train:reader:labels:mlfFile", "'ark:no:3': no such file"),
    ],
)
def test_check_finds_commands_and_tables_that_are_missing(
    tmp_path: Path, cntkpy, old: str, new: str, place: str, told: str
) -> None:
    text = block("command   = train:write")
    assert old in text
    for name in ("train.counts", "train.ark", "train.labels.ark", "test.counts", "test.ark"):
        (tmp_path / name).touch()
    files = {"kaldi.cntk": text.replace(old, new), "pipe": "ark:ali-to-pdf m ark:- |\n"}
    got = cntkpy("check", "kaldi.cntk", files=files)
    line = next(line for line in got.out.splitlines() if told in line)
    assert place in line and "kaldi.cntk:" in line
    assert ("error: " in line) == ("shell" in told)
    assert "no such file" not in cntkpy("check", "kaldi.cntk", files={"kaldi.cntk": text}).out
