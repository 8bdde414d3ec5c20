"""`check --fix`: what is certain is corrected, nothing else; `--diff` writes nothing; `--statistics`."""

from pathlib import Path

import pytest

NETWORK = "SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]"
TEXT = f"""\
command = train
modelPath = m
train = [
    action = train
    {NETWORK}
    SGD = [ maxEpochs = 2 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ file = x ; input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("action = train", "action = trian"),
        ("learningRatesPerMB = 0.1", "learningRatePerMB = 0.1"),
        ("format = dense", "formt = dense"),
        ("trainingCriterion = squareError", "trainingCriterion = squareEror"),
        ('modelPath = "m"', "modelPath = \u201cm\u201d"),
        ('modelPath = "m"', "modelPath = 'm'"),
        ("learningRatesPerMB = 0.1:0.2:0.3", "learningRatesPerMB = 0.1,0.2,0.3"),
        ("learningRatesPerMB = 1:2:3", "learningRatesPerMB = 1,2,3"),
        ("modelPath = out/m", "modelPath = out\\m"),
        ("modelPath = $Out$/m\nOut = o", "modelPath = $Uot$/m\nOut = o"),
    ],
)
def test_what_is_certain_is_corrected(right: str, wrong: str, cntkpy, tmp_path: Path) -> None:
    name = right.partition(" = ")[0]
    line = next((line for line in TEXT.splitlines() if f"{name} = " in line), "")
    old = f"{name} = " + line.partition(f"{name} = ")[2].partition(" ;")[0].partition(" ]")[0]
    correct = TEXT.replace(old, right, 1)
    broken = TEXT.replace(old, wrong, 1)
    assert correct != broken
    shown = cntkpy("check", "--fix", "--diff", "a.cntk", files={"a.cntk": broken})
    assert shown.code == 1
    assert (tmp_path / "a.cntk").read_text() == broken
    assert sum(line.startswith("+") for line in shown.out.splitlines()) == 2  # a header and a line
    fixed = cntkpy("check", "--fix", "a.cntk")
    assert (tmp_path / "a.cntk").read_text() == correct
    assert fixed.err == "corrected a.cntk\n"
    assert cntkpy("check", "--fix", "--diff", "a.cntk").code == 0


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("maxEpochs = 2", "maxEpochs = 2 ; maxEpoch = 3"),  # it would override the value
        TEXT.replace("learningRatesPerMB = 0.1", "learningRatesPerMB = 0,1"),  # 0.1, or two epochs
        TEXT.replace("minibatchSize = 2", "minibatchSize = 1,024"),
        TEXT.replace("minibatchSize = 2", "minibatchSize = 1,000,000"),
        TEXT.replace("action = train", "action = t"),
        TEXT.replace("learningRatesPerMB = 0.1", "learningRatesPerMB = x"),
        TEXT.replace("modelPath = m", "modelPath = $Folder$/m"),
    ],
)
def test_what_is_not_certain_stays(broken: str, cntkpy, tmp_path: Path) -> None:
    assert cntkpy("check", "--fix", "--diff", "a.cntk", files={"a.cntk": broken}).code == 0
    result = cntkpy("check", "--fix", "a.cntk")
    assert (tmp_path / "a.cntk").read_text() == broken
    assert result.code in (1, 2)


def test_layers_of_runs_are_corrected_and_files_elsewhere_are_not(cntkpy, tmp_path: Path) -> None:
    project = '[[run]]\nname = "x"\nfiles = ["base.cntk", "model.cntk"]\nignore = []\n'.replace("ignore = []\n", "")
    files = {"in/cntkpy.toml": project, "in/base.cntk": "include=../globals.cntk\ncommand = train\n"}
    files |= {"globals.cntk": "modelPath = 'm'\n", "in/model.cntk": TEXT.replace("formt", "format")}
    files["in/model.cntk"] = TEXT.replace("command = train\nmodelPath = m\n", "").replace("maxEpochs", "maxEpohcs")
    result = cntkpy("check", "--fix", files=files, cwd=tmp_path / "in")
    assert "corrected model.cntk" in result.err
    assert "maxEpochs = 2" in (tmp_path / "in" / "model.cntk").read_text()
    assert (tmp_path / "globals.cntk").read_text() == "modelPath = 'm'\n"


def test_line_ends_and_byte_order_marks_stay(cntkpy, tmp_path: Path) -> None:
    broken = "\ufeff" + TEXT.replace("action = train", "action = trian").replace("\n", "\r\n")
    (tmp_path / "a.cntk").write_bytes(broken.encode())
    cntkpy("check", "--fix", "a.cntk")
    assert (tmp_path / "a.cntk").read_bytes().decode() == broken.replace("trian", "train")


def test_statistics(cntkpy) -> None:
    broken = TEXT.replace("dim = 2", "dim = x").replace("dim = 3", "dim = y")
    result = cntkpy("check", "--statistics", "a.cntk", "b.cntk", files={"a.cntk": broken, "b.cntk": broken})
    assert "    4  CK020  a number is expected (2 files)\n" in result.out
    assert result.out.splitlines()[-1].endswith("in 2 configurations")
    assert result.code == 2
    assert cntkpy("check", "--diff", "a.cntk").code == 2


def test_help_on_a_code_prints_the_page(cntkpy) -> None:
    text = cntkpy("help", "ck010").out
    assert text.startswith("CK010: a parameter is not known, but another is called nearly so (warning)\n")
    assert "bad.cntk:\n    command = " in text
    assert "Right:" in text
    assert "```" not in text


@pytest.mark.parametrize(
    ("name", "others"), [("labelDim", "Kaldicmd"), ("trainMLF", "TrainLSTM"), ("featDir", "trafficED")]
)
def test_names_of_other_letters_are_not_suggested(name: str, others: str, cntkpy) -> None:
    result = cntkpy("check", "a.cntk", files={"a.cntk": f"command = ()\n{others} = a\nx = ${name}$\n"})
    assert f"the variable ${name}$ is not defined" in result.out
    assert "did you mean" not in result.out


def test_misspelt_files_and_deserializers_get_a_suggestion(cntkpy) -> None:
    files = {"globals.cntk": "a = 1\n", "a.cntk": "command = ()\ninclude=globls.cntk\n"}
    assert "did you mean 'globals.cntk'?" in cntkpy("check", "a.cntk", files=files).out
    assert "did you mean 'globals.cntk'?" in cntkpy("show", "globas.cntk").err
    text = TEXT.replace("file = x ; input", "deserializers = ( [ type = ParquetDeserialzer ; file = x ; input")
    text = text.replace("format = dense ] ] ]\n", "format = dense ] ] ] ) ]\n")
    assert "did you mean 'ParquetDeserializer'?" in cntkpy("check", "b.cntk", files={"b.cntk": text}).out


NODES = """\
command = t
t = [ action = train ; modelPath = m
    BrainScriptNetworkBuilder = [
        x = Input {2} ; y = Input {2} ; LAYERS
        ce = SquareError (y, z) ; criterionNodes = (ce)
    ]
    SGD = [ maxEpochs = 2 ; learningRatesPerSample = 0.1 ]
    reader = [ file = d ; input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 2 ; format = dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("layers", "corrected"),
    [
        ("h1 = ReLU (x) ; h2 = Sigmoid (h1) ; z = LinearLayer {2} (h3)", None),
        ("w = ReLU (x) ; z = LinearLayer {2} (ww)", None),
        ("hidden = ReLU (x) ; z = LinearLayer {2} (hiden)", "(hidden)"),
        ("H2 = ReLU (x) ; z = LinearLayer {2} (h2)", "(H2)"),
    ],
)
def test_names_of_nodes(layers: str, corrected: str | None, cntkpy, tmp_path: Path) -> None:
    """A name with another number, or of a letter or two, is another node."""
    text = NODES.replace("LAYERS", layers)
    cntkpy("check", "--fix", "a.cntk", files={"a.cntk": text, "d": "|x 1 0 |y 1 0\n"})
    changed = (tmp_path / "a.cntk").read_text()
    assert changed == text if corrected is None else corrected in changed
