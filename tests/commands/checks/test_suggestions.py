# ruff: noqa: E501 - cases on one line each
"""What misspellings of many kinds are answered with, and what is answered with nothing rather than with a far name (U8)."""

import re

import pytest

BUILDER = "SimpleNetworkBuilder = [ layerSizes = 4:3 ; trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]"
READER = (
    "reader = [ readerType = CNTKTextFormatReader ; file = x.txt ; input = [ features = [ dim = 4 ; format = dense ]\n"
    "labels = [ dim = 3 ; format = dense ] ] ]"
)
VARIABLES = "labelDim = 3\nDataDir = data\ntrainMLF = t.mlf\n"
BASE = f"""command = train
modelPath = m
{VARIABLES}train = [
action = train
{BUILDER}
SGD = [ maxEpochs = 1 ; learningRatesPerMB = 0.1 ; epochSize = 0 ; minibatchSize = 10 ; dropoutRate = 0 ]
{READER}
]
"""
NETWORK = """net = [
features = Input(4, tag=feature)
weights = Parameter(3, 4)
Dense(x, n) {
    y = Times(Parameter(n, 4), x)
}
%s
]
"""


def ndl(line: str) -> str:
    return BASE.replace(BUILDER, "NDLNetworkBuilder = [ run = net ]") + NETWORK % line


def brain_script(line: str) -> str:
    return BASE.replace(BUILDER, f"BrainScriptNetworkBuilder = {{\nfeatures = Input {{4}}\nhiddenDim = 10\n{line}\n}}")


def changed(old: str, new: str) -> str:
    assert old in BASE
    return BASE.replace(old, new, 1)


def deserializer(name: str) -> str:
    return BASE.replace(READER, f"reader = [ deserializers = ([ type = {name} ; file = x ]) ]")


CASES = {
    "variable: a letter": (changed("4:3", "4:$labelDin$"), "labelDim"),
    "variable: two letters exchanged": (changed("4:3", "4:$lableDim$"), "labelDim"),
    "variable: a longer word": (changed("4:3", "4:$labelDimension$"), "labelDim"),
    "variable: an underscore": (changed("x.txt", '"$Data_Dir$/x"'), "DataDir"),
    "variable: letters exchanged": (changed("x.txt", '"$trainMFL$"'), "trainMLF"),
    "variable: nothing near": (changed("x.txt", '"$unrelated$"'), None),
    "variable: the same letters in another order": (changed("4:3", "4:$balDimle$"), None),
    "command": (changed("command = train", "command = trian"), "train"),
    "command: a number": (changed("command = train", "command = train1"), "train"),
    "action": (changed("action = train", "action = trian"), "train"),
    "action: another word": (changed("action = train", "action = evaluate"), "eval"),
    "reader": (changed("CNTKTextFormatReader", "CNTKTextFromatReader"), "CNTKTextFormatReader"),
    "reader: shortened": (changed("CNTKTextFormatReader", "TextFormatReader"), "CNTKTextFormatReader"),
    "deserializer: Parquet": (deserializer("ParquetDeserialzer"), "ParquetDeserializer"),
    "deserializer: British": (deserializer("CNTKTextFormatDeserialiser"), "CNTKTextFormatDeserializer"),
    "deserializer: pictures": (deserializer("ImageDeserilizer"), "ImageDeserializer"),
    "deserializer: features": (deserializer("HTKFeaturDeserializer"), "HTKFeatureDeserializer"),
    "include": ("include=globls.cntk\n" + BASE, "globals.cntk"),
    "include: ending": ("include=globals.cfg\n" + BASE, "globals.cntk"),
    "include: a folder that is not there": ("include=conf/globals.cntk\n" + BASE, "globals.cntk"),
    "include: a folder": ("include=prats/more.cntk\n" + BASE, "parts/more.cntk"),
    "include: nothing near": ("include=elsewhere.cntk\n" + BASE, None),
    "parameter: singular": (changed("maxEpochs", "maxEpoch"), "maxEpochs"),
    "parameter: singular inside": (changed("learningRatesPerMB", "learningRatePerMB"), "learningRatesPerMB"),
    "parameter: plural": (changed("minibatchSize", "minibatchSizes"), "minibatchSize"),
    "parameter: top level": (changed("modelPath", "modlePath"), "modelPath"),
    "parameter: a letter": (changed("dropoutRate", "dropuotRate"), "dropoutRate"),
    "word of a set": (changed("format = dense", "format = danse"), "dense"),
    "section": (changed("SGD =", "SDG ="), "SGD"),
    "section: reader": (changed("reader =", "raeder ="), "reader"),
    "builder": (changed("SimpleNetworkBuilder", "SimpleNetworkBulder"), "SimpleNetworkBuilder"),
    "criterion": (changed("ErrorPrediction", "ClasificationError"), "classificationError"),
    "criterion: shortened": (changed("CrossEntropyWithSoftmax", "CrossEntropy"), "crossEntropyWithSoftmax"),
    "NDL: function": (ndl("z = RectifiedLinar(features)"), "RectifiedLinear"),
    "NDL: long function": (ndl("z = CrosEntropyWithSoftmax(features, features)"), "CrossEntropyWithSoftmax"),
    "NDL: macro": (ndl("z = Dens(features, 3)"), "Dense"),
    "NDL: node": (ndl("z = Times(weigths, features)"), "weights"),
    "NDL: nothing near": (ndl("z = Times(weights, foo)"), None),
    "NDL: option": (ndl("z = Parameter(3, 4, inti=uniform)"), "init"),
    "NDL: word of an option": (ndl("z = Parameter(3, 4, init=unifrom)"), "uniform"),
    "NDL: tag": (ndl("z = Input(3, tag=lable)"), "label"),
    "BrainScript: case": (brain_script("z = Denselayer {3} (features)"), "DenseLayer"),
    "BrainScript: a letter": (brain_script("z = DenceLayer {3} (features)"), "DenseLayer"),
    "BrainScript: layer": (brain_script("z = RecurentLSTMLayer {3} (features)"), "RecurrentLSTMLayer"),
    "BrainScript: member": (brain_script("z = DenseLayer {hidenDim} (features)"), "hiddenDim"),
    "BrainScript: option": (brain_script("z = DenseLayer {3, activaton=ReLU} (features)"), "activation"),
    "BrainScript: namespace": (brain_script("z = BS.Sequences.Frist (features)"), "First"),
    "BrainScript: group": (brain_script("z = features + 1\noutptuNodes = (z)"), "outputNodes"),
    "BrainScript: Python's name": (brain_script("z = cross_entropy_with_softmax (features, features)"), "CrossEntropyWithSoftmax"),
    "BrainScript: a short name inside": (brain_script("z = features + missing"), None),
    "BrainScript: nothing near": (brain_script("z = features + zzz"), None),
}  # fmt: skip
KEYS = {
    "[[run]]\nname = 'a'\nfils = ['a.cntk']\n": "files",
    "[[run]]\nname = 'a'\nfiles = ['a.cntk']\nworsd = []\n": "words",
    "[[run]]\nnmae = 'a'\nfiles = ['a.cntk']\n": "name",
    "[[run]]\nname = 'a'\nfiles = ['a.cntk']\nvariabels = {}\n": "variables",
    "incldue = []\n": "include",
    "per_file = {}\n": "per-file",
    "enviroment = []\n": "environment",
    "exlude = []\n": "exclude",
    "runs = []\n": "run",
    "[types]\na = { min = 1, mxa = 2 }\n": "max",
    "[types]\na = { min = 1, requird = true }\n": "required",
    "[[run]]\nname = 'a'\nfiles = ['a.cnkt']\n": "a.cntk",
    "verbosity = 3\n": None,
}


def suggestions(output: str) -> set[str]:
    """Return the names that errors and warnings ask for, without those for names that are not there."""
    lines = [line for line in output.splitlines() if " is missing - " not in line or "section of a command" in line]
    return set(re.findall(r"[Dd]id you mean '([^']*)'", " ".join(" ".join(lines).split())))


@pytest.mark.parametrize("case", CASES)
def test_a_misspelling_is_answered_with_what_is_meant(case: str, cntkpy) -> None:
    text, meant = CASES[case]
    files = {"a.cntk": text, "globals.cntk": "x = 1\n", "parts/more.cntk": "x = 1\n"}
    result = cntkpy("check", "--ignore", "CK060,CK059", "a.cntk", files=files)
    assert suggestions(result.out) == ({meant} if meant is not None else set()), result.out
    assert result.code > 0


@pytest.mark.parametrize("text", KEYS)
def test_keys_of_the_project_file(text: str, cntkpy) -> None:
    result = cntkpy("check", "--ignore", "CK060", files={"cntkpy.toml": text, "a.cntk": BASE, "x.txt": ""})
    meant = KEYS[text]
    assert suggestions(result.out) == ({meant} if meant is not None else set()), result.out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["chekc", "a.cntk"], "check"),
        (["check", "b.cntk"], None),
        (["check", "modle.cntk"], "model.cntk"),
        (["run", "model.cnkt"], "model.cntk"),
        (["check", "a.cntk", "train/SGD/maxEpoch=3"], "maxEpochs"),
        (["check", "a.cntk", "trian/SGD/maxEpochs=3"], "train"),
        (["show", "a.cntk", "trian"], "train"),
        (["explain", "a.cntk", "train/SGD/maxEpoch"], "maxEpochs"),
        (["help", "CNTKTextFormatReadr"], "CNTKTextFormatReader"),
        (["help", "DenceLayer"], "DenseLayer"),
        (["check", "--format", "srif", "a.cntk"], "sarif"),
        (["check", "--format", "zzz", "a.cntk"], None),
        (["new", "confg", "x"], "config"),
        (["list", "reader"], "readers"),
    ],
)
def test_words_of_the_command_line(words: list[str], meant: str | None, cntkpy) -> None:
    result = cntkpy(*words, files={"a.cntk": BASE, "model.cntk": BASE})
    assert suggestions(result.out + result.err) == ({meant} if meant is not None else set()), result.out + result.err
