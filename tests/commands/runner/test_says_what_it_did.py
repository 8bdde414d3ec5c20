"""What `check` calls an error ends a run, and a run that trained nothing does not end with 0 (F7, F9, F10, G12)."""

import re
from pathlib import Path

import pytest

CONFIG = """\
command = train:test
modelPath = out/m
rate = 0.3
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:5:3 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 8 ; learningRatesPerMB = $rate$ ; momentumPerMB = 0.9 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
test = [ action = test
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""
DATA = "|features 1 0 |labels 1 0 0\n|features 0 1 |labels 0 1 0\n|features 1 1 |labels 0 0 1\n" * 8
FILES = {"m.cntk": CONFIG, "train.ctf": DATA}

UNREAD = {
    "tranNet=[SGD=[maxEpochs=1]]": "did you mean 'train'?",
    "trainn/SGD/maxEpochs=1": "did you mean 'train'?",
    "quite=[other=[x=1]]": "the commands are train, test",
    "train=[SGD=[maxEpoch=1]]": "did you mean 'maxEpochs'?",
    "train/SDG/maxEpochs=1": "did you mean 'SGD'?",
    "train/reader/fil=x": "did you mean 'file'?",
    "maxEpochs=1": "write train/SGD/maxEpochs=...",
    "SGD=[maxEpochs=1]": "write train/SGD=...",
    "train/rate=0.5": "write rate=...",
    "rat=0.5": "did you mean 'rate'?",
    "traceLvl=1": "did you mean 'traceLevel'?",
    "foo=3": "nothing reads 'foo' and no $variable$ is called so",
    "command=train,test": "separate commands by colons",
    "train=[SGD=[learningRatesPerMB=0,1]]": "separate the values of a list by colons",
}


def ends_both(cntkpy, words: list[str], told: str, files: dict[str, str] = FILES) -> None:
    """`check` has an error, the same ends the run before its first command, and nothing is left."""
    checked = cntkpy("check", "m.cntk", *words, files=files)
    ran = cntkpy("configFile=m.cntk", *words)
    assert (checked.code, ran.code) == (2, 2), checked.out + ran.err
    assert told in checked.out and told in ran.err, checked.out + ran.err
    assert any(ran.message in line for line in checked.out.splitlines() if ": error: " in line), checked.out + ran.err
    assert "Finished Epoch" not in ran.err
    assert not Path("out").exists()


@pytest.mark.parametrize("word", UNREAD)
def test_a_word_that_nothing_reads(cntkpy, word: str) -> None:
    ends_both(cntkpy, [word], UNREAD[word])


@pytest.mark.parametrize(
    "words",
    [
        ["rate=0.5"],
        ["command=test", "train=[SGD=[maxEpochs=1]]"],
        ["RunDir=x", "DataDir=y", "ConfigDir=z", "OutputDir=o", "deviceId=-1"],
        ["stderr=-", "traceLevel=1", "makeMode=false", "precision=double", "timestamping=true"],
        ["shareNodeValueMatrices=true", "numCPUThreads=1"],
        ["train/SGD/maxEpochs=5", "train=[SGD=[minibatchSize=4]]"],
    ],
)
def test_words_that_something_reads(cntkpy, words: list[str]) -> None:
    got = cntkpy("check", "m.cntk", *words, files=FILES)
    assert got.code == 0, got.out


def test_words_for_other_commands_are_looked_at(cntkpy) -> None:
    """`train` is not going to run, but nothing of it is called so."""
    got = cntkpy("check", "m.cntk", "command=test", "train/SGD/maxEpoch=1", files=FILES)
    assert "error: SGD: 'maxEpoch' is not a known parameter - did you mean 'maxEpochs'? [CK018]" in got.out


def test_the_last_of_several_words_counts_and_the_others_stay(cntkpy) -> None:
    """As in CNTK, the manual has it (G6)."""
    words = ("train=[epochSize=16;SGD=[maxEpochs=3]]", "train=[SGD=[minibatchSize=4]]", "train=[SGD=[maxEpochs=1]]")
    got = cntkpy("configFile=m.cntk", *words, "command=train", "train=[SGD=[numMBsToShowResult=1]]", files=FILES)
    assert (got.code, got.err.count("Finished Epoch[ 1 of 1]")) == (0, 1), got.err
    assert "totalSamplesSeen = 16;" in got.err
    shown = cntkpy("show", "m.cntk", *words)
    assert all(f"{line}\n" in shown.out for line in ("SGD:maxEpochs=1", "SGD:minibatchSize=4"))


LITTLE = {
    "train/SGD/learningRatesPerMB=0": "the learning rate per sample of epoch 1 is 0, ",
    "train/SGD/learningRatesPerMB=0:0.1": "the learning rate per sample of epoch 1 is 0, ",
    "train=[SGD=[learningRatesPerMB=default;learningRatesPerSample=1e-12]]": "minLearningRatePerSample = 9.9999997e-10",
    "train=[SGD=[minLearningRatePerSample=1]]": "minLearningRatePerSample = 1",
}


@pytest.mark.parametrize("word", LITTLE)
def test_a_rate_that_trains_nothing(cntkpy, word: str) -> None:
    ends_both(cntkpy, [word], LITTLE[word])


def test_a_rate_that_a_search_finds_too_small(cntkpy) -> None:
    auto = "AutoAdjust=[autoAdjustLR=searchBeforeEpoch]"
    got = cntkpy(
        "configFile=m.cntk",
        f"train=[SGD=[learningRatesPerMB=default;minLearningRatePerSample=100;{auto}]]",
        files=FILES,
    )
    assert (got.code, "nothing would be trained" in got.message) == (2, True), got.err
    assert not Path("out/m").exists()


def test_passes_with_a_rate_of_zero_can_be_asked_for(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "train=[SGD=[learningRatesPerMB=0;minLearningRatePerSample=-1]]", files=FILES)
    assert got.code == 0, got.err


def test_a_training_that_ends_early_says_where_its_model_is(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "train/SGD/learningRatesPerMB=0.1:0", files=FILES)
    assert "out/m is not written: training ended before epoch 2 of 2. The last model is out/m.1." in got.err
    assert got.code == 1
    assert got.message == "there is no model out/m"
    assert "the training has not come to its end: 'out/m.1' is the model after epoch 1" in got.err
    assert "'out/m.1'" in cntkpy("check", "m.cntk", "command=test").out


def test_asynchronous_training_with_one_worker_is_plain_sgd(cntkpy) -> None:
    """B3."""
    parallel = "ParallelTrain=[parallelizationMethod=DataParallelASGD;DataParallelASGD=[syncPeriod=64]]"
    plain = cntkpy("configFile=m.cntk", "command=train", files=FILES)
    got = cntkpy("configFile=m.cntk", "command=train", f"train=[SGD=[{parallel}]]", "modelPath=other/m")
    assert (got.code, got.err.count("WARNING"), got.err.count("DataParallelASGD with one worker is plain SGD")) == (
        0,
        1,
        1,
    )
    lines = [
        [one.split("; epochTime")[0] for one in text.splitlines() if "Finished" in one] for text in (plain.err, got.err)
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("spelling", ['include "sgd.txt"', "include sgd.txt", "INCLUDE sgd.txt"])
def test_an_include_without_an_equals_sign(cntkpy, spelling: str) -> None:
    for text in (f"{spelling}\n{CONFIG}", CONFIG.replace("maxEpochs = 2 ;", f"maxEpochs = 2 ; {spelling} ;")):
        ends_both(cntkpy, [], "write include=", FILES | {"m.cntk": text})


def test_data_that_are_missing(cntkpy) -> None:
    """A hint where the data need not be here, an error with `--data` as in the run (F9)."""
    files = {"m.cntk": CONFIG}
    got = cntkpy("check", "m.cntk", files=files)
    assert (got.code, got.out.count(" hint: ")) == (0, 2), got.out
    got = cntkpy("check", "m.cntk", "--data", files=files)
    assert (got.code, got.out.count(" error: "), got.out.count("[CK060]")) == (2, 2, 2), got.out
    got = cntkpy("check", "m.cntk", "--data", "command=train")
    assert (got.code, got.out.count(" error: "), got.out.count(" hint: ")) == (2, 1, 1), got.out
    got = cntkpy("check", "m.cntk", "--data", "command=test", files=FILES)
    assert (got.code, "error: there is no model out/m" in got.out) == (2, True), got.out


def test_macros_that_are_missing(cntkpy) -> None:
    network = "NDLNetworkBuilder = [ networkDescription = net.ndl ; ndlMacros = none.ndl ]"
    config = re.sub(r"SimpleNetworkBuilder = \[[^]]*\]", network, CONFIG)
    files = FILES | {"m.cntk": config, "net.ndl": "run=n\nn=[x=Input(2)]\n"}
    ends_both(cntkpy, [], "cannot read 'none.ndl'", files)


def test_the_hook_that_we_ship_ignores_nothing() -> None:
    hooks = Path(__file__).resolve().parents[3] / ".pre-commit-hooks.yaml"
    assert "--ignore" not in hooks.read_text(encoding="utf-8")


def test_misspelt_names_are_named_in_the_run(cntkpy) -> None:
    config = CONFIG.replace("train.ctf\n", "train.ctf ; maxErors = 3 ; randomise = false\n", 1)
    files = FILES | {"m.cntk": config + "trainn = [ SGD = [ maxEpochs = 9 ] ]\n"}
    checked, ran = cntkpy("check", "m.cntk", files=files), cntkpy("configFile=m.cntk")
    assert (checked.code, ran.code) == (1, 0)
    for name, meant in (("trainn", "train"), ("maxErors", "maxErrors"), ("randomise", "randomize")):
        (line,) = (one for one in checked.out.splitlines() if f"'{name}'" in one)
        assert f"warning: {line.split(': warning: ')[1]}" in ran.err
        assert f"did you mean '{meant}'?" in line


def test_an_error_in_what_does_not_run_is_a_warning(cntkpy) -> None:
    """CNTK reads such values only to print them; so the run continues, and `check` has no error."""
    more = "other = [ x = $none$ ]\nunused = $none$\n"
    files = FILES | {"m.cntk": CONFIG + more}
    checked, ran = cntkpy("check", "m.cntk", files=files), cntkpy("configFile=m.cntk")
    assert (checked.code, checked.out.count(" warning: "), ran.code) == (1, 2, 0), checked.out + ran.err
    checked, ran = cntkpy("check", "m.cntk", "traceLevel=1"), cntkpy("configFile=m.cntk", "traceLevel=1")
    assert (checked.code, ran.code) == (2, 2), checked.out


def test_a_comment_switches_an_error_off_for_the_run_too(cntkpy) -> None:
    text = CONFIG.replace("learningRatesPerMB = $rate$ ;", "learningRatesPerMB = 0.1,0.2 # cntkpy: ignore=CK035\n")
    checked, ran = cntkpy("check", "m.cntk", files=FILES | {"m.cntk": text}), cntkpy("configFile=m.cntk")
    assert (checked.code, ran.code) == (0, 0), checked.out + ran.err


def test_where_the_other_errors_are(cntkpy, tmp_path) -> None:
    """S9: with a log file the console has one of them."""
    words = ("configFile=m.cntk", "train/SGD/maxEpochs=a", "train/SGD/minibatchSize=b")
    assert "note: 2 errors in all, the others are above; nothing was run" in cntkpy(*words, files=FILES).err
    got = cntkpy(*words, "stderr=log/run")
    assert "note: 2 errors in all, the others are in the log log/run; nothing was run" in got.err
    assert got.err.count("is not an integer") == 1
    assert (tmp_path / "log/run").read_text().count("is not an integer") == 2
