"""The warning of inputs that nobody scaled: none where batch normalisation follows."""

import pytest

CONFIG = """
command = train
deviceId = cpu
modelPath = run/m
train = [
    action = train
    BrainScriptNetworkBuilder = [
        x = Input {1}
        y = Input {1}
        z = NET
        c = SquareError (y, z, tag='criterion')
    ]
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.000001 ]
    reader = [ readerType = CNTKTextFormatReader ; file = d.ctf
        input = [ x = [ dim = 1 ; format = dense ] ; y = [ dim = 1 ; format = dense ] ] ]
]
"""
BATCH_NORM = "BatchNormalizationLayer {normalizationTimeConstant=10}"


@pytest.mark.parametrize(
    ("network", "warns"),
    [
        ("LinearLayer {1} (x)", True),
        (f"Sequential (LinearLayer {{1, bias=false}} : {BATCH_NORM}) (x)", False),
        (f"Sequential (LinearLayer {{1}} : {BATCH_NORM} : Sigmoid : LinearLayer {{1}}) (x)", False),
        (f"[ h = LinearLayer {{1}} (x) ; r = {BATCH_NORM} (h) + h ].r", True),  # one way goes around it
    ],
)
@pytest.mark.sampled
def test_inputs_that_are_not_normalised(network: str, warns: bool, cntkpy) -> None:
    files = {"m.cntk": CONFIG.replace("NET", network), "d.ctf": "|x 1000 |y 1\n|x 500 |y 2\n"}
    got = cntkpy("configFile=m.cntk", files=files)
    assert got.code == 0, got.err
    assert ("the values of the input 'x' reach 1000 and are not normalised" in got.err) == warns
