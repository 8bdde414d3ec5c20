"""`action=dumpNode`: the bytes, blanks included: one before every token, as the original writes them."""

from pathlib import Path

import pytest

from . import actions

MORE = "dump = [ action = dumpNode ; outputFile = run/d.txt ; nodeName = b ]\n"
HEAD = " \nb=LearnableParameter [3,1]   learningRateMultiplier=1.000000  NeedsGradient=true"


@pytest.fixture
def dump(cntkpy, tmp_path: Path):
    pytest.importorskip("jax")

    def dump(*words: str) -> str:
        got = cntkpy("configFile=m.cntk", "command=train:dump", *words, files=actions.files(MORE))
        assert got.code == 0, got.err
        return (tmp_path / "run/d.txt").read_text()

    return dump


def test_one_node(dump, tmp_path: Path) -> None:
    text = dump()
    values = [f" {value:.17g} \n" for value in actions.model(tmp_path / "run/m")["b"].ravel().tolist()]
    assert text == HEAD + " \n" + "".join(values) + " " + "#" * 68


def test_metadata_or_values_only(dump) -> None:
    assert dump("dump=[printValues=false]") == HEAD
    assert dump("dump=[printMetadata=false]").count("\n") == 3


def test_all_nodes(dump) -> None:
    text = dump("dump=[nodeName=nothere;printValues=false]")
    assert text.startswith(HEAD + " \nce=CrossEntropyWithSoftmax ( y , z ) \nerr=ClassificationError ( y , z ) \n")
    assert text.endswith(" \nz=Plus ( t , b ) \n")
    assert " \nx=InputValue [ 2 ] \n" in text
