"""Where the formats of code hosts show a finding: a file relative to the current folder, a line, a fingerprint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.words import is_config_word


class Fingerprints:
    """Texts that tell findings apart and stay the same when lines move: of the code, the file, the text of the line."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, finding: Finding, file: str) -> str:
        """`digest:n`, where n counts the findings with the same digest.

        Args:
            finding: the finding.
            file: the file it is shown in.
        """
        span = span_of(finding)
        text = span.source.line(span.line) if span else finding.diagnostic.message
        key = f"{finding.rule.code}\n{uri_of(file)}\n{(text or '').strip()}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"


def span_of(finding: Finding) -> Span | None:
    """The place of a finding in a file; None without a place, or for one on the command line."""
    span = finding.diagnostic.span
    return None if span is None or span.source.name.startswith("<") else span


def file_of(finding: Finding, words: Sequence[str]) -> str:
    """The file that a finding is shown in: its own, else the last one of the configuration."""
    span = span_of(finding)
    if span is not None:
        return span.source.name
    first = next((word for word in words if is_config_word(word)), words[0])
    return first.partition("=")[2].split("+")[-1] if is_config_word(first) else first.split("+")[-1]


def relative(name: str) -> str:
    """A path relative to the current folder (that of the repository), with `/`; outside of it the whole path."""
    absolute = Path(name).resolve()
    try:
        return absolute.relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return absolute.as_posix()


def uri_of(name: str) -> str:
    """The same as a URI; outside of the current folder `file:///...`."""
    absolute = Path(name).resolve()
    inside = absolute.is_relative_to(Path.cwd().resolve())
    return quote(relative(name)) if inside else absolute.as_uri()


def sentence(text: str) -> str:
    """The text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
