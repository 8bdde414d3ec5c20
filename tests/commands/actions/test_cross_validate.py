"""`action=cv` and `action=testUnroll`: every model's numbers against NumPy, the best of them, every error."""

import re
from pathlib import Path

import pytest
import small_classification as actions

CV = "cv = [ action = cv ; crossValidationInterval = 0:1:4 ]\n"


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained(files=actions.files(""))

    def run(*words: str, more: str = CV):
        return cntkpy("configFile=m.cntk", *words, files=actions.files(more))

    return run


@pytest.mark.thorough
def test_all_models_and_the_best(run, tmp_path: Path) -> None:
    got = run("command=train:cv")
    assert got.code == 0, got.err
    names = ["run/m.0", "run/m.1", "run/m.2", "run/m"]
    assert re.findall(r"^Model (\S+) --> $", got.err, re.M) == names
    assert re.findall(r"^Model (\S+) does not exist\.$", got.err, re.M) == ["run/m.3", "run/m.4"]
    ce, err = ([f(actions.model(tmp_path / name)) for name in names] for f in (actions.criterion, actions.errors))
    finals = re.findall(r"^Final Results: Minibatch\[1-1\]: err = (\S+) \* 40; ce = (\S+) \* 40", got.err, re.M)
    for (found_err, found_ce), e, c in zip(finals, err, ce, strict=True):
        assert float(found_err) == pytest.approx(e, abs=1e-8)
        assert float(found_ce) == pytest.approx(c, abs=1e-8)
    best = re.findall(r"^Based on Err\[(\d)\]: Best model = (\S+) with min err (\S+)$", got.err, re.M)
    for index, values in enumerate((err, ce)):
        at = values.index(min(values))
        assert best[index][:2] == (str(index), names[at])
        assert float(best[index][2]) == pytest.approx(values[at], rel=1e-7)
    assert "Best models:\n------------\n" in got.err


def test_named_nodes_and_steps(run) -> None:
    got = run("command=train:cv", "cv=[crossValidationInterval=1:2:3;evalNodeNames=ce;minibatchSize=16;traceLevel=1]")
    assert got.code == 0, got.err
    assert re.findall(r"^Model (\S+) --> $", got.err, re.M) == ["run/m.1", "run/m"]
    assert len(re.findall(r"^Minibatch\[1-3\]: ce = ", got.err, re.M)) == 2
    assert "Err[1]" not in got.err


def test_what_no_line_has_shown_gets_one_at_the_end(run) -> None:
    words = ("command=train:cv", "cv=[crossValidationInterval=3;minibatchSize=16;evalNodeNames=ce]")
    for level, setting, shown in (
        (1, "numMBsToShowResult=0;firstMBsToShowResult=1", ["1-1", "2-3"]),
        (0, "numMBsToShowResult=1", []),
    ):
        got = run(*words, f"cv=[traceLevel={level};{setting}]")
        assert re.findall(r"^Minibatch\[(\S+)\]: ce = ", got.err, re.M) == shown, got.err


@pytest.mark.thorough
def test_traces_and_what_changes_nothing(run, tmp_path: Path) -> None:
    words = ("traceLevel=1", "train=[SGD=[maxEpochs=1]]", "modelPath=short/m")
    got = run("command=train:cv", "cv=[traceNodeNamesReal=b;numSubminibatches=2;maxSamplesInRAM=9]", *words)
    assert got.code == 0, got.err
    shown = [float(value) for value in re.findall(r"^  \[\d,0\]\t *(\S+)$", got.err, re.M)]
    expected = [actions.model(tmp_path / name)["b"].ravel() for name in ("short/m.0", "short/m")]
    assert shown == pytest.approx([*expected[0], *expected[1]], abs=1e-9), got.err
    for name in ("numSubminibatches", "maxSamplesInRAM"):
        assert got.err.count(f"cv: {name} has no effect. Ignored: ") == 1


def test_the_final_model_is_used_once(run) -> None:
    got = run("command=train:cv", "cv=[crossValidationInterval=7:1:9]")
    assert re.findall(r"^Model (\S+) --> $", got.err, re.M) == ["run/m"]
    assert len(re.findall(r"does not exist\.$", got.err, re.M)) == 3


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["cv=[evalNodeNames=err:nothere]"], 2, "no node 'nothere'"),
        (["cv=[crossValidationInterval=1:0:3]"], 2, "the increment is 0"),
        (["cv=[crossValidationInterval=3:1:1]"], 2, "lies after the last"),
        (["cv=[crossValidationInterval=0:1:-1]"], 2, "crossValidationInterval is at most 2147483647"),
        (["cv=[modelPath=other]"], 1, "no model is evaluated: there is none of other.0 to other.4, nor other"),
        (["cv=[evalNodeNames=z]"], 2, "only nodes with one element per sample"),
    ],
)
def test_errors(words: list[str], code: int, expected: str, run) -> None:
    got = run("command=train:cv", *words)
    assert got.code == code
    assert expected in got.message


def test_an_unknown_node_is_shown_in_its_place(run) -> None:
    got = run("command=train:cv", more="cv = [ action = cv ; crossValidationInterval = 0:1:1 ; evalNodeNames = er ]\n")
    assert "  --> m.cntk:" in got.err
    assert "help: did you mean 'err'?" in got.err


def test_unroll_keeps_its_results(run, tmp_path: Path) -> None:
    more = "unroll = [ action = testUnroll ; minibatchSize = 7 ; path2EvalResults = run/deep/results.txt ]\n"
    got = run("command=train:unroll", more=more)
    assert got.code == 0, got.err
    rows = [line.split() for line in (tmp_path / "run/deep/results.txt").read_text().splitlines()]
    parameters = actions.model(tmp_path / "run/m")
    assert [row[0] for row in rows] == ["err", "ce"]
    assert [row[2] for row in rows] == ["40", "40"]
    assert float(rows[0][1]) == pytest.approx(actions.errors(parameters), rel=1e-12)
    assert float(rows[1][1]) == pytest.approx(actions.criterion(parameters), rel=1e-12)
    assert "Final Results: Minibatch[1-6]: err = " in got.err


def test_unroll_without_a_file(run, tmp_path: Path) -> None:
    got = run("command=train:unroll", more="unroll = [ action = testUnroll ]\n")
    assert got.code == 0
    assert "Final Results: Minibatch[1-1]: " in got.err
