"""The findings as a code quality report of GitLab: a JSON array, the fields that GitLab's page on code quality lists.

GitLab shows a finding at a line of a file in the repository and tells findings apart by their fingerprint; of two with
one fingerprint it shows the first only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.output.places import Fingerprints, file_of, relative, sentence, span_of

_SEVERITIES = {"error": "major", "warning": "minor", "hint": "info"}
"""Of GitLab's info, minor, major, critical, blocker."""


def gitlab(results: Iterable[tuple[Sequence[str], Sequence[Finding]]]) -> str:
    """Return the text of a code quality report.

    Args:
        results: the words of each configuration, and its findings.
    """
    fingerprints = Fingerprints()
    issues = [
        _issue(finding, file_of(finding, words), fingerprints) for words, findings in results for finding in findings
    ]
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, file: str, fingerprints: Fingerprints) -> dict[str, Any]:
    span = span_of(finding)
    return {
        "description": sentence(
            f"{printable(finding.diagnostic.message)} - {printable(finding.fix)}{finding.in_brackets}"
        ),
        "check_name": finding.rule.code,
        "fingerprint": fingerprints.of(finding, file),
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": relative(file), "lines": {"begin": span.line if span else 1}},
    }
