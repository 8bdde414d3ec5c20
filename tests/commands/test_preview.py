"""`cntkpy preview`: what it tells about small data whose numbers are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.preview import preview

CONFIG = """\
command = train:test
precision = double
train = [ action = train
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; randomize = false
        input = [ w = [ dim = 6 ; format = sparse ] ; t = [ dim = 2 ; format = dense ] ] ] ]
test = [ action = test
    reader = [ deserializers = ([ type = CNTKTextFormatDeserializer ; file = a.ctf
        input = [ t = [ dim = 2 ; format = dense ] ] ]) ] ]
"""
DATA = "0 |w 3:1 5:0.5 |t 1 0\n0 |w 2:-1 |t 0 1\n7 |w 0:2 |t 0 1\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.cntk").write_text(CONFIG)
    Path("a.ctf").write_text(DATA)
    return tmp_path


def described(capsys, *words, **options):
    assert preview(["m.cntk", *words], as_json=True, **options) == 0
    return json.loads(capsys.readouterr().out)


def test_what_is_told(capsys):
    found = described(capsys)
    assert (found["section"], found["reader"], found["samples"]) == ("train/reader", "CNTKTextFormatReader", 3)
    assert found["bytes"] == len(DATA)
    assert (found["minibatches"], found["samples_seen"], found["whole_sweep_read"]) == (1, 3, True)
    t, w = found["streams"]
    assert (t["name"], t["storage"], t["shape"], t["type"]) == ("t", "dense", [2], "float64")
    assert t["classes"] == [{"class": 1, "count": 2}, {"class": 0, "count": 1}]
    assert t["length"] == {"min": 1, "mean": 1.5, "max": 2}
    assert (w["storage"], w["min"], w["max"], w["mean"]) == ("sparse", -1, 2, 2.5 / 18)
    assert w["nonzero"] == pytest.approx(4 / 18)
    assert w["classes"] == []
    assert found["first"][0] == {"key": 0, "streams": {"t": ["1 0", "0 1"], "w": ["3:1 5:0.5", "2:-1"]}}


def test_for_people(capsys):
    assert preview(["m.cntk"], samples=1) == 0
    out = capsys.readouterr().out
    assert "train/reader: CNTKTextFormatReader, 3 samples" in out
    assert "t: dense, 2, float64\n  2 sequences, of 1 to 2, 1.5 on average samples" in out
    assert "one class per sample: 1: 2, 0: 1" in out
    assert "sequence 0\n  t: 1 0\n     0 1\n  w: 3:1 5:0.5\n     2:-1" in out


@pytest.mark.parametrize("path", ["test", "test/reader"])
def test_a_section_by_name(capsys, path):
    found = described(capsys, path, samples=0)
    assert (found["section"], found["reader"], found["first"]) == ("test/reader", "CompositeDataReader", [])


def test_overrides_count(capsys):
    assert described(capsys, "precision=float", minibatches=1, size=1)["streams"][0]["type"] == "float32"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["no.cntk"], "cannot read 'no.cntk'"),
        (["m.cntk", "nowhere"], "nowhere"),
        (["m.cntk", "train=[reader=[file=b.ctf]]"], "b.ctf"),
    ],
)
def test_what_cannot_be_shown(capsys, words, part):
    assert preview(words) in (1, 2)
    assert part in capsys.readouterr().err


def test_malformed_data_are_named(capsys):
    Path("a.ctf").write_text(DATA + "9 |w 1:x |t 1 0\n")
    assert preview(["m.cntk"]) == 1
    assert "line 4, column 8" in capsys.readouterr().err


def test_the_command_line(here, cntkpy):
    got = cntkpy("preview", "configFile=m.cntk", "test", "--json", cwd=here)
    assert got.code == 0, got.err
    assert json.loads(got.out)["samples"] == 3
