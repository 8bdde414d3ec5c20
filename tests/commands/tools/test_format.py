"""`cntkpy format`: a stable layout that keeps comments and never changes what the configuration says."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.export import Export
from cntkpy.commands.tools.format import format_text

UGLY = """\


# head
a=1   # one
train=[
action = train
      SGD=[ maxEpochs=3;minibatchSize = 2


   # inside
  rates=0.1:0.2  ]
  text = "  two
     lines "
  net = [
   x=Input( 2 )
      y = Sigmoid(x)   # kept
  ]
  NDLNetworkBuilder=[ run=net ]
  list=(
  a
      b
  )
]


"""
NICE = """\
# head
a = 1  # one
train = [
    action = train
    SGD = [ maxEpochs=3;minibatchSize = 2

        # inside
        rates = 0.1:0.2  ]
    text = "  two
     lines "
    net = [
   x=Input( 2 )
      y = Sigmoid(x)   # kept
  ]
    NDLNetworkBuilder = [ run=net ]
    list = (
        a
        b
    )
]
"""
SAMPLES = sorted((Path(__file__).resolve().parents[3] / "sample_configs").glob("*.cntk"))


def test_layout() -> None:
    assert format_text(UGLY) == NICE
    assert format_text(NICE) == NICE


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    new = format_text(text)
    assert tree(new) == tree(text)
    assert format_text(new) == new
    assert [line.split("#", 1)[1] for line in text.splitlines() if "#" in line] == [
        line.split("#", 1)[1] for line in new.splitlines() if "#" in line
    ]


def tree(text: str):
    def flat(node):
        if isinstance(node, dict):
            return {name: flat(value) for name, value in node.items()}
        return "\n".join(line.strip() for line in node.split("\n")) if node[:1] in "[({" else node

    return flat(Export(parse(text), unresolved=True, on_error=lambda error: error.kind).tree())


PIECES = st.sampled_from(
    ["a", "b", "=", "=", "[", "]", "(", ")", "{", "}", '"', "\n", "\n", ";", ":", ",", " ", "  ", "\t", "#", " # c",
     "1", "$a$", "x=1\n", "s=[\n", "]\n", "run", "NDLNetworkBuilder=[run=s]\n", "*2", "\r\n"]
)  # fmt: skip


@settings(max_examples=50)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_formatting_never_changes_the_tree(text: str) -> None:
    try:
        before = tree(text)
    except ConfigError:
        return
    new = format_text(text)
    assert tree(new) == before
    assert format_text(new) == new


def test_command(cntkpy, tmp_path: Path) -> None:
    got = cntkpy("format", "--check", "a.cntk", files={"a.cntk": UGLY, "b/c.cntk": NICE})
    assert (got.code, got.out) == (1, "would change a.cntk\n")
    got = cntkpy("format", "--diff", "a.cntk")
    assert got.code == 1
    assert "+a = 1  # one" in got.out
    assert (tmp_path / "a.cntk").read_text() == UGLY
    assert cntkpy("format", "a.cntk", "b").out == "changed a.cntk\n"
    assert (tmp_path / "a.cntk").read_text() == NICE
    assert cntkpy("format", "--check", "a.cntk", "b").code == 0
    assert cntkpy("format", "gone.cntk").code == 2
    assert cntkpy("format", "bad.cntk", files={"bad.cntk": "a=[\n"}).code == 2
    assert (tmp_path / "bad.cntk").read_text() == "a=[\n"
