"""`cntkpy show --network` and `cntkpy plot --network`: a network before it is made."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[3]

CONFIG = """command = train:more
train = [
    action = train
    BrainScriptNetworkBuilder = {
        x = Input {4} ; y = Input {2, tag='label'}
        Hidden (n, v) = Sigmoid (
            LinearLayer {n} (v))
        z = LinearLayer {2} (Hidden (3, x))
        ce = CrossEntropyWithSoftmax (y, z, tag='criterion')
    }
]
more = [
    action = train
    NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(4, tag = feature)
        W = Parameter(3, 4)
        b = Parameter(3, 1, init = fixedValue, value = 2)
        z = Plus(Times(W, x), b, tag = output)
    ]
]
"""


@pytest.fixture
def show(cntkpy):
    return lambda *words: cntkpy("show", "--network", *words, files={"m.cntk": CONFIG})


def test_nodes_with_shapes_parameters_and_origins(show):
    got = show("m.cntk", "--format", "json")
    assert got.code == 0, got.err
    found = json.loads(got.out)
    nodes = {node["name"]: node for node in found["nodes"]}
    assert (found["command"], found["builder"]) == ("train", "BrainScriptNetworkBuilder")
    assert (found["parameters"], found["trainable"]) == (23, 23)
    assert found["groups"]["criterion"] == ["ce"]
    hidden = nodes["z.x"]
    assert hidden["shape"] == [3]
    assert hidden["minibatch"]
    # made inside a function of the user, which is called somewhere else
    assert hidden["at"] == "m.cntk:6:25"
    assert hidden["calledAt"] == ["m.cntk:8:30"]
    parameters = [node for node in found["nodes"] if "parameters" in node]
    assert sorted((node["parameters"], node["init"]) for node in parameters) == [
        (2, "fixedValue"),
        (3, "fixedValue"),
        (6, "glorotUniform"),
        (12, "glorotUniform"),
    ]
    assert {node["seed"] for node in parameters if "seed" in node} == {1, 2}
    assert nodes["z.x._.W"]["shape"] == [3, 4]


def test_another_command_as_a_table(show):
    got = show("m.cntk", "more")
    assert got.code == 0, got.err
    lines = got.out.splitlines()
    assert lines[0] == "more: 5 nodes, 15 parameters (15 trainable), float, NDLNetworkBuilder"
    assert next(line for line in lines if line.startswith("b ")).split() == [
        "b",
        "LearnableParameter",
        "[3",
        "x",
        "1]",
        "3",
        "elements,",
        "2",
        "m.cntk:18:13",
    ]
    assert lines[-1] == "output: z"


def test_what_cannot_be_shown(show, cntkpy):
    assert "no command 'trains' describes a network" in show("m.cntk", "trains").err
    assert "did you mean 'train'" in show("m.cntk", "trains").err
    wrong = CONFIG.replace("LinearLayer {2} (Hid", "LinearLayr {2} (Hid")
    got = cntkpy("show", "--network", "m.cntk", files={"m.cntk": wrong})
    assert got.code == 2
    assert "unknown identifier 'LinearLayr'" in got.err
    assert "--> m.cntk:8:13" in got.err
    assert "goes with --format only" in cntkpy("show", "--network", "--origins", "m.cntk").err


def test_text_for_graphviz(cntkpy, tmp_path):
    got = cntkpy("plot", "--network", "m.cntk", "more", "--out", "net.dot", files={"m.cntk": CONFIG})
    assert got.code == 0, got.err
    assert "LearnableParameter\\n[3 x 4]" in (tmp_path / "net.dot").read_text()


def test_a_picture_leaves_other_files_alone(cntkpy, tmp_path, monkeypatch):
    """`net.dot` next to `net.svg` is not the text of the picture, but a file of the user."""
    words = ("plot", "--network", "m.cntk", "more", "--out", "net.svg")
    monkeypatch.setenv("PATH", str(tmp_path))
    got = cntkpy(*words, files={"m.cntk": CONFIG, "net.dot": "precious"})
    assert got.code == 0 and (tmp_path / "net.svg").exists()  # without Graphviz, as in reports
    (tmp_path / "net.svg").unlink()
    (tmp_path / "dot").write_text('#!/bin/sh\nread first < "$2"; echo "$first"\n')
    (tmp_path / "dot").chmod(0o755)
    assert cntkpy(*words).code == 0
    assert (tmp_path / "net.svg").read_text() == "digraph network {\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dot", "m.cntk", "net.dot", "net.svg"]
    assert (tmp_path / "net.dot").read_text() == "precious"


def test_explaining_a_node(cntkpy):
    got = cntkpy("explain", "m.cntk", "train/BrainScriptNetworkBuilder/z.x", files={"m.cntk": CONFIG})
    assert got.out.splitlines() == [
        "z.x = Sigmoid (z.x._)",
        "  shape    [3 x *]",
        "  meaning  Logistic function.",
        "  used by  z.PlusArgs[0]",
        "  made     at m.cntk:6:25",
        "  called   at m.cntk:8:30",
    ]
    got = cntkpy("explain", "m.cntk", "train/BrainScriptNetworkBuilder/z.y")
    assert got.code == 2
    assert "the network has no node 'z.y'" in got.err


def test_a_picture_without_graphviz(cntkpy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn as in reports; other forms of pictures need Graphviz (U13)."""
    monkeypatch.setattr("cntkpy.networks.graph.plot.graphviz", lambda: None)
    config = str(ROOT / "sample_configs/digits.cntk")
    assert cntkpy("plot", "--network", config, "train", "-o", "net.svg").code == 0
    drawn = ElementTree.fromstring((tmp_path / "net.svg").read_text())
    texts = ["".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"features", "H1", "HLast"} <= set(texts)
    got = cntkpy("plot", "--network", config, "train", "-o", "net.png")
    assert got.code == 2 and "--out net.svg" in got.err and not (tmp_path / "net.png").exists()
