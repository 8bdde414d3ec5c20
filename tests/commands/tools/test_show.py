"""`cntkpy show`: forms, paths, origins, and configurations with mistakes."""

import json

import pytest
import yaml

FILES = {
    "a.cntk": "command = train\nRunDir = run\ntrain = [\n"
    "  modelPath = $RunDir$/m\n  SGD = [ maxEpochs = 3 ; rates = 1:2 ]\n]\n",
    "b.cntk": "train = [ SGD = [ maxEpochs = 5 ] ]\n",
}


def test_flat_is_one_value_a_line(cntkpy) -> None:
    got = cntkpy("show", "a.cntk+b.cntk", "x=1", files=FILES)
    assert got.code == 0
    assert got.out.splitlines() == [
        "command=train",
        "RunDir=run",
        "train:modelPath=run/m",
        "train:SGD:maxEpochs=5",
        "train:SGD:rates=1:2",
        "x=1",
    ]
    assert cntkpy("show", "configFile=a.cntk+b.cntk", "x=1").out == got.out


def test_json_and_yaml_are_the_same_tree(cntkpy) -> None:
    tree = json.loads(cntkpy("show", "--format", "json", "a.cntk", files=FILES).out)
    assert tree == {
        "command": "train",
        "RunDir": "run",
        "train": {"modelPath": "run/m", "SGD": {"maxEpochs": "3", "rates": "1:2"}},
    }
    assert list(tree) == ["command", "RunDir", "train"]
    assert yaml.safe_load(cntkpy("show", "--format", "yaml", "a.cntk").out) == tree


def test_cntk_reads_as_the_same(cntkpy) -> None:
    text = cntkpy("show", "--format", "cntk", "a.cntk+b.cntk", files=FILES).out
    first = cntkpy("show", "a.cntk+b.cntk").out
    assert cntkpy("show", "c.cntk", files={"c.cntk": text}).out == first


@pytest.mark.parametrize(
    "path", ["train/SGD/maxEpochs", "train:SGD:maxEpochs", "train.SGD.maxEpochs", "TRAIN/sgd/maxepochs"]
)
def test_a_path_to_one_value(path: str, cntkpy) -> None:
    assert cntkpy("show", "--format", "json", "a.cntk", path, files=FILES).out == '"3"\n'


def test_a_path_to_a_section(cntkpy) -> None:
    assert cntkpy("show", "a.cntk", "train/SGD", files=FILES).out == "train:SGD:maxEpochs=3\ntrain:SGD:rates=1:2\n"
    assert cntkpy("show", "configFile=a.cntk", "train/SGD").out.startswith("train:SGD:maxEpochs=3\n")


def test_a_path_that_is_not_there(cntkpy) -> None:
    got = cntkpy("show", "a.cntk", "train/SGD/maxEpoch", files=FILES)
    assert (got.code, got.out) == (2, "")
    assert "did you mean 'maxEpochs'?" in got.err


def test_origins_name_every_place(cntkpy) -> None:
    got = cntkpy("show", "--origins", "a.cntk+b.cntk", "train=[SGD=[maxEpochs=7]]", files=FILES)
    line = next(line for line in got.out.splitlines() if "maxEpochs" in line)
    assert line == (
        "train:SGD:maxEpochs=7  # <argument 2>:1:23; overrides '5' at b.cntk:1:31; overrides '3' at a.cntk:5:23"
    )
    assert "train:modelPath=run/m  # a.cntk:4:15" in got.out


def test_unresolved(cntkpy) -> None:
    assert "train:modelPath=$RunDir$/m" in cntkpy("show", "--unresolved", "a.cntk", files=FILES).out


def test_what_cannot_be_read_is_marked_and_the_rest_is_shown(cntkpy) -> None:
    files = {"bad.cntk": "a = $b$\nc = 1\n"}
    got = cntkpy("show", "--format", "json", "bad.cntk", files=files)
    assert got.code == 2
    assert json.loads(got.out) == {"a": {"$error": "UnknownVariable"}, "c": "1"}
    assert got.err.startswith("bad.cntk:1:5: error: ")
    got = cntkpy("show", "bad.cntk")
    assert got.code == 2
    assert got.out.splitlines()[1] == "c=1"
    got = cntkpy("show", "worse.cntk", files={"worse.cntk": "a = [\n"})
    assert (got.code, got.out) == (2, "")
    assert "worse.cntk:1:5" in got.err


def test_wrong_words(cntkpy) -> None:
    assert cntkpy("show", "a.cntk", "x", "y", files=FILES).code == 2
    assert cntkpy("show", "--format", "xml", "a.cntk").code == 2
    assert cntkpy("show", "a=1").code == 2
    assert cntkpy("show", "gone.cntk").code == 2


def test_a_removed_value_is_not_shown(cntkpy) -> None:
    got = cntkpy("show", "a.cntk", "train/SGD/maxEpochs=default", files=FILES)
    assert (got.code, got.out.splitlines()[-1]) == (0, "train:SGD:rates=1:2")
    assert "maxEpochs" not in got.out
    got = cntkpy("show", "a.cntk", "maxEpochs=7", "train/SGD/maxEpochs=default", "train/SGD/maxEpochs")
    assert got.out == "train:SGD:maxEpochs=7\n"
    same = cntkpy("diff", "a.cntk", "c.cntk", files={"c.cntk": "include=a.cntk\nstderr=default\n"})
    assert (same.code, same.out) == (0, "")


def test_declared_defaults_stand_for_the_word_default(cntkpy) -> None:
    config = "command=train\ntrain=[action=train;SGD=[maxEpochs=1;minibatchSize=default]]\n"
    got = cntkpy("show", "--defaults", "d.cntk", "train/SGD/minibatchSize", files={"d.cntk": config})
    assert got.out == "train:SGD:minibatchSize=256\n"


@pytest.mark.parametrize("words", [("show", "configFile="), ("check", "configFile=+"), ("show", "configFile=", "x=1")])
def test_a_configuration_without_a_name(words: tuple[str, ...], cntkpy) -> None:
    """S13: `show` printed nothing and ended with 0."""
    got = cntkpy(*words)
    assert got.code == 2
    assert "configFile= names no file. Write configFile=FILE" in got.err
