"""The findings as a SARIF file, with what GitHub's code scanning asks for besides the standard.

GitHub takes a result only with a place in a file of the repository, tells results apart by `primaryLocationLineHash`,
shows rules that have a full description, and takes 25,000 results of a run.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cntk_config.base.diagnostics import Span, printable
from cntk_config.base.kinds import RULES
from commands import __version__
from commands.checks.findings import Finding
from commands.words import is_config_word

MAX_RESULTS = 25_000
"""Results of a run that GitHub takes."""
_HOME = "https://github.com/cntkpy/cntkpy"
_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_INDEX = {rule.code: index for index, rule in enumerate(RULES)}


def sarif(found: Iterable[tuple[Sequence[str], Sequence[Finding]]]) -> str:
    """The text of a SARIF file.

    Args:
        found: the words of each configuration, and its findings.
    """
    places: Counter[str] = Counter()
    results = [_result(one, _file_of(words), places) for words, findings in found for one in findings]
    results.sort(key=lambda one: ("error", "warning", "note").index(one["level"]))
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
            "shortDescription": {"text": _sentence(rule.title)},
            "fullDescription": {"text": f"{_sentence(rule.title)} What to do: {_sentence(rule.fix)}"},
            "help": {"text": f"{_sentence(rule.fix)} See {rule.link}"},
            "helpUri": f"{_HOME}/blob/main/{rule.link}",
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in RULES
    ]
    return {"name": "cntkpy", "version": __version__, "informationUri": _HOME, "rules": rules}


def _result(finding: Finding, file: str, places: Counter[str]) -> dict[str, Any]:
    span = finding.diagnostic.span
    in_file = span is not None and not span.source.name.startswith("<")
    name = span.source.name if span is not None and in_file else file
    text = span.source.line(span.line) if span is not None and in_file else finding.diagnostic.message
    digest = hashlib.sha256(f"{finding.rule.code}\n{_uri(name)}\n{(text or '').strip()}".encode()).hexdigest()[:16]
    places[digest] += 1
    region = _region(span) if span is not None and in_file else {"startLine": 1}
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": _INDEX[finding.rule.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _sentence(f"{printable(finding.diagnostic.message)} - {printable(finding.fix)}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(name)}, "region": region}}],
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{places[digest]}"},
    }


def _region(span: Span) -> dict[str, int]:
    """The place of a finding; the end is after its last character."""
    end = span.column + max(1, span.length)
    return {"startLine": span.line, "startColumn": span.column, "endColumn": end}


def _file_of(words: Sequence[str]) -> str:
    """The file that a finding without a place, or on the command line, is shown in: the last one of a configuration."""
    first = next((word for word in words if is_config_word(word)), words[0])
    return first.partition("=")[2].split("+")[-1] if is_config_word(first) else first.split("+")[-1]


def _uri(name: str) -> str:
    """A path as GitHub wants it: relative to the current folder, which is that of the repository; else absolute."""
    path = Path(name)
    absolute = path.resolve()
    try:
        path = absolute.relative_to(Path.cwd().resolve())
    except ValueError:
        return absolute.as_uri()
    return quote(path.as_posix())


def _sentence(text: str) -> str:
    """The text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
