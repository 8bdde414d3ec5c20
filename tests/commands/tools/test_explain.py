"""`explain`, `diff`, `help`, `list`, and the further options of `show`."""

import pytest

FILES = {
    "globals.cntk": "DataDir = data\nminibatchSize = 64\nmodelPath = m\n",
    "main.cntk": """\
command = train
train = [
    action = train
    SGD = [ maxEpochs = 3 ; learningRatesPerMB = 0.1*2:0.05 ; momentumPerMB = 0.9 ; dropoutRate = 0.0 ]
    reader = [ file = "$DataDir$/t.ctf" ; input = [ features = [ dim = 2 ; format = dense ]
        labels = [ dim = 3 ; format = dense ] ] ]
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
]
""",
}
WORDS = ("configFile=globals.cntk+main.cntk",)


def test_explain_a_value_that_was_overridden(cntkpy) -> None:
    got = cntkpy("explain", *WORDS, "train=[SGD=[maxEpochs=5]]", "train/SGD/maxEpochs", files=FILES)
    assert got.code == 0
    assert (
        got.out
        == """\
train:SGD:maxEpochs = 5
  type     size
  default  required
  meaning  Number of epochs, those of an interrupted run included.
  for      SGD of the command train
  read by  train:SGD
  from     '5' at <argument 2>:1:23
  overrode '3' at main.cntk:4:25
"""
    )


def test_explain_tells_variables_and_inherited_values(cntkpy) -> None:
    got = cntkpy("explain", *WORDS, "train.reader.file", files=FILES)
    assert "variable $DataDir$ = 'data' at globals.cntk:1:11" in got.out
    got = cntkpy("explain", *WORDS, "train/SGD/minibatchSize")
    assert "train:SGD:minibatchSize = 64" in got.out
    assert "read by  train:SGD" in got.out
    assert "globals.cntk:2:17" in got.out
    assert "used in  train" in cntkpy("explain", *WORDS, "DataDir").out
    assert "is not given" in cntkpy("explain", *WORDS, "train/SGD/useNAG").out


def test_explain_of_what_is_not_there(cntkpy) -> None:
    got = cntkpy("explain", *WORDS, "train/SGD/maxEpoch", files=FILES)
    assert got.code == 2
    assert "maxEpochs" in got.err
    assert cntkpy("explain", *WORDS).code == 2


def test_show_changed_and_defaults(cntkpy) -> None:
    got = cntkpy("show", "--changed", *WORDS, "train/SGD", files=FILES)
    assert "maxEpochs=3" in got.out
    assert "dropoutRate" not in got.out  # 0.0 is the default
    got = cntkpy("show", "--defaults", *WORDS, "train/SGD")
    assert "train:SGD:useNAG=false\n" in got.out
    assert "train:SGD:maxEpochs=3\n" in got.out
    assert "train:SGD:minibatchSize" not in got.out  # it is given further out
    assert '"useNAG": "false"' in cntkpy("show", "--defaults", "--format", "json", *WORDS).out


def test_a_configuration_with_its_defaults_is_good(cntkpy) -> None:
    shown = cntkpy("show", "--defaults", "--format", "cntk", *WORDS, files={**FILES, "data/t.ctf": ""}).out
    got = cntkpy("check", "full.cntk", "--ignore", "CK011,CK016", files={"full.cntk": shown})
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")


def test_diff_looks_into_sections_of_any_bracket(cntkpy) -> None:
    text = "t = { action=train ; SGD = ( maxEpochs=3 ; x={1:2} ) ; NDLNetworkBuilder = {run=n} ; n = { a=Input(1) } }"
    files = {
        "a.cntk": text,
        "b.cntk": text.replace("x={1:2}", "x = {1:3}").replace("{ a=", "{  a="),
        "c.cntk": "p = { a = ; }",
    }
    got = cntkpy("diff", "a.cntk", "b.cntk", files=files)
    assert got.out == "- t:SGD:x={1:2}\n+ t:SGD:x={1:3}\n"
    assert cntkpy("diff", "c.cntk", "c.cntk").code == 0


def test_a_network_in_square_brackets_is_a_text(cntkpy) -> None:
    """The bodies of its functions are no entries of a set, and its calls no texts in quotes."""
    network = "n = [\n f(x) = Times(W, x)\n a = Input(3)\n ] ; m = [ a = Input(3) ]"
    text = f"t = [ action=train ; NDLNetworkBuilder = [run=n]\n {network} ]"
    files = {"a.cntk": text, "b.cntk": text.replace("Times", "Plus")}
    got = cntkpy("diff", "a.cntk", "b.cntk", files=files)
    assert got.out.splitlines()[0] == "- t:n=[ f(x) = Times(W, x) a = Input(3) ]"
    shown = cntkpy("show", "--format", "cntk", "a.cntk").out
    assert "f(x) = Times(W, x)" in shown
    assert "m = [\n    a = Input(3)\n" in shown
    assert cntkpy("diff", "a.cntk", "c.cntk", files={"c.cntk": shown}).code == 0


def test_diff_compares_by_meaning(cntkpy) -> None:
    main = FILES["main.cntk"]
    same = main.replace("0.1*2:0.05", "1e-1:0.10:0.05:0.05").replace("0.9", ".9").replace("dim = 2", "dim=02")
    other = main.replace("maxEpochs = 3 ;", "maxEpochs = 4 ; useNAG = T ;")
    files = {**FILES, "same.cntk": same, "other.cntk": other}
    got = cntkpy("diff", "globals.cntk+main.cntk", "globals.cntk+same.cntk", files=files)
    assert (got.code, got.out) == (0, "")
    got = cntkpy("diff", "globals.cntk+main.cntk", "globals.cntk+other.cntk")
    assert got.code == 1
    assert got.out == "- train:SGD:maxEpochs=3\n+ train:SGD:maxEpochs=4\n+ train:SGD:useNAG=T\n"
    got = cntkpy("diff", "globals.cntk+main.cntk", "globals.cntk+other.cntk", "--origins")
    assert "# other.cntk:4:25" in got.out
    assert cntkpy("diff", "main.cntk", "gone.cntk").code == 2
    assert cntkpy("diff", "main.cntk").code == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train", "action=train"),
        ("trainRNN", "action=train"),
        ("SGD", "learningRatesPerMB"),
        ("minibatchsize", "Samples per minibatch"),
        ("UCIFastReader", "customDelimiter"),
        ("Times", "Times(A, x, outputRank=1"),
        ("LoadModel", "command of MEL"),
        ("ck010", "not known"),
    ],
)
def test_help(name: str, text: str, cntkpy) -> None:
    got = cntkpy("help", name)
    assert got.code == 0
    assert text in got.out


def test_help_without_a_name_and_with_a_wrong_one(cntkpy) -> None:
    assert "SGD" in cntkpy("help").out
    got = cntkpy("help", "minibatchSiz")
    assert got.code == 2
    assert "did you mean 'minibatchSize'?" in got.err


def test_list(cntkpy) -> None:
    out = cntkpy("list").out
    for word in ("actions:", "train ", "CNTKTextFormatReader", "CNTKTextFormatDeserializer", "Times", "CK010"):
        assert word in out
    assert "Times" not in cntkpy("list", "readers").out


def test_diff_of_variables_that_are_not_given(cntkpy) -> None:
    """They are compared as they are written; without --open they are errors, as in check and show (G12)."""
    files = {name: f"command = a\nmodelPath = $RunDir$/{name[0]}\n" for name in ("a.cntk", "b.cntk")}
    got = cntkpy("diff", "a.cntk", "b.cntk", files=files)
    assert (got.code, got.err.count("the variable $RunDir$ is not defined")) == (2, 2)
    got = cntkpy("diff", "--open", "a.cntk", "b.cntk")
    assert (got.code, got.out, got.err) == (1, "- modelPath=$RunDir$/a\n+ modelPath=$RunDir$/b\n", "")
    assert cntkpy("diff", "--open", "a.cntk", "a.cntk").code == 0
