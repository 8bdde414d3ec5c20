"""NDL that a run does not expand: files by themselves, macros that nothing calls, calls in scripts that edit models."""

import pytest

CONFIG = """\
command = train
train = [
    action = train
    modelPath = m
    NDLNetworkBuilder = [ BUILDER ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = data.ctf
        input = [ x = [ dim = 2 ; format = dense ] ; l = [ dim = 2 ; format = dense ] ] ]
]
"""
MACROS = """\
# macros
Layer(signal, dim) {
    W = Parameter(dim, dim, init=uniform)
    t = Times(W, signal)
    y = Tanh(t)
}
Two(signal) { z = Layer(signal, 3) }
"""
NET = "x = Input(2)\nl = Input(2)\nz = Tanh(x)\nc = SquareError(l, z, tag=criterion)\nFeatureNodes = (x)\n"
FILES = {"data.ctf": "|x 1 0 |l 1 0\n", "good.ndl": MACROS}

MISTAKES = [
    ("init=", "innit=", "3:29: warning: Parameter has no option 'innit' - did you mean 'init'? [CK057]"),
    (
        "Times(W, signal)",
        "Times(W, singal)",
        "4:18: warning: 'singal' is not defined here - did you mean 'signal'? [CK051]",
    ),
    (
        "Layer(signal, 3)",
        "Layer(signal)",
        "7:19: warning: the macro 'Layer' takes 2 arguments, 1 given - it is Layer(signal, ",
    ),
]


@pytest.mark.parametrize(("old", "new", "told"), MISTAKES)
def test_macros(old: str, new: str, told: str, cntkpy) -> None:
    """By themselves, and named by a configuration that calls none of them."""
    files = {**FILES, "f.ndl": MACROS.replace(old, new), "net.ndl": NET}
    got = cntkpy("check", "f.ndl", files=files)
    assert got.out.startswith(f"f.ndl:{told}")
    assert got.code == 1
    files["m.cntk"] = CONFIG.replace("BUILDER", "networkDescription = net.ndl ; ndlMacros = f.ndl")
    assert f"f.ndl:{told}" in cntkpy("check", "m.cntk", files=files).out


def test_a_function_that_is_misspelt(cntkpy) -> None:
    got = cntkpy("check", "f.ndl", files={"f.ndl": MACROS.replace("Tanh", "Tahn")})
    assert got.out.startswith("f.ndl:5:9: warning: undefined function or macro 'Tahn' - did you mean 'Tanh'? [CK051]")


@pytest.mark.parametrize(
    "text",
    [
        MACROS,
        NET,
        "load = m\nrun = n\nm = [\n" + MACROS + "]\nn = [\n" + NET + "]\n",
        "h = MyOwnLayer(features, hidden, $dim$)\n",  # from other files
        "h1 = Tanh(h0)\n",
        "P = Pooling(x, average, {2,2}, tag=output)\n",
    ],
)
def test_files_without_a_mistake(text: str, cntkpy) -> None:
    got = cntkpy("check", "f.ndl", files={"f.ndl": text})
    assert got.out == "no problems in 1 configuration\n"


@pytest.mark.parametrize(("name", "meant"), [("lod", "load"), ("rnu", "run")])
def test_a_misspelt_choice_of_sections(name: str, meant: str, cntkpy) -> None:
    text = f"load = m\nrun = n\nm = [\n{MACROS}]\nn = [\n{NET.replace('Tanh(x)', 'Layer(x, 2)')}]\n"
    text = text.replace(f"{meant} =", f"{name} =")
    files = {**FILES, "f.ndl": text, "m.cntk": CONFIG.replace("BUILDER", "networkDescription = f.ndl")}
    got = cntkpy("check", "m.cntk", files=files)
    assert got.code == 2
    assert f"'{name}' chooses no section - did you mean '{meant}'? [CK010]" in got.out


def test_options_in_a_script_that_edits(cntkpy) -> None:
    config = "command = e\ne = [ action = edit ; editPath = e.mel ]\n"
    script = (
        'm = LoadModel("m.dnn", format=cntk)\nQ = Parameter(3, 4, init=fixedValue, valuze=0.1)\nSaveModel(m, "n.dnn")\n'
    )
    got = cntkpy("check", "m.cntk", files={"m.cntk": config, "e.mel": script})
    assert "e.mel:2:38: warning: Parameter has no option 'valuze' - did you mean 'value'? [CK057]" in got.out


def test_options_in_a_model_of_a_script_that_edits(cntkpy) -> None:
    config = "command = e\ne = [ action = edit ; editPath = e.mel ]\n"
    script = (
        "m = [\nx = Input(2, tag=feature)\nQ = Parameter(3, 2, valuze=0.1)\nz = Times(Q, x)\n]\nSaveModel(m, n.dnn)\n"
    )
    got = cntkpy("check", "m.cntk", files={"m.cntk": config, "e.mel": script})
    assert "e.mel:3:21: warning: Parameter has no option 'valuze' - did you mean 'value'? [CK057]" in got.out


BEFORE = """\
command = first:second
SGD = [ maxEpochs = 1 ; learningRatesPerSample = 0.1 ]
reader = [ file = d.ctf ; input = [ x = [ dim = 2 ; format = dense ] ; l = [ dim = 2 ; format = dense ; alias = y ] ] ]
first = [ FIRST ]
second = [ action = train ; modelPath = n ; NDLNetworkBuilder = [ networkDescription = net.nld ] ]
"""
SIMPLE = "layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError"


@pytest.mark.parametrize(
    "first",
    [
        f"action = train ; modelPath = m ; SimpleNetworkBuilder = [ {SIMPLE} ]",
        "action = edit ; editPath = e.mel",
    ],
)
def test_a_missing_description_after_another_command(first: str, cntkpy) -> None:
    """No command writes one; the message has a `y` in it, the name of a stream of the command before."""
    files = {"m.cntk": BEFORE.replace("FIRST", first), "e.mel": "m = LoadModel(a)\nSaveModel(m, b)\n", "net.ndl": "x"}
    checked = cntkpy("check", "m.cntk", files=files)
    assert "m.cntk:5:88: error: cannot read 'net.nld'" in checked.out
    assert "did you mean 'net.ndl'? [CK001]" in checked.out
