"""`action=dumpNode`: the bytes, blanks included: one before every token, as CNTK writes them."""

from pathlib import Path

import pytest
import small_classification as actions

MORE = "dump = [ action = dumpNode ; outputFile = run/d.txt ; nodeName = b ]\n"
HEAD = " \nb=LearnableParameter [3,1]   learningRateMultiplier=1.000000  NeedsGradient=true"


@pytest.fixture
def run(cntkpy, already_trained):
    already_trained(files=actions.files(""))

    def run(*words: str):
        return cntkpy("configFile=m.cntk", "command=train:dump", *words, files=actions.files(MORE))

    return run


@pytest.fixture
def dump(run, tmp_path: Path):

    def dump(*words: str) -> str:
        got = run(*words)
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


def test_the_names_that_match_as_a_whole(dump) -> None:
    text = dump("dump=[nodeNameRegex=[Wb];printValues=false]")
    assert text.startswith(HEAD) and "\nW=LearnableParameter [3,2] " in text and "=Plus" not in text
    assert dump("dump=[nodeNameRegex=.;nodeName=nothere;printMetadata=false]").count("\n") == 6  # W and b


def test_values_have_nine_digits_in_single_precision(dump, tmp_path: Path) -> None:
    text = dump("precision=float", "makeMode=false", "dump=[nodeName=W;printMetadata=false]")
    values = actions.model(tmp_path / "run/m")["W"]
    assert text == "".join("".join(f" {value:.9g}" for value in row) + " \n" for row in values.tolist())


def test_the_file_is_named_after_model_and_node(cntkpy, tmp_path: Path) -> None:
    more = "dump = [ action = dumpNode:dumpnode:dumpNodes ]\n"
    got = cntkpy("configFile=m.cntk", "command=train:dump", "dump=[nodeName=b]", files=actions.files(more))
    assert got.code == 0, got.err
    assert (tmp_path / "run/m.b.txt").read_text().startswith(HEAD)
    assert cntkpy("configFile=m.cntk", "command=dump").code == 0
    assert "\nz=Plus ( t , b ) \n" in (tmp_path / "run/m.__AllNodes__.txt").read_text()


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("dump=[printValues=false;printMetadata=false]", 2, "there is nothing to write"),
        ('dump=[nodeNameRegex="[b"]', 2, "not a regular expression"),
        ("dump=[modelPath=none]", 2, "there is no model none"),
    ],
)
def test_errors(word: str, code: int, expected: str, run) -> None:
    got = run(word)
    assert got.code == code, got.err
    assert expected in got.message


def test_all_nodes(dump) -> None:
    text = dump("dump=[nodeName=__AllNodes__;printValues=false]")
    assert text.startswith(HEAD + " \nce=CrossEntropyWithSoftmax ( y , z ) \nerr=ClassificationError ( y , z ) \n")
    assert text.endswith(" \nz=Plus ( t , b ) \n")
    assert " \nx=InputValue [ 2 ] \n" in text
