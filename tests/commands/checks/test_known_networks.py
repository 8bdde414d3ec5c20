"""A network in BrainScript that several configurations describe is evaluated once, and the findings are the same."""

from pathlib import Path

import pytest

from cntkpy.commands.checks.check import findings
from cntkpy.networks.builders.brainscript import check as brainscript
from cntkpy.networks.builders.brainscript.known import Description, KnownNetworks
from cntkpy.networks.graph.network import Network
from cntkpy.networks.nodes import operation

MODEL = """
train = {
    action = train ; modelPath = "out/m.dnn"
    BrainScriptNetworkBuilder = {
        features = Input {$inputs$} ; labels = Input {2}
        z = LinearLayer {2} (features)
        ce = CrossEntropyWithSoftmax (labels, z)
        spare = features + 1
        featureNodes = (features) ; labelNodes = (labels) ; criterionNodes = (ce) ; outputNodes = (z)
    }
    SGD = { maxEpochs = 1 ; epochSize = 0 ; minibatchSize = 1 ; learningRatesPerMB = 0.1 }
    reader = {
        readerType = CNTKTextFormatReader ; file = "t.ctf"
        input = { features = { dim = 3 ; format = dense } ; labels = { dim = 2 ; format = dense } }
    }
}
"""


@pytest.fixture
def evaluated(monkeypatch):
    """The precisions of the networks that are evaluated, none of which are known before."""
    calls, check_program = [], brainscript.check_program

    def counted(text, names, precision, load):
        calls.append(precision)
        return check_program(text, names, precision, load)

    monkeypatch.setattr(brainscript, "check_program", counted)
    monkeypatch.setattr(brainscript, "KNOWN", KnownNetworks())
    return calls


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A function that returns the findings of a layer and the model, as text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.ctf").write_text("|features 1 2 3 |labels 1 0\n")

    def check(layer: str, model: str = MODEL, words: tuple[str, ...] = (), last: str = "stderr = log\n") -> list[str]:
        for name, text in (("layer", layer), ("model", model), ("last", last)):
            Path(f"{name}.cntk").write_text(text)
        line = ["configFile=layer.cntk+model.cntk+last.cntk", *words]
        return [f"{finding.diagnostic.span}: {finding.diagnostic.message}" for finding in findings(line)]

    return check


RIGHT = "command = train\nprecision = float\ninputs = 3\n"
UNUSED = "model.cntk:8:9: nothing uses the member 'spare' of the network"


def test_a_network_of_two_configurations_is_evaluated_once(found, evaluated):
    assert found(RIGHT, last="train = [ SGD = [ maxEpochs = 2 ] ]\n") == [UNUSED]
    assert found(RIGHT, last="train = [ SGD = [ maxEpochs = 3 ] ]\n") == [UNUSED]
    assert evaluated == ["float"]


def test_the_same_network_is_compared_with_each_reader(found, evaluated):
    assert found(RIGHT) == [UNUSED]
    wide = found(RIGHT, last="train = [ reader = [ input = [ features = [ dim = 4 ] ] ] ]\n")
    assert wide[0] == "model.cntk:5:20: the input 'features' has 3 elements, but the stream has 4"
    assert evaluated == ["float"]


@pytest.mark.parametrize(
    ("layer", "model"),
    [
        (RIGHT.replace("float", "double"), MODEL),
        (RIGHT.replace("3", "4"), MODEL),
        (RIGHT + "traceLevel = 1\n", MODEL),
        ("\n" + RIGHT, MODEL),
        (RIGHT, "\n" + MODEL),
        (RIGHT, MODEL.replace("spare", "other")),
    ],
    ids=["precision", "variable", "traceLevel", "place of a variable", "place", "text"],
)
def test_what_differs_is_evaluated_anew(layer, model, found, evaluated):
    alone = found(layer, model)
    brainscript.KNOWN = KnownNetworks()
    found(RIGHT)
    assert found(layer, model) == alone
    assert len(evaluated) == 3


def test_a_word_gives_the_place_of_its_own_command_line(found, evaluated):
    layer = RIGHT.replace("inputs = 3\n", "")
    assert found(layer, words=("inputs=3",)) == found(layer, words=("train/SGD/maxEpochs=2", "inputs=3")) == [UNUSED]
    assert len(evaluated) == 2  # the variable is in another word


def test_a_network_with_a_mistake_is_evaluated_anew(found, evaluated):
    wrong = MODEL.replace("LinearLayer {2} (features)", "LinearLayer {2} (feature)")
    first = found(RIGHT, wrong)
    assert any("feature" in line for line in first)
    assert found(RIGHT, wrong) == first
    assert len(evaluated) == 2


def test_a_network_with_a_file_of_start_values_is_evaluated_anew(found, evaluated):
    model = MODEL.replace(
        "LinearLayer {2} (features)",
        'ParameterTensor {(2:3), init = "fromFile", initFromFilePath = "w.txt"} * features',
    )
    Path("w.txt").write_text("1 2 3\n4 5 6\n")
    assert found(RIGHT, model) == [UNUSED]
    Path("w.txt").write_text("1 2 3\n")
    assert any("w.txt" in line for line in found(RIGHT, model))
    assert len(evaluated) == 2


def test_an_included_file_is_read_again(found, evaluated):
    model = MODEL.replace("        z = LinearLayer {2} (features)\n", '        include "z.bs"\n')
    Path("z.bs").write_text("z = LinearLayer {2} (features)\n")
    assert found(RIGHT, model) == [UNUSED]
    Path("z.bs").write_text("z = LinearLayer {2} (nothing)\n")
    assert any(line.startswith("z.bs:1:") for line in found(RIGHT, model))


def test_a_network_of_a_model_file_is_evaluated_anew(found, evaluated):
    model = MODEL.replace(
        "z = LinearLayer {2} (features)", 'old = BS.Network.Load ("m.dnn") ; z = LinearLayer {2} (old.h)'
    )
    for _ in range(2):
        found(RIGHT, model)
    assert len(evaluated) == 2


def _description(nodes: int) -> Description:
    network = Network("float", values=False)
    for number in range(nodes):
        network.add(f"x{number}", operation("InputValue"), shape=(1,))
    return Description(network.validate(), [], None, None)


def test_the_networks_that_were_not_asked_for_longest_go_first():
    known = KnownNetworks(max_nodes=5)
    several = {name: _description(2) for name in "abc"}
    known.keep("a", several["a"])
    known.keep("b", several["b"])
    assert known.get("a") is several["a"]
    known.keep("c", several["c"])
    assert [known.get(name) is not None for name in "abc"] == [True, False, True]


def test_a_network_that_is_too_large_is_not_kept():
    known = KnownNetworks(max_nodes=5)
    known.keep("a", _description(6))
    assert known.get("a") is None
