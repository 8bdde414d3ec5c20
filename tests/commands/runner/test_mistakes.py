"""Mistakes that people make, in every kind of file: none is silent, and what cannot be meant ends the run."""

import re
from pathlib import Path

import pytest

READER = """\
reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]"""
CONFIG = f"""\
command = train:test
modelPath = out/m
rate = 0.3
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:5:3 ; layerTypes = Sigmoid ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 8 ; learningRatesPerMB = $rate$ ; momentumPerMB = 0.9 ]
    {READER}
]
test = [ action = test
    {READER}
]
out = [ action = write ; outputPath = out/x ; outputNodeNames = PosteriorProb
    {READER}
]
cv = [ action = cv ; crossValidationInterval = 1:1:2
    {READER}
]
dump = [ action = dumpNode ; nodeName = W0 ]
edit = [ action = edit ; editPath = e.mel ]
"""
DATA = "|features 1 0 |labels 1 0 0\n|features 0 1 |labels 0 1 0\n|features 1 1 |labels 0 0 1\n" * 8
SCRIPT = "m = LoadModel(out/m)\nSetProperty(m.W0, needsGradient, false)\nSaveModel(m, out/e)\n"
FILES = {"m.cntk": CONFIG, "train.ctf": DATA, "e.mel": SCRIPT}

ERRORS = [
    # old text, new text, what the message says; the last command that is listed, if it is not test
    ("SGD =", "SDG =", "SGD is missing", ""),
    ("reader =", "raeder =", "did you mean 'raeder'?", ""),
    ("SimpleNetworkBuilder", "SimpleNetwrkBuilder", "did you mean 'SimpleNetworkBuilder'?", ""),
    ("action = train", "action = trian", "did you mean 'train'?", ""),
    ("train:test", "train:tset", "did you mean 'test'?", ""),
    ("train:test", "train,test", "'test' is not run: what follows a comma", ""),
    ("train:test", "train;test", "'test' is not run: what follows a semicolon", ""),
    ("train:test", "train test", "train test is missing, the section of a command", ""),
    ("maxEpochs = 2", "maxEpochs = two", "'two' is not an integer", ""),
    ("maxEpochs = 2", "maxEpochs = 2.5", "'2.5' is not an integer", ""),
    ("maxEpochs = 2", "maxEpochs: 2", "did you mean 'maxEpochs: 2'?", ""),
    ("maxEpochs = 2 ;", "", "maxEpochs is missing", ""),
    ("maxEpochs = 2 ;", "maxEpochs = 2", "'2 minibatchSize = 8' is not an integer", ""),
    ("minibatchSize = 8", "minibatchSize = 1e2", "write 100", ""),
    ("minibatchSize = 8", "minibatchSize = 0", "a minibatch has at least one sample", ""),
    ("$rate$", "0,3", "nothing would be trained", ""),
    ("$rate$", "-0.3", "a learning rate is not negative", ""),
    ("$rate$", "0.3 0.1", "'0.3 0.1' is not a number", ""),
    ("$rate$", "30%", "'30%' is not a number", ""),
    ("$rate$", "$rat$", "did you mean 'rate'?", ""),
    ("$rate$", "${rate}", "'${rate}' is not a number", ""),
    ("learningRatesPerMB", "learningRate", "no learning rate is given", ""),
    ("= $rate$", "= 1 ; learningRatesPerSample = 1", "exclude each other", ""),
    ("momentumPerMB = 0.9", "momentumPerMB = 9", "at least 0 and below 1", ""),
    ("maxEpochs = 2", "maxEpochs = 2 ; epochSize = 4", "epochSize 4 is smaller than the minibatch size 8", ""),
    ("maxEpochs = 2", "maxEpochs = 2 ; gradUpdateType = adam", "'adam' is not one of none,", ""),
    ("maxEpochs = 2", "maxEpochs = 2 ; keepCheckPointFiles = yes", "write true or false", ""),
    ("dim = 2", "dim = 3", "the first layer has 2 elements, but the stream 'features' has 3", ""),
    ("2:5:3", "2:5:4", "the last layer has 4 elements, but the stream 'labels' has 3", ""),
    ("2:5:3", "2,5,3", "what follows a comma is cut off", ""),
    ("= Sigmoid", "= Sigmoid,Sigmoid", "separate the values of layerTypes by colons", ""),
    ("= Sigmoid", "= Sigmod", "did you mean 'Sigmoid'?", ""),
    ("= CrossEntropy", "= CrosEntropy", "did you mean 'crossEntropyWithSoftmax'?", ""),
    ("ErrorPrediction", "ErorPrediction", "did you mean 'classificationError'?", ""),
    ("CNTKTextFormat", "CNTKText", "did you mean 'CNTKTextFormatReader'?", ""),
    ("format = dense", "format = dens", "did you mean 'dense'?", ""),
    ("features =", "feature =", "no stream for the input 'features'", ""),
    ("input =", "inputs =", "did you mean 'inputs'?", ""),
    ("file =", "fiel =", "did you mean 'fiel'?", ""),
    ("input = [", "input = (", "cannot close the '('", ""),
    ("SGD = [", "SGD =\n [", "a bracket must open on the line of its", ""),
    ("rate = 0.3", "rate = 0.3# low", "'0.3# low' is not a number", ""),
    ("modelPath = out/m", 'modelPath = "out/m #1"', "starts a comment, even in quotes", ""),
    ("modelPath = out/m", "modelPath = train.ctf/m", "is a file, not a folder", ""),
    ("modelPath =", "modelFile =", "modelPath is missing", ""),
    ("command", "precision = Double\ncommand", "did you mean 'double'?", ""),
    ("command", "deviceId = gpu0\ncommand", "deviceId is auto, cpu, all, *N", ""),
    ("command", "makeMode = no\ncommand", "write true or false", ""),
    ("command", 'include "x.cntk"\ncommand', 'write include="x.cntk"', ""),
    ("command", "include: x.cntk\ncommand", "write include=x.cntk", ""),
    ("outputPath", "outpuPath", "write needs outputPath", "out"),
    ("= PosteriorProb", "= PosteriorProp", "did you mean 'PosteriorProb'?", "out"),
    ("= PosteriorProb", "= PosteriorProb, HLast", "separate the values of outputNodeNames by colons", "out"),
    ("out/x ;", "out/x ; format = [ type = catgory ] ;", "did you mean 'category'?", "out"),
    ("out/x ;", "out/x ; writer = [ writerType = HTKMLFWritr ] ;", "did you mean 'HTKMLFWriter'?", "out"),
    ("1:1:2", "0:0:2", "the increment is 0", "cv"),
    ("= W0", "= W9", "the network has no node 'W9'", "dump"),
]

WARNINGS = [
    ("momentumPerMB", "momentum", "did you mean 'momentumPerMB'?", ""),
    ("reader = [", "reader = [ maxErors = 3 ;", "'maxErors' is not a known parameter", ""),
    ("command", "commands", "did you mean 'command'?", ""),
    ("command", "includes = x.cntk\ncommand", "did you mean 'include'?", ""),
    ("file = train", "file = x ; file = train", "'x' is lost", ""),
    ("maxEpochs = 2", "maxEpochs = 2 ; dropoutRate = 0.5", "the network has no Dropout node", ""),
    ("out/x ;", "out/x ; format = category ;", "write format=[name=value]", "out"),
    ("outputNodeNames", "outputNodes", "did you mean 'outputNodeNames'?", "out"),
]

HINTS = [
    ("command", "// a comment\ncommand", "a comment begins with #"),
    ("command", "; a comment\ncommand", "a comment begins with #"),
    ("reader = [", "reader = [ minibatchSize = 4 ;", "it is a parameter of 'SGD'"),
    ("SGD = [", "SGD = [ useNesterov = true ;", "useNAG=true is the momentum of Nesterov"),
    ("$rate$", "0.3", "nothing reads 'rate'"),
]

SCRIPTS = {
    "LoadModel": ("LodModel", "did you mean 'LoadModel'?"),
    "m.W0": ("m.W9", "could not find a symbol for 'm.W9'"),
    "needsGradient": ("needsGradiant", "did you mean 'needsGradient'?"),
    "(out/m)": ("(out/m", "is not closed"),
}

WORDS = {
    "command=tets": "did you mean 'test'?",
    "train:SGD:maxEpochs=1": "write train/SGD/maxEpochs=...",
    "train/reader/minibatchSize=3": "it is a parameter of 'SGD'",
    "test/SGD/maxEpochs=3": "command test: nothing reads 'SGD'",
    "train=[SGD=[reader=[file=x]]]": "SGD: nothing reads 'reader'",
    "train/reader=UCIFastReader": "file is missing",
    "train={SGD={maxEpochs=1}}": "action is missing",
    "train=[SGD=[maxEpochs=1]": "add the missing ']'",
    "train=[SGD=[maxEpochs==1]]": "'=1' is not an integer",
    "train/SGD/maxEpochs/x=1": "'[ x=1 ]' is not an integer",
    "modelPath=": 'write modelPath="" for an empty text',
    "OutputDri=x": "did you mean 'OutputDir'?",
}

PASS = [
    ["imageLayout=cudnn", "useCuDnn=true", "gpuData=x", "lockGPU=true", "excludedDevices=0", "configName=a"],
    ["hyperCompressMemory=true", "train/SGD/maxTempMemSizeInSamplesForCNN=3", "perfTraceLevel=0", "ScriptDir=x"],
    ["train/reader/requestDataSize=3", "train=[SGD=[useNesterov=true]]", "traceGPUMemoryAllocations=0"],
    ["NumCPUThreads=1", "PARALLELTRAIN=false", "STDERR=-", "TrAiN/sgd/MAXEPOCHS=1", "command=train"],
    ["Size=3", "train=[SGD=[minibatchSize=$Size$]]"],
    ["[traceLevel=0;rate=0.2]", "train=[SGD=[maxEpochs=1;", "minibatchSize=4]]"],
    ["command=out", "ExpDir=x", "test=[minibatchSize=4]", "cv=[minibatchSize=3]"],
]


def changed(old: str, new: str, last: str) -> dict[str, str]:
    """The files with a mistake; `last`: the command after the training."""
    text = CONFIG.replace("train:test", f"train:{last}", 1) if last else CONFIG
    assert old in text
    return FILES | {"m.cntk": text.replace(old, new, 1)}


def is_error(cntkpy, told: str, files: dict[str, str], *words: str) -> None:
    """The run ends before its first command with an error of `check`, and nothing is written."""
    line = ["configFile=m.cntk", *words]
    checked, ran = cntkpy("check", *line, files=files), cntkpy(*line)
    assert (checked.code, ran.code) == (2, 2), checked.out + ran.err
    assert told in checked.out and told in ran.err, checked.out + ran.err
    assert any(ran.message in one for one in checked.out.splitlines() if " error: " in one), checked.out + ran.err
    assert not Path("out").exists() and "Finished Epoch" not in ran.err


@pytest.mark.parametrize(("old", "new", "told", "last"), ERRORS)
@pytest.mark.sampled
def test_errors(cntkpy, old: str, new: str, told: str, last: str) -> None:
    is_error(cntkpy, told, changed(old, new, last))


@pytest.mark.parametrize(("old", "new", "told", "last"), WARNINGS)
def test_warnings(cntkpy, old: str, new: str, told: str, last: str) -> None:
    got = cntkpy("check", "m.cntk", files=changed(old, new, last))
    assert got.code == 1, got.out
    assert any(told in line for line in got.out.splitlines() if " warning: " in line), got.out


@pytest.mark.parametrize(("old", "new", "told"), HINTS)
def test_hints(cntkpy, old: str, new: str, told: str) -> None:
    got = cntkpy("check", "m.cntk", files=changed(old, new, ""))
    assert got.code == 0, got.out
    assert any(told in line for line in got.out.splitlines() if " hint: " in line), got.out


@pytest.mark.parametrize("old", SCRIPTS)
def test_scripts(cntkpy, old: str) -> None:
    """A script that edits a model which is trained before it; its nodes are looked for when there is a model."""
    new, told = SCRIPTS[old]
    assert cntkpy("check", "m.cntk", "command=train:edit", files=FILES).code == 0
    files = FILES | {"e.mel": SCRIPT.replace(old, new)}
    if old in ("m.W0", "needsGradient"):
        checked, ran = (
            cntkpy("check", "m.cntk", "command=train:edit", files=files),
            cntkpy("configFile=m.cntk", "command=train:edit"),
        )
        assert (checked.code, ran.code) == (2, 2)
        assert told in checked.out and told in ran.err
    else:
        is_error(cntkpy, told, files, "command=train:edit")


@pytest.mark.parametrize("word", WORDS)
def test_words(cntkpy, word: str) -> None:
    is_error(cntkpy, WORDS[word], FILES | {"m.cntk": CONFIG + "doneFile = $OutputDir$/done\nOutputDir = d\n"}, word)


def test_options_in_a_classic_command_line(cntkpy) -> None:
    for word, told in (("--maxEpochs=1", "did you mean 'maxEpochs'?"), ("-lr=1", "follow `cntkpy run`")):
        got = cntkpy("configFile=m.cntk", word, files=FILES)
        assert (got.code, told in got.err) == (2, True), got.err


@pytest.mark.parametrize("words", PASS)
def test_words_of_configurations_that_work(cntkpy, words: list[str]) -> None:
    """No error: CNTK reads them, or its own scripts and configurations have them though nothing reads them."""
    got = cntkpy("check", "configFile=m.cntk", *words, files=FILES)
    assert got.code == 0, got.out


def test_a_command_whose_action_stands_further_out(cntkpy) -> None:
    more = "other = [ SGD = [ maxEpochs = 3 ] ]\n"
    files = FILES | {"m.cntk": "action = train\n" + CONFIG.replace("    action = train\n", "") + more}
    got = cntkpy("check", "m.cntk", "other=[SGD=[maxEpochs=2]]", "command=train", files=files)
    assert got.code == 0, got.out
    got = cntkpy("check", "m.cntk", "other=[SGD=[maxEpoch=2]]", "command=train")
    assert (got.code, "did you mean 'maxEpochs'?" in got.out) == (2, True), got.out


def test_another_precision_of_a_finished_training(cntkpy) -> None:
    words = ("configFile=m.cntk", "command=train")
    assert cntkpy(*words, files=FILES).code == 0
    assert cntkpy(*words, "precision=float").code == 0
    got = cntkpy(*words, "precision=double")
    assert (got.code, got.message) == (
        2,
        "precision is double, but out/m was trained with (float); training is finished, so the change has no effect",
    ), got.err


def test_nothing_to_write_of_a_model_that_is_there(cntkpy) -> None:
    network = (
        "run = n\nn = [ features = Input(2, tag=feature) ; labels = Input(3, tag=label) ; w = Parameter(3, 2)\n"
        "z = Times(w, features) ; ce = CrossEntropyWithSoftmax(labels, z, tag=criterion) ]\n"
    )
    text = CONFIG.replace("outputNodeNames = PosteriorProb", "")
    begin, end = text.index("SimpleNetworkBuilder"), text.index("    SGD")
    text = text[:begin] + "NDLNetworkBuilder = [ networkDescription = n.ndl ]\n" + text[end:]
    files = FILES | {"m.cntk": text, "n.ndl": network}
    assert cntkpy("configFile=m.cntk", "command=train", files=files).code == 0
    checked, ran = cntkpy("check", "m.cntk", "command=out"), cntkpy("configFile=m.cntk", "command=out")
    assert (checked.code, ran.code) == (2, 2), checked.out + ran.err
    assert "write outputNodeNames = z; candidates: z" in checked.out
    assert ran.message == "there is no node to write: the network has no output"


def test_a_missing_list_of_classes(cntkpy) -> None:
    """UCIFastReader needs it; only `createLabelMap` makes it."""
    labels = "labels = [ dim = 1 ; start = 2 ; labelDim = 3 ; labelMappingFile = none.map ]"
    uci = f"reader = [ readerType = UCIFastReader ; file = t.txt ; features = [ dim = 2 ; start = 0 ] ; {labels} ]"
    text = CONFIG.replace(READER, uci) + f"map = [ action = createLabelMap ; section = train ; {uci} ]\n"
    files = FILES | {"m.cntk": text, "t.txt": "1 2 a\n2 1 b\n0 1 c\n" * 8}
    told = "labels:labelMappingFile: 'none.map': no such file"
    assert cntkpy("check", "m.cntk", files=files).code == 0
    got = cntkpy("check", "--data", "m.cntk", "command=train")
    assert (got.code, "error: m.cntk:train:reader:" + told in got.out) == (2, True), got.out
    got = cntkpy("configFile=m.cntk", "command=train")
    assert (got.code, told in got.message) == (2, True), got.err
    assert cntkpy("check", "--data", "m.cntk", "command=map:train").code == 0
    assert cntkpy("configFile=m.cntk", "command=map").code == 0


def test_macros_that_a_command_lacks_which_is_not_listed(cntkpy) -> None:
    more = "later = [ action = edit ; editPath = e.mel ; ndlMacros = none.ndl ]\n"
    got = cntkpy("check", "m.cntk", files=FILES | {"m.cntk": CONFIG + more})
    assert (got.code, "warning: cannot read 'none.ndl'" in got.out) == (1, True), got.out


def test_the_parameters_of_a_trainer_further_out(cntkpy) -> None:
    """In words and in layers of configurations: the last one counts, the others stay (G6)."""
    text = CONFIG.replace("minibatchSize = 8 ;", "").replace(
        "    action = train\n", "    action = train\n    minibatchSize = 8\n"
    )
    files = FILES | {"m.cntk": text, "more.cntk": "train = [ minibatchSize = 6 ; SGD = [ maxEpochs = 5 ] ]\n"}
    words = ("train=[epochSize=24;SGD=[maxEpochs=3]]", "train.SGD.maxEpochs=1", "train=[minibatchSize=12]")
    given = {
        "train:minibatchSize=12",
        "train:epochSize=24",
        "train:SGD:maxEpochs=1",
        "train:SGD:learningRatesPerMB=0.3",
    }
    got = cntkpy("show", "configFile=m.cntk", *words, files=files)
    assert given <= set(got.out.splitlines())
    got = cntkpy("show", "configFile=m.cntk+more.cntk", *words)
    assert given <= set(got.out.splitlines())
    got = cntkpy("show", "configFile=m.cntk", *words, "configFile=more.cntk")
    assert {"train:minibatchSize=6", "train:epochSize=24", "train:SGD:maxEpochs=5"} <= set(got.out.splitlines())
    ran = cntkpy("configFile=m.cntk", *words, "command=train")
    assert (ran.code, ran.err.count("Finished Epoch[ 1 of 1]")) == (0, 1), ran.err
    assert "totalSamplesSeen = 24; learningRatePerSample = 0.025;" in ran.err


def test_a_word_that_hides_a_section_further_out(cntkpy) -> None:
    begin, end = CONFIG.index("    SGD = ["), CONFIG.index("    reader")
    files = FILES | {"m.cntk": CONFIG[:begin] + CONFIG[end:] + CONFIG[begin:end]}
    got = cntkpy("check", "m.cntk", "train=[SGD=[maxEpochs=1]]", files=files)
    assert got.code == 2
    assert "for 'train' this replaces the section 'SGD' of m.cntk:25:11, it does not add to it" in got.out, got.out
    assert cntkpy("check", "m.cntk", "SGD=[maxEpochs=1]").code == 0


@pytest.mark.parametrize("bad", [20, 19])
def test_data_of_which_nothing_can_be_used(cntkpy, bad: int) -> None:
    """Whole minibatches are empty; the error of the sweep is not lost after them."""
    text = CONFIG.replace("file = train.ctf", "file = train.ctf ; maxErrors = 1000 ; randomize = false")
    data = "|features a b |labels 1 0 0\n" * bad + "|features 1 0 |labels 1 0 0\n" * (20 - bad)
    got = cntkpy("configFile=m.cntk", "command=train", files=FILES | {"m.cntk": text, "train.ctf": data})
    message = f"{bad} of 20 sequences are malformed and were left out, the first: 0, 1, 2."
    assert (got.code, got.message) == (1, message), got.err
    assert not Path("out/m").exists()


def test_a_first_minibatch_that_is_empty(cntkpy) -> None:
    text = CONFIG.replace("file = train.ctf", "file = train.ctf ; maxErrors = 1000 ; randomize = false")
    data = "|features a b |labels 1 0 0\n" * 8 + "|features 1 0 |labels 1 0 0\n" * 16
    got = cntkpy("configFile=m.cntk", "command=train", files=FILES | {"m.cntk": text, "train.ctf": data})
    assert (got.code, got.err.count("totalSamplesSeen = 16;")) == (0, 1), got.err
    assert got.err.count("WARNING: 8 of 24 sequences are malformed") == 2


def test_a_network_of_which_nothing_is_trained(cntkpy) -> None:
    network = (
        "run = n\nn = [ features = Input(2, tag=feature) ; labels = Input(3, tag=label)\n"
        "w = Parameter(3, 2, needGradient=false) ; z = Times(w, features)\n"
        "ce = CrossEntropyWithSoftmax(labels, z, tag=criterion) ]\n"
    )
    begin, end = CONFIG.index("SimpleNetworkBuilder"), CONFIG.index("    SGD")
    text = CONFIG[:begin] + "NDLNetworkBuilder = [ networkDescription = n.ndl ]\n" + CONFIG[end:]
    got = cntkpy("configFile=m.cntk", "command=train", files=FILES | {"m.cntk": text, "n.ndl": network})
    assert (got.code, "WARNING: 'ce' depends on no parameter that is trained" in got.err) == (0, True), got.err


@pytest.mark.parametrize(
    ("word", "name"),
    [("train/precision=double", "precision"), ("train/SGD/stderr=x", "stderr"), ("test=[numcputhreads=2]", "")],
)
def test_parameters_of_the_whole_run(word: str, name: str, cntkpy) -> None:
    """S8: `precision` in a command trained in float, with the advice to write it in the reader."""
    got = cntkpy("check", "configFile=m.cntk", word, files=FILES)
    told = re.search(rf"'{name}'.*it counts for the whole run: write (it|{name}) at the top level", got.out)
    assert bool(told) == bool(name), got.out


@pytest.mark.parametrize("name", ["learningRatesPerMB", "train/SGD/learningRatesPerMB", "train.SGD.learningRatesPerMB"])
def test_one_element_of_a_list(name: str, cntkpy) -> None:
    """W14: it was read as a section and a value without a name."""
    got = cntkpy("check", "configFile=m.cntk", f"{name}[1]=0.02", files=FILES)
    assert got.code == 2
    assert got.out.splitlines()[0] == (
        f"<argument 2>:1:1: error: '{name}[1]' is one element of a list, which cannot be set by itself - "
        f"write the whole list: {name}=FIRST:SECOND, where VALUE*COUNT repeats and the last one stays [CK001]"
    )
