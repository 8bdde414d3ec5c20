"""`cntkpy preview`: what it tells about small data whose numbers are known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cntkpy.commands.tools.convert import convert
from cntkpy.commands.tools.preview import preview

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


@pytest.mark.parametrize("path", ["test", "test/reader", "test.reader"])
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


def test_errors_in_data_point_to_the_section_that_names_them(capsys):
    with Path("a.ctf").open("a") as file:
        file.write("8 |w zero:2 |t 0 1\n")
    assert preview(["m.cntk", "test"]) == 0  # it does not read w
    for run in (lambda: preview(["m.cntk"]), lambda: convert(["configFile=m.cntk", "train"], "a.npz")):
        capsys.readouterr()
        assert run() == 1
        assert "--> m.cntk:4:59\n" in capsys.readouterr().err
    Path("a.ctf").unlink()
    assert preview(["m.cntk", "test"]) == 1
    assert "--> m.cntk:7:78\n" in capsys.readouterr().err


def test_the_command_line(here, cntkpy):
    got = cntkpy("preview", "configFile=m.cntk", "test", "--format", "json", cwd=here)
    assert got.code == 0, got.err
    assert json.loads(got.out)["samples"] == 3


def keys_of(value, prefix=""):
    """Every key in JSON data, keys that are names of streams left out."""
    found = set()
    if isinstance(value, dict) and prefix != "streams of first":
        for key, inside in value.items():
            found |= {key} | keys_of(inside, "streams of first" if prefix == "first" and key == "streams" else key)
    elif isinstance(value, list):
        for inside in value:
            found |= keys_of(inside, prefix)
    return found


def test_the_page_names_every_key(capsys):
    page = (Path(__file__).parents[3] / "docs" / "preview-and-convert.md").read_text(encoding="utf-8")
    begin = page.index("`--format json` prints one object")
    table = page[begin : page.index("`--picture FILE`", begin)]
    assert keys_of(described(capsys)) == set(re.findall(r"`(\w+)`", table))


def test_what_is_not_known_is_null(capsys, monkeypatch):
    monkeypatch.syspath_prepend(".")
    Path("nans.py").write_text(
        "import numpy as np\nfrom cntkpy.readers import MinibatchSourceFromData\n"
        "def make(): return MinibatchSourceFromData({'x': np.array([[1, np.nan], [np.inf, 2]], 'f')})\n"
    )
    reader = "train=[reader=[readerType=UserMinibatchSource;module=nans;class=make]]"
    assert preview(["m.cntk", reader], as_json=True, modules=True) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert (found["samples"], found["bytes"], found["speed"]["megabytes_per_second"]) == (None, None, None)
    (x,) = found["streams"]
    assert (x["not_finite"], x["min"], x["max"]) == (2, 1, 2)


@pytest.mark.parametrize(("path", "part"), [("none", "none is not a reader section"), ("number", "number is not")])
def test_commands_without_a_reader(capsys, path, part):
    assert preview(["m.cntk", "none=[action=train]", "number=5", path]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert "name one, such as train/reader or test/reader" in err


def test_the_speed_is_not_that_of_loading_the_program(capsys, monkeypatch):
    """The first minibatch of a process waits for modules and kernels; little data are read once more (E8)."""
    import time

    from cntkpy.readers import registry

    make, slow = registry.create_reader, 0.5

    def create(*arguments):
        reader = make(*arguments)
        if not made:
            first = reader.get_minibatch
            reader.get_minibatch = lambda: (time.sleep(slow), first())[1]
        made.append(reader)
        return reader

    made: list[object] = []
    monkeypatch.setattr(registry, "create_reader", create)
    found = described(capsys)
    assert len(made) == 2
    assert found["speed"]["samples_per_second"] > found["samples"] / slow
