"""`cntkpy convert`: there and back between all formats, in pieces, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.commands.tools.convert import convert
from cntkpy.readers import create_reader
from cntkpy.readers.convert import sources

TEXT = "0 |w 3:1 5:0.1 |t 1\n0 |w 2:1\n7 |w 0:2.5e-7 |t 0.1\n9 |w |t -3\n"
COLUMNS = "1.5 -2 0 7\n1 0.1 2 1e-5\n"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ctf").write_text(TEXT)
    (tmp_path / "a.uci").write_text(COLUMNS)
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3)))
    return tmp_path


def test_text_to_an_archive_and_back(here, capsys):
    assert convert(["a.ctf"], "a.npz") == 0
    assert "a.npz: 3 sequences, 4 samples of w (sparse 6), t (dense 1)" in capsys.readouterr().out
    with np.load("a.npz") as found:
        assert found["t"].tolist() == [[1], [np.float32(0.1)], [-3]]
        assert "t.lengths" not in found
        assert found["w.lengths"].tolist() == [2, 1, 1]
        assert found["w.indices"].tolist() == [3, 5, 2, 0]
        assert found["w.indptr"].tolist() == [0, 2, 3, 4, 4]
        assert found["w.shape"].tolist() == [4, 6]
        assert found["keys"].tolist() == [0, 7, 9]
    assert convert(["a.npz"], "b.ctf", quiet=True) == 0
    expected = "0 |t 1 |w 3:1 5:0.1\n0 |w 2:1\n7 |t 0.1 |w 0:2.5e-07\n9 |t -3 |w \n"
    assert Path("b.ctf").read_text() == expected
    assert convert(["b.ctf"], "c.ctf", ("t:1", "w:6:sparse"), quiet=True) == 0
    assert Path("c.ctf").read_text() == expected


def test_columns(here):
    specs = ("x:2", "label:3:class", "y:1")
    assert convert(["a.uci"], "b.ctf", specs, quiet=True) == 0
    assert Path("b.ctf").read_text() == "0 |x 1.5 -2 |label 0:1 |y 7\n1 |x 1 0.1 |label 2:1 |y 1e-05\n"
    assert convert(["b.ctf"], "c.npz", specs, quiet=True) == 0
    with np.load("c.npz") as found:
        assert found["label"].tolist() == [0, 2]
        assert found["x"].shape == (2, 2)
    assert convert(["c.npz"], "d.uci", specs, quiet=True) == 0
    assert [list(map(float, line.split())) for line in Path("d.uci").read_text().splitlines()] == [
        list(map(float, line.split())) for line in COLUMNS.splitlines()
    ]
    assert convert(["c.npz"], "e.ctf", ("label:3:class",), quiet=True) == 0
    assert Path("e.ctf").read_text() == "0 |label 0:1\n1 |label 2:1\n"
    assert convert(["c.npz"], "f.ctf", quiet=True) == 0  # classes stay classes
    assert Path("f.ctf").read_text() == "0 |label 0:1 |x 1.5 -2 |y 7\n1 |label 2:1 |x 1 0.1 |y 1e-05\n"


def test_dense_classes(here):
    Path("dense.ctf").write_text("|y 0 1 0\n|y 1 0 0\n")
    assert convert(["dense.ctf"], "a.uci", ("y:3:class",), quiet=True) == 0
    assert Path("a.uci").read_text() == "1\n0\n"


def test_a_reader_section(here):
    Path("m.cntk").write_text(
        "command=t\nt=[action=train; reader=[readerType=CNTKTextFormatReader; file=a.ctf; randomize=true\n"
        "input=[t=[dim=1;format=dense];w=[dim=6;format=sparse]]]]\n"
    )
    assert convert(["configFile=m.cntk", "t/reader"], "b.ctf", quiet=True) == 0
    assert Path("b.ctf").read_text() == "0 |t 1 |w 3:1 5:0.1\n0 |w 2:1\n7 |t 0.1 |w 0:2.5e-07\n9 |t -3 |w \n"


def test_the_warnings_of_a_reader_section(here, capsys):
    """As `check` has them; an error ends the conversion, also in a value that it does not need."""
    section = "file=a.ctf; keepDataInMemry=true; randomize=%s; maxErrors=9; input=[t=[dim=1;format=dense]]"
    text = f"command=t\nt=[action=train; reader=[{section}]]\n"
    Path("m.cntk").write_text(text % "true")
    assert convert(["configFile=m.cntk", "t/reader"], "b.ctf", quiet=True) == 0
    assert capsys.readouterr().err == ""
    assert convert(["configFile=m.cntk", "t/reader"], "b.ctf") == 0
    told = "warning: reader: 'keepDataInMemry' is not a known parameter - did you mean 'keepDataInMemory'? [CK010]"
    assert told in capsys.readouterr().err
    Path("m.cntk").write_text(text % "sometimes")
    assert convert(["configFile=m.cntk", "t/reader"], "c.ctf") == 2
    assert "randomize: 'sometimes' is not a boolean" in capsys.readouterr().err and not Path("c.ctf").exists()


def test_double_precision(here):
    Path("x.ctf").write_text("0 |x 0.12345678901234567\n")
    for precision, text in (("double", repr(0.12345678901234567)), ("float", "0.12345679")):
        assert convert(["x.ctf"], "y.ctf", precision=precision, quiet=True) == 0
        assert Path("y.ctf").read_text() == f"0 |x {text}\n"


@pytest.mark.parametrize(
    ("words", "output", "specs", "options", "part"),
    [
        (["a.ctf"], "a.foo", (), {}, "the format of a.foo is not known"),
        (["a.ctf"], "b.ctf", ("x",), {}, "does not describe a stream"),
        (["a.ctf"], "b.ctf", ("x:0",), {}, "does not describe a stream"),
        (["a.ctf"], "b.ctf", ("x:3:thin",), {}, "does not describe a stream"),
        (["a.uci"], "b.ctf", (), {}, "which columns are what"),
        (["a.uci"], "b.ctf", ("x:4:sparse",), {}, "no sparse streams"),
        (["a.uci"], "b.ctf", ("x:1:class", "y:3"), {}, "1.5 is not a class of 'x'"),
        (["a.uci"], "b.ctf", ("x:9",), {}, "a.uci"),
        (["a.ctf"], "b.uci", (), {}, "different lengths"),
        (["a.ctf"], "a.ctf", (), {}, "written over itself"),
        (["no.ctf"], "b.ctf", (), {}, "cannot be read"),
        (["no.npz"], "b.ctf", (), {}, "cannot be read as a numpy archive"),
        (["a.ctf"], "b.ctf", (), {"source_format": "npz"}, "cannot be read as a numpy archive"),
        (["a.uci"], "b.ctf", (), {"source_format": "ctf"}, "has no streams"),
        (["a.ctf"], "b.ctf", ("w:6:sparse", "t:1", "z:3"), {}, "has no samples of 'z'"),
        (["a.npz"], "b.ctf", ("z:3",), {}, "has no stream z"),
        (["a.ctf"], "b.npz", ("w:6:class",), {}, "is not a class"),
    ],
)
def test_what_cannot_be_converted(here, capsys, words, output, specs, options, part):
    before = sorted(p.name for p in here.iterdir())
    assert convert(words, output, specs, **options) in (1, 2)
    assert part in capsys.readouterr().err
    assert sorted(p.name for p in here.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "output", "specs", "options", "status"),
    [
        (["a.ctf"], "b.foo", (), {}, 2),
        (["a.foo"], "b.ctf", (), {}, 2),
        (["a.ctf"], "b.csv", (), {}, 2),
        (["a.ctf"], "a.ctf", (), {}, 2),
        (["a.ctf"], "b.ctf", ("x:0",), {}, 2),
        (["a.ctf", "a.ctf"], "b.npz", (), {}, 2),
        (["a.uci"], "b.ctf", (), {}, 2),
        (["a.ctf"], "b.scp", ("w:6:sparse", "t:1", "z:3"), {}, 1),
        (["no.ctf"], "b.ctf", (), {}, 1),
    ],
)
def test_the_exit_status_tells_wrong_words_from_wrong_data(here, capsys, words, output, specs, options, status):
    assert convert(words, output, specs, **options) == status


@pytest.mark.parametrize(
    ("arrays", "output", "part"),
    [
        ({"a": np.array(["x"])}, "o.ctf", "array 'a' is of <U1"),
        ({"a": np.ones((2, 1)) * 1j}, "o.ctf", "array 'a' is of complex128"),
        ({"a": np.array(3.0)}, "o.ctf", "array 'a' is a single number"),
        ({"a": np.asfortranarray(np.ones((3, 2)))}, "o.ctf", "in Fortran order"),
        ({"a": np.ones((0, 2))}, "o.ctf", "has no samples"),
        ({"a": np.ones((5, 1)), "a.lengths": np.array([2, 2])}, "o.ctf", "the lengths of 'a' make 4 samples"),
        ({"a": np.ones((5, 1)), "a.lengths": np.array([2, 0, 3])}, "o.ctf", "sequence 1 has no samples of 'a'"),
        ({"a": np.ones((5, 1)), "a.lengths": np.array([7, -2])}, "o.npz", "a length of 'a' is negative"),
        ({"a": np.ones(5, int), "a.classes": np.array([-2])}, "o.npz", "says that there are -2 classes"),
        ({"a": np.ones(5, int), "a.classes": np.array([1])}, "o.npz", "'a'"),
        ({"a": np.ones((2, 1)), "keys": np.array([1, 2, 3])}, "o.ctf", "keys of shape (3,) for 2 sequences"),
        ({"a": np.ones((2, 1)), "keys": np.array([1, -2])}, "o.ctf", "-2 is not a key"),
        ({"a b": np.ones((2, 1))}, "o.ctf", "'a b' cannot be the name of a stream in text format"),
    ],
)
def test_archives_that_do_not_fit(here, capsys, arrays, output, part):
    np.savez("i.npz", **arrays)
    assert convert(["i.npz"], output) == 1
    assert part in capsys.readouterr().err
    assert not Path(output).exists()
    assert not list(Path().glob(".*.tmp"))


def test_rows_with_a_single_one_are_classes(here, capsys):
    """Only a single column holds the numbers of classes; of wider rows the first column was taken for them."""
    np.savez("i.npz", x=np.ones((3, 1)), y=np.eye(3)[[2, 0, 1]], n=np.array([[2], [0], [1]]), z=np.ones((3, 2)))
    assert convert(["i.npz"], "o.npz", ("x:1", "y:3:class", "n:3:class")) == 0
    with np.load("o.npz") as found:
        assert found["y"].tolist() == found["n"].tolist() == [2, 0, 1]
    assert convert(["i.npz"], "o.ctf", ("y:3:class",)) == 0
    assert Path("o.ctf").read_text() == "0 |y 2:1\n1 |y 0:1\n2 |y 1:1\n"
    assert convert(["i.npz"], "o.npz", ("z:2:class",)) == 1
    assert "a sample of 'z' is not a class" in capsys.readouterr().err


def test_what_is_lost_is_told(here, capsys):
    Path("s.ctf").write_text("0 |x 1\n0 |x 2\n1 |x 0.1\n")
    for output, part in (("s.uci", "uci holds single samples"), ("s.bin", "binary holds single samples")):
        assert convert(["s.ctf"], output) == 0
        assert part in capsys.readouterr().err
    assert convert(["s.ctf"], "s.scp", precision="double") == 0
    assert "htk holds single precision" in capsys.readouterr().err
    assert convert(["s.ctf"], "s.npz") == 0
    assert "note" not in capsys.readouterr().err


def test_wide_sparse_streams_are_written_out_in_pieces(here, monkeypatch):
    monkeypatch.setattr("cntkpy.readers.convert.batches.VALUES", 6)
    Path("w.ctf").write_text("".join(f"{k} |x {k}:1\n" * (1 + k % 3) for k in range(5)))
    assert convert(["w.ctf"], "w.uci", ("x:5:sparse",), quiet=True) == 0
    rows = [[float(k == j) for j in range(5)] for k in range(5) for _ in range(1 + k % 3)]
    assert np.loadtxt("w.uci").tolist() == rows
    assert convert(["w.ctf"], "c.uci", ("x:5:class",), quiet=True) == 0
    assert np.loadtxt("c.uci").tolist() == [k for k in range(5) for _ in range(1 + k % 3)]


def test_not_finite(here, capsys):
    np.savez("n.npz", x=np.array([[1.0], [np.nan]], np.float32))
    assert convert(["n.npz"], "n.ctf") == 1
    assert "inf and nan cannot be written as text" in capsys.readouterr().err
    assert not Path("n.ctf").exists()


def test_the_command_line(here, cntkpy):
    got = cntkpy("convert", "a.ctf", "out/b.npz", cwd=here)
    assert got.code == 0, got.err
    assert "3 sequences, 4 samples" in got.out
    assert cntkpy("convert", "a.ctf", cwd=here).code == 2


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
step = st.tuples(st.lists(finite, min_size=2, max_size=2), st.lists(st.tuples(st.integers(0, 4), finite), max_size=3))


@settings(max_examples=12)
@given(st.lists(st.lists(step, min_size=1, max_size=4), min_size=1, max_size=10), st.integers(1, 5))
def test_any_sequences_come_back(tmp_path, monkeypatch, sequences, batch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "BATCH", batch)
    lines = []
    for key, one in enumerate(sequences):
        for x, s in one:
            lines.append(f"{key} |x {' '.join(map(repr, x))} |s {' '.join(f'{i}:{v!r}' for i, v in s)}\n")
    Path("a.ctf").write_text("".join(lines))
    specs = ("x:2", "s:5:sparse")
    assert convert(["a.ctf"], "b.npz", specs, quiet=True) == 0
    assert convert(["b.npz"], "c.ctf", specs, quiet=True) == 0
    found = []
    for name in ("a.ctf", "c.ctf"):
        reader = create_reader(
            f"file={name};input=[x=[dim=2;format=dense];s=[dim=5;format=sparse]];randomize=false;traceLevel=0"
        )
        reader.start_minibatch_loop(1000, 0)
        m = reader.get_minibatch()
        s = m.streams["s"]
        found.append((m.keys, m.streams["x"].tolist(), s.data.tolist(), s.indices.tolist(), s.indptr.tolist()))
        reader.close()
    assert found[0] == found[1]
