"""Projects: runs of layers, findings once with their runs, causes, contracts, places in `cntkpy.toml`."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from layered_configurations import BASE, ENVIRONMENT, PROJECT, repository

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.commands.editor.completion import complete
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.projects.places import find_project
from cntkpy.commands.projects.project import load_project
from cntkpy.commands.projects.schema import json_schema

WRONG_MODEL = "hidden = 8\ntrain = [ SimpleNetworkBuilder = [ layerSizes = $dim$:x:$classes$ ] ]\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def project(folder: Path, text: str, *names: str):
    write(folder, {"cntkpy.toml": text} | dict.fromkeys(names, "a = 1\n"))
    return load_project(folder / "cntkpy.toml")


def problems(folder: Path, text: str, *names: str) -> list[str]:
    return [
        f"{problem.span.line}:{problem.span.column}: {problem.message} - {problem.hint}"
        for problem in project(folder, text, *names).problems
        if problem.span is not None
    ]


def test_one_command_checks_all_compositions(cntkpy) -> None:
    result = cntkpy("check", files=repository())
    assert (result.code, result.out) == (0, "no problems in 12 configurations\n")
    assert cntkpy("check", ".").out == "no problems in 12 configurations\n"
    assert cntkpy("check", "models").out == "no problems in 12 configurations\n"
    assert cntkpy("check", "models/small.cntk").out == "no problems in 4 configurations\n"
    assert cntkpy("check", "models/small.cntk", "env/dev.cntk").out == "no problems in 6 configurations\n"
    assert cntkpy("check", "prod-large", "dev-small").out == "no problems in 2 configurations\n"
    assert cntkpy("check", "cntkpy.toml").out == "no problems in 12 configurations\n"


def processor_seconds(folder: Path, *words: str) -> float:
    before = os.times()
    subprocess.run([sys.executable, "-m", "cntkpy", "check", *words], cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.thorough
def test_twelve_compositions_take_a_second_more_than_one_at_most(tmp_path: Path) -> None:
    write(tmp_path, repository())
    processor_seconds(tmp_path, "dev-small")  # compiles the modules
    alone = min(processor_seconds(tmp_path, "dev-small") for _ in range(3))
    together = min(processor_seconds(tmp_path) for _ in range(3))
    assert together - alone < 1.0


def test_each_finding_is_listed_once_with_the_runs_that_show_it(cntkpy) -> None:
    files = repository() | {"models/small.cntk": WRONG_MODEL}
    result = cntkpy("check", files=files)
    (line,) = (line for line in result.out.splitlines() if "[CK020]" in line)
    assert line.startswith("models/small.cntk:2:55: error: train:SimpleNetworkBuilder:layerSizes")
    assert line.endswith("(in 4 of 12 runs: dev-small, prod-small, stage-small, test-small)")
    assert result.code == 2
    files = repository() | {"base.cntk": BASE.replace("learningRatesPerMB = 0.1", "learningRatesPerMB = x")}
    result = cntkpy("check", files=files)
    (line,) = (line for line in result.out.splitlines() if "learningRatesPerMB" in line)
    assert line.startswith("base.cntk:7:71: error: train:SGD:learningRatesPerMB")
    assert line.endswith("(in all 12 runs)")
    assert "large.cntk" not in line
    found = json.loads(cntkpy("check", "--format", "json").out)["findings"]
    assert [len(finding["runs"]) for finding in found if finding["code"] == "CK020"] == [12]
    sarif = json.loads(cntkpy("check", "--format", "sarif").out)["runs"][0]["results"]
    assert [len(item["properties"]["runs"]) for item in sarif if item["ruleId"] == "CK020"] == [12]
    assert "(in all 12 runs)" in cntkpy("check", "--format", "gitlab").out
    suites = ElementTree.fromstring(cntkpy("check", "--format", "junit").out)
    shown = [(suite.get("name"), suite.get("failures")) for suite in suites]
    assert shown[:2] == [("dev-large", "1"), ("dev-medium", "1")]
    assert [len(suite) for suite in suites] == [1] * 12
    assert cntkpy("check", "--format", "github").out.count("(in all 12 runs)") == 1


def test_what_a_missing_layer_causes_is_one_finding(cntkpy) -> None:
    files = repository() | {"globals.cntk": "dim = 20\nclasses = 4\n"}
    files["base.cntk"] = BASE.replace("dim = 20\nclasses = 4\n", "")
    result = cntkpy("check", files=files)
    lines = result.out.splitlines()
    assert lines[0].startswith("cntkpy.toml:4:9: error: globals.cntk is not among the files of this run; it defines $")
    assert "$dim$" in lines[0]
    assert "add globals.cntk to files" in lines[0]
    assert lines[0].endswith("[CK007] (in all 12 runs)")
    assert not any("is not defined" in line for line in lines)
    files["cntkpy.toml"] = PROJECT.replace('"base.cntk"]', '"globals.cntk", "base.cntk"]')
    assert cntkpy("check", files=files).out == "no problems in 12 configurations\n"


def test_contracts_are_checked_after_layering_with_both_places(cntkpy) -> None:
    files = repository() | {"env/prod.cntk": (ENVIRONMENT % ("prdo", "prod")).replace("= 5", "= 500")}
    result = cntkpy("check", files=files)
    assert [line for line in result.out.splitlines() if "[CK081]" in line] == [
        "env/prod.cntk:1:7: error: env is 'prdo'; the project allows dev, test, stage, prod (cntkpy.toml:8:7) "
        "- did you mean 'prod'? [CK081] (in 3 of 12 runs: prod-large, prod-medium, prod-small)",
        "env/prod.cntk:4:31: error: train/SGD/maxEpochs is 500; the project demands at most 200 (cntkpy.toml:9:23) "
        "- write at most 200, or change the contract [CK081] (in 3 of 12 runs: prod-large, prod-medium, prod-small)",
    ]
    assert result.code == 2
    words = cntkpy("check", "dev-small", "train/SGD/maxEpochs=0")
    assert "train/SGD/maxEpochs is 0; the project demands at least 1" in words.out
    lists = PROJECT.replace("train.SGD.maxEpochs = {", '"train/SGD/learningRatesPerMB" = { required = true,')
    files = repository() | {"cntkpy.toml": lists, "base.cntk": BASE.replace("PerMB = 0.1", "PerMB = 1*3:900*1000000")}
    assert "learningRatesPerMB is 900; the project demands at most 200" in cntkpy("check", files=files).out
    files["base.cntk"] = BASE.replace("learningRatesPerMB = 0.1 ;", "")
    assert "train/SGD/learningRatesPerMB is missing; the project requires it" in cntkpy("check", files=files).out


def test_other_tools_take_the_names_of_runs(cntkpy, tmp_path: Path) -> None:
    files = repository()
    assert "train:SGD:maxEpochs=5\n" in cntkpy("show", "prod-large", "train/SGD", files=files).out
    assert "'5' at env/prod.cntk:4:31" in cntkpy("explain", "prod-large", "train/SGD/maxEpochs").out
    difference = cntkpy("diff", "prod-large", "prod-small")
    assert "- hidden=256\n+ hidden=8\n" in difference.out
    below = cntkpy("show", "prod-large", "train/SGD", "--origins", cwd=tmp_path / "env")
    assert "prod.cntk:4:31; overrides '3' at ../base.cntk:7:" in below.out
    wrong = cntkpy("show", "prod-larg")
    assert wrong.code == 2
    assert "no run of that name in cntkpy.toml" in wrong.err
    assert "did you mean 'prod-large'?" in wrong.err


def test_a_run_is_run_in_its_folder(cntkpy_process, tmp_path: Path) -> None:
    train = "command = train\ntrain = [ action = train ; modelPath = m.dnn\n"
    train += (
        " SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]\n"
    )
    train += " SGD = [ maxEpochs = 3 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]\n"
    train += " reader = [ file = d.ctf ; input = [ features = [ dim = 2 ; format = dense ]\n"
    train += " labels = [ dim = 2 ; format = dense ] ] ] ]\n"
    toml = '[[run]]\nname = "one"\nfiles = ["a.cntk"]\nfolder = "work"\nwords = ["train/SGD/maxEpochs=1"]\n'
    files = {"cntkpy.toml": toml, "a.cntk": train, "work/d.ctf": "|features 1 2 |labels 1 0\n" * 4, "sub/x": ""}
    result = cntkpy_process("run", "one", files=files, cwd=None)
    assert result.code == 0, result.err
    assert "Finished Epoch[ 1 of 1]" in result.err
    assert (tmp_path / "work" / "m.dnn").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strict = 1\n", "1:10: strict expects true or false - write strict = true"),
        ("strikt = true\n", "1:1: there is no key 'strikt' here - did you mean 'strict'?"),
        ('[[run]]\nname = "x"\nfiles = ["a.cnt"]\n', "3:10: there is no file 'a.cnt' - did you mean 'a.cntk'?"),
        (
            '[[run]]\nname = "x"\nfiles = ["q/*.cntk"]\n',
            "3:10: no file matches 'q/*.cntk' - correct the glob, or remove it",
        ),
        ('[[run]]\nname = "x"\n', '1:3: a run needs files - add files = ["base.cntk"]'),
        ('[[run]]\nfiles = ["a.cntk"]\n', '1:3: a run needs a name - add name = "train"'),
        (
            '[[run]]\nname = "x"\nfiles = "a.cntk"\n',
            '3:9: files expects a list of texts - write files = ["base.cntk", "prod.cntk"]',
        ),
        (
            '[[run]]\nname = "x"\nfiles = ["a.cntk"]\nwords = ["y"]\n',
            "4:10: 'y' is no word NAME=VALUE - files stand in `files`, the folder in `folder`",
        ),
        ('[[run]]\nname = "x"\nfiles = ["a.cntk"]\nfolder = "z"\n', "4:10: there is no folder 'z' - None"),
        (
            '[[run]]\nname = "x"\nfiles = ["a.cntk"]\n[[run]]\nname = "x"\nfiles = ["a.cntk"]\n',
            "5:8: there are two runs 'x', the other one at {file}:2:8 - give each run a name of its own",
        ),
        ('ignore = ["CK060", "CX1"]\n', "1:20: no finding has the code 'CX1' - `cntkpy list findings` shows all"),
        ('[per-file]\n"*.cntk" = ["CX1"]\n', "2:13: no finding has the code 'CX1' - `cntkpy list findings` shows all"),
        ('[types]\na = { min = "1" }\n', "2:13: min expects a number - write min = 1"),
        ("[types]\na = 3\n", '2:5: a is no contract - write { min = 1, max = 9 } or "a|b"'),
        ('exclude = ["**/a/**/b/**"]\n', "1:12: a glob has more than 2 times ** - write one ** for all folders below"),
        ("run = [1]\n", "1:8: run expects an array of tables - every run begins with [[run]], in two brackets"),
    ],
)  # fmt: skip
def test_errors_of_the_project_file_have_places(text: str, message: str, tmp_path: Path) -> None:
    expected = message.replace("{file}", os.path.relpath(tmp_path / "cntkpy.toml"))
    assert problems(tmp_path, text, "a.cntk") == [expected]


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = \n", "cntkpy.toml:1:5"), ("a = 1\n[[run\n", "cntkpy.toml:2:6"), ("a = '", "cntkpy.toml:1:6")],
)
def test_what_is_not_toml(text: str, place: str, cntkpy) -> None:
    result = cntkpy("check", files={"cntkpy.toml": text, "a.cntk": "command = ()\n"})
    assert result.code == 2
    assert result.out.startswith(f"{place}: error: this is not TOML: "), result.out
    assert "[CK080]" in result.out
    assert cntkpy("show", "nothing").code == 2


def test_errors_of_the_project_file_are_findings(cntkpy) -> None:
    files = repository() | {"cntkpy.toml": PROJECT.replace("files", "fiels")}
    result = cntkpy("check", files=files)
    assert "cntkpy.toml:4:1: error: there is no key 'fiels' here - did you mean 'files'? [CK080]\n" in result.out
    assert result.code == 2
    shown = cntkpy("show", "dev-small")
    assert shown.code == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["base.cntk"]', "3", "4:9: error: files expects a list of texts"),
        ('"base.cntk"', '"bsae.cntk"', "4:10: error: there is no file 'bsae.cntk'"),
        ('"base.cntk"', '"bsae/*.cntk"', "4:10: error: no file matches 'bsae/*.cntk'"),
        ('"models/*.cntk"', '"model/*.cntk"', "5:23: error: no file matches 'model/*.cntk'"),
        ("each = ", "wrods = []\neach = ", "5:1: error: there is no key 'wrods' here"),
    ],
)
def test_an_error_of_a_run_hides_what_it_causes(old: str, new: str, message: str, cntkpy) -> None:
    files = repository() | {"cntkpy.toml": PROJECT.replace(old, new)}
    for words in ((), ("models",), ("models/small.cntk",)):
        result = cntkpy("check", *words, files=files)
        assert result.code == 2
        assert result.out.startswith(f"cntkpy.toml:{message}"), result.out
        assert result.out.count("error") == 2, result.out  # the finding and the last line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[run]]\nname = 'a'\nfiles = []\n", "1:3: a run needs files"),
        ("[[run]]\nfiles = ['a.cntk']\neach = [[]]\n", "3:8: each expects a list of globs or of lists of files"),
    ],
)
def test_lists_without_files_are_errors(text: str, message: str, tmp_path: Path) -> None:
    assert [problem.rpartition(" - ")[0] for problem in problems(tmp_path, text, "a.cntk")] == [message]


@pytest.mark.parametrize("words", [(), (".",), ("cntkpy.toml",)])
def test_without_runs_the_files_of_the_folder_are_checked(words: tuple[str, ...], cntkpy) -> None:
    files = {"cntkpy.toml": 'ignore = ["CK060"]\n', "a.cntk": "command = trian\n"}
    result = cntkpy("check", *words, files=files)
    assert (result.code, result.out.count("a.cntk:1:11: error: ")) == (2, 1), result.out


def test_records_of_runs_are_no_configurations_of_a_folder(cntkpy, tmp_path: Path) -> None:
    record = "out/runs/20261128-180847-a/config.resolved.cntk"
    files = {"a.cntk": "command = ()\n", record: "command=[\naction = trian\n]\n"}
    result = cntkpy("check", ".", files=files)
    assert (result.code, result.out) == (0, "no problems in 1 configuration\n")
    assert cntkpy("check", record).code == 2
    assert cntkpy("format", ".").code == 0
    assert (tmp_path / record).read_text() == files[record]


def test_a_project_without_configurations_is_an_error(cntkpy) -> None:
    result = cntkpy("check", files={"cntkpy.toml": ""})
    assert result.code == 2
    assert "In the project there is no configuration. Add [[run]] to cntkpy.toml, or name a file." in result.err


def test_places_of_every_form_of_key(tmp_path: Path) -> None:
    text = """\
# a comment with [brackets] and "quotes
ignore = [ # one
    "CK060", 'CK011', # two
]
"per-file"."a b.cntk" = ["CK0", \"\"\"CK9\"\"\"]
[types]
"x/y" . z = {min=1,max=2}
"""
    made = project(tmp_path, text)
    places = made.text
    assert str(places.value("ignore", 1)).endswith("cntkpy.toml:3:14")
    assert str(places.value("per-file", "a b.cntk", 1)).endswith("cntkpy.toml:5:33")
    assert str(places.key("types", "x/y", "z")).endswith("cntkpy.toml:7:9")
    assert str(places.value("types", "x/y", "z", "max")).endswith("cntkpy.toml:7:24")
    (contract,) = made.contracts
    assert (contract.path, contract.low, contract.high) == (("x", "y", "z"), 1.0, 2.0)
    assert [problem.message for problem in made.problems] == ["no finding has the code 'CK9'"]


def test_pyproject_has_a_table(cntkpy) -> None:
    files = repository()
    text = files.pop("cntkpy.toml").replace("[[run]]", "[[tool.cntkpy.run]]").replace("[types]", "[tool.cntkpy.types]")
    files["pyproject.toml"] = "[project]\nname = 'x'\n[tool.cntkpy]\n" + text
    assert cntkpy("check", files=files).out == "no problems in 12 configurations\n"
    files["pyproject.toml"] = "[project]\nname = 'x'\n"
    result = cntkpy("check", files=files)
    assert result.code == 2
    assert "there is no cntkpy.toml here or above" in result.err


def test_per_file_include_exclude_and_strict(cntkpy, tmp_path: Path) -> None:
    unused = "command = ()\ncomand = ()\n"
    files = repository() | {"examples/a.cntk": unused, "examples/old/b.cntk": unused, "old.cntk": unused}
    files["cntkpy.toml"] = 'include = ["examples/**/*.cntk"]\nexclude = ["**/old/*"]\n' + PROJECT
    result = cntkpy("check", files=files)
    assert "examples/a.cntk:2:1: warning:" in result.out
    assert "old" not in result.out
    assert result.out.endswith("1 warning in 13 configurations\n")
    assert "in run" not in result.out
    files["cntkpy.toml"] = "strict = true\n" + files["cntkpy.toml"]
    assert cntkpy("check", files=files).code == 2
    files["cntkpy.toml"] += '[per-file]\n"examples/*.cntk" = ["CK010"]\n'
    assert cntkpy("check", files=files).out == "no problems in 13 configurations\n"


def test_environment_variables_are_off_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = '[[run]]\nname = "x"\nfiles = ["a.cntk"]\nvariables = { Root = "${env:CNTKPY_X}/d" }\n'
    monkeypatch.setenv("CNTKPY_X", "/data")
    assert problems(tmp_path, run, "a.cntk") == [
        '4:22: the environment variable CNTKPY_X is not allowed here - add environment = ["CNTKPY_X"] at the top'
    ]
    allowed = 'environment = ["CNTKPY_X"]\n' + run
    assert [word for word, _ in project(tmp_path, allowed, "a.cntk").runs[0].words] == ["Root=/data/d"]
    monkeypatch.delenv("CNTKPY_X")
    assert problems(tmp_path, allowed, "a.cntk") == [
        "5:22: the environment variable CNTKPY_X is not set - set CNTKPY_X before the command"
    ]


def test_findings_in_words_have_their_place_in_the_project_file(cntkpy) -> None:
    toml = '[[run]]\nname = "x"\nfiles = ["a.cntk"]\nwords = ["train/SGD/maxEpoch=1"]\n'
    toml += 'variables = { RunDir = "r", DataDir = "d" }\n'
    result = cntkpy("check", files={"cntkpy.toml": toml, "a.cntk": BASE})
    assert result.out.startswith("cntkpy.toml:4:10: error:"), result.out


def test_the_project_of_the_repository_only(tmp_path: Path) -> None:
    write(tmp_path, {"cntkpy.toml": "", "in/.git/HEAD": "", "in/a/b.cntk": ""})
    assert find_project(tmp_path / "in" / "a") is None
    assert find_project(tmp_path) is not None


def test_matrix_with_a_bound(tmp_path: Path) -> None:
    toml = "[[run]]\neach = [" + ", ".join(['["a.cntk", "b.cntk", "c.cntk", "d.cntk"]'] * 8) + "]\n"
    names = ("a.cntk", "b.cntk", "c.cntk", "d.cntk")
    assert problems(tmp_path, toml, *names) == [
        "1:3: there are more than 10,000 runs - make the lists of `each` shorter"
    ]


def test_the_language_server_shows_the_findings_of_runs_in_a_layer(tmp_path: Path) -> None:
    write(tmp_path, repository())
    path = tmp_path / "models" / "small.cntk"
    clean = Analysis(path.read_text(), str(path))
    assert clean.findings() == []
    wrong = Analysis(WRONG_MODEL, str(path), clean)  # as the editor has it, not saved
    found = [finding for finding in wrong.findings() if finding.rule.code == "CK020"]
    assert [(str(finding.diagnostic.span), len(finding.runs)) for finding in found] == [(f"{path}:2:55", 4)]
    assert "20" in (wrong.hover(2, 53) or "")  # $dim$ of base.cntk
    definition = wrong.definition(2, 53)
    assert definition is not None
    assert definition.source.name == str(tmp_path / "base.cntk")
    assert Path.cwd() != tmp_path


def test_names_of_runs_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, repository())
    monkeypatch.chdir(tmp_path)
    options = {"": {}, "check": {}, "run": {}, "format": {}}
    assert list(complete(["check", "prod-l"], options)) == ["prod-large"]
    assert list(complete(["run", "dev-"], options)) == ["dev-large", "dev-medium", "dev-small"]
    assert list(complete(["format", "dev-"], options)) == []


def test_a_new_project_has_no_findings_and_trains(cntkpy, cntkpy_process, tmp_path: Path) -> None:
    assert cntkpy("new", "project", "digits").code == 0
    folder = tmp_path / "digits"
    assert cntkpy("check", cwd=folder).out == "no problems in 5 configurations\n"
    import jsonschema

    schema = json.loads((folder / "cntkpy.schema.json").read_text())
    jsonschema.validate(tomllib.loads((folder / "cntkpy.toml").read_text()), schema)
    assert cntkpy("new", "project", "digits").code == 2
    assert cntkpy("new", "project", "No Name").code == 2
    assert cntkpy_process("run", "dev-small", cwd=folder).code == 0
    assert (folder / "out" / "dev-small" / "digits.dnn").exists()


def test_the_page_of_projects_is_as_printed(cntkpy, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "projects.md").read_text()
    (make, commands, *_) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [line.partition(" #")[0].split() for line in [*make.splitlines(), *commands.splitlines()]]
    assert [words[0] for words in lines] == ["cntkpy", "cd", *["cntkpy"] * 8]
    assert cntkpy(*lines[0][1:]).code == 0
    folder = tmp_path / lines[1][1]
    (toml, *_) = re.findall(r'```toml title="cntkpy.toml"\n(.*?)```', page, re.DOTALL)
    assert (folder / "cntkpy.toml").read_text().partition("\n\n")[2] == toml
    for words in lines[2:]:
        result = cntkpy(*words[1:], cwd=folder)
        assert result.code == (1 if words[1] == "diff" else 0), (words, result.out, result.err)
    assert (folder / "out" / "smoke" / "digits.dnn").exists()


def test_the_schema_accepts_what_the_program_accepts() -> None:
    import jsonschema

    schema = json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(PROJECT), schema)
    for wrong in ("strict = 1", "fiels = []", "run = 3", "[[run]]\nfiles = 'a'", "[types]\na = 3"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(wrong), schema)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.cntkpy]",
        "  [ tool . 'cntkpy' ]",
        "[tool]\r\ncntkpy.strict = true",
        'tool = { "cntkpy" = {} }',
        '"tool".cntkpy.strict = true',
        "[[tool.cntkpy.run]]",
        "[tool.ruff]\n[tool.cntkpy.types]",
    ],
)
def test_forms_of_the_table_in_pyproject(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"pyproject.toml": f'[project]\nname = "x"\n{text}\n' if text[0] in " [" else text})
    assert find_project(tmp_path) is not None


@pytest.mark.parametrize("text", ["[project]\nname = 'cntkpy'\n[tool.ruff]", "[tool]\nx = 1", "#[tool.cntkpy]"])
def test_a_pyproject_without_the_table(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"pyproject.toml": text})
    assert find_project(tmp_path) is None


def test_a_broken_pyproject_is_no_project(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "[tool", "a.cntk": ""})
    assert find_project(tmp_path) is None
    write(tmp_path, {"cntkpy.toml": "[" * 5000})
    with pytest.raises(ConfigError):
        find_project(tmp_path)


def test_watch_checks_again_after_a_change(tmp_path: Path) -> None:
    write(tmp_path, repository())
    command = [sys.executable, "-u", "-m", "cntkpy", "check", "--watch"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "no problems in 12 configurations\n"
        assert "watching 9 files" in process.stdout.readline()
        (tmp_path / "models" / "small.cntk").write_text(WRONG_MODEL)
        lines = [process.stdout.readline()]
        while "configurations" not in lines[-1]:
            lines.append(process.stdout.readline())
        assert any("[CK020]" in line for line in lines)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_modules_are_imported_on_request_only_and_those_that_are_allowed(cntkpy, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "open('imported', 'w').close()\nclass Ours:\n    pass\n"
    reader = BASE.replace("readerType = CNTKTextFormatReader", "readerType = Ours ; module = ours_of_test")
    toml = '[[run]]\nname = "x"\nfiles = ["a.cntk"]\nvariables = { RunDir = "r", DataDir = "d" }\n'
    files = {"a.cntk": reader, "ours_of_test.py": code, "cntkpy.toml": 'modules = ["ours_of_test"]\n' + toml}
    cntkpy("check", files=files)
    assert not (tmp_path / "imported").exists()
    files["cntkpy.toml"] = 'modules = ["another"]\n' + toml
    result = cntkpy("check", "--import-modules", files=files)
    assert not (tmp_path / "imported").exists()
    message = "error: the module 'ours_of_test' is none of those that the project allows - "
    message += 'add "ours_of_test" to modules in cntkpy.toml [CK081]'
    assert message in result.out and message in cntkpy("check").out
    assert "the module 'ours_of_test' is none of those" in cntkpy("run", "x").err
    assert not (tmp_path / "imported").exists()
    files["cntkpy.toml"] = "modules = []\n" + toml
    assert message in cntkpy("check", files=files).out
    files["cntkpy.toml"] = 'modules = ["ours_of_test"]\n' + toml
    cntkpy("check", "--import-modules", files=files)
    assert (tmp_path / "imported").exists()


def test_the_hook_checks_the_runs_of_a_changed_layer(cntkpy) -> None:
    import yaml

    hooks = yaml.safe_load((Path(__file__).resolve().parents[3] / ".pre-commit-hooks.yaml").read_text())
    _, *words = hooks[0]["entry"].split()
    files = repository() | {"models/small.cntk": WRONG_MODEL, "models/large.cntk": WRONG_MODEL}
    result = cntkpy(*words, "models/small.cntk", files=files)  # as pre-commit passes what has changed
    assert result.code == 2
    lines = [line for line in result.out.splitlines() if "[CK020]" in line]
    assert len(lines) == 1
    assert lines[0].startswith("models/small.cntk:2:55: error: ")
    assert lines[0].endswith("(in all 4 runs)")
    assert all(re.search(hooks[0]["files"], name) for name in ("models/small.cntk", "cntkpy.toml", "a/cntkpy.toml"))


def test_a_changed_include_or_network_checks_the_runs_that_use_it(cntkpy) -> None:
    files = {
        "cntkpy.toml": 'ignore = ["CK060"]\n[[run]]\nname = "a"\nfiles = ["a.cntk"]\n'
        '[[run]]\nname = "b"\nfiles = ["b.cntk"]\n',
        "parts/common.cntk": "include=deep.cntk\nDataDir = d\n",
        "parts/deep.cntk": "Rate = x\n",
        "parts/net.ndl": "features = Input(2, tag=feature)\nz = Sigmod(features)\n",
        "a.cntk": "command = t\ninclude=parts/common.cntk\nmodelPath = m\n"
        "t = [ action = train ; SGD = [ learningRatesPerMB = $Rate$ ; maxEpochs = 1 ]\n"
        'NDLNetworkBuilder = [ networkDescription = "parts/net.ndl" ] ; reader = [ file = "$DataDir$/x" ] ]\n',
        "b.cntk": "command = ()\n# parts/common.cntk and net.nd are not used here\n",
        "alone.cntk": "command = ()\n",
    }  # fmt: skip
    assert cntkpy("check", "parts/common.cntk", files=files).out == cntkpy("check", "a").out
    assert cntkpy("check", "parts/deep.cntk").out == cntkpy("check", "a").out
    result = cntkpy("check", "parts/net.ndl")
    assert result.out == cntkpy("check", "a").out
    assert "parts/net.ndl:2:5: error: undefined function or macro 'Sigmod'" in result.out
    assert cntkpy("check", "alone.cntk").out == "no problems in 1 configuration\n"


def test_projects_below_a_folder_are_checked_as_projects(cntkpy) -> None:
    files = {f"configs/{name}": text for name, text in repository().items()}
    files |= {f"other/deep/{name}": text for name, text in repository().items()} | {"alone.cntk": "command = ()\n"}
    files["other/deep/models/small.cntk"] = WRONG_MODEL
    result = cntkpy("check", ".", files=files)
    lines = [line for line in result.out.splitlines() if "[CK020]" in line]
    assert [line.partition(": ")[0] for line in lines] == ["other/deep/models/small.cntk:2:55"]
    assert result.out.endswith(" in 25 configurations\n")
    assert result.err == ""
    assert cntkpy("check", "configs").out == "no problems in 12 configurations\n"
    result = cntkpy("check")
    assert result.code == 2
    assert "There is one in configs: write `cntkpy check configs`, or `cntkpy check .`" in " ".join(result.err.split())
