"""What `mode` of SequenceReader delivers, besides the network."""

import pytest

CONFIG = """\
command = train
modelPath = m
train = [
    action = train
    BrainScriptNetworkBuilder = [
        features = SparseInput {3}
        labels = Input {LABELS}
        z = LinearLayer {LABELS} (features)
        ce = SquareError (labels, z, tag='criterion')
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
    reader = [
        readerType = SequenceReader ; file = words.txt ; mode = MODE
        features = [ dim = 0 ]
        labelIn = [ labelType = category ; labelDim = 3 ; labelMappingFile = words.map ]
        labels = [ labelType = TYPE ; labelDim = 3 ; labelMappingFile = words.map ]
    ]
]
"""
FILES = {"words.txt": "a b c\n", "words.map": "a\nb\nc\n"}


@pytest.mark.parametrize(("mode", "size"), [("softmax", 1), ("class", 4), ("nce ; noise_number = 2", 6)])
@pytest.mark.parametrize("kind", ["nextWord", "category"])
def test_the_values_of_a_label(mode: str, size: int, kind: str, cntkpy) -> None:
    config = CONFIG.replace("MODE", mode).replace("TYPE", kind)
    right = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": config.replace("LABELS", str(size))})
    assert "[CK056]" not in right.out
    wrong = cntkpy("check", "m.cntk", files={"m.cntk": config.replace("LABELS", "3")})
    told = f"m.cntk:7:18: error: the input 'labels' has 3 elements, but the stream has {size}"
    assert f"{told} - the dimension is given at m.cntk:13:65 [CK056]" in wrong.out


def test_without_a_section_of_features(cntkpy) -> None:
    """The stream of words is then called `features` (G1)."""
    config = CONFIG.replace("MODE", "softmax").replace("TYPE", "nextWord").replace("LABELS", "1")
    left_out = config.replace("        features = [ dim = 0 ]\n", "")
    assert left_out != config
    got = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": left_out})
    assert got.out == "no problems in 1 configuration\n"
    wrong = left_out.replace("Input {1}", "Input {3}").replace("LinearLayer {1}", "LinearLayer {3}")
    assert "'labels' has 3 elements, but the stream has 1" in cntkpy("check", "m.cntk", files={"m.cntk": wrong}).out
    other = left_out.replace("features", "words")
    assert "no stream for the input 'words'" in cntkpy("check", "m.cntk", files={"m.cntk": other}).out


def test_recurrent_networks(cntkpy) -> None:
    start, end = CONFIG.index("    BrainScript"), CONFIG.index("    SGD")
    builder = (
        "    SimpleNetworkBuilder = [ rnnType = SIMPLERNN ; layerSizes = 3:2:3 ; recurrentLayer = 1\n"
        "        trainingCriterion = crossEntropyWithSoftmax ; evalCriterion = crossEntropyWithSoftmax ]\n"
    )
    config = (CONFIG[:start] + builder + CONFIG[end:]).replace("MODE", "softmax").replace("TYPE", "nextWord")
    got = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": config})
    assert "m.cntk:5:28: error: the input 'labels' has 3 elements, but the stream has 1 - the dimension is" in got.out
