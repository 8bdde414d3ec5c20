# ruff: noqa: E501 - cases on one line each
"""All errors of a network in one go: each wrong place once, and nothing that only follows from it."""

import re

import pytest

SGD = "SGD=[ maxEpochs=1 ; learningRatesPerMB=0.1 ]"
READER = "reader=[ readerType=CNTKTextFormatReader ; file=x.txt ; input=[ features=[ dim=4 ; format=dense ] ; labels=[ dim=3 ; format=dense ] ] ]"


def places(output: str) -> list[str]:
    """Return line, column and code of each finding but hints of files."""
    return [
        f"{line}:{column} {code}"
        for line, column, code in re.findall(r"^[\w.]+:(\d+):(\d+): .*\[(CK\d+)\]$", output, re.MULTILINE)
        if code != "CK060"
    ]


def ndl(*lines: str) -> str:
    body = "\n".join(("features = Input(4, tag=feature)", "labels = Input(3, tag=label)", *lines))
    section = f"train=[ action=train ; NDLNetworkBuilder=[ run=net ] ; {SGD} ; {READER} ]"
    return f"command=train ; modelPath=m ; {section}\nnet=[\n{body}\n]\n"


def brain_script(*lines: str) -> str:
    body = "\n".join(("features = Input {4}", "labels = Input {3}", *lines))
    return f"command=train ; modelPath=m ; train=[ action=train ; {SGD} ; {READER} ; BrainScriptNetworkBuilder={{\n{body}\n}} ]\n"


NDL_CASES = {
    "independent names, functions, options and shapes": (
        ("h=Sigmod(features)", "W=Parameter(3, 5)", "z=Times(W, features)", "b=Parameter(3, 1, init=zorro)",
         "c=Plus(features, missing)", "d=Plus(features, absent)"),
        ["5:3 CK051", "7:3 CK053", "8:24 CK024", "9:18 CK051", "10:18 CK051"],
    ),
    "what depends on a wrong node": (
        ("h=Sigmod(features)", "a=Tanh(h)", "b=Plus(a, h)", "OutputNodes=(b)", "ce=SquareError(labels, b, tag=criterion)"),
        ["5:3 CK051"],
    ),
    "a wrong shape and a loop above it": (
        ("W=Parameter(3, 5)", "z=Times(W, features)", "p=PastValue(3, 1, q)", "q=Plus(p, z)"),
        ["6:3 CK053"],
    ),
    "a shape that only the wrong node would tell": (
        ("W=Parameter(3, 0)", "h=Sigmod(features)", "z=Times(W, h)", "s=Sigmoid(z)"),
        ["6:3 CK051"],
    ),
    "both operands of one call": (("c=Plus(missing, absent)",), ["5:8 CK051", "5:17 CK051"]),
    "two wrong calls inside one": (("c=Plus(Sigmod(features), Tahn(features))",), ["5:8 CK051", "5:26 CK051"]),
    "statements that cannot be read": (
        ("W=Parameter(3 4)", "z=Times(W, features)", "V=Parameter(3", "  4 5)", "y=Times(V, features)", "t=Sigmod(features)"),
        ["5:14 CK052", "8:4 CK052", "10:3 CK051"],
    ),
    "the body of a macro": (
        ("M(x) {", "  a=Sigmod(x)", "  b=Plus(a, x)", "  c=Plus(x, missing)", "  y=Plus(b, c)", "}", "h=M(features)", "i=M(labels)",
         "j=M(features, labels)"),
        ["6:5 CK051", "8:13 CK051", "13:3 CK052"],
    ),
    "a macro that cannot be defined": (("M(x) {", "  y=M(x)", "}", "h=M(features)", "OutputNodes=(h)"), ["6:5 CK050"]),
    "a tag and a name of a group": (
        ("z=Sigmoid(features, tag=outptu)", "OutputNodes=(zz)", "EvalNodes=(yy)"), ["5:25 CK052", "6:14 CK051", "7:12 CK051"],
    ),
    "a constant": (("n=Sigmod(features)", "W=Parameter(n, 4)", "V=Parameter(k, 4)"), ["5:3 CK051", "7:13 CK052"]),
    "a name twice": (("a=Sigmoid(features)", "a=Tanh(features)", "b=Tahn(a)"), ["6:1 CK054", "7:3 CK051"]),
}  # fmt: skip
BRAIN_SCRIPT_CASES = {
    "independent members": (
        ("h = Sigmod (features)", "W = Parameter {3, 5}", "z = W * features", "b = Parameter {3, 1, inti='uniform'}",
         "c = features + missing", "ce = SquareError (labels, features)"),
        ["4:5 CK051", "6:7 CK053", "7:22 CK052", "8:16 CK051", "9:6 CK053"],
    ),
    "what depends on a wrong member": (
        ("h = Sigmod (features)", "a = Tanh (h)", "b = a + h", "outputNodes = (b)", "criterionNodes = (a)"), ["4:5 CK051"],
    ),
    "both operands of one call": (("c = Plus (missing, absent)", "d = one + two"),
                                  ["4:11 CK051", "4:20 CK051", "5:5 CK051", "5:11 CK051"]),
    "layers of one model": (
        ("model = Sequential (", "  DenseLayer {10, activtion=ReLU} :", "  RelU :", "  DenseLayer {3, int='uniform'}", ")",
         "z = model (features)"),
        ["5:19 CK052", "6:3 CK051", "7:18 CK052"],
    ),
    "the record of a function": (
        ("f (x) = {", "  a = Sigmod (x)", "  b = Tahn (a)", "  c = a + b + missing", "}.c", "s = f (features)", "t = f (labels)"),
        ["5:7 CK051", "6:7 CK051", "7:15 CK051"],
    ),
    "branches that are not taken": (("a = if true then features else nowhere", "b = Tahn (a)"), ["5:5 CK051"]),
    "lines that cannot be read": (
        ("this is none", "h = Sigmod (features)", "g = Plus (features,, features)", "i = g + features", "j = Tahn (i)"),
        ["4:6 CK050", "5:5 CK051", "6:20 CK050", "8:5 CK051"],
    ),
    "a delay whose operand is wrong": (
        ("p = PastValue (4, missing)", "q = p + features", "r = Tahn (q)"), ["4:19 CK051", "6:5 CK051"],
    ),
    "a circle": (("a = b + 1", "b = a + 1", "c = a + b", "d = Tahn (features)"), ["5:5 CK054", "7:5 CK051"]),
    "a function without an end": (("f (x, n) = f (x, n + 1)", "a = f (features, 1)", "d = Tahn (features)"),
                                  ["4:12 CK050", "6:5 CK051"]),
    "nodes of groups": (("z = Sigmoid (features)", "outputNodes = (zz)", "criterionNodes = (ww)"), ["5:16 CK051", "6:19 CK051"]),
}  # fmt: skip


@pytest.mark.parametrize("case", NDL_CASES)
def test_ndl(case: str, cntkpy) -> None:
    lines, expected = NDL_CASES[case]
    result = cntkpy("check", "a.cntk", files={"a.cntk": ndl(*lines)})
    assert places(result.out) == expected, result.out


@pytest.mark.parametrize("case", BRAIN_SCRIPT_CASES)
def test_brain_script(case: str, cntkpy) -> None:
    lines, expected = BRAIN_SCRIPT_CASES[case]
    result = cntkpy("check", "a.cntk", files={"a.cntk": brain_script(*lines)})
    assert places(result.out) == expected, result.out


def test_simple_network_builder(cntkpy) -> None:
    builder = (
        "layerSizes=4:0:3\nlayerTypes=Sigmod\ntrainingCriterion=CrossEntropyWithSoftmx\nevalCriterion=ErorPrediction\n"
    )
    text = f"command=train ; modelPath=m ; train=[ action=train ; {SGD} ; {READER} ; SimpleNetworkBuilder=[\n{builder}] ]\n"
    result = cntkpy("check", "a.cntk", files={"a.cntk": text})
    assert [place.split(":")[0] for place in places(result.out)] == ["2", "3", "4", "5"], result.out


def test_editing_scripts(cntkpy) -> None:
    script = (
        'm = LoadModel("m.dnn")', "CopyNode(m.zz, m.y)", "SetInput(m.y, 0, m.z)", "A = Parameter(3 3)", "B = Tims(A, z)",
        "C = Sigmoid(nothere)", "D = Plus(C, absent)", "SetInput(ce, 1, B)", "DeletNode(m.ce)", "RemoveNode(m.qq)",
        "n = LoadModel(42)", "CopyNode(n.a, m.b)", 'SaveModel(m, "out.dnn")',
    )  # fmt: skip
    network = "features=Input(4, tag=feature)\nlabels=Input(3, tag=label)\nz=Times(Parameter(3, 4), features)\n"
    files = {
        "a.cntk": f"command=train:edit ; modelPath=m.dnn ; train=[ action=train ; {SGD} ; {READER}\n"
        "NDLNetworkBuilder=[ run=net ] ]\nedit=[ action=edit ; editPath=x.mel ]\n"
        f"net=[\n{network}ce=CrossEntropyWithSoftmax(labels, z, tag=criterion)\n]\n",
        "x.mel": "\n".join(script),
    }
    result = cntkpy("check", "a.cntk", files=files)
    expected = ["2:10 CK051", "4:16 CK052", "5:5 CK051", "6:13 CK051", "7:13 CK051", "9:1 CK050", "10:12 CK051"]
    assert places(result.out) == expected, result.out


def test_a_run_stops_at_once_with_all_errors(cntkpy) -> None:
    text = ndl("h=Sigmod(features)", "i=Tahn(features)", "j=Plus(h, i)", "ce=SquareError(features, j, tag=criterion)")
    result = cntkpy("run", "a.cntk", files={"a.cntk": text, "x.txt": "|features 1 2 3 4 |labels 1 0 0\n"})
    assert result.code == 2
    assert "undefined function or macro 'Sigmod'" in result.err and "undefined function or macro 'Tahn'" in result.err
    assert "2 errors in all" in result.err and "'j'" not in result.err
