"""The layout of BrainScript: brackets indent, expressions keep their shape, nothing but blanks changes."""

from pathlib import Path

import pytest
from golden_cases.case import load_yaml

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.commands.tools.format import format_text
from cntkpy.commands.tools.format_brainscript import layout

GOLDENS = Path(__file__).resolve().parents[2] / "goldens" / "brainscript"
UNTIDY = """\
// a layer
  Layer (n, v) = {
      W = ParameterTensor {(n:0),
                           init='uniform'}
  b = 3
        z = W * v
            + b
  /* two
lines  */
      text = 'as
it is'
      }.z


model = Sequential (
        Layer {3} :
        Tanh
)
"""
TIDY = """\
// a layer
Layer (n, v) = {
    W = ParameterTensor {(n:0),
                         init='uniform'}
    b = 3
    z = W * v
        + b
    /* two
lines  */
    text = 'as
it is'
}.z

model = Sequential (
    Layer {3} :
    Tanh
)
"""


def test_a_file():
    assert format_text(UNTIDY, "n.bs") == TIDY
    assert format_text(TIDY, "n.bs") == TIDY
    with pytest.raises(ConfigError):
        format_text("a = (", "n.bs")


def test_a_network_in_a_configuration():
    text = "train=[\n  action=train\n  BrainScriptNetworkBuilder={\n x = Input {2}\n   h = { a = 1\n b = 2 }\n }\n]\n"
    assert format_text(text) == (
        "train = [\n    action = train\n    BrainScriptNetworkBuilder = {\n        x = Input {2}\n        h = { a = 1\n"
        "            b = 2 }\n    }\n]\n"
    )


def scripts():
    for path in sorted(GOLDENS.glob("*/cases.yaml")):
        cases = load_yaml(path)
        for name, case in cases.get("cases", cases).items():
            if isinstance(case, dict) and "\n" in str(case.get("script", "")):
                yield f"{path.parent.name}/{name}", case["script"]


def test_goldens_only_move():
    """Laid out once or twice is the same; without blanks at line ends it is the text that it was."""
    count = 0
    for name, text in scripts():
        lines = text.split("\n")
        once = layout(lines)
        assert layout(once) == once, name
        assert [line.strip() for line in once if line.strip()] == [line.strip() for line in lines if line.strip()], name
        count += 1
    assert count > 100
