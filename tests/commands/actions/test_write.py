"""`action=write`: whole files of every form against NumPy, several nodes, standard output, every error."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
import small_classification as actions

MORE = "out = [ action = write ; outputPath = run/o/of ; minibatchSize = 16 ]\n"
NAMES = "red\n green\nblue \n"


@pytest.fixture
def run(cntkpy, already_trained):
    short = "train=[SGD=[maxEpochs=1]]"
    already_trained(short, files=actions.files(""))

    def run(*words: str):
        files = actions.files(MORE) | {"names.txt": NAMES}
        return cntkpy("configFile=m.cntk", "command=train:out", short, *words, files=files)

    return run


@pytest.fixture
def values(tmp_path: Path):
    """The scores of all samples."""

    def values() -> np.ndarray:
        parameters = actions.model(tmp_path / "run/m")
        return actions.X @ parameters["W"].T + parameters["b"].T

    return values


def rows(table: np.ndarray, between: str = " ", number: str = "%f") -> list[str]:
    return [between.join(number % value for value in row) for row in table.tolist()]


def test_the_output_nodes_as_numbers(run, values, tmp_path: Path) -> None:
    got = run()
    assert got.code == 0, got.err
    assert (tmp_path / "run/o/of.z").read_text() == "".join(f"{row}\n" for row in rows(values()))
    sizes = re.findall(r"^Minibatch\[(\d)\]: ActualMBSize = (\d+)$", got.err, re.M)
    assert sizes == [("0", "16"), ("1", "16"), ("2", "8")]
    assert "\nWritten to run/o/of*\nTotal Samples Evaluated = 40\n" in got.err


def test_several_nodes_and_names_that_are_not_there(run, values, tmp_path: Path) -> None:
    got = run("out=[outputNodeNames=z:nothere:p:b]")
    assert got.code == 0, got.err
    assert "nothere" in got.err and "it is left out" in got.err
    assert sorted(path.name for path in (tmp_path / "run/o").iterdir()) == ["of.b", "of.p", "of.z"]
    assert (tmp_path / "run/o/of.p").read_text().splitlines() == rows(actions.softmax(values()))
    column = rows(actions.model(tmp_path / "run/m")["b"].T)
    assert (tmp_path / "run/o/of.b").read_text().splitlines() == column * 3  # once a minibatch


def test_part_of_the_data(run, values, tmp_path: Path) -> None:
    got = run("out=[epochSize=20;minibatchSize=10]")
    assert got.code == 0
    assert (tmp_path / "run/o/of.z").read_text().splitlines() == rows(values()[:20])
    assert "Total Samples Evaluated = 20\n" in got.err


def test_standard_output(run, values, tmp_path: Path) -> None:
    got = run("out=[outputPath=-]")
    lines = rows(values())
    assert got.out.splitlines() == [*lines[:16], "", *lines[16:32], "", *lines[32:], ""]
    assert not (tmp_path / "run/o").exists()


def test_all_separators(run, values, tmp_path: Path) -> None:
    fragments = (
        'prologue="begin\\n";epilogue="end";sequencePrologue="%d of %n in %s:\\s";sequenceEpilogue=";\\n";'
        'sequenceSeparator="\\t";elementSeparator="\\s,\\s";precisionFormat="8.3"'
    )
    got = run(f"out=[minibatchSize=2;epochSize=4;format=[{fragments}]]")
    assert got.code == 0, got.err
    lines = rows(values()[:4], " , ", "%8.3f")
    expected = [f"{'' if k % 2 == 0 else chr(9)}{k % 2} of {k // 2} in z: {line};\n" for k, line in enumerate(lines)]
    assert (tmp_path / "run/o/of.z").read_text() == "begin\\n" + "".join(expected) + "end"


@pytest.mark.parametrize(
    ("form", "names"),
    [("type=category", "012"), ("type=category;labelMappingFile=names.txt", ["red", "green", "blue"])],
)
def test_categories(form: str, names, run, values, tmp_path: Path) -> None:
    assert run(f"out=[format=[{form}]]").code == 0
    expected = [names[index] for index in values().argmax(axis=1)]
    assert (tmp_path / "run/o/of.z").read_text().splitlines() == expected


def test_labels_are_written_byte_for_byte(run, values, tmp_path: Path) -> None:
    names = [b"caf\xe9", "a\u2028b".encode(), b"\xe6\x97\xa5"]
    (tmp_path / "names.bin").write_bytes(b"\xef\xbb\xbf" + b"\n".join(names) + b"\n")
    assert run("out=[format=[type=category;labelMappingFile=names.bin]]").code == 0
    expected = [names[index] for index in values().argmax(axis=1)]
    assert (tmp_path / "run/o/of.z").read_bytes().split(b"\n") == [*expected, b""]
    got = run("out=[outputPath=-;format=[type=category;labelMappingFile=names.bin]]")
    assert got.code == 0
    assert "a\u2028b\n" in got.out


def test_sparse(run, tmp_path: Path) -> None:
    form = 'type=sparse;labelMappingFile=names.txt;sampleSeparator="\\s"'
    got = run(f"out=[outputNodeNames=y;format=[{form}]]")
    assert got.code == 0, got.err
    expected = [f"[{k}={NAMES.split()[k]}]" for k in actions.Y.argmax(axis=1)]
    assert (tmp_path / "run/o/of.y").read_text().splitlines() == expected


def test_a_failed_run_leaves_no_file(run, tmp_path: Path) -> None:
    got = run("out=[reader=[file=none.ctf]]")
    assert got.code != 0
    assert not (tmp_path / "run/o").exists()


def test_a_full_disk(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert run("command=train").code == 0
    (tmp_path / "tags").write_text("a\nb\nc\n")
    monkeypatch.setattr(os, "fsync", full)
    for words, file in (
        ((), "run/o/of.z"),
        (("out=[action=dumpNode;outputFile=all.txt]",), "all.txt"),
        (("out=[action=testUnroll;path2EvalResults=results.txt]",), "results.txt"),
        (("out=[writer=[writerType=LUSequenceWriter;z=[file=words.txt;token=tags]]]",), "words.txt"),
    ):
        got = run("command=out", *words)
        assert got.code == 1, got.err
        assert f"{file} cannot be written: No space left on device" in got.message
        assert not (tmp_path / file).exists()


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("out=[outputPath=default]", 2, "write needs outputPath (or a writer section)"),
        ("out=[outputNodeNames=no:nothing]", 2, "the network has no node 'no'"),
        ("out=[format=[type=Category]]", 2, "'Category' is not one of real, category, sparse"),
        ("out=[format=[type=category;labelMappingFile=none.txt]]", 2, "'none.txt': no such file"),
        ("out=[nodeUnitTest=true;outputNodeNames=z:p]", 2, "nodeUnitTest needs exactly one output node, there are 2"),
        ("out=[writer=[writerType=NoWriter]]", 2, "NoWriter"),
        ("out=[modelPath=none]", 2, "there is no model none"),
    ],
)
def test_errors(word: str, code: int, expected: str, run) -> None:
    got = run(word)
    assert got.code == code, got.err
    assert expected in got.message
    assert "Traceback" not in got.err
