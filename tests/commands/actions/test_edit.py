"""`action = edit`, `action = plot` and `cntkpy show MODEL`, run from the command line."""

import json
import os
from pathlib import Path

import pytest

from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import load_model, save_model

NET = """
x = Input(4, tag=feature)
l = Input(3, tag=label)
A = Parameter(3, 4)
F = Parameter(3, 1, learningRateMultiplier=0)
t = Times(A, x)
m = Mean(x)
s = Plus(t, F, tag=output)
ce = CrossEntropyWithSoftmax(l, s, tag=criterion)
"""
MACROS = "Top(z) { y = Sigmoid(z) }\n"
CONFIG = """command = edit
RunDir = run
ndlMacros = macros.ndl
edit = [
    action = edit
    editPath = edit.mel
    Name = new
]
"""


@pytest.fixture
def run(cntkpy, tmp_path, monkeypatch):
    """Run a MEL file in a folder with the model run/base.dnn."""

    monkeypatch.chdir(tmp_path)

    def call(mel, *words, config=CONFIG, **files):
        Path("run").mkdir(exist_ok=True)
        save_model("run/base.dnn", parse_ndl(NET).validate())
        return cntkpy(
            "configFile=e.cntk", *words, files={"e.cntk": config, "edit.mel": mel, "macros.ndl": MACROS, **files}
        )

    return call


def test_editing(run) -> None:
    got = run(
        '# a comment\nm = LoadModel("$RunDir$/base.dnn", format=cntk)\nSetDefaultModel(m)\n$Name$ = Top(s) # a macro\n'
        'SetProperty($Name$.y, output, true)\nSaveModel(m, "$RunDir$/$Name$.dnn")\n'
    )
    assert got.code == 0, got.err
    network = load_model("run/new.dnn")
    assert [n.name for n in network.groups["output"]] == ["s", "new.y"]
    assert (network["A"].value == load_model("run/base.dnn")["A"].value).all()
    assert "COMPLETED." in got.err


def test_precision_is_that_of_the_run(run) -> None:
    got = run("m = LoadModel(run/base.dnn)\nSaveModel(m, run/new.dnn)", "precision=double")
    assert got.code == 0, got.err
    assert load_model("run/new.dnn").precision == "double"


def test_errors_are_in_the_script(run) -> None:
    got = run("m = LoadModel(run/base.dnn)\n\n# comment\nRemove(m.B)  # no such node\n")
    assert got.code == 2
    assert "could not find a symbol for 'm.B'" in got.err
    assert "edit.mel:4:8" in got.err
    got = run("m = LoadModel(run/none.dnn)\n")
    assert got.code == 1
    assert "there is no model run/none.dnn" in got.err
    got = run("SaveModel($Nam$, x)")
    assert got.code == 2
    assert "Nam" in got.err


def test_sections_of_a_script(run) -> None:
    script = """load = macros
edit = first:second
macros = [ D(a) { q = Sin(a) } ]
first = [
    m = LoadModel(run/base.dnn)
    d = D(s)
]
second = [ SetProperty(d.q, output, true)
SaveModel(m, run/new.dnn) ]
third = [ Nonsense(x) ]
"""
    got = run(script)
    assert got.code == 0, got.err
    assert load_model("run/new.dnn")["d.q"].operation == "Sin"
    got = run(script.replace("edit = first:second", "edit = forth"))
    assert got.code == 2
    assert "there is no section 'forth'" in got.err
    got = run(script.replace("edit = first:second\n", ""))
    assert got.code == 2
    assert "the file has 'load' but no 'edit'" in got.err
    assert "edit.mel:1:" in got.err


def test_missing_files(run) -> None:
    got = run("", "edit=[editPath=none.mel]")
    assert got.code == 2
    assert "none.mel" in got.err
    got = run("", "ndlMacros=none.ndl")
    assert got.code == 2
    assert "none.ndl" in got.err
    got = run("", config="command=edit\nedit=[action=edit]\n")
    assert got.code == 2
    assert "editPath" in got.err


def test_brainscript(run) -> None:
    """The network of a builder is made and saved, without training."""
    got = run("", config="command=edit\nedit=[action=edit;BrainScriptNetworkBuilder=[a=b];outputModelPath=x]\n")
    assert got.code == 2
    assert "unknown identifier 'b'" in got.err
    network = "{ x = Input {2} ; z = LinearLayer {3} (x) ; outputNodes = (z) }"
    got = run("", config=f"command=edit\nedit=[action=edit;BrainScriptNetworkBuilder={network}\noutputModelPath=x]\n")
    assert got.code == 0, got.err
    assert [node.name for node in load_model("x").groups["output"]] == ["z"]


# ---- plot

PLOT = "command=plot\nplot=[action=plot;modelPath=run/base.dnn]\n"


@pytest.fixture
def dot(tmp_path, monkeypatch):
    """A stand-in for Graphviz, which draws to the standard output where it is not given a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dot").write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/called"\ntest -f "$2" && echo picture\n')
    (folder / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "called"


def test_plot_text(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    got = run("", config=PLOT)
    assert got.code == 0, got.err
    assert Path("run/base.dnn.dot").read_text().startswith("digraph")
    assert "'dot' is not installed" in got.err
    got = run("", "plot=[outputDotFile=o/p.dot;outputFile=o/p.svg]", config=PLOT)
    assert got.code == 1
    assert Path("o/p.dot").exists()
    assert "install Graphviz" in got.err


def test_plot_pictures(run, dot) -> None:
    got = run("", config=PLOT)
    assert got.code == 0, got.err
    assert Path("run/base.dnn.svg").read_text() == "picture\n"
    assert dot.read_text() == f"-Tsvg {Path('run/base.dnn.dot').absolute()}\n"
    assert sorted(path.name for path in Path("run").iterdir()) == ["base.dnn", "base.dnn.dot", "base.dnn.svg"]
    got = run("", "plot=[outputFile=o/p.PNG]", config=PLOT)
    assert got.code == 0, got.err
    assert dot.read_text().split()[0] == "-Tpng"
    assert Path("o/p.PNG").read_text() == "picture\n"
    got = run("", 'plot=[outputFile=o/p.x;renderCmd="/usr/bin/dot -Tpdf <IN> -o<OUT>"]', config=PLOT)
    assert got.code == 0, got.err
    assert dot.read_text().split()[0] == "-Tpdf"
    assert Path("o/p.x").read_text() == "picture\n"


@pytest.mark.parametrize(
    "command",
    ["touch harm", "dot -Tsvg <IN> -o<OUT>; touch harm", "dot -Tsvg <IN> | touch harm", "dot -l lib <IN>", "dot '"],
)
def test_no_other_command_is_run(run, dot, command) -> None:
    got = run("", f'plot=[outputFile=p.svg;renderCmd="{command}"]', config=PLOT)
    assert got.code == 2
    assert "only a call of Graphviz' dot is supported" in got.err
    assert not dot.exists()
    assert not Path("harm").exists()


def test_plot_errors(run, dot) -> None:
    got = run("", "plot=[outputFile=p.exe]", config=PLOT)
    assert got.code == 2
    assert "'exe' is not a picture format" in got.err
    got = run("", 'plot=[renderCmd="dot -Tsvg <IN> -o<OUT>"]', config=PLOT)
    assert got.code == 2
    assert "renderCmd needs outputFile" in got.err
    got = run("", "plot=[modelPath=none.dnn]", config=PLOT)
    assert got.code == 1
    assert "there is no model none.dnn" in got.err


# ---- show


def test_show_a_model(run, cntkpy) -> None:
    run("")
    got = cntkpy("show", "run/base.dnn")
    assert got.code == 0, got.err
    lines = got.out.splitlines()
    assert lines[0] == "run/base.dnn: 8 nodes, 15 parameters (12 trainable), float"
    table = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:10]}
    assert table["A"] == "LearnableParameter [3 x 4] 12 parameters"
    assert table["F"] == "LearnableParameter [3 x 1] 3 parameters, frozen"
    assert table["t"] == "Times(A, x) [3]"
    assert table["m"] == "Mean(x) [4] not computed yet"
    assert lines[11:] == ["feature: x", "label: l", "criterion: ce", "output: s"]


def test_show_a_model_as_json(run, cntkpy) -> None:
    run("")
    found = json.loads(cntkpy("show", "--format", "json", "run/base.dnn").out)
    assert found["model"] == "run/base.dnn"
    assert (found["precision"], found["parameters"], found["trainable"]) == ("float", 15, 12)
    assert found["groups"]["criterion"] == ["ce"]
    names = [node["name"] for node in found["nodes"]]
    for node in found["nodes"]:  # each stands behind its inputs
        assert all(names.index(name) < names.index(node["name"]) for name in node["inputs"])
    assert found["nodes"][names.index("A")] == {
        "name": "A",
        "operation": "LearnableParameter",
        "inputs": [],
        "shape": [3, 4],
        "parameters": 12,
        "learningRateMultiplier": 1.0,
    }


def test_show_what_cannot_be_shown(run, cntkpy) -> None:
    run("")
    assert cntkpy("show", "--format", "yaml", "run/base.dnn").code == 2
    assert cntkpy("show", "--origins", "run/base.dnn").code == 2
    content = Path("run/base.dnn").read_bytes()
    Path("cut.dnn").write_bytes(content[:-5])
    got = cntkpy("show", "cut.dnn")
    assert got.code == 1
    assert "is damaged" in got.err
    Path("old.dnn").write_bytes("BCN\0".encode("utf-16-le"))
    got = cntkpy("show", "old.dnn")
    assert got.code == 1
    assert "the model old.dnn is damaged" in got.err
    assert cntkpy("show", "e.cntk").code == 0
