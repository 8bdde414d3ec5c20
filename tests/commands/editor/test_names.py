"""The language server's answers about names and values: outline, references, renaming, values, corrections."""

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.editor.fixes import fixes
from cntkpy.commands.editor.language import Analysis
from cntkpy.commands.editor.occurrences import occurrences, renamed
from cntkpy.commands.editor.symbols import Symbol, symbols

ROOT = Path(__file__).resolve().parents[3]
TEXT = """\
command = Train:eval       # Train, then eval
Dir = data
modelPath = $Dir$/m
Train = [
    action = train
    Dir = other            # hides the outer one
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [
        maxEpochs = 2
        learningRatesPerMB = 0.1
    ]
    reader = [ file = "$Dir$/t.ctf" ; input = [ features = [ dim = 2 ; format = dense ] ] ]
]
eval = [ action = test ; reader = [ file = $dir$/e.ctf ] ]
"""
SCRIPT = """\
f(x, size) = {
    inner = Times(W, x) ; W = Parameter(size, size)
}.inner
z = f(features, 3)
features = Input(3)
"""


NETWORK = """\
command = train
Dim = 2
train = [ action = train ; NDLNetworkBuilder = [ load = macros ; run = net ] ]
macros = [
    Affine(x, rows) {
        W = Parameter(rows, $Dim$)
        y = Times(W, x)
    }
]
net = [
    features = Input($Dim$)   # the data
    h = Affine(features, 3)
    z = Sigmoid(H.y)
    W = Parameter(3, 3, init=uniform)
    out = Times(W, z, tag=output)
    FeatureNodes = (features)
    OutputNodes = (out, h.y)
]
"""


def at(text: str, marked: str) -> tuple[int, int]:
    """Line and column, from 1, of the place `^` in a piece of the text."""
    piece = marked.replace("^", "")
    assert text.count(piece) == 1, piece
    offset = text.index(piece) + marked.index("^")
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def applied(text: str, spans, new: str) -> str:
    """The text with other words at some places."""
    lines = text.split("\n")
    for span in sorted(spans, key=lambda one: (one.line, -one.column)):
        line = lines[span.line - 1]
        lines[span.line - 1] = line[: span.column - 1] + new + line[span.column - 1 + span.length :]
    return "\n".join(lines)


def found(text: str = TEXT, name: str = "main.cntk") -> Analysis:
    return Analysis(text, name)


@pytest.mark.parametrize(
    ("marked", "lines"),
    [
        ("^Dir = data", [2, 3, 14]),
        ("modelPath = $D^ir$", [2, 3, 14]),
        ("file = $d^ir$/e", [2, 3, 14]),
        ("    ^Dir = other", [6, 12]),
        ('file = "$^Dir$/t', [6, 12]),
        ("command = Tra^in", [1, 4]),
        ("^Train = [", [1, 4]),
        (":ev^al  ", [1, 14]),
        ("maxEpo^chs", [9]),
        ("= ^data", []),
    ],
)
def test_references(marked: str, lines: list[int]) -> None:
    spans = occurrences(found(), *at(TEXT, marked))
    assert [span.line for span in spans] == lines
    words = {TEXT.split("\n")[one.line - 1][one.column - 1 :][: one.length].lower() for one in spans}
    assert len(words) <= 1


@pytest.mark.parametrize(
    ("marked", "lines"),
    [
        ("^f(x, size)", [1, 4]),
        ("Times(W, ^x)", [1, 2]),
        ("(^size, size)", [1, 2, 2]),
        ("f(^features", [4, 5]),
        ("^Times(W", []),
        ("^W = Par", [2, 2]),
    ],
)
def test_references_in_brainscript(marked: str, lines: list[int]) -> None:
    spans = occurrences(found(SCRIPT, "net.bs"), *at(SCRIPT, marked))
    assert [span.line for span in spans] == lines


def test_renaming_a_variable() -> None:
    one = found()
    new = applied(TEXT, renamed(one, *at(TEXT, "$D^ir$/m"), "Folder"), "Folder")
    assert new == (
        TEXT.replace("Dir = data", "Folder = data").replace("$Dir$/m", "$Folder$/m").replace("$dir$", "$Folder$")
    )
    new = applied(TEXT, renamed(one, *at(TEXT, "^Train = ["), "learn"), "learn")
    assert new.startswith("command = learn:eval       # Train, then eval\n")
    assert "\nlearn = [\n" in new
    again = found(new)
    assert [finding.rule.code for finding in again.findings()] == [finding.rule.code for finding in one.findings()]


def test_renaming_in_brainscript() -> None:
    one = found(SCRIPT, "net.bs")
    new = applied(SCRIPT, renamed(one, *at(SCRIPT, "(x, ^size)"), "n"), "n")
    assert new == SCRIPT.replace("size", "n")
    new = applied(SCRIPT, renamed(one, *at(SCRIPT, "f(^features"), "data"), "data")
    assert new == SCRIPT.replace("features", "data")


@pytest.mark.parametrize(
    ("marked", "new", "why"),
    [
        ("^Dir = data", "2x", "is not a name"),
        ("^Dir = data", "modelPath", "is a parameter of this section"),
        ("^Dir = data", "Train", "is defined already"),
        ("^maxEpochs", "epochs", "'maxEpochs' is a parameter"),
        ("^SGD = [", "sgd2", "'SGD' is a parameter"),
        ("= ^data", "x", "there is no variable"),
    ],
)
def test_what_cannot_be_renamed(marked: str, new: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        renamed(found(), *at(TEXT, marked), new)


def test_a_function_of_the_library_keeps_its_name() -> None:
    one = found(SCRIPT, "net.bs")
    with pytest.raises(UserError, match="library"):
        renamed(one, *at(SCRIPT, "^Times(W"), "x")
    with pytest.raises(UserError, match="used in this network already"):
        renamed(one, *at(SCRIPT, "^f(x"), "z")


def outline(one: Symbol) -> tuple[str, str, list]:
    return one.name, one.kind, [outline(part) for part in one.inside]


def test_the_outline() -> None:
    top = symbols(found())
    assert [(one.name, one.kind) for one in top] == [
        ("command", "value"),
        ("Dir", "value"),
        ("modelPath", "value"),
        ("Train", "command"),
        ("eval", "command"),
    ]
    train = top[3]
    assert (train.span.line, train.end) == (4, (13, 2))
    assert [one.name for one in train.inside] == ["action", "Dir", "SimpleNetworkBuilder", "SGD", "reader"]
    sgd = train.inside[3]
    assert outline(sgd) == ("SGD", "section", [("maxEpochs", "value", []), ("learningRatesPerMB", "value", [])])
    assert sgd.inside[0].detail == "2"
    assert sgd.end == (11, 6)


def test_the_outline_of_brainscript() -> None:
    top = symbols(found(SCRIPT, "net.bs"))
    assert [(one.name, one.kind) for one in top] == [("f", "function"), ("z", "member"), ("features", "member")]
    text = "t = [\n action = train\n BrainScriptNetworkBuilder = {\n  a = 1\n  b = { c = a }\n }\n]\n"
    (train,) = symbols(found(text))
    assert outline(train.inside[1]) == (
        "BrainScriptNetworkBuilder",
        "section",
        [("a", "member", []), ("b", "member", [("c", "member", [])])],
    )


def test_the_outline_of_ndl() -> None:
    macros, net = symbols(found(NETWORK))[3:]
    assert outline(macros)[2] == [("Affine", "function", [("W", "member", []), ("y", "member", [])])]
    assert (macros.inside[0].span.line, macros.inside[0].end) == (5, (7, 24))
    assert [one.name for one in net.inside] == ["features", "h", "z", "W", "out", "FeatureNodes", "OutputNodes"]


@pytest.mark.parametrize(
    ("marked", "places"),
    [
        ("    ^features = Input", [(11, 5), (12, 16), (16, 21)]),
        ("    ^h = Affine", [(12, 5), (13, 17), (17, 25)]),
        ("(out, h.^y)", [(7, 9), (13, 19), (17, 27)]),
        ("Affi^ne(features", [(5, 5), (12, 9)]),
        ("Times(^W, x)", [(6, 9), (7, 19)]),
        ("Times(^W, z", [(14, 5), (15, 17)]),
        ("Affine(x, ^rows", [(5, 15), (6, 23)]),
        ("Input($^Dim$)", [(2, 1), (6, 30), (11, 23)]),
        ("run = ^net", []),
        ("init=^uniform", []),
    ],
)
def test_where_a_name_of_ndl_occurs(marked: str, places: list[tuple[int, int]]) -> None:
    spans = occurrences(found(NETWORK), *at(NETWORK, marked))
    assert [(span.line, span.column) for span in spans] == places
    definition = found(NETWORK).definition(*at(NETWORK, marked))
    assert definition is None or not places or (definition.line, definition.column) == places[0]


def test_renaming_in_ndl() -> None:
    one = found(NETWORK)
    new = applied(NETWORK, renamed(one, *at(NETWORK, "(out, h.^y)"), "s"), "s")
    assert new == NETWORK.replace("y = Times", "s = Times").replace("H.y", "H.s").replace("h.y", "h.s")
    tagged = NETWORK.replace("out = Times", "output = Times").replace("(out,", "(output,")
    new = applied(tagged, renamed(found(tagged), *at(tagged, "    ^output = Times"), "out"), "out")
    assert new == NETWORK, "the tag stays"
    new = applied(NETWORK, renamed(one, *at(NETWORK, "    ^features = Input"), "data"), "data")
    assert new == NETWORK.replace("features", "data")


@pytest.mark.parametrize(
    ("marked", "new", "why"),
    [
        ("    ^h = Affine", "z", "'z' is used in this network already"),
        ("Times(^W, x)", "features", "'features' is used in this network already"),
        ("    ^h = Affine", "times", "'times' is a function"),
        ("    ^FeatureNodes", "data", "'featurenodes' is the name of a group of nodes"),
        ("    ^h = Affine", "a.b", "is not a name"),
    ],
)
def test_what_cannot_be_renamed_in_ndl(marked: str, new: str, why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)):
        renamed(found(NETWORK), *at(NETWORK, marked), new)


@pytest.mark.parametrize(
    ("marked", "expected", "not_there"),
    [
        ("format = ^dense", ["dense", "sparse"], ["dim", "format"]),
        ("command = ^Train", ["Train", "eval"], ["Dir", "modelPath"]),
        ("action = ^test", ["train", "test", "write"], ["modelPath"]),
        ("trainingCriterion = ^Square", ["crossEntropyWithSoftmax", "squareError"], ["layerSizes"]),
        ("maxEpochs = ^2", [], ["maxEpochs", "useNAG"]),
    ],
)
def test_values(marked: str, expected: list[str], not_there: list[str]) -> None:
    values = found().values(*at(TEXT, marked))
    assert values is not None
    assert set(expected) <= set(values)
    assert not set(not_there) & set(values)


def test_values_of_a_boolean_a_reader_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/t.ctf").touch()
    text = TEXT.replace("maxEpochs = 2", "useNAG = t").replace(
        'reader = [ file = "', 'reader = [ readerType = C ; file = "'
    )
    text = text.replace('"$Dir$/t.ctf"', '"data/t')
    one = Analysis(text, str(tmp_path / "main.cntk"), Analysis(TEXT, str(tmp_path / "main.cntk")))
    assert one.values(*at(text, "useNAG = t^\n")) == ["true", "false"]
    assert "CNTKTextFormatReader" in (one.values(*at(text, "readerType = C^")) or [])
    assert one.values(*at(text, 'file = "data/t^')) == ["data/t.ctf"]


def test_no_values_where_a_name_is_written() -> None:
    for marked in ("^Dir = data", "    ^SGD", "modelPath = $^Dir$/m"):
        assert found().values(*at(TEXT, marked)) is None


PAGES = [
    (page, block)
    for page in ("errors.md", *(f"findings/{path.name}" for path in sorted((ROOT / "docs/findings").glob("*.md"))))
    for block in re.findall(r"```ini[^\n]*\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
]


def test_every_did_you_mean_of_the_pages_is_a_correction() -> None:
    """The examples of the pages of errors and findings: what is corrected is not found any more."""
    asked = corrected = 0
    for _, text in PAGES:
        one = found(text)
        offered = list(fixes(one, 1, len(one.lines)))
        asked += sum(
            "did you mean" in finding.fix
            and finding.diagnostic.span is not None
            and finding.diagnostic.span.source.name == one.name
            for finding in one.findings()
        )
        for fix in offered:
            after = found(applied(text, fix.spans, fix.new))
            left = [finding.diagnostic.message for finding in after.findings()]
            assert fix.finding.diagnostic.message not in left, (text, fix)
            corrected += 1
    assert corrected == asked
    assert corrected >= 11


def test_a_correction_of_a_part() -> None:
    text = TEXT.replace("action = train", "action = trian").replace("SquareError ;", "SquareErorr ;")
    (first,) = fixes(found(text), 1, 99)
    assert not list(fixes(found(text), 8, 9))
    text = applied(text, first.spans, first.new)
    (second,) = fixes(found(text), 1, 99)
    assert applied(text, second.spans, second.new) == TEXT.replace("= SquareError ; eval", "= squareError ; eval")


NDL_FILE = """\
# features and labels
Affine(x, rows) {
    W = Parameter(rows, $Dim$)   # W here
    y = Times(W, x)
}
features = Input($Dim$)
h = Affine(features, 3)
W = Parameter(3, 3)
out = Times(W, h.y, tag=output)
"""
NDL_SECTIONS = f"load = macros\nrun = net\nmacros = [\n{NDL_FILE[: NDL_FILE.index('features = ')]}]\nnet = [\n" + (
    NDL_FILE[NDL_FILE.index("features = ") :] + "]\n"
)


@pytest.mark.parametrize("text", [NDL_FILE, NDL_SECTIONS])
def test_a_file_in_ndl_that_is_opened_by_itself(text: str) -> None:
    document = found(text, "/nets/net.ndl")
    assert document.findings() == []
    outline = symbols(document)
    assert [(one.name, one.kind) for one in outline] == [
        ("Affine", "function"),
        ("features", "member"),
        ("h", "member"),
        ("W", "member"),
        ("out", "member"),
    ]
    assert [one.name for one in outline[0].inside] == ["W", "y"]
    inside = applied(text, renamed(document, *at(text, "^W = Parameter(rows"), "V"), "V")
    assert inside == text.replace("W = Parameter(rows", "V = Parameter(rows").replace("Times(W, x)", "Times(V, x)")
    spans = occurrences(document, *at(text, "h.^y"))
    assert [span.line for span in spans] == [text[: text.index(piece)].count("\n") + 1 for piece in ("y = T", "h.y")]
    defined = document.definition(*at(text, "Affine(^features"))
    assert defined is not None and defined.line == at(text, "^features = Input")[0]
    assert "Times" in (document.hover(*at(text, "= ^Times(W, h")) or "")
    with pytest.raises(UserError, match="used in this network already"):
        renamed(document, *at(text, "^h = Affine"), "out")


def test_a_file_in_ndl_that_cannot_be_read() -> None:
    before = found(NDL_FILE, "/nets/net.ndl")
    text = NDL_FILE.replace("Input($Dim$)", "Input($Dim$")
    document = Analysis(text, "/nets/net.ndl", before)
    (wrong,) = document.findings()
    assert (wrong.severity, wrong.place[1]) == ("error", 6)
    assert [one.name for one in symbols(document)][:2] == ["Affine", "features"]
