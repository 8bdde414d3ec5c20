"""`truncated` of a reader alone: where it is an error, and where it says all there is to say."""

import pytest

TRAIN = """\
command = train
modelPath = m
train = [
    action = train
    NDLNetworkBuilder = [ run = net ; net = [
        x = Input (2, tag=feature)
        y = Input (1, tag=label)
        w = Parameter (1, 2, init=fixedValue, value=0.1)
        d = PastValue (1, h, timeStep=1)
        h = Plus (Times (w, x), d)
        ce = SquareError (y, h, tag=criterion)
        OutputNodes = (h)
    ] ]
    SGD = [ SGD_PART maxEpochs = 1 ; minibatchSize = 8 ; learningRatesPerMB = 0.02 ; momentumPerMB = 0.5 ]
    reader = [ READER ]
]
"""
COMPOSITE = (
    "truncated = WORD ; truncationLength = 2 ; randomize = false ; deserializers = ( [\n"
    "        type = CNTKTextFormatDeserializer ; file = d.ctf\n"
    "        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 1 ; format = dense ] ] ] )"
)
SPEECH = {
    "HTKMLFReader": "features = [ dim = 2 ; scpFile = f.scp ] ; labels = [ dim = 1 ; mlfFile = l.mlf ]",
    "Kaldi2Reader": 'features = [ dim = 2 ; scpFile = f ; rx = "ark:f" ] ; labels = [ dim = 1 ; mlfFile = "ark:l" ]',
}
DATA = "".join(f"{i // 5}\t|x {i} {i % 3}\t|y {i % 2}\n" for i in range(20))
REFUSED = "truncated is given for the reader but not for SGD"


def config(reader: str, sgd: str = "") -> str:
    return TRAIN.replace("READER", reader).replace("SGD_PART", f"{sgd} ; " if sgd else "")


@pytest.mark.parametrize("word", ["true", "false"])
def test_a_composite_reader_alone(word: str, cntkpy) -> None:
    """Its minibatchSize counts samples, so rates per minibatch mean the same whether SGD says `false` or nothing."""
    reader = COMPOSITE.replace("WORD", word)
    alone = cntkpy("configFile=m.cntk", "train=[modelPath=a]", files={"d.ctf": DATA, "m.cntk": config(reader)})
    assert alone.code == 0, alone.err
    both = cntkpy("configFile=m.cntk", "train=[modelPath=b]", files={"m.cntk": config(reader, "truncated=false")})
    criteria = [
        [line.split("; epochTime")[0] for line in got.err.splitlines() if "Epoch[" in line and "ce =" in line]
        for got in (alone, both)
    ]
    assert criteria[0] and criteria[0] == criteria[1]


@pytest.mark.parametrize("kind", SPEECH)
def test_readers_of_speech(kind: str, cntkpy) -> None:
    """Their minibatchSize is the length of the pieces: `true` is needed by both, and `false` says what is so anyway."""
    reader = f"readerType = {kind} ; frameMode = WORD ; Truncated = TRUNCATED ; {SPEECH[kind]}"
    off = config(reader.replace("WORD", "true").replace("TRUNCATED", "false"))
    assert REFUSED not in cntkpy("check", "m.cntk", files={"m.cntk": off}).out
    on = config(reader.replace("WORD", "false").replace("TRUNCATED", "true"))
    got = cntkpy("check", "m.cntk", files={"m.cntk": on})
    assert f"error: {REFUSED}, which converts rates per minibatch with it" in got.out
    assert REFUSED not in cntkpy("check", "m.cntk", "truncated=true").out
    wrong = cntkpy("check", "m.cntk", files={"m.cntk": on.replace("Truncated = true", "Truncated = 7")})
    assert "Truncated: '7' is not a boolean" in wrong.out
