"""`cntkpy convert` with binary files, HTK features and labels, and corpora: there and back, and what goes wrong."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.commands.tools.convert import convert
from cntkpy.readers import create_reader
from cntkpy.readers.convert import sources
from cntkpy.readers.convert.formats import FORMATS
from cntkpy.readers.formats.htk.archive import read_features, write_features

TEXT = "0 |x 1 2 |y 2:1\n0 |x 3 4 |y 2:1\n0 |x 5 6 |y 0:1\n5 |x 0.5 -1 |y 1:1\n"
SPECS = ("x:2", "y:3:class")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ctf").write_text(TEXT)
    return tmp_path


def test_binary_files() -> None:
    Path("flat.ctf").write_text("|x 1 2 |y 2:1\n|x 3 4.5 |y 0:1\n")
    assert convert(["flat.ctf"], "a.bin", SPECS, quiet=True) == 0
    reader = create_reader("readerType=BinaryReader ; file=a.bin")
    reader.start_minibatch_loop(9, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None
    assert minibatch.matrix("x").T.tolist() == [[1, 2], [3, 4.5]]
    assert minibatch.matrix("y").T.tolist() == [[0, 0, 1], [1, 0, 0]]
    reader.close()
    assert convert(["a.bin"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text() == "0 |x 1 2 |y 2:1\n1 |x 3 4.5 |y 0:1\n"
    assert convert(["a.bin"], "b.npz", quiet=True) == 0
    with np.load("b.npz") as found:
        assert found["y"].tolist() == [2, 0]
    Path("double.ctf").write_text("|x 0.12345678901234567\n")
    assert convert(["double.ctf"], "d.bin", precision="double", quiet=True) == 0
    assert convert(["d.bin"], "d.ctf", quiet=True) == 0
    assert Path("d.ctf").read_text() == f"0 |x {0.12345678901234567!r}\n"


def test_several_binary_files_and_names_of_classes() -> None:
    """Columns with names of classes, through UCIFastReader, keep these in the binary file."""
    Path("pets.txt").write_text("cat 1 2\ndog 3 4\ncat 5 6\n")
    Path("pets.map").write_text("cat\ndog\n")
    Path("m.cntk").write_text(
        "command=t\nt=[action=train;reader=[readerType=UCIFastReader;file=pets.txt;randomize=auto;features=[start=1;dim=2]\n"
        "labels=[start=0;dim=1;labelType=category;labelDim=2;labelMappingFile=pets.map]]]\n"
    )
    assert convert(["configFile=m.cntk"], "x.bin", ("features:2",), quiet=True) == 0
    assert convert(["configFile=m.cntk"], "y.bin", ("labels:2:class",), quiet=True) == 0
    reader = create_reader('readerType=BinaryReader ; file="x.bin,y.bin"')
    assert reader.get_label_mapping("labels") == {0: "cat", 1: "dog"}
    reader.close()
    assert convert(["x.bin", "y.bin"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text().splitlines()[1] == "1 |features 3 4 |labels 1:1"
    assert convert(["y.bin", "x.bin"], "c.bin", quiet=True) == 0
    reader = create_reader("readerType=BinaryReader ; file=c.bin")
    assert reader.get_label_mapping("labels") == {0: "cat", 1: "dog"}
    reader.close()


def test_features_and_labels() -> None:
    assert convert(["a.ctf"], "a.scp", SPECS, quiet=True) == 0
    assert Path("a.scp").read_text() == "0.fea=.../a.ark[0,2]\n5.fea=.../a.ark[3,3]\n"
    assert Path("a.mlf").read_text() == (
        '#!MLF!#\n"*/0.lab"\n0 200000 s2 2\n200000 300000 s0 0\n.\n"*/5.lab"\n0 100000 s1 1\n.\n'
    )
    assert Path("a.ark").read_bytes() == struct.pack(">iiHH8f", 4, 100000, 8, 9, 1, 2, 3, 4, 5, 6, 0.5, -1)
    assert convert(["a.scp", "a.mlf"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text() == TEXT.replace("5 |x", "1 |x").replace("|x", "|features").replace("|y", "|labels")
    Path("states").write_text("s0\ns1\ns2\ns3\n")
    assert convert(["a.scp", "a.mlf", "states"], "b.npz", quiet=True) == 0
    with np.load("b.npz") as found:
        assert found["keys"].tolist() == ["0", "5"]
        assert found["features"].tolist() == [[1, 2], [3, 4], [5, 6], [0.5, -1]]
        assert found["labels"].tolist() == [2, 2, 0, 1]
        assert found["features.lengths"].tolist() == [3, 1]
    before = [Path(name).read_bytes() for name in ("a.ark", "a.mlf")]
    assert convert(["b.npz"], "c.scp", ("features:2", "labels:3:class"), quiet=True) == 0
    assert [Path(name).read_bytes() for name in ("c.ark", "c.mlf")] == before
    assert Path("c.scp").read_text() == Path("a.scp").read_text().replace("a.ark", "c.ark")
    assert convert(["a.scp", "a.mlf"], "d.ctf", ("labels:9:class",), quiet=True) == 0
    assert Path("d.ctf").read_text().split() == ["0", "|labels", "2:1", "0", "|labels", "2:1", "0", "|labels", "0:1",
                                                 "1", "|labels", "1:1"]  # fmt: skip


def test_names_of_utterances_go_through_archives_and_a_file_is_one_utterance() -> None:
    write_features("one.mfc", np.arange(6).reshape(3, 2), kind="MFCC_0", compressed=True)
    write_features("two.mfc", np.ones((2, 2)), kind="MFCC_0")
    Path("u.scp").write_text("speaker/ä.one=one.mfc\nspeaker/b.two.x=two.mfc[0,0]\n")
    assert convert(["one.mfc"], "one.npz", quiet=True) == 0
    with np.load("one.npz") as found:
        assert found["keys"].tolist() == ["one"]
        assert np.allclose(found["features"], np.arange(6).reshape(3, 2), atol=1e-3)
    Path("u.scp").write_text("speaker/ä.one=two.mfc\nspeaker/b.two.x=two.mfc[0,0]\n")
    assert convert(["u.scp"], "u.npz", quiet=True) == 0
    assert convert(["u.npz"], "v.scp", quiet=True) == 0
    assert Path("v.scp").read_text() == "speaker/ä.fea=.../v.ark[0,1]\nspeaker/b.two.fea=.../v.ark[2,2]\n"
    assert read_features("v.ark").tolist() == [[1, 1]] * 3


def test_corpora() -> None:
    Path("text").write_text("# a b #\n\n# b zzz a #\n")
    Path("words").write_text("#\na\nb\n<unk>\n")
    expected = (
        "0 |words 0:1 |next 1:1\n0 |words 1:1 |next 2:1\n0 |words 2:1 |next 0:1\n1 |words 0:1 |next 2:1\n"
        "1 |words 2:1 |next 3:1\n1 |words 3:1 |next 1:1\n1 |words 1:1 |next 0:1\n"
    )
    assert convert(["text", "words"], "a.ctf", source_format="lm", quiet=True) == 0
    assert Path("a.ctf").read_text() == expected
    Path("classes").write_text("0 9 # 0\n1 5 a 1\n2 3 b 1\n3 1 <unk> 1\n")
    assert convert(["text", "classes"], "a.npz", source_format="lm", quiet=True) == 0
    with np.load("a.npz") as found:
        assert found["words"].tolist() == [0, 1, 2, 0, 2, 3, 1]
        assert found["next.lengths"].tolist() == [3, 4]
    Path("columns").write_text("a X\nb a Y\n\nzzz X\n")
    Path("tags").write_text("X\nY\n")
    assert convert(["columns", "words", "tags"], "b.ctf", source_format="lu", quiet=True) == 0
    assert Path("b.ctf").read_text() == "0 |words 1:1 |tags 0:1\n0 |words 2:1 1:1 |tags 1:1\n1 |words 3:1 |tags 0:1\n"
    assert convert(["columns", "words", "tags"], "b.bin", ("tags:2:class",), source_format="lu", quiet=True) == 0
    reader = create_reader("readerType=BinaryReader ; file=b.bin")
    assert reader.get_label_mapping("tags") == {0: "X", 1: "Y"}
    reader.close()


def test_the_sections_of_language_and_speech_readers() -> None:
    """A section is read in the order of its data, in whole sequences, though it says otherwise."""
    Path("text").write_text("".join(f"# {'a ' * n}#\n" for n in (3, 1, 4, 1, 5)))
    Path("classes").write_text("0 9 # 0\n1 5 a 1\n")
    label = "labelType=%s;labelMappingFile=none"
    Path("m.cntk").write_text(
        "command=t\nt=[action=train;reader=[readerType=SequenceReader;file=text;wordclass=classes;mode=softmax\n"
        f"features=[dim=0];labelIn=[{label % 'category'}];labels=[{label % 'nextWord'}]]]\n"
        "s=[action=train;reader=[readerType=HTKMLFReader;frameMode=false;truncated=true;features=[scpFile=a.scp;dim=2]\n"
        "labels=[mlfFile=a.mlf;labelDim=3]]]\n"
    )
    assert convert(["configFile=m.cntk", "t"], "t.npz", quiet=True) == 0
    with np.load("t.npz") as found:
        assert found["features.lengths"].tolist() == [4, 2, 5, 2, 6]
        assert found["keys"].tolist() == [0, 1, 2, 3, 4]
    Path("two.ctf").write_text(TEXT + "5 |x 9 9 |y 1:1\n")  # this reader knows no utterances of a single frame
    assert convert(["two.ctf"], "a.scp", SPECS, quiet=True) == 0
    assert convert(["configFile=m.cntk", "s/reader"], "s.npz", quiet=True) == 0
    with np.load("s.npz") as found:
        assert found["features"].tolist() == [[1, 2], [3, 4], [5, 6], [0.5, -1], [9, 9]]
        assert found["features.lengths"].tolist() == [3, 2]


@pytest.mark.parametrize(
    ("words", "output", "specs", "options", "part"),
    [
        (["a.ctf"], "b.lm", (), {"target_format": "lm"}, "lm is only read"),
        (["a.ctf", "a.ctf"], "b.npz", (), {}, "text format is one file, but there are 2"),
        (["a.bin"], "b.ctf", (), {}, "a.bin"),
        (["a.ctf"], "b.scp", ("x:2", "y:3"), {}, "one stream of features"),
        (["a.ctf"], "b.htk", SPECS, {}, "is not the name of a script file"),
        (["a.ctf"], "b.scp", ("y:3:class",), {}, "one stream of features"),
        (["a.ctf"], "b.scp", ("x:2", "y:20000:sparse"), {}, "one stream of features"),
        (["wide.npz"], "b.scp", (), {}, "20000 values"),
        (["no.scp"], "b.ctf", (), {}, "no.scp"),
        (["bad.scp"], "b.ctf", (), {}, "bad.scp, line 1"),
        (["bad.mfc"], "b.ctf", (), {}, "not an HTK feature file"),
        (["bad.mfc", "a.mlf"], "b.ctf", (), {}, "labels belong to a script file"),
        (["bad.scp", "x", "y"], "b.ctf", (), {}, "what is y?"),
        (["good.scp", "bad.mlf"], "b.ctf", (), {}, "bad.mlf"),
        (["text"], "b.ctf", (), {"source_format": "lm"}, "2 files are needed"),
        (["text", "no"], "b.ctf", (), {"source_format": "lm"}, "list of words no cannot be read"),
        (["text", "words"], "b.ctf", (), {"source_format": "lm"}, "text:1:5: the word 'b' is not in the list"),
        (["columns", "words", "words"], "b.ctf", (), {"source_format": "lu"}, "columns:1:3: the label 'X'"),
        (["good.scp"], "good.scp", (), {}, "written over itself"),
        (["empty.npz"], "b.scp", (), {}, "sequence 1 has no samples"),
    ],
)
def test_what_cannot_be_converted(here: Path, capsys, words, output, specs, options, part) -> None:
    np.savez("wide.npz", x=np.zeros((1, 20000), np.float32))
    np.savez("empty.npz", **{"x": np.zeros((1, 2), np.float32), "x.lengths": np.array([1, 0])})
    write_features("good.mfc", np.ones((2, 2)))
    for name, text in {
        "bad.scp": "a=b[1\n",
        "good.scp": "good=good.mfc\n",
        "bad.mfc": "short",
        "bad.mlf": '#!MLF!#\n"*/good.lab"\n0 x\n.\n',
        "text": "# a b #\n",
        "words": "#\na\n",
        "columns": "a X\n",
        "a.bin": "nonsense",
        "x": "",
        "y": "",
    }.items():
        Path(name).write_text(text)
    before = {p.name: p.read_bytes() for p in here.iterdir()}
    assert convert(words, output, specs, **options) in (1, 2)
    assert part in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in here.iterdir()} == before


def test_files_appear_together_or_not_at_all(capsys) -> None:
    """A class that is none in the last sequence: no archive, no script, no label file is left."""
    Path("bad.ctf").write_text(TEXT + "6 |x 1 1 |y 1:0.5\n")
    assert convert(["bad.ctf"], "b.scp", SPECS) == 1
    assert "a sample of 'y' is not a class" in capsys.readouterr().err
    assert convert(["bad.ctf"], "b.bin", SPECS) == 1
    assert sorted(p.name for p in Path().iterdir()) == ["a.ctf", "bad.ctf"]


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
sample = st.tuples(finite, finite, st.integers(0, 2))


@settings(max_examples=8)
@given(st.lists(st.lists(sample, min_size=1, max_size=4), min_size=1, max_size=8), st.integers(1, 5))
def test_any_utterances_come_back(monkeypatch, sequences, batch) -> None:
    """CTF -> HTK -> CTF, and of single samples CTF -> binary -> CTF, for batches of any size."""
    monkeypatch.setattr(sources, "BATCH", batch)

    def text(sequences) -> str:
        return "".join(
            f"{key} |features {a!r} {b!r} |labels {c}:1\n" for key, one in enumerate(sequences) for a, b, c in one
        )

    specs = ("features:2", "labels:3:class")
    Path("0.ctf").write_text(text(sequences))
    assert convert(["0.ctf"], "1.ctf", specs, quiet=True) == 0
    assert convert(["1.ctf"], "2.scp", specs, quiet=True) == 0
    assert convert(["2.scp", "2.mlf"], "3.ctf", specs, quiet=True) == 0
    assert Path("3.ctf").read_text() == Path("1.ctf").read_text()
    Path("0.ctf").write_text(text([s] for one in sequences for s in one))
    assert convert(["0.ctf"], "1.ctf", specs, quiet=True) == 0
    assert convert(["1.ctf"], "2.bin", specs, quiet=True) == 0
    assert convert(["2.bin"], "3.ctf", specs, quiet=True) == 0
    assert Path("3.ctf").read_text() == Path("1.ctf").read_text()


def test_the_page_and_the_help_know_the_formats(cntkpy) -> None:
    """The table of docs/preview-and-convert.md is that of `FORMATS`, and `--help` names every format."""
    page = (Path(__file__).parents[3] / "docs" / "preview-and-convert.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    assert rows == [
        (one.name, " ".join(one.suffixes) or "-", {None: "no", "htk:to_htk": "as .scp"}.get(one.target, "yes"))
        for one in FORMATS.values()
    ]
    text = cntkpy("convert", "--help").out
    assert all(re.search(rf"^ *{name} ", text, re.MULTILINE) for name in FORMATS)
