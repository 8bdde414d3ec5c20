"""Findings of many runs: each once, with the runs that show it; those that a missing layer causes are one."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
from cntkpy.cntk_config.base.files import read_input
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.folders import SUFFIXES
from cntkpy.commands.checks.targets import Target
from cntkpy.commands.words import OPEN

if TYPE_CHECKING:
    from cntkpy.commands.projects.project import Project, Run

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
                kept.append(finding._replace(runs=tuple(showing[key]), of_runs=total[folder]))
        result.append((target, kept))
    return result


def suites(results: Iterable[Result]) -> list[tuple[list[str], list[Finding]]]:
    """Return the findings of each configuration under the name of its run, for formats that show each run by itself.

    Args:
        results: Configurations and their findings.
    """
    ordered = list(results)
    listed = {_key(finding): finding for _, findings in merged(ordered) for finding in findings}
    return [
        ([target.run.name], [listed[_key(finding)] for finding in findings]) if target.run else (target.line, findings)
        for target, findings in ordered
    ]


def _key(finding: Finding) -> tuple[str, ...]:
    diagnostic = finding.diagnostic
    return finding.rule.code, diagnostic.kind, str(diagnostic.span), diagnostic.message, finding.severity


class Causes:
    """Layers that runs lack: files of a project that define variables which runs do not know.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self._definers = _Definers(_files_below(project.folder, project.is_excluded))

    def grouped(self, run: Run, findings: list[Finding]) -> list[Finding]:
        """Return the findings of a run, with one in place of all undefined variables that a layer defines.

        Args:
            run: The run.
            findings: Its findings.
        """
        unknown = {id(finding): match["name"] for finding in findings if (match := _undefined(finding))}
        if not unknown:
            return findings
        lacking = self._definers.of(unknown.values(), run.files)
        kept = [finding for finding in findings if unknown.get(id(finding), "").lower() not in lacking]
        for file in dict.fromkeys(lacking.values()):
            several = [finding for finding in findings if lacking.get(unknown.get(id(finding), "").lower()) == file]
            kept.append(Finding.of(_cause(run, file, several, [unknown[id(finding)] for finding in several])))
        return kept


class _Definers:
    """Files that define names at their top level, read on first use.

    Args:
        files: The files.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = files
        self._by_name: dict[str, list[Path]] | None = None

    def of(self, names: Iterable[str], known: Sequence[Path] = ()) -> dict[str, Path]:
        """Return a file that defines each name, as few files as possible; names that none defines are left out.

        Args:
            names: The names.
            known: Files that are read already.
        """
        pending = {name.lower() for name in names}
        lacking: dict[str, Path] = {}
        while pending:
            counts = Counter(file for name in pending for file in self._definers(name) if file not in known)
            if not counts:
                break
            file = max(counts, key=lambda path: (counts[path], -len(path.parts), str(path)))
            defined = {name for name in pending if file in self._definers(name)}
            lacking |= dict.fromkeys(defined, file)
            pending -= defined
        return lacking

    def _definers(self, name: str) -> list[Path]:
        if self._by_name is None:
            self._by_name = {}
            for path in self._files:
                for defined in _top_level_names(path):
                    self._by_name.setdefault(defined, []).append(path)
        return self._by_name.get(name, [])


def _files_below(folder: Path, is_excluded: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the configurations in a folder and below."""
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix in SUFFIXES and not is_excluded(path):
                count += 1
                if count > MAX_FILES:
                    return
                yield path


def without_project(results: Sequence[Result]) -> list[Result]:
    """Return the findings of files, with one in place of all undefined variables that one file next to them defines.

    Findings of runs stay as they are; so do those of a single file.

    Args:
        results: Configurations and their findings.
    """
    alone = [(target, findings) for target, findings in results if target.run is None]
    unknown = {
        id(finding): match["name"].lower()
        for _, findings in alone
        for finding in findings
        if (match := _undefined(finding)) is not None
    }
    if len(alone) < 2 or not unknown:
        return list(results)
    folders = dict.fromkeys(Path(place).resolve().parent for place in _places(alone, unknown))
    definers = _Definers([path for folder in folders for path in _in_folder(folder)])
    lacking = definers.of(unknown.values())
    needing: dict[Path, list[Finding]] = {}
    for _, findings in alone:
        for finding in findings:
            if (file := lacking.get(unknown.get(id(finding), ""))) is not None:
                needing.setdefault(file, []).append(finding)
    grouped = {file: several for file, several in needing.items() if len(several) > 1}
    dropped = {id(finding) for several in grouped.values() for finding in several}
    first = {id(several[0]): file for file, several in grouped.items()}
    return [
        (
            target,
            [
                Finding.of(_not_joined(first[id(finding)], grouped[first[id(finding)]]))
                if id(finding) in first
                else finding
                for finding in findings
                if id(finding) not in dropped or id(finding) in first
            ],
        )
        for target, findings in results
    ]


def _places(results: Iterable[Result], unknown: Mapping[int, str]) -> Iterator[str]:
    """Yield the files with undefined variables."""
    for _, findings in results:
        for finding in findings:
            span = finding.diagnostic.span
            if id(finding) in unknown and span is not None and not span.source.name.startswith("<"):
                yield span.source.name


def _in_folder(folder: Path) -> list[Path]:
    """Return the configurations in a folder and in the one above."""
    try:
        return [
            path for parent in (folder, folder.parent) for path in sorted(parent.iterdir()) if path.suffix in SUFFIXES
        ]
    except OSError:
        return []


def _not_joined(file: Path, findings: Sequence[Finding]) -> Diagnostic:
    """Return the finding of a file whose variables configurations need that do not read it."""
    shown = os.path.relpath(file)
    listed = _listed(match["name"] for finding in findings if (match := _undefined(finding)) is not None)
    spans = [span for finding in findings if (span := finding.diagnostic.span) is not None]
    files = dict.fromkeys(span.source.name for span in spans)
    message = f"{shown} defines {listed}, which {len(files)} file{'s' * (len(files) != 1)} without it need"
    example = next(iter(files), "FILE")
    hint = f"check {shown}+{example}; or write include={shown}; or say in cntkpy.toml which files make a run"
    return Diagnostic("MissingLayer", message, spans[0] if spans else None, hint, tuple(_needed_at(findings)))


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    surplus = f" and {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    return ", ".join(f"${name}$" for name in distinct[:SHOWN]) + surplus


def _needed_at(findings: Iterable[Finding]) -> list[str]:
    places = [str(span) for finding in findings if (span := finding.diagnostic.span) is not None]
    return [f"needed at {place}" for place in dict.fromkeys(places)][:SHOWN]


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
    message = f"{shown} is not among the files of this run; it defines {_listed(names)}"
    hint = f"add {shown} to files, before what needs it"
    return Diagnostic("MissingLayer", message, run.files_span, hint, tuple(_needed_at(findings)))


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
