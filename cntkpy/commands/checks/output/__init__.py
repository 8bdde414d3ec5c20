"""The findings written out: text, JSON, annotations of GitHub Actions, SARIF, GitLab's code quality, JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cntkpy.commands.checks.findings import SEVERITIES, Finding
from cntkpy.commands.console import coloured

FORMATS = ("text", "json", "github", "sarif", "gitlab", "junit")


def write(
    results: Sequence[tuple[Sequence[str], Sequence[Finding]]],
    form: str,
    quiet: bool,
    colours: bool = False,
    records: int | None = None,
) -> str:
    """Return the findings in one of the `FORMATS`.

    Args:
        results: the words of each configuration, and its findings.
        form: one of `FORMATS`.
        quiet: no summary.
        colours: the severities of `text` are coloured.
        records: how many records were read of data that have more; None if all were read, or none.
    """
    findings = [finding for _, several in results for finding in several]
    if form == "json":
        return json.dumps({"version": 1, "findings": [as_data(finding) for finding in findings]}, indent=2) + "\n"
    if form in ("sarif", "gitlab", "junit"):
        return _report(results, form)
    line = _annotation if form == "github" else Finding.one_line
    text = "".join(line(finding) + "\n" for finding in findings)
    if form == "text" and colours:
        text = coloured(text)
    beginning = f"; only the beginning of the data was read (--records {records})" if records else ""
    return text if quiet else text + summary(findings, len(results)) + beginning + "\n"


def _report(results: Sequence[tuple[Sequence[str], Sequence[Finding]]], form: str) -> str:
    """Return the findings in a format that another program reads from a file; its module is imported on use."""
    if form == "sarif":
        from cntkpy.commands.checks.output.sarif import sarif

        return sarif(results)
    if form == "gitlab":
        from cntkpy.commands.checks.output.gitlab import gitlab

        return gitlab(results)
    from cntkpy.commands.checks.output.junit import junit

    return junit(results)


def summary(findings: Sequence[Finding], configurations: int) -> str:
    """Return the last line: `1 error, 2 warnings in 3 configurations`."""
    counts = [(sum(finding.severity == severity for finding in findings), severity) for severity in SEVERITIES]
    total = ", ".join(f"{count} {severity}{'s' * (count != 1)}" for count, severity in counts if count)
    return f"{total or 'no problems'} in {configurations} configuration{'s' * (configurations != 1)}"


def statistics(results: Sequence[tuple[Sequence[str], Sequence[Finding]]]) -> str:
    """Return the number of findings of each code, the most frequent first, and the last line of `text`.

    Args:
        results: The words of each configuration, and its findings.
    """
    findings = [finding for _, several in results for finding in several]
    counts = Counter(finding.rule for finding in findings)
    files = {rule: {finding.place[0] for finding in findings if finding.rule is rule} for rule in counts}
    lines = [
        f"{count:5}  {rule.code}  {rule.title} ({len(files[rule])} file{'s' * (len(files[rule]) != 1)})\n"
        for rule, count in sorted(counts.items(), key=lambda item: (-item[1], item[0].code))
    ]
    return "".join(lines) + summary(findings, len(results)) + "\n"


def as_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as data for JSON."""
    span = finding.diagnostic.span
    runs = {"runs": list(finding.runs)} if finding.runs else {}
    return runs | {
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
    """Return a workflow command of GitHub Actions, shown at the line of a pull request."""
    span = finding.diagnostic.span
    level = {"hint": "notice"}.get(finding.severity, finding.severity)
    message, place = f"{finding.diagnostic.message} - {finding.fix}{finding.in_brackets}", ""
    if span is not None and span.source.name.startswith("<"):
        message = f"{span}: {message}"  # GitHub knows no file for the command line
    elif span is not None:
        place = f"file={_property(span.source.name)},line={span.line},col={span.column},"
    return f"::{level} {place}title={finding.rule.code}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
