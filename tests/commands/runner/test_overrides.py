"""Words of the command line: the path of one value (A16), `default` for a builder (A4)."""

import json

import pytest

from cntkpy.cntk_config import load

CONFIG = """
command = train
modelPath = m
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 9
            minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
"""
FILES = {"m.cntk": CONFIG, "data.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"}


@pytest.mark.parametrize("word", ["train/SGD/maxEpochs=1", "train.SGD.maxEpochs=1", "TRAIN/sgd/maxepochs = 1"])
def test_a_path_sets_one_value(word: str, cntkpy) -> None:
    shown = cntkpy("show", "m.cntk", word, files=FILES)
    assert "SGD:maxEpochs=1\n" in shown.out
    assert "SGD:minibatchSize=2\n" in shown.out
    assert cntkpy("check", "m.cntk", word).out == "no problems in 1 configuration\n"


def test_parts_of_a_path_may_have_a_hyphen() -> None:
    root = load(["s-1/SGD/max-x=3", "s-1.SGD.b=4"])
    assert root.section("s-1").section("SGD").names() == ["max-x", "b"]


def test_a_run_takes_it(cntkpy, tmp_path) -> None:
    got = cntkpy("configFile=m.cntk", "train/SGD/maxEpochs=1", files=FILES)
    assert got.code == 0, got.err
    assert "Epoch[ 1 of 1]" in got.err
    assert (tmp_path / "m").exists()


def test_places_and_unknown_names_of_a_path(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "train/SGD/maxEpochs=abc", files=FILES)
    assert "<argument 2>:1:21: error: m.cntk:train:SGD:maxEpochs: 'abc' is not an integer" in got.out
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, "train/SGD/maxEpoch=3", "train/SGD/maxEpochs=1", "unheardOf=2")
        text = got.out + got.err
        assert got.code == 2
        assert "error: SGD: 'maxEpoch' is not a known parameter" in text
        assert "<argument 2>:1:11" in text
        assert "nothing reads 'unheardOf'" in text


def test_a_section_that_stands_further_out(cntkpy) -> None:
    """A path does not hide the values of a section which the command has from further out."""
    got = cntkpy(
        "check", "b.cntk", "train/SGD/maxEpochs=3", files={"b.cntk": "SGD=[maxEpochs=9]\ntrain=[action=train]\n"}
    )
    assert got.code == 2
    assert "<argument 2>:1:7: error: b.cntk:train has no section 'SGD' of its own" in got.out
    assert "SGD/maxEpochs=..." in got.out


def test_default_removes_a_builder(cntkpy) -> None:
    ndl = "train=[SimpleNetworkBuilder=default]"
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, ndl, files=FILES)
        assert got.code == 2
        assert "the training has no network builder" in got.out + got.err
        assert "internal error" not in got.err


NDL = """
train = [ NDLNetworkBuilder = [ run = net ] ]
net = [
    features = Input(2, tag=feature)
    labels = Input(2, tag=label)
    W = Parameter(2, 2)
    z = Times(W, features)
    ce = CrossEntropyWithSoftmax(labels, z, tag=criterion)
]
"""


def test_the_builder_of_the_later_layer(cntkpy) -> None:
    """Two builders after layering: the one of the strongest layer is used, and a warning has both places (A4)."""
    files = FILES | {"ndl.cntk": NDL}
    got = cntkpy("configFile=m.cntk+ndl.cntk", "train/SGD/maxEpochs=1", files=files)
    assert got.code == 0, got.err
    assert (
        "WARNING: m.cntk:5:28: warning: command train: the NDLNetworkBuilder of ndl.cntk:2:31 is used, "
        "not this SimpleNetworkBuilder - keep one of them; SimpleNetworkBuilder=default removes this one [CK043]"
    ) in got.err
    assert "Training criterion:   ce = CrossEntropyWithSoftmax" in got.err
    other = cntkpy("configFile=ndl.cntk+m.cntk", "train/SGD/maxEpochs=1", "modelPath=other")
    assert "the SimpleNetworkBuilder of m.cntk:5:28 is used, not this NDLNetworkBuilder" in other.err
    assert "CrossEntropyWithSoftmax" not in other.err
    removed = cntkpy("check", "configFile=ndl.cntk+m.cntk", "train=[SimpleNetworkBuilder=default]")
    assert removed.out == "no problems in 1 configuration\n"


def test_two_builders_of_one_file_stand_in_the_order_of_cntk(cntkpy) -> None:
    both = CONFIG.replace("    SGD =", "    NDLNetworkBuilder = [ run = net ]\n    SGD =")
    got = cntkpy("check", "m.cntk", files=FILES | {"m.cntk": both + NDL.partition("]\n")[2]})
    assert "the SimpleNetworkBuilder of m.cntk:5:28 is used, not this NDLNetworkBuilder" in got.out


def test_a_variable_left_to_the_command_line(cntkpy) -> None:
    """`maxEpochs=$maxEpochs$` is an idiom; what is open is no error if it may be (B8)."""
    files = FILES | {"m.cntk": CONFIG.replace("maxEpochs = 9", "maxEpochs = $maxEpochs$")}
    got = cntkpy("check", "m.cntk", files=files)
    assert got.out.splitlines()[0] == (
        "m.cntk:6:25: error: $maxEpochs$ is not given: maxEpochs=$maxEpochs$ leaves it to the command line - "
        "pass maxEpochs=... [CK008]"
    )
    assert cntkpy("check", "m.cntk", "--open").out == "no problems in 1 configuration\n"
    assert cntkpy("check", "m.cntk", "maxEpochs=3").out == "no problems in 1 configuration\n"
    shown = cntkpy("show", "m.cntk", "--open")
    assert (shown.code, shown.err) == (0, "")
    assert "train:SGD:maxEpochs=<open: $maxEpochs$>\n" in shown.out
    shown = cntkpy("show", "m.cntk", "--open", "--format", "json")
    assert json.loads(shown.out)["train"]["SGD"]["maxEpochs"] == {"$open": "$maxEpochs$"}
    different = cntkpy("diff", "m.cntk", "n.cntk", files={"n.cntk": CONFIG})
    assert different.out == "- train:SGD:maxEpochs=$maxEpochs$\n+ train:SGD:maxEpochs=9\n"


@pytest.mark.parametrize("words", [("check", "e.cntk"), ("configFile=e.cntk",)])
def test_places_are_those_of_the_user(words: tuple[str, ...], cntkpy) -> None:
    """A default of the program has no place, and a section no empty name at its end (B7)."""
    got = cntkpy(*words, files={"e.cntk": ""})
    assert "<text>" not in got.out + got.err
    assert "e.cntk:train is missing, the section of a command" in got.out + got.err
    got = cntkpy("check", "m.cntk", "train/reader/readerType=KaldiReader", files=FILES)
    assert "m.cntk:train:reader: the reader has no section of features" in got.out
    assert "::" not in got.out


@pytest.mark.parametrize("text", ["my.dim=3\nd=$my.dim$\n", "d=$My.Dim$\n"])
def test_a_name_with_a_point_that_the_files_have_is_no_path(text: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.cntk").write_text(text + "s=[x=1]\n")
    for words in (["my.dim=5", "s.x=2"], ["s.x=2", "my.dim=5"]):
        config = load(["configFile=m.cntk", *words])
        assert (config("d"), config.section("s")("x"), config.exists("my")) == ("5", "2", False)


def test_a_path_that_removes_what_nothing_reads(cntkpy) -> None:
    """D15: the entry is gone, the word is looked at all the same."""
    got = cntkpy("check", "m.cntk", "train/SGD/maxEpoch=default", files=FILES)
    assert got.code == 2
    assert "<argument 2>:1:11: error: SGD: 'maxEpoch' is not a known parameter" in got.out
    got = cntkpy("check", "m.cntk", "train/SGD/maxEpochs=default")
    assert (got.code, "train:SGD:maxEpochs is missing" in got.out) == (2, True)


TWO = (
    CONFIG
    + """
shown = a
test = [ action = test ; evalData = $shown$
    reader = [ readerType = CNTKTextFormatReader ; file = $testFile$
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
]
testFile = data.ctf
"""
)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("minibatchSize=4", "nothing reads 'minibatchSize' here: a value that is nearer counts, that of train"),
        ("evalNodeNames=x", "nothing that runs reads 'evalNodeNames': only the command 'test' would, which `command`"),
    ],
)
def test_a_word_counts_for_what_runs(word: str, message: str, cntkpy, tmp_path) -> None:
    """S3: an unused section made words pass that are refused without it."""
    for words in (("check", "two.cntk", word), ("configFile=two.cntk", word)):
        got = cntkpy(*words, files={**FILES, "two.cntk": TWO})
        assert (got.code, message in got.out + got.err) == (2, True), got.out + got.err
    assert not (tmp_path / "m").exists()
    got = cntkpy("check", "two.cntk", word, "command=train:test")
    assert "[CK018]" not in got.out


@pytest.mark.parametrize("word", ["test/minibatchSize=4", "test=[minibatchSize=4]"])
def test_a_word_for_a_command_that_does_not_run(word: str, cntkpy) -> None:
    got = cntkpy("check", "two.cntk", word, "testFile=default", files={**FILES, "two.cntk": TWO})
    assert "hint: top level: nothing that runs reads 'test': `command` does not list it" in got.out
    named = {**FILES, "two.cntk": TWO.replace("test =", "testAll =")}
    got = cntkpy("check", "two.cntk", word.replace("test", "TESTALL"), "testFile=default", files=named)
    assert "hint: top level: nothing that runs reads 'testAll': `command` does not list it" in got.out


def test_a_variable_of_a_command_that_does_not_run(cntkpy) -> None:
    """S3: a script sets the variables of all commands, so this is a warning; a chain of variables is followed."""
    for word in ("testFile=data.ctf", "shown=b"):
        got = cntkpy("check", "two.cntk", word, files={**FILES, "two.cntk": TWO})
        name = word.partition("=")[0]
        assert f"warning: top level: nothing that runs uses ${name}$: only the command 'test' would" in got.out
    unused = {**FILES, "u.cntk": TWO + "nothing = $unused$\nunused = 1\nmodelPath = $old$\nold = m\n"}
    got = cntkpy("check", "u.cntk", "unused=2", "old=a", "modelPath=b", files=unused)
    assert "warning: top level: nothing that runs uses $unused$ - leave the word out" in got.out
    assert "warning: top level: nothing that runs uses $old$ - leave the word out" in got.out
    chained = TWO.replace("file = data.ctf", "file = $Data$").replace("command = train", "Data=$Folder$/data.ctf\\n")
    got = cntkpy("check", "c.cntk", "command=train", "Folder=.", files={**FILES, "c.cntk": chained})
    assert "[CK018]" not in got.out


def test_the_path_of_a_shadowed_section(cntkpy) -> None:
    for word, right in (("SGD/maxEpochs=3", "train/SGD/maxEpochs"), ("SGD=[maxEpochs=3]", "train/SGD")):
        got = cntkpy("check", "m.cntk", word, files=FILES)
        assert f"a value that is nearer counts, that of {right} - write {right}=... [CK018]" in got.out
