"""BrainScript in an editor: hover, definitions and completion, inside a configuration and in a file of its own."""

import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.commands.editor.language import Analysis
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.outline import outline_of

CONFIG = """\
command = train
hidden = 3
train = [
    action = train
    BrainScriptNetworkBuilder = {
        x = Input {4} ; y = Input {2, tag='label'}
        Layer (n, v) = Sigmoid (LinearLayer {n, bias=false} (v))
        r = { inner = Layer ($hidden$, x) }
        z = LinearLayer {2} (r.inner)
        ce = CrossEntropyWithSoftmax (y, z, tag='criterion')
    }
    SGD = [ maxEpochs = 1 ]
]
"""


@pytest.fixture
def config():
    return Analysis(CONFIG, "m.cntk")


def at(line, word, occurrence=1):
    """Line and column of a word of the configuration."""
    column = -1
    for _ in range(occurrence):
        column = CONFIG.split("\n")[line - 1].index(word, column + 1)
    return line, column + 1


def test_hover(config):
    assert config.hover(*at(9, "LinearLayer")).startswith("LinearLayer {outDim, bias=true,")
    assert "weighted sum" in config.hover(*at(9, "LinearLayer"))
    assert config.hover(*at(8, "Layer")) == "Layer (n, v)\ndefined at m.cntk:7:9"
    assert config.hover(*at(10, "z")).split("\n")[1:] == ["defined at m.cntk:9:9", "node: Plus [2]"]
    assert config.hover(*at(7, "n, bias")) == "n: parameter\ndefined at m.cntk:7:9"
    assert "bias=true" in config.hover(*at(7, "bias"))  # an option is explained by its function
    assert "hidden = 3" in config.hover(*at(8, "hidden"))
    assert "Number of epochs" in config.hover(*at(12, "maxEpochs"))


def test_definitions(config):
    where = {
        at(8, "Layer"): (7, 9),
        at(9, "inner"): (8, 15),
        at(10, "z", 1): (9, 9),
        at(9, "r."): (8, 9),
        at(8, "hidden"): (2, 1),
    }
    for place, (line, column) in where.items():
        span = config.definition(*place)
        assert (span.line, span.column) == (line, column), place
    assert config.definition(*at(9, "LinearLayer")) is None


def test_completion(config):
    names = dict(config.completions(9, 13))
    assert {"Layer", "z", "x", "DenseLayer", "BS"} <= names.keys()
    assert names["DenseLayer"].usage.startswith("DenseLayer {outDim")
    assert "maxEpochs" not in names
    line = "        z = LinearLayer {2, "
    typing = CONFIG.replace("        z = LinearLayer {2} (r.inner)", line)
    options = dict(Analysis(typing, "m.cntk", config).completions(9, len(line) + 1))
    assert {"bias=", "init=", "x"} <= options.keys()
    for text, expected in (
        ("        z = BS.Loop.", "Previous"),
        ("        z = r.", "inner"),
        ("        z = CNTK2.", "Square"),
    ):
        broken = Analysis(CONFIG.replace("        z = LinearLayer {2} (r.inner)", text), "m.cntk", config)
        assert expected in dict(broken.completions(9, len(text) + 1))
    assert "maxEpochs" not in dict(config.completions(9, 13))
    assert "minibatchSize" in dict(config.completions(12, 13))


def test_a_file_of_its_own():
    text = "// layers\nLayer (n, v) = Sigmoid (v * n)\nz = Layer (3, w)\nw = 4\n"
    found = Analysis(text, "net.bs")
    assert found.findings() == []
    assert found.hover(3, 5) == "Layer (n, v)\ndefined at net.bs:2:1"
    assert (found.definition(3, 15).line, found.definition(3, 15).column) == (4, 1)
    assert {"Layer", "w", "Sigmoid"} <= dict(found.completions(4, 1)).keys()
    (finding,) = Analysis("a = (3", "net.bs").findings()
    assert "'(' is not closed" in finding.diagnostic.message


def test_names_that_nothing_uses():
    text = "a = 1\nb = a + c\nf (p) = p + d\nr = { s = 2 }\nd = r.s\nunused = { a = 3 }.a"
    outline = outline_of(parse_members(text_of_string(text, "n.bs")))
    assert {one.name for one in outline.used()} == {"a", "d", "r", "p", "s"}
    assert {name for name, one in outline.members.items() if one not in outline.used()} == {"b", "f", "unused"}
    with pytest.raises(ConfigError):
        parse_members(text_of_string("a = = 2", "n.bs"))


def test_a_long_expression_is_no_deep_recursion():
    text = "z = " + " + ".join(["a"] * 5000) + "\na = 1"
    outline = outline_of(parse_members(text_of_string(text, "n.bs")))
    assert sum(one.name == "a" for one in outline.mentions) == 5001
