"""`check` and the run agree: what runs has no error and no name that nothing reads; what is refused has an error.

Every golden is looked at in its folder. Whether it runs is known from what CNTK left, and from `differences.yaml`.
Without `-m golden` every twentieth is looked at.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_cases import GOLDENS, Case, cases, declared, known
from golden_cases.case import load_yaml

from cntkpy.commands.checks.check import findings
from cntkpy.commands.checks.findings import Finding

pytestmark = pytest.mark.golden

KNOWN = declared()


def _unfinished(case: Case) -> bool:
    entry = known(case, KNOWN)
    return entry is not None and entry.kind == "unfinished"


ALL = [case for case in cases() if not case.accident and not _unfinished(case)]
QUICK = {case.id for case in ALL[::20]}
NOTHING_READS = ("UnknownParameter", "UnusedParameter")
VERDICTS = ("status", "verdict")

ALLOWED = load_yaml(GOLDENS / "check.yaml")
UNREAD = {name.lower() for name in ALLOWED["unread"]}
ONLY_THE_RUN = {name for names in ALLOWED["only the run"].values() for name in names}
MISSING_FILE = "CK060"
"""A hint, since a configuration may be checked where its data are not; the run makes it an error."""
NAMED = re.compile(r"'(\w+)'")


class Answer:
    """What the runner of a case expects of a run; nothing was run."""

    code, out, err = 0, "", ""


def looked_at(case: Case, folder: Path) -> Iterator[list[Finding]]:
    """The findings of every step of a case."""
    steps: list[list[Finding]] = []

    def look(*words: str, cwd: Path) -> Answer:
        here = Path.cwd()
        os.chdir(cwd)
        try:
            steps.append(findings(list(words)))
        finally:
            os.chdir(here)
        return Answer()

    with contextlib.suppress(Exception):  # what a run leaves behind is missing
        case.run(look, folder)
    yield from steps


def runs(case: Case) -> list[bool]:
    """Whether the steps of a case run in cntkpy."""
    path = GOLDENS / case.group / "expected.yaml"
    expected = load_yaml(path)[case.name] if path.exists() and not case.group.startswith("random") else {}
    if not isinstance(expected, dict):
        return [True]
    if "verdict" in expected:
        accepted = [expected["verdict"] != "rejected"]
    else:
        accepted = [code == 0 for code in expected.get("rc", [0])]
    entry = known(case, KNOWN)
    turned = entry is not None and set(entry.parts) & set(VERDICTS)
    return [not one for one in accepted] if turned else accepted


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=[pytest.mark.quick] if case.id in QUICK else []) for case in ALL]
)
def test_check_agrees_with_the_run(case: Case, tmp_path: Path) -> None:
    steps = list(looked_at(case, tmp_path))
    for number, (found, accepted) in enumerate(zip(steps, [*runs(case), *[True] * len(steps)], strict=False), 1):
        if accepted:
            errors = [one.one_line() for one in found if one.severity == "error"]
            assert not errors, f"step {number} runs, but:\n" + "\n".join(errors)
            unread = [
                one.one_line() for one in found if one.diagnostic.kind in NOTHING_READS and _name(one) not in UNREAD
            ]
            assert not unread, f"step {number} reads them:\n" + "\n".join(unread)
        elif case.id not in ONLY_THE_RUN:
            severe = [one for one in found if one.severity == "error" or one.rule.code == MISSING_FILE]
            assert severe, f"step {number} is refused, but check has only:\n" + "\n".join(map(Finding.one_line, found))


def _name(finding: Finding) -> str:
    """The name that a finding is about."""
    named = NAMED.search(finding.diagnostic.message)
    return named[1].lower() if named else ""


@pytest.mark.quick
def test_every_exception_is_one() -> None:
    names = {case.id for case in ALL}
    assert not ONLY_THE_RUN - names
    assert not [case.id for case in ALL if case.id in ONLY_THE_RUN and all(runs(case))]
