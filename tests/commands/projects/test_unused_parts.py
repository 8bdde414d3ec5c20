# ruff: noqa: E501 - messages on one line each
"""Parts of a project file that have no effect, advice for tables that are written wrongly, causes outside of projects."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from layered_configurations import BASE, PROJECT, repository

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.commands.projects.project import load_project


def of_project(output: str) -> list[str]:
    """Return the findings in the project file without its name."""
    return [line.removeprefix("cntkpy.toml:") for line in output.splitlines() if line.startswith("cntkpy.toml:")]


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        ("train.SGD.maxEpoch = { min = 1 }", "10:11: warning: no run has train/SGD/maxEpoch: this contract checks nothing - did you mean train/SGD/maxEpochs? [CK082]"),
        ('"train/SDG/maxEpochs" = { min = 1 }', "10:1: warning: no run has train/SDG/maxEpochs: this contract checks nothing - did you mean train/SGD/maxEpochs? [CK082]"),
        ("SGD.maxEpochs = { min = 1 }", "10:5: warning: no run has SGD/maxEpochs: this contract checks nothing - did you mean train/SGD/maxEpochs? [CK082]"),
        ('enviroment = "a|b"', "10:1: warning: no run has enviroment: this contract checks nothing - correct the path, or remove the contract [CK082]"),
        ('RunDirr = "a|b"', "10:1: warning: no run has RunDirr: this contract checks nothing - did you mean RunDir? [CK082]"),
        ("train.SGD.dropoutRate = { max = 1 }", "10:11: hint: no run gives train/SGD/dropoutRate: this contract checks nothing - add the value, or remove the contract [CK082]"),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_contracts_whose_path_no_run_has(contract: str, expected: str, cntkpy) -> None:
    result = cntkpy("check", files=repository() | {"cntkpy.toml": f"{PROJECT}{contract}\n"})
    assert of_project(result.out) == [expected]
    assert of_project(cntkpy("check", "dev-small").out) == []  # another run may have it
    assert of_project(cntkpy("check", "--format", "text", "cntkpy.toml").out) == [expected]


def test_a_contract_that_one_run_has_is_used(cntkpy) -> None:
    files = repository() | {"cntkpy.toml": f"{PROJECT}only = {{ max = 3 }}\n"}
    files["models/small.cntk"] += "only = 2\n"
    assert cntkpy("check", files=files).out == "no problems in 12 configurations\n"
    files["models/small.cntk"] = files["models/small.cntk"].replace("only = 2", "only = 4")
    (line,) = cntkpy("check", files=files).out.splitlines()[:-1]
    assert line.startswith("models/small.cntk:16:8: error: only is 4; the project demands at most 3")


def test_a_required_contract_is_no_unused_one(cntkpy) -> None:
    result = cntkpy("check", files=repository() | {"cntkpy.toml": f"{PROJECT}owner = {{ required = true }}\n"})
    assert "owner is missing" in result.out and "CK082" not in result.out


def test_unused_contracts_can_be_ignored_and_are_errors_if_strict(cntkpy) -> None:
    files = repository() | {"cntkpy.toml": f"{PROJECT}nothing = {{ max = 3 }}\n"}
    assert cntkpy("check", "--ignore", "CK082", files=files).out == "no problems in 12 configurations\n"
    assert cntkpy("check", "--strict").code == 2
    files["cntkpy.toml"] = files["cntkpy.toml"].replace('["CK060"]', '["CK060", "CK082"]')
    assert cntkpy("check", files=files).code == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('include = ["exmples/*.cntk"]', "1:12: warning: no file matches 'exmples/*.cntk' - did you mean 'examples/*.cntk'? [CK082]"),
        ('exclude = ["old/**", "env/**"]', "1:12: warning: no file matches 'old/**' - correct the glob, or remove it [CK082]"),
        ('exclude = ["models/lagre.cntk"]', "1:12: warning: no file matches 'models/lagre.cntk' - did you mean 'models/large.cntk'? [CK082]"),
        ('per-file = { "modles/*.cntk" = ["CK034"], "env/*.cntk" = ["CK034"] }', "1:14: warning: no file matches 'modles/*.cntk' - did you mean 'models/*.cntk'? [CK082]"),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_globs_that_match_nothing(line: str, expected: str, cntkpy) -> None:
    files = repository() | {"cntkpy.toml": f"{line}\n{PROJECT}", "examples/a.cntk": BASE}
    assert of_project(cntkpy("check", "--ignore", "CK007", files=files).out) == [expected]
    assert of_project(cntkpy("check", "--ignore", "CK007", "models/small.cntk").out) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"base.cntk"]', '"bse.cntk"]', "there is no file 'bse.cntk' - did you mean 'base.cntk'?"),
        ('"base.cntk"]', '"bases/base.cntk"]', "there is no file 'bases/base.cntk'"),
        ('"base.cntk"]', '"modles/small.cntk"]', "there is no file 'modles/small.cntk' - did you mean 'models/small.cntk'?"),
        ('"env/*.cntk"', '"evn/*.cntk"', "no file matches 'evn/*.cntk' - did you mean 'env/*.cntk'?"),
        ('"env/*.cntk"', '"env/*.config"', "no file matches 'env/*.config' - correct the glob, or remove it"),
    ],
)  # fmt: skip
def test_layers_that_are_not_there(old: str, new: str, expected: str, cntkpy) -> None:
    (line, *_) = cntkpy("check", files=repository() | {"cntkpy.toml": PROJECT.replace(old, new)}).out.splitlines()
    assert re.sub(r"^cntkpy.toml:\d+:\d+: error: (.*) \[CK080\]$", r"\1", line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[run]\nfiles = ["a.cntk"]\n[run]\nfiles = ["b.cntk"]\n', "3:5: [run] is one table, and here is another run - every run begins with [[run]], in two brackets"),
        ('[[run]]\nfiles = ["a.cntk"]\n[run]\nfiles = ["b.cntk"]\n', "3:5: [run] is one table, and here is another run - every run begins with [[run]], in two brackets"),
        ('[run]\nfiles = ["a.cntk"]\n[[run]]\nfiles = ["b.cntk"]\n', "3:6: [run] is one table, and here is another run - every run begins with [[run]], in two brackets"),
        ("[types]\na = 'b'\n[types]\nb = 'c'\n", "3:7: the table [types] is given twice - write all keys of [types] below its first header"),
        ("strict = true\nstrict = false\n", "2:15: this key has a value already - remove one of the two; a table with a header is given once"),
    ],
)  # fmt: skip
def test_tables_that_are_given_twice(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "cntkpy.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path / "cntkpy.toml")
    assert caught.value.span is not None
    place = f"{caught.value.span.line}:{caught.value.span.column}"
    assert f"{place}: {caught.value.message} - {caught.value.hint}" == expected


def test_one_table_in_place_of_an_array(tmp_path: Path) -> None:
    (tmp_path / "cntkpy.toml").write_text('[run]\nname = "a"\nfiles = ["a.cntk"]\n')
    (problem,) = load_project(tmp_path / "cntkpy.toml").problems
    assert problem.message == "[run] is one table; run expects an array of tables"
    assert problem.hint == "every run begins with [[run]], in two brackets"


def test_a_report_for_junit_has_the_findings_of_each_run(cntkpy) -> None:
    files = repository()
    files["models/small.cntk"] = files["models/small.cntk"].replace("hidden = 8", "hidden = 8\nhiden = 9")
    suites = ElementTree.fromstring(cntkpy("check", "--format", "junit", files=files).out)
    failing = {suite.get("name") for suite in suites if suite.find("testcase/failure") is not None}
    assert failing == {"dev-small", "prod-small", "stage-small", "test-small"}
    assert {suite.get("name") for suite in suites if suite.find("testcase[@name='no problems']") is not None} == {
        f"{environment}-{model}" for environment in ("dev", "prod", "stage", "test") for model in ("large", "medium")
    }


def test_nothing_to_correct_is_said(cntkpy) -> None:
    files = repository()
    files["base.cntk"] = BASE.replace("learningRatesPerMB = 0.1", "learningRatesPerMB = x")
    result = cntkpy("check", "--fix", "--diff", files=files)
    assert (result.code, result.out) == (0, "")
    assert result.err == "no finding can be corrected with certainty; `cntkpy check` shows them\n"
    assert cntkpy("check", "--fix", "--diff", "--quiet").err == ""
    assert "no finding can be corrected with certainty" in cntkpy("check", "--fix").err


def test_without_findings_there_is_nothing_to_correct(cntkpy) -> None:
    result = cntkpy("check", "--fix", files=repository())
    assert (result.code, result.err) == (0, "there is nothing to correct\n")


def test_a_run_obeys_the_contracts_of_its_project(cntkpy) -> None:
    result = cntkpy("run", "dev-small", "train=[SGD=[maxEpochs=500]]", files=repository())
    assert result.code == 2
    assert "train/SGD/maxEpochs is 500; the project demands at most 200 (cntkpy.toml:" in result.err
    result = cntkpy("run", "dev-small")
    assert "nothing reads" not in result.err, result.err
    assert "nothing reads 'env'" in cntkpy("run", "dev-small", files={"cntkpy.toml": PROJECT.split("[types]")[0]}).err


VARIABLES = ("LabelDim", "FeatureDim", "DataDir", "ModelDir", "Epochs", "Rate")


def test_undefined_variables_of_a_folder_have_one_cause(cntkpy) -> None:
    values = "\n".join(f"v{number} = ${name}$" for number, name in enumerate(VARIABLES))
    files = {
        f"model{number}.cntk": f"command = a\n{values}\na = [ action = train ; other = $LabelDim$ ]\n"
        for number in range(11)
    }
    files["globals.cntk"] = "".join(f"{name} = 1\n" for name in VARIABLES)
    result = cntkpy("check", ".", files=files)
    lines = [line for line in result.out.splitlines() if "[CK007]" in line]
    assert len(lines) == 1, result.out
    assert lines[0].startswith(
        "model0.cntk:2:6: error: globals.cntk defines $LabelDim$, $FeatureDim$, $DataDir$, $ModelDir$ and 2 more, which 11 files without it need"
    )
    assert "check globals.cntk+model0.cntk; or write include=globals.cntk; or say in cntkpy.toml" in lines[0]
    assert cntkpy("check", "globals.cntk+model0.cntk").out.count("[CK007]") == 0
    assert cntkpy("check", "model0.cntk").out.count("[CK007]") == 7  # one file by itself: each of its places
    names = [name for name in files if name != "globals.cntk"]
    assert cntkpy("check", *names).out.count("[CK007]") == 1
