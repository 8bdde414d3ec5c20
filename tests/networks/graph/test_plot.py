"""The text for Graphviz, and drawing it with a stand-in for the program `dot`."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.graph import plot
from cntkpy.networks.graph.network import Network

NET = """
x = Input(4, tag=feature)
l = Input(3, tag=label)
m = Mean(x)
A = Parameter(3, 4)
c = Constant(2)
t = Times(A, x)
p = PastValue(3, s)
s = Plus(t, p, tag=output)
ce = CrossEntropyWithSoftmax(l, s, tag=criterion)
err = ErrorPrediction(l, s, tag=eval)
"""


def test_text():
    network = parse_ndl(NET)
    network.validate()
    text = plot.dot_text(network, "a model")
    assert text.startswith("digraph network {\n")
    assert text.endswith("}\n")
    assert 'label = "a model";' in text
    assert re.search(r'n3 \[label = "A\\nLearnableParameter\\n\[3 x 4\]", shape=box, style="filled,rounded"', text)
    assert re.search(
        r'n4 \[label = "c\\nLearnableParameter\\n\[1 x 1\]", shape=box, style="filled,rounded,dashed"', text
    )
    assert "  n3 -> n5;" in text
    assert "  n7 -> n6 [style = dashed, constraint = false];" in text
    assert text.count("->") == sum(len(node.inputs) for node in network.nodes.values())
    for style in ("house", "octagon", "doubleoctagon"):
        assert f"shape={style}" in text
    assert plot.dot_text(network) == plot.dot_text(network)


def test_networks_that_are_not_complete_are_drawn_as_far_as_they_are():
    network = parse_ndl("x = Input(4)\ny = Sin(x)\nz = Sin(y)", require_features=False)
    network.remove("y")
    assert plot.dot_text(network).count("->") == 0
    assert plot.dot_text(Network()).startswith("digraph")


@given(st.text(min_size=1, max_size=30))
def test_names_cannot_leave_their_quotes(name):
    network = Network()
    nodes.create(network, "InputValue", name, options={"dims": (1,)})
    text = plot.dot_text(network, name)
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', text)
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert '"' not in rest
    assert "\\" not in rest
    assert len(strings) == 3  # font, title, node


@pytest.fixture
def dot(tmp_path, monkeypatch):
    """A stand-in for `dot`, which notes how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "dot"
    program.write_text(f'#!/bin/sh\nfor a in "$@"; do echo "$a"; done > "{tmp_path}/called"\necho picture\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "called"


def test_drawing(dot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.dot").write_text("digraph {}")
    plot.render("a.dot", "sub/a; touch x.svg")
    assert dot.read_text().splitlines() == ["-Tsvg", f"{tmp_path}/a.dot"]
    assert (tmp_path / "sub" / "a; touch x.svg").read_text() == "picture\n"
    plot.render("a.dot", "-o.picture", "PNG")
    assert dot.read_text().splitlines()[0] == "-Tpng"


def test_drawing_a_text(dot, tmp_path, monkeypatch):
    plot.draw("digraph {}", tmp_path / "a.png")
    assert dot.read_text().splitlines() == ["-Tpng"]
    assert (tmp_path / "a.png").read_text() == "picture\n"
    (tmp_path / "bin" / "dot").write_text("#!/bin/sh\ncat\n")
    plot.draw("digraph {x}", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == "digraph {x}"
    with pytest.raises(UserError, match="'exe' is not a picture format"):
        plot.draw("digraph {}", tmp_path / "a.exe")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="'dot' is not installed") as caught:
        plot.draw("digraph {}", tmp_path / "a.svg")
    assert "ends in .dot" in (caught.value.hint or "")


def test_drawing_fails(dot, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="'exe' is not a picture format") as caught:
        plot.render("a.dot", "a.exe")
    assert "svg" in (caught.value.hint or "")
    (tmp_path / "bin" / "dot").write_text("#!/bin/sh\necho syntax error >&2\nexit 3\n")
    with pytest.raises(UserError, match=r"failed to draw a\.svg: syntax error"):
        plot.render("a.dot", "a.svg")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="'dot' is not installed"):
        plot.render("a.dot", "a.svg")
