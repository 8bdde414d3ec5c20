"""`cntkpy convert` between Kaldi, HTK and text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cntkpy.commands.tools.convert import convert
from cntkpy.readers.formats.kaldi.labels import read_classes
from cntkpy.readers.formats.kaldi.matrices import read_matrices

from .speech import Corpus

LENGTHS = (5, 2, 4)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.chdir(tmp_path)
    return Corpus(Path(), LENGTHS)


def same(archive: str, labels: str, data: Corpus) -> None:
    found, classes = dict(read_matrices(f"ark:{archive}")), read_classes(f"ark:{labels}")
    assert list(found) == data.keys and classes.keys == data.keys
    for key, frames in zip(data.keys, data.frames, strict=True):
        np.testing.assert_array_equal(found[key], frames)
    np.testing.assert_array_equal(classes.classes, np.concatenate(data.classes))


def test_from_htk_and_back(data: Corpus) -> None:
    assert convert(["htk.scp", "labels.mlf", "states"], "k.ark", quiet=True) == 0
    same("k.ark", "k.labels.ark", data)
    assert Path("k.counts").read_text() == Path("counts").read_text()
    assert convert(["k.ark", "k.labels.ark"], "h.scp", ("features:3", "labels:4:class"), quiet=True) == 0
    assert convert(["h.scp", "h.mlf"], "again.ark", quiet=True) == 0
    same("again.ark", "again.labels.ark", data)


@pytest.mark.parametrize(
    "words", [["scp:feats.scp", "ark:ali.ark"], ["feats.ark", "ali.ark"], ["ark,s:feats.ark", "ali.ark"]]
)
def test_to_text_and_archives_and_back(data: Corpus, words: list[str]) -> None:
    assert convert(words, "a.ctf", quiet=True) == 0
    first = Path("a.ctf").read_text().splitlines()[0]
    values = " ".join(map(str, data.frames[0][0]))
    assert first == f"0 |features {values} |labels {data.classes[0][0]}:1"
    assert convert(words, "a.npz", ("labels:4:class", "features:3"), quiet=True) == 0
    assert convert(["a.npz"], "b.ark", ("labels:4:class", "features:3"), quiet=True) == 0
    same("b.ark", "b.labels.ark", data)


def test_features_alone_and_doubles(data: Corpus) -> None:
    Path("d.txt").write_text("u [ 0.1 0.2\n 0.3 0.4 ]\n")
    assert convert(["ark:d.txt"], "d.ark", precision="double", quiet=True) == 0
    ((_, rows),) = read_matrices("ark:d.ark", np.float64)
    assert rows.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert not Path("d.labels.ark").exists() and Path("d.counts").read_text() == "u 2\n"


def test_a_section_of_a_configuration(data: Corpus) -> None:
    text = data.kaldi_section(frameMode=False).replace(";", "\n")
    Path("m.cntk").write_text(f"command=t\nt=[action=train\nreader=[\n{text}\n]\n]\n")
    assert convert(["configFile=m.cntk", "t/reader"], "o.ark", ("x:3", "y:4:class"), quiet=True) == 0
    same("o.ark", "o.labels.ark", data)


@pytest.mark.parametrize(
    ("words", "output", "streams", "message"),
    [
        (["htk.scp"], "htk.ark", (), "htk.ark would be written over itself"),
        (
            ["feats.ark"],
            "feats.scp",
            (),
            "feats.ark would be written over what is read: feats.scp has feats.ark next to it",
        ),
        (["scp:feats.scp"], "feats.ark", (), "feats.ark would be written over itself"),
        (["a.ctf"], "k.ark", (), "Kaldi archives hold one stream of features"),
        (["feats.ark", "ali.ark", "more"], "x.ctf", (), "what is more?"),
        (["feats.ark", "ali.ark"], "x.ctf", ("features:3", "labels:2:class"), "exceeds the label dimension"),
    ],
)
def test_what_goes_wrong(data: Corpus, capsys: pytest.CaptureFixture[str], words, output, streams, message) -> None:
    Path("a.ctf").write_text("|x 1 |y 2\n")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert convert(words, output, streams, quiet=True) != 0
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
