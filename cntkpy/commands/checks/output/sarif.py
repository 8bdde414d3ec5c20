"""The findings as a SARIF file, with what GitHub's code scanning asks for besides the standard.

GitHub takes a result only with a place in a file of the repository, tells results apart by `primaryLocationLineHash`,
shows rules that have a full description, and takes 25,000 results of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from cntkpy import __version__
from cntkpy.cntk_config.base.diagnostics import Span, printable
from cntkpy.cntk_config.base.kinds import RULES
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.output.places import Fingerprints, file_of, sentence, span_of, uri_of

MAX_RESULTS = 25_000
"""Results of a run that GitHub takes."""
_HOME = "https://github.com/cntkpy/cntkpy"
_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_INDEX = {rule.code: index for index, rule in enumerate(RULES)}


def sarif(checked: Iterable[tuple[Sequence[str], Sequence[Finding]]]) -> str:
    """Return the text of a SARIF file.

    Args:
        checked: the words of each configuration, and its findings.
    """
    fingerprints = Fingerprints()
    results = [
        _result(finding, file_of(finding, words), fingerprints) for words, findings in checked for finding in findings
    ]
    results.sort(key=lambda finding: ("error", "warning", "note").index(finding["level"]))
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "results": results[:MAX_RESULTS],
    }
    if len(results) > MAX_RESULTS:
        left_out = f"{len(results):,} findings; the {MAX_RESULTS:,} worst are listed"
        run["invocations"] = [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [{"level": "warning", "message": {"text": left_out}}],
            }
        ]
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _driver() -> dict[str, Any]:
    rules = [
        {
            "id": rule.code,
            "shortDescription": {"text": sentence(rule.title)},
            "fullDescription": {"text": f"{sentence(rule.title)} What to do: {sentence(rule.fix)}"},
            "help": {"text": f"{sentence(rule.fix)} See {rule.link}"},
            "helpUri": rule.link,
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in RULES
    ]
    return {"name": "cntkpy", "version": __version__, "informationUri": _HOME, "rules": rules}


def _result(finding: Finding, file: str, fingerprints: Fingerprints) -> dict[str, Any]:
    span = span_of(finding)
    region = _region(span) if span else {"startLine": 1}
    text = f"{printable(finding.diagnostic.message)} - {printable(finding.fix)}{finding.in_brackets}"
    properties = {"properties": {"runs": list(finding.runs)}} if finding.runs else {}
    return properties | {
        "ruleId": finding.rule.code,
        "ruleIndex": _INDEX[finding.rule.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": sentence(text)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri_of(file)}, "region": region}}],
        "partialFingerprints": {"primaryLocationLineHash": fingerprints.of(finding, file)},
    }


def _region(span: Span) -> dict[str, int]:
    """Return the place of a finding; the end is after its last character."""
    end = span.column + max(1, span.length)
    return {"startLine": span.line, "startColumn": span.column, "endColumn": end}
