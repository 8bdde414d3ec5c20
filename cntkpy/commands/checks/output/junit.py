"""The findings as a JUnit report, in the form of Jenkins' `junit-10.xsd`, which GitLab and Azure read, too.

A configuration is a test suite, a finding a test case that failed. A hint does not change the exit status of `check`:
it is a test case that was skipped, with its text. A configuration without findings is one test case that passed.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Sequence

from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.output.places import file_of, relative

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def junit(results: Sequence[tuple[Sequence[str], Sequence[Finding]]]) -> str:
    """Return the text of a JUnit report.

    Args:
        results: the words of each configuration, and its findings.
    """
    root = xml.Element("testsuites", {"name": "cntkpy check"})
    for words, findings in results:
        root.append(_suite(words, findings))
    totals = {name: str(sum(int(suite.get(name, "0")) for suite in root)) for name in ("tests", "failures", "errors")}
    root.attrib.update(totals)
    xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _suite(words: Sequence[str], findings: Sequence[Finding]) -> xml.Element:
    name = _text(" ".join(words))
    hints = sum(finding.severity == "hint" for finding in findings)
    counts = {"tests": max(1, len(findings)), "failures": len(findings) - hints, "errors": 0, "skipped": hints}
    suite = xml.Element("testsuite", {"name": name, **{key: str(count) for key, count in counts.items()}})
    for finding in findings:
        suite.append(_case(finding, file_of(finding, words)))
    if not findings:
        xml.SubElement(suite, "testcase", {"name": "no problems", "classname": name, "time": "0"})
    return suite


def _case(finding: Finding, file: str) -> xml.Element:
    span = finding.diagnostic.span
    place = f" {span}" if span else ""
    case = xml.Element(
        "testcase", {"name": _text(f"{finding.rule.code}{place}"), "classname": _text(relative(file)), "time": "0"}
    )
    kind = "skipped" if finding.severity == "hint" else "failure"
    said = {"type": finding.severity, "message": _text(finding.diagnostic.message)}
    xml.SubElement(case, kind, said).text = _text(finding.one_line())
    return case


def _text(text: str) -> str:
    """Return the text with what XML cannot have written as Python writes it."""
    return _NO_XML.sub(lambda match: ascii(match[0])[1:-1], text)
