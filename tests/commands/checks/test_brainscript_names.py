"""Members of a network in BrainScript that nothing uses, and streams that no input reads: hints of `check` only."""

CONFIG = """command = train
modelPath = m
train = [
    action = train
    BrainScriptNetworkBuilder = {
        include "macros.bs"
        x = Input {2} ; y = Input {3, tag='label'}
        z = Double (LinearLayer {3} (x))
        n = 5
        side = Sigmoid (z)
        ce = CrossEntropyWithSoftmax (y, z, tag='criterion')
        shown = Print (z)
        outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf
        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 3 ; format = dense ]
            more = [ dim = 1 ; format = dense ] ]
    ]
]
"""
FILES = {
    "m.cntk": CONFIG,
    "macros.bs": "Double (x) = x + x\nTriple (x) = x + x + x\n",
    "a.ctf": "|x 1 2 |y 0 0 1 |more 3\n",
}


def test_what_nothing_uses(cntkpy):
    got = cntkpy("check", "m.cntk", files=FILES)
    assert got.code == 0, got.out
    unused = "hint: nothing uses the member '{}' of the network - remove it, or name it in outputNodes [CK011]"
    assert got.out.splitlines() == [
        f"m.cntk:9:9: {unused.format('n')}",
        f"m.cntk:10:9: {unused.format('side')}",
        "m.cntk:18:28: hint: no input of the network reads the stream 'more' - the inputs are x, y [CK011]",
        "3 hints in 1 configuration",
    ]


def test_what_another_command_asks_for_is_used(cntkpy):
    evaluate = "evaluate = [ action = eval ; evalNodeNames = side ]\n"
    text = evaluate + CONFIG.replace("command = train", "command = train:evaluate", 1)
    got = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": text})
    assert [line.split("'")[1] for line in got.out.splitlines() if "nothing uses the member" in line] == ["n"]


def test_a_file_of_its_own(cntkpy):
    got = cntkpy("check", "macros.bs", files=FILES)
    assert (got.code, got.out) == (0, "no problems in 1 configuration\n")
    got = cntkpy("check", "macros.bs", files={"macros.bs": "Double (x) = x +\n"})
    assert got.code == 2
    assert "macros.bs:1:17: error: an operand is expected, not the end" in got.out
