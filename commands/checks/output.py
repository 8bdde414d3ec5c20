"""The findings written out: text, JSON, annotations of GitHub Actions, SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cntk_config.base.kinds import RULES
from commands import __version__
from commands.checks.findings import SEVERITIES, Finding

FORMATS = ("text", "json", "github", "sarif")
_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}


def write(findings: Sequence[Finding], configurations: int, form: str, quiet: bool) -> str:
    """The findings in one of the `FORMATS`."""
    if form == "json":
        return json.dumps({"version": 1, "findings": [as_data(one) for one in findings]}, indent=2) + "\n"
    if form == "sarif":
        return json.dumps(_sarif(findings), indent=2) + "\n"
    line = _annotation if form == "github" else Finding.one_line
    text = "".join(line(one) + "\n" for one in findings)
    return text if quiet else text + summary(findings, configurations) + "\n"


def summary(findings: Sequence[Finding], configurations: int) -> str:
    """`1 error, 2 warnings in 3 configurations`."""
    counts = [(sum(one.severity == severity for one in findings), severity) for severity in SEVERITIES]
    found = ", ".join(f"{count} {severity}{'s' * (count != 1)}" for count, severity in counts if count)
    return f"{found or 'no problems'} in {configurations} configuration{'s' * (configurations != 1)}"


def as_data(finding: Finding) -> dict[str, Any]:
    """One finding for JSON."""
    span = finding.diagnostic.span
    return {
        "code": finding.rule.code,
        "kind": finding.diagnostic.kind,
        "severity": finding.severity,
        "message": finding.diagnostic.message,
        "file": span.source.name if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "length": span.length if span else None,
        "fix": finding.fix,
        "notes": list(finding.diagnostic.notes),
        "docs": finding.rule.link,
    }


def _annotation(finding: Finding) -> str:
    """A workflow command of GitHub Actions, shown at the line of a pull request."""
    span = finding.diagnostic.span
    level = {"hint": "notice"}.get(finding.severity, finding.severity)
    place = f"file={_property(span.source.name)},line={span.line},col={span.column}," if span else ""
    message = f"{finding.diagnostic.message} - {finding.fix}"
    return f"::{level} {place}title={finding.rule.code}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    rules = [
        {
            "id": rule.code,
            "shortDescription": {"text": rule.title},
            "help": {"text": f"{rule.fix}; see {rule.link}"},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in RULES
    ]
    driver = {"name": "cntkpy", "version": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(one) for one in findings]}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    span = finding.diagnostic.span
    result: dict[str, Any] = {
        "ruleId": finding.rule.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.diagnostic.message} - {finding.fix}"},
    }
    if span is not None:
        region = {"startLine": span.line, "startColumn": span.column, "endColumn": span.column + max(1, span.length)}
        artifact = {"uri": span.source.name.replace("\\", "/")}
        result["locations"] = [{"physicalLocation": {"artifactLocation": artifact, "region": region}}]
    return result
