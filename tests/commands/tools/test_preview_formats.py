"""`cntkpy preview` of every kind of reader: it is told how many bytes are read; the first samples are drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.commands.tools.convert import convert
from cntkpy.commands.tools.preview import preview
from cntkpy.commands.tools.preview_picture import first_samples
from cntkpy.readers.formats.htk.archive import write_archive
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.readers.user.streams import StreamInformation

Described = Callable[..., dict[str, Any]]
UTTERANCES = {"a": 3, "b": 5, "c": 2}


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Described:
    """Describes a reader section given as text."""
    monkeypatch.chdir(tmp_path)

    def run(section: str, **options: Any) -> dict[str, Any]:
        Path("m.cntk").write_text(f"command=t\nt=[action=train\nreader=[\n{section}\n]]\n")
        assert preview(["m.cntk"], as_json=True, **options) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return run


def size(*names: str) -> int:
    return sum(Path(name).stat().st_size for name in names)


def test_columns_and_their_cache(described: Described) -> None:
    Path("d.txt").write_text("cat 1 2\ndog 3 4\ncat 5 6\n")
    Path("d.map").write_text("cat\ndog\n")
    text = (
        "readerType=UCIFastReader;file=d.txt;features=[start=1;dim=2;sectionType=Data]\n"
        "labels=[start=0;dim=1;labelType=category;labelDim=2;labelMappingFile=d.map;sectionType=Labels\n"
        "category=[dim=2;sectionType=CategoryLabels];mapping=[sectionType=LabelMapping;wrecords=2;elementSize=6]]"
    )
    found = described(text)
    assert (found["reader"], found["samples"], found["bytes"]) == ("UCIFastReader", 3, size("d.txt"))
    assert found["streams"][1]["classes"] == [{"class": "cat", "count": 2}, {"class": "dog", "count": 1}]
    assert found["speed"]["megabytes_per_second"] >= 0
    cached = described(text + "\nwriterType=BinaryReader;wfile=d.bin;wrecords=3")
    assert Path("d.bin").exists()
    again = described(text + "\nwriterType=BinaryReader;wfile=d.bin;wrecords=3")
    assert again["bytes"] == size("d.bin")
    assert again["streams"] == cached["streams"] == found["streams"]


def test_binary_files(described: Described) -> None:
    Path("a.ctf").write_text("|x 1 2 |y 2:1\n|x 3 4.5 |y 0:1\n")
    assert convert(["a.ctf"], "x.bin", ("x:2",), quiet=True) == 0
    assert convert(["a.ctf"], "y.bin", ("y:3:class",), quiet=True) == 0
    found = described('readerType=BinaryReader;file="x.bin,y.bin";allowDifferentSessions=true')
    assert found["bytes"] == size("x.bin", "y.bin")
    assert [s["name"] for s in found["streams"]] == ["x", "y", "yVectors"]
    assert found["streams"][0]["max"] == 4.5


def test_corpora(described: Described) -> None:
    Path("text").write_text("# a b #\n# b b a #\n")
    Path("classes").write_text("0 9 # 0\n1 5 a 1\n2 3 b 1\n")
    label = "labelMappingFile=none"
    found = described(
        "readerType=SequenceReader;file=text;wordclass=classes;features=[dim=0]\n"
        f"labelIn=[labelType=category;{label}];labels=[labelType=nextWord;{label}]"
    )
    assert (found["bytes"], found["samples"]) == (size("text"), 7)
    assert found["streams"][0]["classes"][0] == {"class": "b", "count": 3}
    Path("columns").write_text("a X\nb Y\n\nb X\n")
    Path("words").write_text("a\nb\n")
    Path("tags").write_text("X\nY\n")
    one = "file=columns;features%d=[dim=0];in%d=[labelType=category;token=words];out%d=[labelType=category;token=tags]"
    found = described("readerType=LUSequenceReader;" + one % (1, 1, 1))
    assert (found["bytes"], found["streams"][1]["length"]["max"]) == (size("columns"), 2)
    two = ";".join(f"{name}=[{one % (i, i, i)}]" for i, name in enumerate(("p", "q")))
    found = described(f"readerType=LUSequenceReader;ioNodeNames=p:q;{two}")
    assert found["bytes"] == size("columns")
    assert len(found["streams"]) == 4


@pytest.fixture
def speech(described: Described) -> Described:
    """An archive with labels."""
    frames = {name: np.arange(3.0 * n).reshape(n, 3) for name, n in UTTERANCES.items()}
    write_archive("a.ark", frames.items(), "a.scp")
    entries = [f'"*/{name}.lab"\n0 {n}00000 s {n % 2}\n.\n' for name, n in UTTERANCES.items()]
    Path("a.mlf").write_text("#!MLF!#\n" + "".join(entries))
    return described


@pytest.mark.parametrize(
    "section",
    [
        "readerType=HTKMLFReader;frameMode=%s;features=[scpFile=a.scp;dim=3];labels=[mlfFile=a.mlf;labelDim=2]",
        "frameMode=%s;deserializers=([type=HTKFeatureDeserializer;input=[features=[scpFile=a.scp;dim=3]]]:"
        "[type=HTKMLFDeserializer;input=[labels=[mlfFile=a.mlf;labelDim=2]]])",
    ],
)
@pytest.mark.parametrize("frame_mode", ["true", "false"])
def test_speech(speech: Described, section: str, frame_mode: str) -> None:
    found = speech(section % frame_mode)
    assert (found["samples"], found["bytes"]) == (10, size("a.ark", "a.mlf"))
    assert found["streams"][1]["classes"] == [{"class": 1, "count": 8}, {"class": 0, "count": 2}]
    assert found["streams"][0]["length"]["max"] == (1 if frame_mode == "true" else 5)


def test_a_picture(speech: Described, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.image as image

    section = "readerType=HTKMLFReader;frameMode=false;features=[scpFile=a.scp;dim=3];labels=[mlfFile=a.mlf;labelDim=2]"
    assert speech(section, picture="a.png")["picture"] == "a.png"
    pixels = image.imread("a.png")
    assert pixels.shape[0] > 300
    colours = (255 * pixels.astype(np.float64)).round() @ 256.0 ** np.arange(pixels.shape[2])
    assert len(np.unique(colours)) > 10
    assert preview(["m.cntk"], picture="a.svg") == 0
    assert "a.svg: the first samples" in capsys.readouterr().out
    assert preview(["m.cntk"], picture="a.doc") == 2
    assert "the name ends in .png, .svg, .pdf" in capsys.readouterr().err


def test_what_is_drawn() -> None:
    """Samples sequence after sequence, gaps left out; 500 at most."""
    layout = Layout(3, 2, np.array([[0, 0, 0, 3], [1, 1, 0, 2]]))
    values = np.array([[[1], [10]], [[2], [20]], [[3], [0]]], np.float32)
    samples, ends = first_samples(Minibatch({"x": values}, {"x": layout}), "x")
    assert samples.tolist() == [[1], [2], [3], [10], [20]]
    assert ends.tolist() == [3, 5]
    long = Layout(900, 1, np.array([[0, 0, 0, 900]]))
    samples, ends = first_samples(Minibatch({"x": np.ones((900, 1, 2))}, {"x": long}), "x")
    assert (samples.shape, ends.tolist()) == ((500, 2), [500])


def test_wide_streams_are_not_drawn(tmp_path: Path) -> None:
    from cntkpy.commands.tools.preview_picture import draw

    layout = Layout(1, 1, np.array([[0, 0, 0, 1]]))
    streams = [
        StreamInformation("x", 0, "dense", np.float32, (2,)),
        StreamInformation("y", 1, "dense", np.float32, (6000,)),
    ]
    minibatch = Minibatch({"x": np.ones((1, 1, 2)), "y": np.ones((1, 1, 6000))}, {"x": layout, "y": layout})
    assert draw(streams, minibatch, tmp_path / "p.png") == ["y"]
