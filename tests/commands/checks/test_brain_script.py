"""`check` evaluates networks in BrainScript: names, arguments, shapes and streams, each at its place."""

import pytest

CONFIG = """command = train
train = [
    action = train ; modelPath = run/m
    BrainScriptNetworkBuilder = {
        x = Input {3}
        l = Input {2}
        z = DenseLayer {2} (x)
        ce = CrossEntropyWithSoftmax (l, z)
        criterionNodes = (ce)
    }
    SGD = [ minibatchSize = 4 ; learningRatesPerSample = 0.1 ; maxEpochs = 2 ]
    reader = [ readerType = CNTKTextFormatReader ; file = t.ctf
        input = [ x = [ dim = 3 ; format = dense ] ; l = [ dim = 2 ; format = dense ] ] ]
]
"""
WRONG = {
    "name": ("(l, z)", "(l, zz)", "8:42", "unknown identifier 'zz'", "CK051"),
    "argument": ("DenseLayer {2}", "DenseLayer {2, bais=false}", "7:28", "has no parameter 'bais'", "CK052"),
    "syntax": ("(l, z)", "(l z)", "8:41", "'z' is not expected here", "CK050"),
    "shape": ("DenseLayer {2}", "DenseLayer {5}", "8:14", "the two must have the same shape", "CK053"),
    "stream": ("l = Input", "l = SparseInput {2} y = Input", "6:33", "no stream for the input 'y'", "CK055"),
    "dimension": ("Input {3}", "Input {4}", "5:13", "has 4 elements, but the stream has 3", "CK056"),
    "criterion": ("criterionNodes = (ce)", "", "", "no training criterion", "CK054"),
}


@pytest.mark.parametrize("case", WRONG)
def test_findings(cntkpy, case: str) -> None:
    before, after, place, message, code = WRONG[case]
    found = cntkpy("check", "m.cntk", files={"m.cntk": CONFIG.replace(before, after), "t.ctf": "|x 1 2 3 |l 1 0\n"})
    assert found.code == (1 if case == "stream" else 2)  # nothing that is trained needs that input
    line = next(line for line in found.out.splitlines() if code in line)
    assert message in line
    assert f"m.cntk:{place}" in line


def test_nothing_is_found_in_a_right_one(cntkpy) -> None:
    found = cntkpy("check", "m.cntk", files={"m.cntk": CONFIG, "t.ctf": "|x 1 2 3 |l 1 0\n"})
    assert (found.code, "error" in found.out) == (0, False), found.out


@pytest.mark.parametrize("second", ["others = l", "match = (l) ; labelNodes = (match)"])
def test_a_second_name_of_an_input(cntkpy, second: str) -> None:
    """The input has one name only, which is that of its stream; CNTK takes the second one, too."""
    config = CONFIG.replace("l = Input {2}", f"l = Input {{2}}\n        {second}")
    name = second.split()[0]
    data = {"t.ctf": "|x 1 2 3 |l 1 0\n"}
    found = cntkpy("check", "m.cntk", files={"m.cntk": config, **data})
    hint = f"'{name} = l' gives the input another name: write {name} = Pass (l)"
    assert f"m.cntk:6:13: error: the reader has no stream for the input '{name}' - {hint}" in found.out
    mended = config.replace(second, second.replace("= l", "= Pass (l)").replace("= (l)", "= Pass (l)"))
    assert "error" not in cntkpy("check", "m.cntk", files={"m.cntk": mended, **data}).out
