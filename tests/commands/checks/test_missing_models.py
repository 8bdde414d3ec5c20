"""Models that no command before makes: a hint, a warning where the name is nearly that of one that is made."""

from os.path import normpath

import pytest

CONFIG = """\
command = train:use
train = [
    action = train
    modelPath = out/m.dnn
    BrainScriptNetworkBuilder = [
        x = Input {2}
        l = Input {2}
        z = LinearLayer {2} (x)
        ce = CrossEntropyWithSoftmax (l, z, tag='criterion')
    ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
]
reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
    input = [ x = [ dim = 2 ; format = dense ] ; l = [ dim = 2 ; format = dense ] ] ]
"""
DATA = {"data.ctf": "|x 1 0 |l 1 0\n"}
DUMP = "use = [ action = dumpNode ; outputFile = d.txt ; modelPath = "


@pytest.mark.parametrize("use", ["use = [ action = test ; modelPath = ", DUMP])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("out/m.dnnn", "warning: there is no model out/m.dnnn - did you mean 'out/m.dnn'? [CK060]"),
        ("out/mm.dnn", "warning: there is no model out/mm.dnn - did you mean 'out/m.dnn'? [CK060]"),
        ("other/model", "hint: there is no model other/model - check modelPath, or train the model first [CK060]"),
        ("out/m2.dnn", "hint: there is no model out/m2.dnn - check modelPath, or train the model first [CK060]"),
        ("out/m.dnn", ""),
        ("./out/m.dnn.1", ""),  # of an epoch
        ("out/m.dnn.2", "warning: there is no model out/m.dnn.2 - the last epoch is saved as 'out/m.dnn' [CK060]"),
        ("there.dnn", ""),
    ],
)
def test_a_model(use: str, path: str, told: str, cntkpy) -> None:
    files = {"m.cntk": f"{CONFIG}{use}{path} ]\n", "there.dnn": "", **DATA}
    lines = [line for line in cntkpy("check", "m.cntk", files=files).out.splitlines() if "there is no model" in line]
    assert [line.partition(" ")[2] for line in lines] == ([told] if told else [])


@pytest.mark.parametrize("words", [(), ("--data",)])
def test_a_command_that_is_not_there_may_write_the_model(words: tuple[str, ...], cntkpy) -> None:
    """Its name is the mistake."""
    text = CONFIG.replace("train:use", "trian:use") + "use = [ action = test ; modelPath = out/m.dnn ]\n"
    got = cntkpy("check", *words, "m.cntk", files=DATA | {"m.cntk": text})
    assert "did you mean 'train'?" in got.out and "no model" not in got.out


@pytest.mark.parametrize(
    ("builder", "told"),
    [
        ('(BS.Network.Load ("out/m.dnn.1"))', ""),
        ('(BS.Network.Load ("out/m.dnn.3"))', "error: there is no model out/m.dnn.3"),
        ('[ n = BS.Network.Load ("out/m.dnn.1") ; p = Pass (n.zz) ]', "error: unknown identifier 'zz'"),
    ],
)
def test_networks_of_epochs(builder: str, told: str, cntkpy) -> None:
    use = f"use = [ action = write ; outputNodeNames = z ; outputPath = o ; BrainScriptNetworkBuilder = {builder} ]\n"
    got = cntkpy("configFile=m.cntk", files={"m.cntk": CONFIG + use, **DATA})
    if not told:
        assert got.code == 0, got.message
    else:
        assert got.message.startswith(told.removeprefix("error: "))
        assert "Finished Epoch" not in got.err
    checked = cntkpy("check", "m.cntk").out
    assert ("there is no model" in checked or "error" in checked) == bool(told)


def test_a_run_does_not_begin(cntkpy) -> None:
    got = cntkpy("configFile=m.cntk", files={"m.cntk": f"{CONFIG}{DUMP}out/mm.dnn ]\n", **DATA})
    assert got.code != 0
    assert "there is no model out/mm.dnn" in got.err
    assert "did you mean 'out/m.dnn'?" in got.err
    assert "Finished Epoch" not in got.err


def test_lists_of_words(cntkpy) -> None:
    text = """\
command = train
train = [ action = train ; modelPath = m
    SimpleNetworkBuilder = [ rnnType = LSTM ; layerSizes = 3:2:2:3 ; lookupTableOrder = 1 ; recurrentLayer = 1
        trainingCriterion = crossEntropyWithSoftmax ; evalCriterion = crossEntropyWithSoftmax ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
    reader = [ readerType = LUSequenceReader ; file = words.iob ; wordmap = no.map
        features = [ dim = 0 ] ; labelIn = [ token = in.txt ] ; labels = [ token = no.txt ] ] ]
"""
    got = cntkpy("check", "m.cntk", files={"m.cntk": text, "words.iob": "a b\n", "in.txt": "a\n"})
    assert "m.cntk:6:77: hint: m.cntk:train:reader:wordmap: 'no.map': no such file" in got.out
    assert "hint: m.cntk:train:reader:labels:token: 'no.txt': no such file" in got.out
    assert got.out.count("[CK060]") == 2


@pytest.mark.parametrize("path", ["{here}/out/m.dnn", "out/../out/m.dnn", "linked/m.dnn"])
def test_a_model_has_many_paths(path: str, cntkpy, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "linked").symlink_to("out")
    config = CONFIG.replace("out/m.dnn", path.format(here=tmp_path))
    use = "use = [ action = write ; outputNodeNames = zz ; outputPath = o ; modelPath = out/m.dnn ]\n"
    last = DUMP.replace("use", "last") + "out/m.dnn.2 ]\n"
    config = config.replace("train:use", "train:use:last") + use + last
    report = cntkpy("check", "m.cntk", files={"m.cntk": config, **DATA}).out
    assert "the network has no node 'zz' - did you mean 'z'? [CK051]" in report
    assert (
        f"there is no model out/m.dnn.2 - the last epoch is saved as '{normpath(path.format(here=tmp_path))}'" in report
    )
