"""What is accepted and changes nothing says so (A19, A20); texts that mislead (C5, C12); an edit without a script."""

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.systems.files import HAS_DRIVES
from cntkpy.cntk_config.declare import INTEGER, Declared, Parameter
from cntkpy.commands.catalogue.topics import topics
from cntkpy.readers import registry

CONFIG = """\
command = train:test
modelPath = m
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 2 ; format = dense ] ] ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ] ]
test = [ action = test ]
"""
FILES = {"m.cntk": CONFIG, "data.ctf": "|features 1 0 |labels 1 0\n|features 0 1 |labels 0 1\n"}
BUILDER_TEXT = CONFIG[CONFIG.index("Simple") : CONFIG.index("    SGD")].strip()
BUILDER = "train/SimpleNetworkBuilder"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (f"{BUILDER}/recurrentLayer=1", "makes nothing of it; add rnnType = SIMPLERNN or LSTM"),
        (f"{BUILDER}/lookupTableOrder=1", "rnnType = SIMPLENET makes nothing of it"),
        (f"{BUILDER}=[rnnType=SIMPLERNN;sparseinput=true]", "rnnType = SIMPLERNN makes nothing of it"),
        (f"{BUILDER}/outputLayerSize=3", "CNTK reads it and makes nothing of it"),
        (f"{BUILDER}/word2cls=x", "CNTK reads it and makes nothing of it"),
        (f"{BUILDER}/streamSizes=1:2", "CNTK reads it and makes nothing of it"),
    ],
)
def test_parameters_of_the_builder(word: str, told: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", word, files=FILES)
    (line,) = (line for line in got.out.splitlines() if "has no effect" in line)
    assert told in line
    assert line.endswith("[CK016]")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("hyperCompressMemory=true", "XLA plans memory"),
        (f"{BUILDER}/deviceId=0", "the device of the command is used"),
        ("reader/verbosity=1", None),
    ],
)
def test_parameters_that_change_nothing(word: str, told: str | None, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", word, files=FILES)
    lines = [line for line in got.out.splitlines() if "has no effect" in line]
    assert [line.partition(" - ")[2] for line in lines] == ([f"{told} [CK016]"] if told else [])
    assert got.code == 0


def test_an_option_of_a_node_that_changes_nothing(cntkpy) -> None:
    network = (
        "run = ndl ; ndl = [ x = InputValue(2) ; w = LearnableParameter(2, 2, initOnCPUOnly=true) ; "
        "labels = InputValue(2, tag=label) ; c = SquareError(Times(w, x), labels, tag=criterion) ]"
    )
    text = CONFIG.replace(BUILDER_TEXT, f"NDLNetworkBuilder = [ {network} ]").replace("features", "x")
    got = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": text})
    (line,) = (line for line in got.out.splitlines() if "initOnCPUOnly" in line)
    assert line.startswith("m.cntk:6:") and ": hint: " in line
    assert line.endswith("has no effect - parameters start where they stay. [CK016]")


def test_what_is_ignored_and_what_is_allowed_are_fields_not_words_of_a_help() -> None:
    """`check` and the reference pages know what a field says; a sentence they can only repeat."""
    words = re.compile(r"[Aa]ccepted( and ignored)?[.;]|[Cc]hanges nothing|there is no other|: [a-z]+ or [a-z]+\.$")
    found = [
        f"{topic.name}.{one.name}: {one.help}"
        for topic in topics()
        for one in topic.declared.parameters()
        if not one.ignored and words.search(one.help)
    ]
    assert not found, "\n".join(found)


def test_a_rate_for_nodes_that_are_not_there(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", "command=train", "train/SGD/dropoutRate=0.5", files=FILES)
    assert got.code == 0
    assert "WARNING: <argument 3>:1:23: dropoutRate has no effect: the network has no Dropout node." in got.err
    dropout = cntkpy(
        "configFile=m.cntk",
        "command=train",
        "modelPath=n",
        "train/SGD/dropoutRate=0.5",
        f"{BUILDER}=[layerSizes=2:3:2;addDropoutNodes=true]",
    )
    assert "has no effect" not in dropout.err


def test_a_name_that_matches_nothing(cntkpy) -> None:
    """An error with the nearest name, before anything is trained; beside names that exist a warning, as in CNTK."""
    for words in (("check", "m.cntk"), ("configFile=m.cntk",)):
        got = cntkpy(*words, "test=[evalNodeNames=SquareEror]", files=FILES)
        text = got.out + got.err
        assert got.code == 2
        assert "the network has no node 'SquareEror'" in text
        assert "did you mean 'SquareError'?" in text
        assert "Finished Epoch" not in text
    got = cntkpy("configFile=m.cntk", "test=[evalNodeNames=SquareEror:SquareError]")
    assert got.code == 0, got.err
    assert "it is left out" in got.err
    for word in ("nodeName=SquareEror", "nodeNameRegex=Sq[0-9]"):
        got = cntkpy("configFile=m.cntk", "command=dump", f"dump=[action=dumpNode;{word}]")
        assert got.code == 2, got.err
        assert "--> <argument 3>:1:" in got.err


def test_quotation_marks_of_a_word_processor(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "modelPath=“run/m”", files=FILES)
    assert got.code == 1
    assert "<argument 2>:1:11: warning: “ is an ordinary character, no quotation mark" in got.out


@pytest.mark.parametrize("word", ["modelPath='run/m'", "stderr='log'"])
def test_single_quotes(word: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", word, files=FILES)
    assert got.code == 1
    assert f": the single quotes of {word.partition('=')[2]} are part of the name" in got.out
    assert "CK036" not in cntkpy("check", "m.cntk", "modelPath=O'Brien's").out


@pytest.mark.parametrize("word", ["modelPath=c:\\cntk\\m", "stderr=c:/cntk/log"])
def test_paths_of_windows(word: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", word, files=FILES)
    assert "is a path of Windows; here it names a file in the current folder" in got.out


@pytest.mark.skipif(HAS_DRIVES, reason="backslashes separate folders there")
@pytest.mark.parametrize(
    ("words", "shown", "right"),
    [
        (["Root=runs", "modelPath=$Root$\\run1.model"], "modelPath: 'runs\\run1.model'", "runs/run1.model"),
        (["stderr=log\\run"], "stderr: 'log\\run'", "log/run"),
        (["doneFile=a\\\\b/c"], "doneFile: 'a\\\\b/c'", "a/b/c"),
        (["command=train:test:out", "out=[action=write;outputPath=o\\]"], "out:outputPath: 'o\\'", "o/"),
        (["train/SGD/tensorBoardLogDir=t\\b"], "SGD:tensorBoardLogDir: 't\\b'", "t/b"),
        (["test/modelPath=\\\\server\\m"], "test:modelPath: '\\\\server\\m'", "/server/m"),
        (["tracking=[type=tensorboard;folder=x\\y]"], "tracking:folder: 'x\\y'", "x/y"),
    ],
)
def test_backslashes_between_folders(words: list[str], shown: str, right: str, cntkpy) -> None:
    """S4: the file would be called so, in the current folder."""
    got = cntkpy("check", "m.cntk", *words, files=FILES)
    assert got.code == 1, got.out
    told = (
        f"{shown} is a path of Windows; here the backslash is part of a name - separate folders by /: {right} [CK062]"
    )
    assert told in got.out


@pytest.mark.parametrize("path", ["${HOME}/m", '"${HOME}/m"', "$HOME/m", "~/m", "~", '"%HOME%/m"', "~user/m"])
def test_what_a_shell_would_replace(path: str, cntkpy) -> None:
    """U6, W15: without quotes the value even ends at the bracket, `${HOME}`."""
    files = FILES | {"m.cntk": CONFIG.replace("modelPath = m", f"modelPath = {path}")}
    got = cntkpy("check", "m.cntk", files=files)
    assert got.code == 1, got.out
    assert re.search(r"modelPath: '[^']+' is ordinary text: .*write \$\w+\$, and on the command line .*CK038", got.out)
    assert "CK038" not in cntkpy("check", "m.cntk", "modelPath=a~b$c/100%", files=FILES).out


def test_a_choice_shows_no_empty_word(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "train/SGD/gradUpdateType=foo", files=FILES)
    assert "'foo' is not one of none, normal, simple, adagrad, rmsProp, fsAdagrad" in got.out


@pytest.mark.parametrize("words", [("check", "m.cntk"), ("configFile=m.cntk",)])
@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("e=[action=edit]", "editPath is missing"),
        (f"e=[action=edit;{BUILDER_TEXT}]", "outputModelPath is missing"),
    ],
)
def test_an_edit_without_a_script(words: tuple[str, ...], section: str, message: str, cntkpy) -> None:
    got = cntkpy(*words, "command=e", section, files=FILES)
    assert got.code == 2
    assert message in got.out + got.err


def test_an_unknown_writer_of_a_cache(cntkpy) -> None:
    reader = "reader=[readerType=UCIFastReader;writerType=nonsense;features=[dim=2;start=0]]"
    got = cntkpy("check", "m.cntk", reader, files=FILES)
    assert "unknown writer 'nonsense'" in got.out  # (B3)


def test_a_node_has_its_former_name(cntkpy) -> None:
    """Configurations of the manual name the evaluation node as it was called then."""
    words = (f"{BUILDER}/evalCriterion=errorPrediction", "test=[evalNodeNames=EvalErrorPrediction]")
    got = cntkpy("check", "m.cntk", *words, files=FILES)
    assert got.out == "no problems in 1 configuration\n"


@pytest.mark.parametrize("words", [["check", "m.cntk"], ["configFile=m.cntk"]], ids=["check", "run"])
def test_a_section_of_labels_that_is_not_read(words: list[str], cntkpy) -> None:
    """The advice is about labelType, not about an `input` section (C5)."""
    network = (
        "NDLNetworkBuilder=[run=n];n=[f=Input(2,tag=feature);l=Input(2,tag=label);c=SquareError(l,f,tag=criterion)]"
    )
    reader = "readerType=UCIFastReader;file=u.txt;f=[dim=2;start=0];l=[dim=1;start=2;labelType=None]"
    sgd = "maxEpochs=1;minibatchSize=2;learningRatesPerMB=0.1"
    config = f"command=train\nmodelPath=m\ntrain=[action=train;{network};SGD=[{sgd}];reader=[{reader}]]\n"
    got = cntkpy(*words, files={"m.cntk": config, "u.txt": "1 2 0\n3 4 1\n"})
    assert got.code == 2
    assert "has no stream for the input 'l'" in got.out + got.err
    assert "leaves it out; write Category" in got.out + got.err


READERS = [
    ("readerType=HTKMLFReader;nbruttsineachrecurrentiter=2;x=[dim=3;scpFile=s];y=[labelDim=2;mlfFile=l]",
     "'nbruttsineachrecurrentiter' has no effect here - frames have no parallel utterances", "D8"),
    ("deserializers=([type=CNTKTextFormatDeserializer;randomize=none;file=t;input=[f=[dim=2;format=dense]]])",
     "'randomize' has no effect - the order is that of the reader; write it beside deserializers", "A20"),
    ("deserializers=([type=CNTKTextFormatDeserializer;module=Foo;file=t;input=[f=[dim=2;format=dense]]])",
     "'module' has no effect here - CNTKTextFormatDeserializer is built in", "A20"),
    ("readerType=UCIFastReader;module=Foo;file=u;f=[dim=2;start=0]", "UCIFastReader is built in", "A20"),
    ("readerType=LUSequenceReader;file=t;wfile=c;f=[dim=0];l=[token=t;labelType=category]",
     "'wfile' has no effect - this reader keeps no cache", "of old configurations"),
    ("readerType=LUSequenceReader;file=t;f=[dim=0;sectionType=data];l=[token=t;labelType=category]",
     "'sectionType' has no effect - this reader keeps no cache", "of old configurations"),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "told", "finding"), READERS)
def test_parameters_of_readers(reader: str, told: str, finding: str, cntkpy) -> None:
    got = cntkpy("check", "m.cntk", f"train/reader=[{reader}]", files=FILES)
    assert told in got.out, finding


WORDS = [
    ("readerType=HTKMLFReader;x=[dim=3;type=Category;scpFile=s];y=[labelDim=2;mlfFile=l]", "features are of type real"),
    (
        "readerType=HTKMLFReader;x=[dim=3;scpFile=s];y=[labelDim=2;labelType=Regression;mlfFile=l]",
        "'Regression' are not",
    ),
    ("readerType=Kaldi2Reader;x=[dim=3;type=Foo;scpFile=c;rx=s];y=[labelDim=2;mlfFile=l]", "features are of type real"),
]


@pytest.mark.parametrize(("reader", "told"), WORDS)
def test_words_of_readers(reader: str, told: str, cntkpy) -> None:
    """A word outside its set is found without data (A9)."""
    got = cntkpy("check", "m.cntk", f"train/reader=[{reader}]", files=FILES)
    assert any(told in line and "error" in line for line in got.out.splitlines()), got.out


def test_options_that_are_not_known(cntkpy) -> None:
    """C13: CNTK takes them for parameters that are true."""
    got = cntkpy("run", "--strickt", "configFile=m.cntk", files=FILES)
    assert got.code == 2
    assert "No such option" in got.err and "--strickt" in got.err
    got = cntkpy("configFile=m.cntk", "command=train", "--foo")
    assert "nothing reads '--foo'" in got.err
    assert "options follow `cntkpy run`" in got.err


def test_parameters_of_an_installed_writer(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3: what a package declares is known, without running its code for the configuration."""

    class Settings(Declared):
        digits = Parameter("digits", INTEGER, default="4")

    def create(section: object, precision: str) -> None:
        raise AssertionError

    create.declared = Settings  # type: ignore[attr-defined]
    points = {"cntkpy.writers": {"Mine": lambda: create}}
    monkeypatch.setattr(registry, "_entry_points", lambda group: points.get(group, {}))
    out = "out=[action=write;outputNodeNames=z;writer=[writerType=Mine;digit=3;digits=x]]"
    got = cntkpy("check", "m.cntk", "command=train:out", out, files=FILES)
    assert "writer: 'digit' is not a known parameter - did you mean 'digits'?" in got.out
    assert "'x' is not" in got.out


def test_check_finds_a_rate_for_nodes_that_are_not_there(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "train/SGD/dropoutRate=0.5", files=FILES)
    assert "<argument 3>:1:23: warning: m.cntk:train:SGD:dropoutRate: it has no effect, the network has no Drop" in (
        got.out.replace("<argument 2>", "<argument 3>")
    )
    assert " - addDropoutNodes = true makes some, or remove it [CK016]" in got.out
    for words in (
        ("train/SGD/dropoutRate=0",),
        ("train/SGD/dropoutRate=0.5", f"{BUILDER}=[layerSizes=2:3:2;addDropoutNodes=true]"),
    ):
        assert "has no effect" not in cntkpy("check", "m.cntk", *words).out
    ndl = "ndl = [ x = InputValue(2) ; z = DROP(x) ; c = SquareError(x, z, tag=criterion) ; FeatureNodes = (x) ]"
    config = CONFIG.replace(BUILDER_TEXT, "NDLNetworkBuilder = [ run = ndl ]") + ndl
    for function, told in (("Tanh", 1), ("Dropout", 0)):
        (
            got := cntkpy(
                "check", "n.cntk", "train/SGD/dropoutRate=0.5", files={"n.cntk": config.replace("DROP", function)}
            )
        )
        assert got.out.count("add a Dropout node, or remove it [CK016]") == told


def test_a_misspelt_action_of_a_command_that_is_not_listed(cntkpy) -> None:
    files = {"m.cntk": CONFIG + "later = [ action = tets ]\nmine = [ action = quux ]\n", "data.ctf": FILES["data.ctf"]}
    got = cntkpy("check", "m.cntk", files=files)
    assert "m.cntk:9:20: warning: unknown action: tets  in command set: later - did you mean 'test'? [CK012]" in got.out
    assert "quux" not in got.out
    assert got.code == 1


def test_a_reader_that_keeps_a_cache_has_its_file_in_the_sections(cntkpy) -> None:
    """As in CNTK's manual: sections of the reader are those of the writer, too, and the file is in them."""
    section = """\
command = labels:train
precision = float
modelPath = m
labels = [ action = createLabelMap ; section = train ]
train = [ action = train ; minibatchSize = 2
    SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = UCIFastReader ; writerType = BinaryReader ; wfile = d.bin ; wrecords = 4
        features = [ dim = 2 ; start = 1 ; file = d.txt ; sectionType = data ]
        labels = [ dim = 1 ; start = 0 ; file = d.txt ; labelMappingFile = l.txt ; labelDim = 2 ; sectionType = labels
            elementSize = 4 ; mapping = [ wrecords = 2 ; elementSize = 10 ; sectionType = labelMapping ]
            category = [ dim = 2 ; sectionType = categoryLabels ] ] ] ]
"""
    files = {"c.cntk": section, "d.txt": "a 1 2\nb 3 4\na 5 6\nb 7 8\n"}
    found = cntkpy("check", "c.cntk", files=files)
    assert found.out.strip() == "no problems in 1 configuration"
    ran = cntkpy("configFile=c.cntk", files=files)
    assert ran.code == 0, ran.err
    assert "WARNING" not in ran.err

    without = {**files, "c.cntk": section.replace("file = d.txt ; ", "")}
    missing = cntkpy("check", "c.cntk", files=without).out
    assert missing.splitlines()[-1] == "1 error in 1 configuration"
    assert "train:reader:file is missing - add file=..." in missing


def test_sections_that_only_hold_streams_are_read(cntkpy) -> None:
    """`input` and `output` of HTKMLFReader, another form of CNTK's manual."""
    text = """\
command = train
modelPath = m
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 3:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 1 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = HTKMLFReader
        input = [ features = [ dim = 3 ; file = a.scp ] ]
        output = [ labels = [ dim = 2 ; type = Category ; file = a.mlf ] ] ] ]
"""
    out = cntkpy("check", "c.cntk", files={"c.cntk": text}).out
    assert "CK011" not in out
    assert "no such file" in out
    out = cntkpy("check", "c.cntk", files={"c.cntk": text.replace("output =", "outputs =")}).out
    assert "reader: nothing reads 'outputs'" in out


@pytest.mark.skipif(HAS_DRIVES, reason="Windows finds it")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (r"Data\d.ctf", "did you mean 'Data/d.ctf'? On this system folders are separated by /"),
        ("data/D.ctf", "did you mean 'Data/d.ctf'? On this system small and capital letters differ"),
    ],
)
def test_a_file_as_windows_would_find_it(name: str, hint: str, cntkpy, tmp_path: Path) -> None:
    reader = f'reader = [ file = "{name}" ; input = [] ]'
    config = f"command = a\na = [ action = test ; modelPath = m ; {reader} ]\n"
    got = cntkpy("check", "m.cntk", files={"m.cntk": config, "Data/d.ctf": "|x 1\n"})
    if "/" in name and (tmp_path / name).exists():
        pytest.skip("macOS finds it, too")
    assert hint in got.out


def test_chunks_have_bytes(cntkpy) -> None:
    got = cntkpy("check", "m.cntk", "reader/chunkSizeInBytes=0", files=FILES)
    assert "reader:chunkSizeInBytes: chunkSizeInBytes is at least 1 [CK024]" in got.out


@pytest.mark.skipif(HAS_DRIVES, reason="backslashes separate folders there")
def test_a_script_saves_to_a_path_of_windows(cntkpy) -> None:
    """S4: files that scripts write, too."""
    files = {"e.cntk": "command=e\ne=[action=edit;editPath=s.mel]\n", "s.mel": "m=CreateModel()\nSaveModel(m, d\\m)\n"}
    got = cntkpy("check", "e.cntk", files=files)
    assert "s.mel:2:14: warning: SaveModel: 'd\\m' is a path of Windows" in got.out


def test_one_element_of_a_list_in_a_file(cntkpy) -> None:
    """W14: the value is the list `[1]` there, so this stays a warning, with what to write."""
    text = CONFIG.replace("learningRatesPerMB = 0.1", "learningRatesPerMB = 0.1\nlearningRatesPerMB[1] = 0.02\n")
    got = cntkpy("check", "m.cntk", files=FILES | {"m.cntk": text})
    assert (
        "one element of a list cannot be set: write the whole list, learningRatesPerMB=FIRST:SECOND [CK032]" in got.out
    )


@pytest.mark.parametrize("name", ["L1RegWeight", "L2RegWeight", "gaussianNoiseInjectStd"])
def test_a_negative_weight_is_told_by_check_and_run(name: str, cntkpy) -> None:
    word = f"train/SGD/{name}=-0.5"
    told = f"train:SGD:{name}: -0.5 has no effect: it is negative - write a number above 0, or leave it out [CK016]"
    assert told in cntkpy("check", "m.cntk", word, files=FILES).out
    assert cntkpy("configFile=m.cntk", word).err.count(told) == 1
