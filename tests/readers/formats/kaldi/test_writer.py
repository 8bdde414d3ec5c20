"""Kaldi2Writer: archives, files, scripts, standard output; what is written reads back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.readers.contracts import SparesFiles
from cntkpy.readers.formats.kaldi.labels import read_classes
from cntkpy.readers.formats.kaldi.matrices import read_matrices
from cntkpy.readers.formats.kaldi.specifier import parse_write_specifier
from cntkpy.readers.formats.kaldi.write import matrix_bytes, open_writer
from cntkpy.readers.writer import create_writer

VALUES = np.array([[1.5, -2], [3, 1e-8], [0.1, 7]])


def writer(folder: Path, text: str, names: str = "sp0.9-a\nb\n", precision: str = "float"):
    (folder / "list").write_text(names)
    return create_writer(f'writerType=Kaldi2Reader;z=[dim=2;scpFile="{folder}/list";{text}]', precision)


@pytest.mark.parametrize(("precision", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_all_utterances_in_one_archive(tmp_path: Path, precision: str, dtype: type) -> None:
    ours = writer(tmp_path, f'Kaldicmd="ark,scp:{tmp_path}/o.ark,{tmp_path}/o.scp"', precision=precision)
    assert ours.save({"Z": VALUES}) and not (tmp_path / "o.ark").exists()
    assert not ours.save({"Z": VALUES[:1]})
    ours.close()
    for specifier in (f"ark:{tmp_path}/o.ark", f"scp:{tmp_path}/o.scp"):
        found = dict(read_matrices(specifier, dtype))
        assert list(found) == ["sp0.9-a", "b"]
        np.testing.assert_array_equal(found["sp0.9-a"], VALUES.astype(dtype))
    assert (b"DM " in (tmp_path / "o.ark").read_bytes()) == (precision == "double")


def test_counts_files_and_text_archives(tmp_path: Path) -> None:
    ours = writer(tmp_path, f'Kaldicmd="ark,t:{tmp_path}/o.txt"', "a 3\nb 1\n")
    ours.save({"z": VALUES})
    ours.save({"z": VALUES[:1]})
    ours.close()
    assert (tmp_path / "o.txt").read_text() == "a  [\n  1.5 -2 \n  3 1e-08 \n  0.1 7 ]\nb  [\n  1.5 -2 ]\n"


def test_a_file_for_each_utterance(tmp_path: Path) -> None:
    ours = writer(tmp_path, "", f"{tmp_path}/out/a.b.ark\n{tmp_path}/out/c\n")
    ours.save({"z": VALUES})
    ours.save({"z": VALUES[:1]})
    ours.close()
    ((key, found),) = read_matrices(f"ark:{tmp_path}/out/a.b.ark")
    assert key == "a"
    np.testing.assert_array_equal(found, VALUES.astype(np.float32))


def test_files_named_by_a_script(tmp_path: Path) -> None:
    (tmp_path / "o.scp").write_text(f"b {tmp_path}/b.mat\nsp0.9-a {tmp_path}/a.mat\n")
    ours = writer(tmp_path, f"Kaldicmd=scp:{tmp_path}/o.scp")
    ours.save({"z": VALUES})
    ours.save({"z": VALUES[:1]})
    ours.close()
    found = dict(read_matrices(f"scp:{tmp_path}/o.scp"))
    assert len(found["b"]) == 1 and len(found["sp0.9-a"]) == 3


def test_standard_output(tmp_path: Path) -> None:
    code = (
        "import numpy as np; from cntkpy.readers.writer import create_writer;"
        f"w = create_writer('writerType=Kaldi2Writer;z=[dim=2;scpFile={tmp_path}/list;Kaldicmd=\"ark:-\"]');"
        "w.save({'z': np.ones((2, 2))}); w.close()"
    )
    (tmp_path / "list").write_text("a\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"a " + matrix_bytes(np.ones((2, 2), np.float32))


def test_nothing_is_left_of_an_archive_that_was_not_finished(tmp_path: Path) -> None:
    ours = writer(tmp_path, f'Kaldicmd="ark,scp:{tmp_path}/o.ark,{tmp_path}/o.scp"')
    ours.save({"z": VALUES})
    ours.abandon()
    assert [path.name for path in tmp_path.iterdir()] == ["list"]


def test_values_above_the_overflow_are_counted_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ours = writer(tmp_path, f"Kaldicmd=ark:{tmp_path}/o.ark")
    ours.save({"z": np.array([[51.0, 3], [100, 50]])})
    ours.close()
    ((_, found),) = read_matrices(f"ark:{tmp_path}/o.ark")
    assert found.tolist() == [[51, 3], [100, 50]]
    assert "z: 2 values above overflowValue (50) were written as they are" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('Kaldicmd="ark:| gzip -c"', "commands in specifiers are not executed"),
        ("type=scaled", "'scaled' is not one of Real"),
        ("Kaldicmd=o.ark", "is not a specifier of a table to write"),
        ("type=Real", "index for output scp file out of range"),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ours = writer(tmp_path, text, f"{tmp_path}/a\n")
        for _ in range(2):
            ours.save({"z": VALUES})


def test_files_are_written_once_and_not_over_what_is_read(tmp_path: Path) -> None:
    """Files of single utterances that two nodes name, the archive of the reader, and its script file."""
    (tmp_path / "list").write_text(f"{tmp_path}/u.ark\n")
    node = f'=[dim=2;scpFile="{tmp_path}/list"];'
    ours = create_writer(f"writerType=Kaldi2Writer;y{node}z{node}")
    with pytest.raises(UserError, match=r"the node 'z' would be written to .*u\.ark, which was written before"):
        ours.save({"y": VALUES, "z": VALUES})
    (tmp_path / "in.ark").write_bytes(b"features")
    for text in ("ark:IN/in.ark", "ark,scp:IN/o.ark,IN/in.ark"):
        ours = writer(tmp_path, f'Kaldicmd="{text.replace("IN", str(tmp_path))}"', "a\n")
        assert isinstance(ours, SparesFiles)
        ours.spare([str(tmp_path / "gone"), str(tmp_path / "in.ark")])
        with pytest.raises(ConfigError, match=r"Kaldicmd: .*in\.ark would be written over, which the reader reads"):
            ours.save({"z": VALUES})
        ours.abandon()
    assert (tmp_path / "in.ark").read_bytes() == b"features"


def test_errors_of_several_nodes(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    (tmp_path / "two").write_text("a\nb\n")
    node = '{0}=[dim=2;scpFile="{1}/{2}";Kaldicmd="ark:{1}/o.ark"];'
    with pytest.raises(UserError, match="different numbers of lines"):
        create_writer("writerType=KaldiWriter;" + node.format("y", tmp_path, "one") + node.format("z", tmp_path, "two"))
    with pytest.raises(UserError, match="'y' and 'z' would be written to the same archive"):
        create_writer("writerType=KaldiReader;" + node.format("y", tmp_path, "one") + node.format("z", tmp_path, "one"))
    with pytest.raises(UserError, match=r"dim: is 3, but the node '.*' has 2 values per frame"):
        create_writer(f'writerType=Kaldi2Writer;z=[dim=3;file="{tmp_path}/one"]').save({"z": VALUES})
    with pytest.raises(UserError, match="the writer has no section for the node 'q'"):
        create_writer("writerType=Kaldi2Writer;outputNodeNames=q")


MATRICES = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays.arrays(dtype, st.tuples(st.integers(1, 5), st.just(3)))
)


@settings(max_examples=20)
@given(rows=st.lists(MATRICES, min_size=1, max_size=4), as_text=st.booleans())
def test_archives_read_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[np.ndarray], as_text: bool
):
    folder = tmp_path_factory.mktemp("back")
    spec = parse_write_specifier(f"ark,scp{',t' if as_text else ''}:{folder}/o.ark,{folder}/o.scp")
    with open_writer(spec) as file:
        for i, one in enumerate(rows):
            file.write_matrix(f"u{i}", one)
    for specifier in (f"ark:{folder}/o.ark", f"scp:{folder}/o.scp"):
        for (key, found), (i, one) in zip(read_matrices(specifier, np.float64), enumerate(rows), strict=True):
            assert key == f"u{i}"
            np.testing.assert_array_equal(found.astype(one.dtype), one)


@given(st.lists(st.lists(st.integers(0, 65534), max_size=5), max_size=4), st.booleans())
def test_alignments_read_back(
    tmp_path_factory: pytest.TempPathFactory, classes: list[list[int]], as_text: bool
) -> None:
    folder = tmp_path_factory.mktemp("back")
    with open_writer(parse_write_specifier(f"ark{',t' if as_text else ''}:{folder}/o.ark")) as file:
        for i, one in enumerate(classes):
            file.write_integers(f"u{i}", np.array(one, np.int32))
    found = read_classes(f"ark:{folder}/o.ark")
    assert found.lengths.tolist() == [len(one) for one in classes]
    assert found.classes.tolist() == [c for one in classes for c in one]


def test_the_oracle_reads_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kio = pytest.importorskip("kaldi_native_io", reason="kaldi_native_io, the oracle, is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for options in ("", ",t"):
        rows = {f"u{i}": rng.standard_normal((i + 1, 4)).astype(np.float32) for i in range(5)}
        with open_writer(parse_write_specifier(f"ark,scp{options}:o.ark,o.scp")) as file:
            for key, one in rows.items():
                file.write_matrix(key, one)
        for specifier in ("ark:o.ark", "scp:o.scp"):
            with kio.SequentialFloatMatrixReader(specifier) as reader:
                found = {key: np.array(one) for key, one in reader}
            assert list(found) == list(rows)
            assert all(np.array_equal(found[key], rows[key]) for key in rows)
        with open_writer(parse_write_specifier(f"ark{options}:i.ark")) as file:
            file.write_integers("a", np.array([3, 4], np.int32))
        with kio.SequentialInt32VectorReader("ark:i.ark") as reader:
            assert [(key, list(one)) for key, one in reader] == [("a", [3, 4])]
