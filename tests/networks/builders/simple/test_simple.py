"""SimpleNetworkBuilder: names, shapes, groups, seeds, messages."""

import numpy as np
import pytest

from cntkpy import cntk_config
from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.networks.builders.build import build_network, has_builder
from cntkpy.networks.graph.initialize import Initializer, SeedCounter

CRITERIA = "trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction"


def build(text, precision="float", criteria=CRITERIA, outer=""):
    config = cntk_config.parse(f"{outer}\nSimpleNetworkBuilder = [ {text} ; {criteria} ]")
    return build_network(config, precision, SeedCounter())


def names(network, group):
    return [node.name for node in network.groups[group]]


def test_names_of_simplenet():
    network = build("layerSizes = 10:6:4:3")
    assert list(network.nodes) == [
        "features", "W0", "B0", "W0*features", "W0*features+B0", "H1", "W1", "B1", "W1*H1", "W1*H1+B1", "H2",
        "W2", "B2", "W2*H1", "HLast", "labels", "CrossEntropyWithSoftmax", "EvalClassificationError", "PosteriorProb",
    ]  # fmt: skip
    assert [network[n].shape for n in ("W0", "B0", "H1", "W2", "HLast")] == [(6, 10), (6, 1), (6, 1), (3, 4), (3, 1)]
    groups = {"feature": ["features"], "label": ["labels"], "output": ["HLast"]}
    groups |= {"criterion": ["CrossEntropyWithSoftmax"], "evaluation": ["EvalClassificationError"]}
    assert {group: names(network, group) for group in groups} == groups
    assert network["W2*H1"].inputs[1].name == "H2"


def test_normalisation_prior_dropout_and_linear_layers():
    options = "applyMeanVarNorm = true ; needPrior = true ; addDropoutNodes = true ; layerTypes = None:Tanh"
    network = build(f"layerSizes = 4:5*2:3 ; {options}")
    assert network["H1"].operation == "Plus" and "W0*features+B0" not in network
    assert network["H2"].operation == "Tanh" and network["W2*H1"].inputs[1].name == "DropH2"
    assert network["W0*features"].inputs[1].name == "MVNormalizedFeatures"
    assert names(network, "output") == ["ScaledLogLikelihood"]
    assert [node.name for node in network.precompute_nodes()] == ["MeanOfFeatures", "InvStdOfFeatures", "Prior"]


@pytest.mark.parametrize("word", ["None", "none", '""', "()"])
def test_words_for_a_linear_layer(word):
    assert build(f"layerSizes = 4:5:3 ; layerTypes = {word}")["H1"].operation == "Plus"


def test_one_layer_and_one_criterion_for_both():
    network = build("layerSizes = 4:3", criteria="trainingCriterion = squareError ; evalCriterion = SQUAREERROR")
    assert "W0*H-1" in network and names(network, "criterion") == names(network, "evaluation") == ["SquareError"]


def test_seeds_count_random_parameters_only():
    network = build("layerSizes = 3:4:2 ; uniformInit = false ; initValueScale = 2", "double")
    for name, seed in (("W0", 1), ("W1", 2)):
        expected = Initializer("gaussian", 2.0, seed=seed).create(network[name].shape, np.dtype(float))
        assert np.array_equal(network[name].value, expected)
    assert not network["B0"].value.any()


def test_constant_seed():
    config = cntk_config.parse(f"SimpleNetworkBuilder = [ layerSizes = 3:3:3 ; {CRITERIA} ]")
    network = build_network(config, "float", SeedCounter(constant=True))
    assert np.array_equal(network["W0"].value, network["W1"].value)


def test_outputs_can_be_chosen():
    network = build("layerSizes = 4:3", outer="outputNodeNames = PosteriorProb")
    assert names(network, "output") == ["PosteriorProb"]
    with pytest.raises(ConfigError, match="the network has no node 'nope'"):
        build("layerSizes = 4:3", outer="outputNodeNames = PosteriorProb:nope")


def test_lstm_parts():
    network = build("rnnType = LSTM ; layerSizes = 4:5:6:3 ; recurrentLayer = 1:2 ; forgetGateInitVal = 0.5", "double")
    assert network["bf0"].value.reshape(-1).tolist() == [0.5] * 5
    assert [network[n].shape for n in ("WXO0", "WHC0", "WCF0", "WXI1", "W2")] == [
        (5, 4),
        (5, 5),
        (5, 1),
        (6, 5),
        (3, 6),
    ]
    assert [network[n].init.seed for n in ("WXO0", "WXI0", "WXF0", "WXC0", "WHI0", "WCI0", "WHC0")] == [
        1,
        2,
        3,
        4,
        5,
        6,
        11,
    ]
    assert sum(node.operation == "PastValue" for node in network.nodes.values()) == 14
    assert names(network, "output") == ["outputs"]


CLASSES = "trainingCriterion = classCrossEntropyWithSoftmax ; evalCriterion = classCrossEntropyWithSoftmax"


@pytest.mark.parametrize(
    ("text", "criteria", "criterion", "output"),
    [
        ("rnnType = SIMPLERNN ; layerSizes = 8:5:4:3 ; recurrentLayer = 2", CRITERIA, "criterion", ["outputs"]),
        (
            "rnnType = CLASSLM ; layerSizes = 7:5:7 ; recurrentLayer = 1 ; vocabSize = 7 ; nbrClass = 3",
            CLASSES,
            "TrainNodeClassBasedCrossEntropy",
            ["TrainNodeClassBasedCrossEntropy"],
        ),
        (
            "rnnType = CLASSLSTM ; layerSizes = 7:4:5:7 ; lookupTableOrder = 1 ; vocabSize = 7 ; nbrClass = 3",
            CLASSES,
            "TrainNodeClassBasedCrossEntropy",
            ["TrainNodeClassBasedCrossEntropy", "outputs"],
        ),
        ("rnnType = LBLM ; layerSizes = 7:5:7 ; maOrder = 2", CRITERIA, "CrossEntropyWithSoftmax", ["outputs"]),
    ],
)
def test_other_kinds(text, criteria, criterion, output):
    network = build(text, criteria=criteria)
    assert names(network, "criterion") == [criterion] and names(network, "output") == output


@pytest.mark.parametrize(
    ("text", "criteria", "message"),
    [
        ("layerSizes = 4", CRITERIA, "at least two entries"),
        ("layerSizes = 4:0:3", CRITERIA, "at least 1, not 0"),
        ("layerSizes = 4:5:6:3 ; rnnType = LSTM ; lookupTableOrder = 3", CRITERIA, "not a multiple of lookup"),
        ("layerSizes = 4:5:3 ; rnnType = CLASSLM ; vocabSize = 3 ; nbrClass = 2", CRITERIA, r"last hidden layer \[5\]"),
        ("layerSizes = 4:3 ; layerTypes = sigmoid", CRITERIA, "unknown nonlinearity 'sigmoid'"),
        (
            "layerSizes = 4:3",
            "trainingCriterion = Foo ; evalCriterion = squareError",
            "unknown trainingCriterion 'Foo'",
        ),
        ("layerSizes = 4:3", "trainingCriterion = squareError", "evalCriterion"),
        ("layerSizes = 4:3 ; rnnType = simplenet", CRITERIA, "unknown rnnType"),
        ("layerSizes = 4:3 ; rnnType = NCELSTM", CRITERIA, "NCELSTM is not supported"),
        ("layerSizes = 4:3", CLASSES, "does not fit this kind"),
        ("rnnType = CLASSLSTM ; layerSizes = 7:4:5:7", CLASSES, "needs an embedding"),
        ("rnnType = CLASSLM ; layerSizes = 7:4:7 ; vocabSize = 8 ; nbrClass = 2", CLASSES, "vocabSize"),
        ("rnnType = LSTM ; layerSizes = 4:3", CRITERIA, "needs a hidden layer"),
    ],
)
def test_messages(text, criteria, message):
    with pytest.raises(UserError, match=message) as caught:
        build(text, criteria=criteria)
    assert caught.value.span is not None


def test_choice_of_builder():
    assert not has_builder(cntk_config.parse("a = 1"))
    assert has_builder(cntk_config.parse("NDLNetworkBuilder = [ a = 1 ]"))
    with pytest.raises(UserError, match="no network builder"):
        build_network(cntk_config.parse("a = 1"), "float", SeedCounter())
    with pytest.raises(UserError, match="programs in BrainScript are not supported"):
        build_network(cntk_config.parse("createNetwork = ( a )"), "float", SeedCounter())
