"""Configurations with what CNTK printed and wrote for them: README.md tells what they are and how to run them.

Without `-m golden` every eightieth runs, marked `quick`. What is known to differ is in differences.yaml: a case that
is not listed there has to agree, and a listed one has to differ, in the parts that are listed, and nowhere else in them
than the entry says.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from golden_cases import GOLDENS, Case, cases, declared, known

pytestmark = pytest.mark.golden

ALL = cases()
KNOWN = declared()
NOT_YET = {case.group for case in ALL if case.group in KNOWN}
RUNNABLE = [case for case in ALL if case.group not in NOT_YET]
QUICK = {case.id for case in [case for case in RUNNABLE if case.group != "runs" and case.id not in KNOWN][::80]}
DIFFERENCES = GOLDENS.parent.parent / "docs/differences.md"
INTERNAL = "internal error"


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.id, marks=[pytest.mark.quick] if case.id in QUICK else []) for case in RUNNABLE],
)
def test_golden(case: Case, cntkpy, tmp_path: Path) -> None:
    found = case.run(cntkpy, tmp_path)
    assert INTERNAL not in str(found.get("message", ""))
    differences = case.compare(found)
    text = "\n".join(map(str, differences[:20]))
    entry = known(case, KNOWN)
    if entry is None:
        assert case.accident or not differences, text
    elif entry.kind == "unfinished":
        assert differences, f"{case.id} agrees now: take it out of differences.yaml"
        pytest.xfail(entry.reason)
    else:
        assert {difference.part for difference in differences} == set(entry.parts), f"not as declared:\n{text}"
        masks = entry.parts
        if entry.changes:
            (tmp_path / "changed").mkdir()
            found = case.changed(entry.changes).run(cntkpy, tmp_path / "changed")
            masks = {"verdict": "", "status": "", **masks}
        more = "\n".join(map(str, case.compare(found, masks)[:20]))
        assert not more, f"differs where nothing is declared:\n{more}"


@pytest.mark.parametrize("group", sorted(NOT_YET))
def test_a_folder_that_is_not_supported_yet(group: str, cntkpy, tmp_path: Path) -> None:
    """One of its cases has to differ; the rest is not run."""
    for case in ALL:
        if case.group == group and not case.accident:
            folder = tmp_path / case.name
            folder.mkdir()
            found = case.run(cntkpy, folder)
            assert INTERNAL not in str(found.get("message", ""))
            if case.compare(found):
                pytest.xfail(KNOWN[group].reason)
    pytest.fail(f"{group} agrees now: take it out of differences.yaml")


@pytest.mark.quick
def test_every_declaration_is_about_a_golden() -> None:
    names = {case.id for case in ALL} | {case.group for case in ALL}
    assert KNOWN.keys() <= names


@pytest.mark.quick
def test_every_difference_on_purpose_has_its_line_in_the_documentation() -> None:
    lines = entries()
    missing = [
        name
        for name, entry in KNOWN.items()
        if entry.kind == "on purpose"
        and not any(entry.reason in line and cites(line, name.rpartition("/")[2]) for line in lines)
    ]
    assert not missing


@pytest.mark.quick
def test_every_golden_that_the_documentation_cites_is_declared() -> None:
    differing = DIFFERENCES.read_text(encoding="utf-8").partition("\n## The same as")[0]
    wrong = []
    for pattern in [token for line in entries(differing) for token in cited(line)]:
        matching = [case for case in ALL if fnmatchcase(case.id, f"*{pattern}")]
        if not matching or any(not case.accident and case.id not in KNOWN for case in matching):
            wrong.append(pattern)
    assert not wrong


def entries(text: str | None = None) -> list[str]:
    """The points of docs/differences.md, each on one line."""
    text = DIFFERENCES.read_text(encoding="utf-8") if text is None else text
    return [" ".join(point.split()) for point in re.split(r"^- |\n\n", text, flags=re.MULTILINE)]


def cited(line: str) -> list[str]:
    """The names of cases in the comments of a point, `*` included: `<!-- goldens: zoo_init/kinds, kinds_float -->`."""
    comments = re.findall(r"<!-- goldens: ([\w*/, ]+) -->", line)
    return [token for comment in comments for token in re.findall(r"[\w*/]+", comment)]


def cites(line: str, name: str) -> bool:
    """Whether the point names the case."""
    return any(fnmatchcase(name, token.rpartition("/")[2]) for token in cited(line))
