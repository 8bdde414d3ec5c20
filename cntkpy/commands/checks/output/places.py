"""Places of findings for code hosts: a file relative to the current folder, a line, a fingerprint."""

from __future__ import annotations

import bisect
import functools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from cntkpy.cntk_config.base.diagnostics import SourceLike, Span
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.words import is_config_word

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*+|//[^\n]*+)|"[^"\n]*+"|'[^'\n]*+'"""
    r"""|(?<![\w.*])(?P<name>[A-Za-z_][\w.*]*+)\s*+(?:=\s*+)?(?P<opener>[\[({])|(?P<bracket>[\[({])|(?P<closer>[\])}])"""
    r"""|(?<![\w.*])(?P<key>[A-Za-z_][\w.*]*+)\s*+=(?!=)|(?P<end>[;\n])"""
)
"""Signs that move through the sections of a text: brackets, names before them, and names of values."""
PLACES = re.compile(r":\d+(?::\d+)?\b|\bline \d+")
"""Lines in messages, which move when text above them changes."""


class Fingerprints:
    """Texts that tell findings apart and stay the same when lines move or another finding is mended (D21).

    A fingerprint is made of the code, the file, the message, and the sections and the name at which the finding stands.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, finding: Finding, file: str) -> str:
        """Return `digest:n`, where n counts the findings with the same digest.

        Args:
            finding: the finding.
            file: the file it is shown in.
        """
        span = span_of(finding)
        path = path_at(span.source, span.line, span.column) if span else ""
        message = PLACES.sub("", finding.diagnostic.message)
        key = f"{finding.rule.code}\n{uri_of(file)}\n{path}\n{message}"
        import hashlib

        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"


def path_at(source: SourceLike, line: int, column: int) -> str:
    """Return the sections around a place and the name whose value stands there: `train/SGD/maxEpochs`.

    Args:
        source: the file.
        line: from 1.
        column: from 1, in characters.
    """
    starts, paths, lines = _paths(source)
    offset = lines[min(line, len(lines)) - 1] + column - 1
    return paths[bisect.bisect_right(starts, offset) - 1]


@functools.lru_cache(16)
def _paths(source: SourceLike) -> tuple[list[int], list[str], list[int]]:
    """Return the offsets at which the path changes, the paths from there on, and the starts of lines."""
    lines: list[str] = []
    while (line := source.line(len(lines) + 1)) is not None:
        lines.append(line)
    text = "\n".join(lines)
    sections: list[str] = []
    name = ""
    starts, paths = [0], [""]
    for token in _TOKEN.finditer(text):
        if token["opener"] or token["bracket"]:
            sections.append(token["name"] or name)
            name = ""
        elif token["closer"]:
            name = ""
            del sections[-1:]
        elif token["key"]:
            name = token["key"]
        elif token["end"]:
            name = ""
        else:
            continue
        starts.append(token.start("opener" if token["opener"] else 0))
        paths.append("/".join((*sections, name)))
    return starts, paths, [0, *(match.end() for match in re.finditer("\n", text))]


def span_of(finding: Finding) -> Span | None:
    """Return the place of a finding in a file; None without a place, or for one on the command line."""
    span = finding.diagnostic.span
    return None if span is None or span.source.name.startswith("<") else span


def file_of(finding: Finding, words: Sequence[str]) -> str:
    """Return the file that a finding is shown in: its own, else the last one of the configuration."""
    span = span_of(finding)
    if span is not None:
        return span.source.name
    first = next((word for word in words if is_config_word(word)), words[0])
    return first.partition("=")[2].split("+")[-1] if is_config_word(first) else first.split("+")[-1]


def relative(name: str) -> str:
    """Return a path relative to the current folder (that of the repository), with `/`; outside of it the whole path."""
    absolute = Path(name).resolve()
    try:
        return absolute.relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return absolute.as_posix()


def uri_of(name: str) -> str:
    """Return the same as a URI; outside of the current folder `file:///...`."""
    absolute = Path(name).resolve()
    inside = absolute.is_relative_to(Path.cwd().resolve())
    return quote(relative(name)) if inside else absolute.as_uri()


def sentence(text: str) -> str:
    """Return the text with a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
