"""The comparison of goldens finds what differs, and nothing else."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
from golden_cases import cases
from golden_cases.case import GOLDENS, load_yaml
from golden_cases.figures import FiguresCase, Near, replaced
from golden_cases.lines import LineRule, LinesCase, compare_lines, figures_of_log, htk_lines, masked, shape_of_log
from golden_cases.runs import Row, rows_of_log

NEAR = Near(1e-6, 1e-9)
RULE = LineRule(1e-5, 2e-7)
CASES = {case.id: case for case in cases()}


@pytest.mark.parametrize(
    ("expected", "found", "count"),
    [
        ({"a": [1.0, 2]}, {"A": [1.0000009, 2], "more": 1}, 0),
        ({"a": [1.0, 2]}, {"a": [1.000003, 2]}, 1),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, 1),
        ({"a": [1]}, {}, 1),
        ({"a": {"b": 1}}, {"a": 1}, 1),
        (["nan", 1e-12], ["nan", 0], 0),
        (["nan"], [0.0], 1),
        (["shape 2 3"], ["shape 2 4"], 1),
    ],
)
def test_nested_numbers(expected: object, found: object, count: int) -> None:
    assert len(list(NEAR.differences(expected, found, ""))) == count


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (" Epoch[ 1 of 2]: ce = 1.00000 * 20", "Epoch[ 1 of 2]:   ce = 1.000001 * 20", True),
        ("ce = 1.00000 * 20", "ce = 1.0001 * 20", False),
        ("ce = 1.00000 * 20", "ce = 1.00000 * 21", False),
        ("ce = 1.0 * 20", "err = 1.0 * 20", False),
        ("ce = 1.0", "ce = 1.0 2.0", False),
        ("ce = nan", "ce = nan", True),
        ("ce = nan", "ce = 1.0", False),
        ("name12 = 1.0", "name13 = 1.0", False),
    ],
)
def test_lines(expected: str, found: str, same: bool) -> None:
    assert RULE.same(expected, found) is same


def test_blanks_and_bytes_count_where_they_should() -> None:
    assert not LineRule(1e-5, 0, blanks=True).same("a  1.0", "a 1.0")
    assert not LineRule(1e-5, 0, exact=True).same("1.0", "1.00")


def test_files_that_are_missing_or_too_many_differ() -> None:
    assert not list(compare_lines("files", "f", None, None, RULE))
    assert list(compare_lines("files", "f", ["1"], None, RULE))
    assert list(compare_lines("files", "f", None, ["1"], RULE))
    assert list(compare_lines("files", "f", ["1"], ["1", "2"], RULE))


LOG = """\
08/15/2016 03:04:05: ##############################
08/15/2016 03:04:05: # t command (train action)     #
INFO: chatter
Finished Epoch[ 1 of 2]: [Training] ce = 0.5 * 20; totalSamplesSeen = 20; learningRatePerSample = 0.01; epochTime=1.5s
Final Results: Minibatch[1-2]: ce = 0.25 * 10; perplexity = 1.28402542
# v command (test action)
Final Results: Minibatch[1-2]: ce = 0.25 * 10; perplexity = 1.28402542
"""


def test_what_is_taken_from_a_log() -> None:
    assert figures_of_log(LOG)[:2] == [
        "# t command (train action)",
        "Finished Epoch[ 1 of 2]: [Training] ce = 0.5 * 20; totalSamplesSeen = 20; learningRatePerSample = 0.01",
    ]
    shape = shape_of_log("before\n" + LOG)
    assert shape[0] == "<DATE>: ##############################"
    assert len(shape) == 6 and shape[2].endswith("epochTime=<T>s")
    rows = list(rows_of_log(LOG.replace("08/15/2016 03:04:05: ", "")))
    assert [row.what for row in rows] == [("t", "Training", 1), ("v", "Final", 0)]
    expected = Row.parse("t", "Training", "1", "ce=0.5*20", "learningRatePerSample=0.01")
    assert expected.agrees(rows[0], double=True)
    assert not Row.parse("t", "Training", "1", "ce=0.5001*20", "learningRatePerSample=0.01").agrees(rows[0], True)


def test_htk_files_are_read_frame_by_frame() -> None:
    content = bytes.fromhex("00000002 000186a0 0004 0009") + bytes.fromhex("3f800000 c0000000")
    assert htk_lines(content) == ["HTK frames 2 period 100000 dim 1 kind 9 bytes 20", "1", "-2"]


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    "name", ["networks/zoo_shape/slices", "networks/mel/error_unknown_node", "readers/sgd/plain", "runs/updates:double"]
)
def test_a_program_that_does_nothing_fails(name: str, code: int, tmp_path: Path) -> None:
    """Also where CNTK refused, because nothing says what was refused."""
    found = CASES[name].run(lambda *_, cwd: SimpleNamespace(code=code, out="", err=""), tmp_path)
    assert CASES[name].compare(found)


def test_one_digit_makes_the_difference() -> None:
    case = CASES["networks/zoo_linear/products"]
    assert isinstance(case, FiguresCase)
    expected = load_yaml(GOLDENS / case.group / "expected.yaml")[case.name]
    found = {"message": "", **copy.deepcopy(expected)}
    assert not case.compare(found)
    file = next(iter(found["outputs"]))
    found["outputs"][file][1][0] += 1e-4
    assert [difference.part for difference in case.compare(found)] == ["outputs"]


def test_what_is_declared_to_differ_does_not_count_and_everything_else_does() -> None:
    case = CASES["networks/zoo_init/kinds"]
    expected = load_yaml(GOLDENS / case.group / "expected.yaml")[case.name]
    found = {"message": "", **copy.deepcopy(expected)}
    values = found["parameters"]["model"]
    values["a35"][0][1] += 1
    assert not case.compare(found, {"parameters": "/model/a35.*"})
    values["a34"][0][0] += 1
    assert len(case.compare(found, {"parameters": "/model/a35.*"})) == 1


def test_lines_are_compared_without_what_is_declared() -> None:
    lines = ["ce = 1.0 * 20; err = 2.0 * 20", "stopped"]
    assert masked(lines, None) == lines and masked(None, "x") is None
    assert masked(lines, "(?<=ce = )[^ ]*|stopped") == ["ce =  * 20; err = 2.0 * 20"]
    assert masked(lines, ".*") is None  # as a file that does not exist


def test_a_case_is_changed_where_its_script_says_so() -> None:
    case = CASES["networks/zoo_errors/reshape_time"]
    assert isinstance(case, FiguresCase)
    assert replaced("z = Reshape(x, 2)", {"Reshape(x, 2)": "Negate(x)", "": "a=b"}) == "z = Negate(x)"
    with pytest.raises(AssertionError, match="not in the script"):
        replaced("z = x", {"Negate": ""})
    other = CASES["readers/actions/test_unknown_node"].changed({"": "a=b"})
    assert isinstance(other, LinesCase) and other.spec["args"][-1] == "a=b"


def test_goldens_are_marked_in_their_folder_only() -> None:
    """`pytest -m golden tests/goldens`, as the pages have it, runs them all."""
    tests = Path(__file__).parent
    marked = [path for path in tests.rglob("test_*.py") if ".mark.golden" in path.read_text(encoding="utf-8")]
    others = [path for path in marked if path != Path(__file__) and tests / "goldens" not in path.parents]
    assert len(marked) > 2 and not others
