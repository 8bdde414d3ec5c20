"""Tools that look at a configuration import no module that it names: to look at a file of somebody else is safe."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cntkpy.commands.editor.language import Analysis

MODULE = """\
from pathlib import Path
from cntkpy.cntk_config.declare import TEXT, Declared, Parameter

with Path({marker!r}).open("a") as ran:
    ran.write(__name__)


class Parameters(Declared):
    readerType = Parameter("readerType", TEXT, help="Which.")
    colour = Parameter("colour", TEXT, default="red", help="The colour.")


def Reader(section, precision):
    raise AssertionError


Reader.declared = Parameters
Writer = Deserializer = run = Reader
"""
SECTIONS = {
    "reader": "reader = [ readerType = Reader ; module = planted_module ; colr = blue ; other = 1 ]",
    "deserializer": "reader = [ deserializers = ([ type = Deserializer ; module = planted_module ; other = 1 ]) ]",
    "user source": "reader = [ readerType = UserMinibatchSource ; module = planted_module ; class = Reader ]",
    "writer": "writer = [ writerType = Writer ; module = planted_module ; other = 1 ]",
    "action": "module = planted_module",
}
CONFIG = """\
command = work
work = [
    action = ACTION
    modelPath = m
    SimpleNetworkBuilder = [ layerSizes = 2:6:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 20 ; learningRatesPerMB = 0.2 ]
    SECTION
]
"""
TOOLS = (
    ("check", "m.cntk"),
    ("check", "--data", "m.cntk"),
    ("show", "--defaults", "m.cntk"),
    ("show", "--changed", "m.cntk"),
    ("explain", "m.cntk", "work/reader/file"),
    ("explain", "m.cntk", "work/SGD/maxEpochs"),
    ("format", "--check", "m.cntk"),
    ("diff", "m.cntk", "other.cntk"),
    ("help", "reader"),
    ("list",),
    ("completion", "words", "configFile=m.cntk", "work=[reader=[re"),
    ("completion", "words", "explain", "m.cntk", "work/reader/"),
)


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that a planted module writes when it is imported; the module could be found by its name."""
    found = tmp_path / "ran"
    (tmp_path / "planted_module.py").write_text(MODULE.format(marker=str(found)))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield found
    sys.modules.pop("planted_module", None)


def config_with(what: str) -> str:
    action = {"action": "planted_module:run", "writer": "write"}.get(what, "train")
    return CONFIG.replace("ACTION", action).replace("SECTION", SECTIONS[what])


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=[] if what in ("reader", "action") else pytest.mark.thorough) for what in SECTIONS],
)
def test_no_tool_imports_what_a_configuration_names(what: str, marker: Path, cntkpy) -> None:
    text = config_with(what)
    for words in TOOLS:
        got = cntkpy(*words, files={"m.cntk": text, "other.cntk": text.replace("0.2", "0.3")})
        assert "Traceback" not in got.err
        assert not marker.exists(), words
    analysis = Analysis(text, "m.cntk")  # what the language server asks
    for number, line in enumerate(text.splitlines(), start=1):
        for column in range(1, len(line) + 2, 3):
            analysis.hover(number, column)
            analysis.definition(number, column)
            list(analysis.completions(number, column))
    assert not marker.exists()
    assert "planted_module" not in sys.modules


@pytest.mark.parametrize("what", [what for what in SECTIONS if what != "action"])
def test_nothing_is_said_about_parameters_of_such_a_module(what: str, marker: Path, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", files={"m.cntk": config_with(what)})
    assert "nothing reads" not in got.out
    assert "not a known parameter" not in got.out


def test_the_option_imports_it(marker: Path, cntkpy) -> None:
    got = cntkpy("check", "--import-modules", "m.cntk", files={"m.cntk": config_with("reader")})
    assert marker.read_text() == "planted_module"
    assert "'colr' is not a known parameter - did you mean 'colour'?" in got.out
    assert "nothing reads 'other'" in got.out


def test_a_module_that_cannot_be_imported_is_a_finding(cntkpy) -> None:
    text = config_with("reader").replace("planted_module", "gone_module")
    assert "gone_module" not in cntkpy("check", "m.cntk", files={"m.cntk": text}).out
    got = cntkpy("check", "--import-modules", "m.cntk")
    assert got.code == 2
    assert "m.cntk:7:47: error: m.cntk:work:reader:module: the module 'gone_module' cannot be imported" in got.out
