"""A newcomer's path, as docs/getting-started.md describes it: a table, a file of data, a model, its error, classes.

Every command runs in a process of its own, in an empty folder.
"""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GUIDE = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
ROWS = list(csv.reader((HERE / "wine.csv").read_text().splitlines()))


def guide(old: str = "", new: str = "") -> str:
    """The configuration of the page with the numbers of the wines, and one change."""
    part = GUIDE[GUIDE.index("## Your own data") :]
    found = re.search(r"```ini\n(.*?)```", part, re.DOTALL)
    assert found is not None
    text = found[1].replace("dim = 4 ;", "dim = 13 ;").replace("4:50:3", "13:50:3")
    assert text.count("13") == 2
    assert old in text
    return text.replace(old, new) if old else text


def table(rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


def errors(log: str) -> float:
    found = re.search(r"Final Results: .*?EvalClassificationError = ([0-9.]+)", log)
    assert found is not None, log
    return float(found[1])


@pytest.mark.thorough
def test_from_a_table_to_a_plot(cntkpy_process, tmp_path: Path) -> None:
    header, rows = ROWS[0], ROWS[1:]
    assert (len(rows), len(header)) == (178, 14)
    kept = [row for i, row in enumerate(rows) if i % 4 == 3]
    files = {"wine.csv": (HERE / "wine.csv").read_text(), "kept-back.csv": table([header, *kept]), "my.cntk": guide()}
    got = cntkpy_process("convert", "wine.csv", "train.ctf", "--labels", "cultivar", files=files)
    assert got.code == 0, got.err
    assert "178 sequences, 178 samples of features (dense 13), labels (class 3)" in got.out
    assert (tmp_path / "train.labels.txt").read_text().split() == ["class_0", "class_1", "class_2"]

    got = cntkpy_process("check", "--data", "--strict", "my.cntk")
    assert (got.code, got.out) == (
        0,
        "no problems in 1 configuration; only the beginning of the data was read (--records 100)\n",
    )

    got = cntkpy_process("configFile=my.cntk", "stderr=logs/my.log")
    log = (tmp_path / "logs/my.log").read_text()
    assert got.code == 0, log
    assert errors(log) <= 0.05
    assert "WARNING" not in log
    classes = (tmp_path / "output/classes.PosteriorProb").read_text().split()
    assert len(classes) == 178
    assert sum(one != row[-1] for one, row in zip(classes, rows, strict=True)) <= 0.05 * 178

    got = cntkpy_process("plot", "logs/my.log")
    assert got.code == 0, got.err
    assert (tmp_path / "logs/my.log.png").stat().st_size > 5000


@pytest.mark.thorough
def test_rows_that_were_kept_back(cntkpy_process, tmp_path: Path) -> None:
    """Every fourth row is tested only. The classes of another table have the numbers of the first one."""
    header, rows = ROWS[0], ROWS[1:]
    kept = [row for i, row in enumerate(rows) if i % 4 == 3 and row[-1] != "class_0"]
    trained = [row for i, row in enumerate(rows) if i % 4 != 3]
    files = {"wine.csv": table([header, *trained]), "kept-back.csv": table([header, *kept]), "my.cntk": guide()}
    assert cntkpy_process("convert", "wine.csv", "train.ctf", "--labels", "cultivar", files=files).code == 0
    got = cntkpy_process("convert", "kept-back.csv", "train.labels.txt", "test.ctf", "--labels", "cultivar")
    assert "labels (class 3)" in got.out
    assert not (tmp_path / "test.labels.txt").exists()
    got = cntkpy_process("configFile=my.cntk", "command=train")
    assert got.code == 0, got.err
    got = cntkpy_process("configFile=my.cntk", "command=test", "reader=[file=test.ctf]")
    assert errors(got.err) <= 0.05


Wrong = Callable[[str, str], str]


@pytest.fixture
def wrong(cntkpy, tmp_path: Path) -> Wrong:
    """What a run says of the configuration with a change."""
    assert cntkpy("convert", str(HERE / "wine.csv"), "train.ctf", "--quiet").code == 0

    def run(old: str, new: str) -> str:
        got = cntkpy(
            "configFile=my.cntk", "command=train", "train=[SGD=[maxEpochs=1]]", files={"my.cntk": guide(old, new)}
        )
        checked = cntkpy("check", "--data", "my.cntk")
        return f"{got.err}\n{checked.out}"

    return run


def test_dense_for_sparse(wrong: Wrong) -> None:
    said = wrong("labels = [ dim = 3 ; format = sparse", "labels = [ dim = 3 ; format = dense")
    assert "write format = sparse in the section of 'labels'" in said
    assert "are sparse: '0:1' - write format = sparse [CK061]" in said


def test_sparse_for_dense(wrong: Wrong) -> None:
    said = wrong("dim = 13 ; format = dense", "dim = 13 ; format = sparse")
    assert "write format = dense in the section of 'features'" in said
    assert "are dense: '14.23' - write format = dense [CK061]" in said


def test_forgotten_normalisation(wrong: Wrong) -> None:
    said = wrong("applyMeanVarNorm = true", "")
    assert "WARNING: the values of the input 'features' reach" in said
    assert "applyMeanVarNorm=true in the SimpleNetworkBuilder normalises them" in said


def test_normalised_data_have_no_warning(wrong: Wrong) -> None:
    assert "WARNING" not in wrong("", "")


def test_a_missing_stream(wrong: Wrong) -> None:
    said = wrong("labels = [ dim = 3 ; format = sparse ]", "")
    assert "the reader has no stream for the input 'labels' of the SimpleNetworkBuilder" in said
    assert "the reader delivers features; add 'labels' to its section [CK055]" in said
    said = wrong("labels = [ dim", "label = [ dim")
    assert "did you mean 'label'? [CK055]" in said


def test_a_wrong_dimension(wrong: Wrong) -> None:
    said = wrong("dim = 13", "dim = 12")
    assert "the first layer has 13 elements, but the stream 'features' has 12" in said
    assert "line 1 of 'train.ctf': the stream 'features' has 13 values, but its dim is 12" in said
    assert "12 - if every sample has 13 values, write dim = 13 [CK061]" in said


def test_dimensions_of_the_guide_left_as_they_are(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("convert", str(HERE / "wine.csv"), "train.ctf", "--quiet").code == 0
    said = cntkpy("configFile=my.cntk", "command=train", files={"my.cntk": guide().replace("13", "4")}).err
    assert (
        "help: if every sample has 13 values, write dim = 13 in the section of 'features'; else mend the file" in said
    )


def test_a_table_that_was_not_converted(wrong: Wrong) -> None:
    table = (HERE / "wine.csv").as_posix()
    said = wrong('file = "train.ctf"', f'file = "{table}"')
    convert = "looks like a table: cntkpy convert wine.csv NAME.ctf --labels COLUMN makes text format"
    assert f"help: the file {convert} of it" in said
    assert f"{convert} of it [CK072]" in said


def test_a_missing_file(wrong: Wrong) -> None:
    said = wrong('file = "train.ctf"', 'file = "trian.ctf"')
    assert "'trian.ctf': no such file" in said
    assert "did you mean 'train.ctf'?" in said


def test_missing_names_of_classes_are_found_before_anything_is_trained(cntkpy, tmp_path: Path) -> None:
    assert cntkpy("convert", str(HERE / "wine.csv"), "train.ctf", "--quiet").code == 0
    files = {"my.cntk": guide('labelMappingFile = "train.labels.txt"', 'labelMappingFile = "labels.txt"')}
    got = cntkpy("configFile=my.cntk", files=files)
    assert (got.code, got.message) == (2, "my.cntk:write:format:labelMappingFile: 'labels.txt': no such file")
    assert "did you mean 'train.labels.txt'?" in got.err
    assert "Epoch[" not in got.err


def test_no_page_installs_from_an_index() -> None:
    """The package is on none: it is installed from a clone, once; extras are added to what is there."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    said = [
        page.name for page in pages if re.search(r"pip install '?cntkpy(\[train\])?'?(\s|$)", page.read_text(), re.M)
    ]
    assert said == []
    assert "pip install '.[train,tables]'" in GUIDE
