"""`cntkpy check`: one line per finding, with its place; exit status 2 if one is an error."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
good_config = runpy.run_path(str(ROOT / "benchmarks/good_config.py"))["good_config"]

GOOD = """\
command = train:test
modelPath = m
reader = [
    readerType = CNTKTextFormatReader
    file = train.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ]
]
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:6:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 20 ; learningRatesPerMB = 0.2 ]
]
test = [ action = test ]
"""


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> None:
    """The files of data that the configurations name."""
    (tmp_path / "train.ctf").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.ctf").touch()


def change(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_configuration(cntkpy) -> None:
    got = cntkpy("check", "good.cntk", files={"good.cntk": GOOD})
    assert (got.code, got.out, got.err) == (0, "no problems in 1 configuration\n", "")
    assert cntkpy("check", "-q", "good.cntk").out == ""


def test_the_generated_configuration_is_good(cntkpy) -> None:
    got = cntkpy("check", "good.cntk", files={"good.cntk": good_config()})
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


MISTAKES = {
    "unknown action": (
        change("action = train\n", "action = trian\n"),
        r"9:14: error: unknown action: trian .* 'train'",
    ),
    "old action": (
        change("action = train\n", "action = convertdbn\n"),
        r'9:14: error: action "convertdbn" is not supported',
    ),
    "command": (change("command = train:test", "command = train:tets"), r"1:17: error: .*tets.*'test'"),
    "type": (change("minibatchSize = 20", "minibatchSize = abc"), r"11:45: error: .*abc"),
    "required": (change("maxEpochs = 2 ;", ""), r"11:.* error: .*maxEpochs"),
    "variable": (change("file = train.ctf", 'file = "$DataDir$/train.ctf"'), r"5:13: error: .*DataDir"),
    "cycle": (change("modelPath = m", "a = $b$\nb = $a$\nmodelPath = $a$"), r"[23]:5: error: .*"),
    "open": (change("test = [ action = test ]", "test = [ action = test"), r"13:8: error: .*never closed"),
    "mismatch": (change("test = [ action = test ]", "test = [ action = test )"), r"13:24: error: .*"),
    "reader": (change("CNTKTextFormatReader", "CNTKTextFormReader"), r"4:18: error: .*'CNTKTextFormatReader'"),
    "builder": (change("SimpleNetworkBuilder", "SimpleNetworkBulder"), r"10:5: error: .*'SimpleNetworkBuilder'"),
    "include": (change("modelPath = m", "include=gone.cntk"), r"2:9: error: .*gone.cntk"),
    "precision": ("precision = half\n" + GOOD, r"1:13: error: .*half"),
    "deprecated": ("type = float\n" + GOOD, r"1:8: error: .*precision"),
    "number": (change("modelPath = m", "modelPath = m\ntraceLevel = x"), r"3:14: error: .*x"),
    "device": (change("modelPath = m", "modelPath = m\ndeviceId = gpu0"), r"3:12: error: .*gpu0"),
    "value": ("a=\n", r"1:\d: error: .*"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_gives_one_located_line(mistake: str, cntkpy) -> None:
    text, expected = MISTAKES[mistake]
    got = cntkpy("check", "bad.cntk", files={"bad.cntk": text})
    assert got.code == 2
    lines = got.out.splitlines()
    assert re.match("bad.cntk:" + expected, lines[0]), lines
    assert lines[1:] == ["1 error in 1 configuration"]


HABITS = {
    "a colon in place of = at the top": (
        change("command = train:test", "command : train:test"),
        r"1:1: warning: top level: 'command : train:test' has a colon in place of '=' - write command = ... .CK010.",
    ),
    "a colon in place of = of a section": (
        change("train = [", "train : ["),
        r"8:1: warning: top level: 'train :' has a colon in place of '=' - write train = ... .CK010.",
    ),
    "a colon in place of = in a section": (
        change("minibatchSize = 20", "minibatchSize: 20"),
        r"11:29: warning: SGD: 'minibatchSize: 20' has a colon in place of '=' - write minibatchSize = ... .CK010.",
    ),
    "a reader of pictures without pictures": (
        change("CNTKTextFormatReader", "ImageReader"),
        r"3:10: error: bad.cntk:train:reader: ImageReader has one section with width",
    ),
    "randomize of another reader": (
        change("CNTKTextFormatReader", "UCIFastReader ; randomize = true"),
        r"4:46: error: bad.cntk:train:reader:randomize: 'true' is not auto, none or a number of records",
    ),
}
"""Mistakes of people who come from other languages or another reader, of which more than one finding may come."""


@pytest.mark.parametrize("mistake", HABITS)
def test_a_habit_is_told(mistake: str, cntkpy) -> None:
    text, expected = HABITS[mistake]
    lines = cntkpy("check", "bad.cntk", files={"bad.cntk": text}).out.splitlines()
    assert any(re.match("bad.cntk:" + expected, line) for line in lines), lines


@pytest.mark.parametrize(
    ("text", "commands"), [("tr = [ action = train ]\nb = [ action = test ]\n", "tr:b"), ("x=1", "SECTION")]
)
def test_without_a_command_the_sections_are_named(text: str, commands: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", files={"m.cntk": text})
    assert f"no command is given, the default is train: add command = {commands} [CK015]" in got.out


def test_a_missing_parameter_is_found_once_for_each_command(cntkpy) -> None:
    got = cntkpy("check", "bad.cntk", files={"bad.cntk": change("modelPath = m\n", "")})
    assert [line.split(" - ")[0] for line in got.out.splitlines()] == [
        "bad.cntk:7:9: error: bad.cntk:train:modelPath is missing",
        "bad.cntk:12:8: error: bad.cntk:test:modelPath is missing",
        "2 errors in 1 configuration",
    ]


def test_all_findings_of_several_files(cntkpy) -> None:
    bad = change("action = train\n", "action = trian\n").replace("CNTKTextFormatReader", "CNTKTextReader")
    got = cntkpy("check", "bad.cntk", "good.cntk", "gone.cntk", files={"good.cntk": GOOD, "bad.cntk": bad})
    lines = got.out.splitlines()
    assert got.code == 2
    assert [line.split(":")[0] for line in lines[:2]] == ["bad.cntk", "bad.cntk"]
    assert "gone.cntk" in lines[2]
    assert lines[3:] == ["3 errors in 3 configurations"]


def test_joined_files_overrides_and_the_classic_form(cntkpy) -> None:
    files = {"a.cntk": GOOD, "b.cntk": "modelPath = $RunDir$/m\n"}
    assert cntkpy("check", "a.cntk+b.cntk", files=files).code == 2
    assert cntkpy("check", "a.cntk+b.cntk", "RunDir=run").code == 0
    assert cntkpy("check", "configFile=a.cntk+b.cntk", "RunDir=run").code == 0
    got = cntkpy("check", "configFile=a.cntk", "train=[SGD=[maxEpochs=x]]")
    assert got.code == 2
    assert "maxEpochs" in got.out


def test_without_a_configuration_it_explains_itself(cntkpy) -> None:
    assert cntkpy("check").code == 2
    got = cntkpy("check", "a=1")
    assert got.code == 2
    assert "configuration" in got.err


def test_network_texts_are_not_taken_for_sections(cntkpy) -> None:
    simple = (
        "SimpleNetworkBuilder = [ layerSizes = 2:6:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]"
    )
    text = change(simple, "NDLNetworkBuilder = [ run = Net ]")
    text += "Net = [\n  features = Input(2)\n  labels = Input(3)\n  W = Parameter(3, 2)\n  z = Times(W, features)\n"
    text += "  ce = SquareError(labels, z)\n  FeatureNodes = (features)\n  CriterionNodes = (ce)\n]\n"
    got = cntkpy("check", "good.cntk", files={"good.cntk": text})
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


def test_check_imports_neither_jax_nor_numpy(tmp_path: Path) -> None:
    (tmp_path / "good.cntk").write_text(good_config())
    code = (
        "import sys; from cntkpy.commands.cli import main; status = main(['check', 'good.cntk']); "
        "print(status, [m for m in ('jax', 'jaxlib', 'numba', 'numpy', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_command_that_builds_its_network_needs_no_model(cntkpy) -> None:
    builder = GOOD[GOOD.index("    SimpleNetworkBuilder") : GOOD.index("    SGD")]
    reader = GOOD[GOOD.index("reader") : GOOD.index("train = [")]
    text = f"command = test\n{reader}test = [\n    action = test\n{builder}]\n"
    got = cntkpy("check", "good.cntk", "--ignore", "CK044", files={"good.cntk": text})
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


def test_names_on_the_command_line_are_reported(cntkpy) -> None:
    got = cntkpy("check", "good.cntk", "ConfigDir=x", files={"good.cntk": GOOD})
    assert got.code == 0
    assert "<argument 2>:1:1: hint: top level: nothing reads 'ConfigDir'" in got.out
    assert cntkpy("check", "--strict", "good.cntk", "ConfigDir=x").code == 2
    assert "'traceLevel'" in cntkpy("check", "good.cntk", "traceLevl=1").out


def test_words_of_the_simple_builder_and_networks_without_a_criterion(cntkpy) -> None:
    got = cntkpy("check", "bad.cntk", files={"bad.cntk": change("evalCriterion = SquareError", "evalCriterion = Eror")})
    assert "unknown evalCriterion 'Eror'" in got.out
    simple = GOOD[GOOD.index("SimpleNetworkBuilder") : GOOD.index("    SGD")]
    net = "net = [\n  features = Input(2, tag=feature)\n  z = Sin(features)\n]\n"
    got = cntkpy("check", "bad.cntk", files={"bad.cntk": change(simple, "NDLNetworkBuilder = [ run = net ]\n") + net})
    assert "bad.cntk:10:25: error: the network has no training criterion" in got.out


def test_a_parameter_of_another_section(cntkpy) -> None:
    reader = "reader = [ chunkSizeInBytes = 9 ; deserializers = ([ type = CNTKTextFormatDeserializer ; file = train.ctf"
    text = GOOD.replace("reader = [\n    readerType = CNTKTextFormatReader\n    file = train.ctf", reader)
    lines = cntkpy(
        "check", "bad.cntk", files={"bad.cntk": text.replace("dense ] ]\n]", "dense ] ] ]) ]")}
    ).out.splitlines()
    assert lines[0].startswith(
        "bad.cntk:3:12: warning: reader: 'chunkSizeInBytes' is not a known parameter here - it is one of 'deserializer'"
    ), lines


WORDS = """\
words = [ action = writeWordAndClass ; inputFile = corpus.txt ; vocabSize = 9 ; beginSequence = "</s>"
    endSequence = "</s>" ; outputVocabFile = words.cls ]
lm = [
    action = train
    SimpleNetworkBuilder = [ rnnType = CLASSLM ; layerSizes = 9:4:9 ; vocabSize = 9 ; nbrClass = 2
        trainingCriterion = classCrossEntropyWithSoftmax ; evalCriterion = classCrossEntropyWithSoftmax ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 20 ; learningRatesPerSample = 0.1 ]
    modelPath = m
    reader = [ readerType = LMSequenceReader ; file = corpsu.txt ; wordclass = words.cls ; mode = class
        features = [ dim = 0 ]
        labelIn = [ labelType = Category ; labelDim = 9 ; labelMappingFile = in.map ]
        labels = [ labelType = NextWord ; labelDim = 9 ; labelMappingFile = out.map ] ]
]
"""


def test_only_files_that_another_command_makes_may_be_missing(cntkpy) -> None:
    got = cntkpy("check", "w.cntk", "command=words:lm", files={"w.cntk": WORDS, "corpus.txt": "a b\n"})
    missing = [line for line in got.out.splitlines() if "CK060" in line]
    assert (
        len(missing) == 1
        and "w.cntk:lm:reader:file: 'corpsu.txt': no such file - did you mean 'corpus.txt'?" in missing[0]
    )


UCI = """\
command = uci
uci = [
    action = train ; modelPath = m
    NDLNetworkBuilder = [ run = net ]
    net = [ features = Input(2) ; P = Parameter(1, 2) ; s = Times(P, features) ; c = SumElements(s)
        FeatureNodes = (features) ; CriterionNodes = (c) ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 20 ; learningRatesPerSample = 0.1 ]
    reader = [ readerType = UCIFastReader ; file = train.ctf ; labelType = none
        features = [ dim = 2 ; start = 1 ] ; labels = [ dim = 1 ; start = 0 ; labelDim = 3 ] ]
]
"""


def test_no_labels_may_be_said_of_the_whole_reader(cntkpy) -> None:
    got = cntkpy("check", "u.cntk", files={"u.cntk": UCI})
    assert "error" not in got.out, got.out


@pytest.mark.parametrize("text", ["train,test", "train , test ; x=1"])
def test_a_command_behind_a_comma_is_told(text: str, cntkpy) -> None:
    """CNTK runs the first one without a word."""
    got = cntkpy("check", "good.cntk", files={"good.cntk": change("command = train:test", f"command = {text}")})
    assert re.search(
        r"good.cntk:1:\d+: error: command: 'test' is not run: .* separate commands by colons \[CK035\]", got.out
    )
    fine = cntkpy("check", "good.cntk", files={"good.cntk": change("command = train:test", "command = (train,test)")})
    assert fine.out == "no problems in 1 configuration\n"


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ("0.1,0.2", ": what follows a comma is cut off - separate the values"),
        ('"0.1" 0.2', ": the value before it ends with its quote or bracket - look for a quote"),
        ("0.1\n0.2", " - write name=value; a list on several lines is written in parentheses"),
    ],
)
def test_a_number_that_stands_alone_is_told_with_its_reason(rates: str, told: str, cntkpy) -> None:
    text = change("learningRatesPerMB = 0.2", f"learningRatesPerMB = {rates}")
    got = cntkpy("check", "good.cntk", files={"good.cntk": text})
    assert f"SGD: '0.2' is read as a parameter of its own{told}" in got.out


@pytest.mark.parametrize("words", [("--select", "CK9"), ("--ignore", "CK011,UnusedParameter")])
def test_codes_that_no_finding_has_are_told(words: tuple[str, ...], cntkpy) -> None:
    got = cntkpy("check", *words, "good.cntk", files={"good.cntk": GOOD})
    assert (got.code, got.out) == (2, "")
    assert f"{words[0]}: no finding has the code '{words[1].split(',')[-1]}'" in got.err


def test_a_folder_without_configurations_is_told(cntkpy) -> None:
    got = cntkpy("check", "data", "RunDir=x")
    assert got.code == 2
    assert "In data there is no configuration." in got.err


def test_values_of_commands_that_are_not_listed(cntkpy) -> None:
    """They have to be of their types; what is missing may come with `command=` on the command line."""
    later = (
        "later = [ action = train ; SGD = [ minibatchSize = many ; maxEpochs = $N$ ] ; reader = [ randomize = yes ] ]\n"
    )
    got = cntkpy("check", "good.cntk", "--ignore", "CK003", files={"good.cntk": GOOD + later})
    warnings = [line for line in got.out.splitlines() if " warning: " in line]
    assert len(warnings) == 3
    assert "14:52: warning: good.cntk:later:SGD:minibatchSize[0]: 'many' is not an integer" in warnings[0]
    assert "$N$" in warnings[1]
    assert "warning: good.cntk:later:reader:randomize: 'yes' is not" in warnings[2]


def test_an_undefined_variable_of_all_commands_is_told_among_others(cntkpy) -> None:
    config = "precision = $Nope$\ncommand = t\nt = [ action = train ; modelPath = m ; nope = 1 ]\n"
    got = cntkpy("check", "m.cntk", files={"m.cntk": config})
    assert got.code == 2
    assert "m.cntk:1:13: error: the variable $Nope$ is not defined" in got.out
    assert "m.cntk:3:" in got.out, "the others are told, too"
