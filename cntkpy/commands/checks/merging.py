"""Findings of many runs: each once, with the runs that show it; those that a missing layer causes are one."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
from cntkpy.cntk_config.base.files import read_input
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.folders import SUFFIXES
from cntkpy.commands.checks.targets import Target
from cntkpy.commands.projects.project import Project, Run
from cntkpy.commands.words import OPEN

MAX_FILES = 2000
"""Files of a project that are searched for definitions of variables."""
SHOWN = 4
"""Places or names that a message lists; the others are counted."""
_UNDEFINED = re.compile(r"(?:the variable )?\$(?P<name>[^$]+)\$ is not (?:defined|given)")

Result = tuple[Target, list[Finding]]


def merged(results: Iterable[Result]) -> list[Result]:
    """Return the findings of runs, each with the first run that shows it and with the names of all that do.

    Args:
        results: Configurations and their findings.
    """
    ordered = list(results)
    total = Counter(target.project.folder for target, _ in ordered if target.run is not None and target.project)
    showing: dict[tuple[str, ...], list[str]] = {}
    for target, findings in ordered:
        if target.run is not None:
            for finding in findings:
                names = showing.setdefault(_key(finding), [])
                if target.run.name not in names:
                    names.append(target.run.name)
    done: set[tuple[str, ...]] = set()
    result: list[Result] = []
    for target, findings in ordered:
        if target.run is None:
            result.append((target, findings))
            continue
        folder = target.project.folder if target.project is not None else Path()
        kept: list[Finding] = []
        for finding in findings:
            key = _key(finding)
            if key not in done:
                done.add(key)
                kept.append(replace(finding, runs=tuple(showing[key]), of_runs=total[folder]))
        result.append((target, kept))
    return result


def _key(finding: Finding) -> tuple[str, ...]:
    diagnostic = finding.diagnostic
    return finding.rule.code, diagnostic.kind, str(diagnostic.span), diagnostic.message, finding.severity


class Causes:
    """Layers that runs lack: files of a project that define variables which runs do not know.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._definers: dict[str, list[Path]] | None = None

    def grouped(self, run: Run, findings: list[Finding]) -> list[Finding]:
        """Return the findings of a run, with one in place of all undefined variables that a layer defines.

        Args:
            run: The run.
            findings: Its findings.
        """
        unknown = {id(finding): match["name"] for finding in findings if (match := _undefined(finding))}
        if not unknown:
            return findings
        pending = {name.lower() for name in unknown.values()}
        lacking: dict[str, Path] = {}
        for _ in range(len(pending)):
            counts = Counter(file for name in pending for file in self._files(name) if file not in run.files)
            if not counts:
                break
            file = max(counts, key=lambda path: (counts[path], -len(path.parts), str(path)))
            defined = {name for name in pending if file in self._files(name)}
            lacking |= dict.fromkeys(defined, file)
            pending -= defined
        kept = [finding for finding in findings if unknown.get(id(finding), "").lower() not in lacking]
        for file in dict.fromkeys(lacking.values()):
            several = [finding for finding in findings if lacking.get(unknown.get(id(finding), "").lower()) == file]
            kept.append(Finding.of(_cause(run, file, several, [unknown[id(finding)] for finding in several])))
        return kept

    def _files(self, name: str) -> list[Path]:
        if self._definers is None:
            self._definers = {}
            for path in self._candidates():
                for defined in _top_level_names(path):
                    self._definers.setdefault(defined, []).append(path)
        return self._definers.get(name, [])

    def _candidates(self) -> Iterator[Path]:
        count = 0
        for folder, folders, names in os.walk(self._project.folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if path.suffix in SUFFIXES and not self._project.is_excluded(path):
                    count += 1
                    if count > MAX_FILES:
                        return
                    yield path


def _undefined(finding: Finding) -> re.Match[str] | None:
    return _UNDEFINED.match(finding.diagnostic.message) if finding.diagnostic.kind in OPEN else None


def _top_level_names(path: Path) -> list[str]:
    try:
        root = parse(read_input(path).decode("utf-8", "replace"), str(path))
    except (OSError, ConfigError):
        return []
    return [name.lower() for name in root.names()]


def _cause(run: Run, file: Path, findings: Sequence[Finding], names: Sequence[str]) -> Diagnostic:
    shown = os.path.relpath(file)
    distinct = list(dict.fromkeys(names))
    listed = ", ".join(f"${name}$" for name in distinct[:SHOWN])
    surplus = f" and {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    places = [str(span) for finding in findings if (span := finding.diagnostic.span) is not None]
    notes = [f"needed at {place}" for place in dict.fromkeys(places)][:SHOWN]
    message = f"{shown} is not among the files of this run; it defines {listed}{surplus}"
    return Diagnostic(
        "MissingLayer", message, run.files_span, f"add {shown} to files, before what needs it", tuple(notes)
    )


def placed(run: Run, line: Sequence[str], diagnostic: Diagnostic) -> Diagnostic:
    """Return a finding in a word of a run with its place in the project file.

    Args:
        run: The run.
        line: Its command line, as it was checked.
        diagnostic: The finding.
    """
    span = diagnostic.span
    argument = getattr(span.source, "argument", None) if isinstance(span, Span) else None
    place = run.place(argument, line) if argument is not None else None
    return replace(diagnostic, span=place) if place is not None else diagnostic
